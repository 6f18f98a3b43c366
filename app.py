"""Gradebook's app: `streamlit run app.py`."""

from gradebook.ui.shell import app

app()
