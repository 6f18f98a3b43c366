"""Numbers to Plotly figures: lists in, figures out, without Streamlit.

A figure is a dict of data and layout, as plotly.js takes it. A notebook
shows it as a picture where Plotly is installed; to make one needs no Plotly.

>>> import gradebook
>>> scenario, bug = gradebook.load("partial_groups"), "partial_groups"
>>> both = gradebook.compare(gradebook.bug(bug), scenario.batch())
>>> figure = gradebook.figures.stage_figure(both, "baseline")
>>> sorted(figure)
['data', 'layout']
"""

from gradebook.output.figures.base import Figure
from gradebook.output.figures.rows import rows_figure, stage_figure

__all__ = ["Figure", "rows_figure", "stage_figure"]
