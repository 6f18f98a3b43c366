"""Comparisons and figures display themselves in a notebook."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import gradebook
from gradebook.output.notebook import html, summary

ROOT = Path(__file__).parents[2]
BUG = gradebook.bug("partial_groups")


@pytest.fixture(scope="module")
def cells():
    """The outputs of the notebook's cells, one dict of data each."""
    path = Path(__file__).with_name("example.ipynb")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, resources={"metadata": {"path": ROOT}}, timeout=120
    )
    client.execute()
    return [
        [output.data for output in cell.outputs if "data" in output]
        for cell in notebook.cells
    ]


@pytest.mark.long
def test_a_comparison_shows_verdict_rows_and_stages(cells):
    (shown,) = cells[0]
    text = shown["text/html"]
    # The scenario's numbers, worked out by hand: row 10 is +1 and -0.480.
    assert "<b>+1.000 → −0.480</b>" in text
    assert "The engines part at the stage group." in text
    assert "<svg" in text and "FLIP" in text
    assert "<script" not in text


def test_a_figure_shows_itself(cells):
    shown = cells[1][-1]
    figure = shown["application/vnd.plotly.v1+json"]
    assert figure["data"][2]["marker"]["symbol"] == "circle"
    assert figure["data"][3]["marker"]["symbol"] == "diamond-open"
    # What a viewer without Plotly shows.
    assert shown["text/plain"] == "<Figure of 5 traces, for Plotly>"


def test_engines_that_agree_are_said_to_agree():
    batch = gradebook.Batch(["a", "a"], [1.0, 0.0])
    found = gradebook.compare(BUG, batch)
    assert summary(found) == "Both engines agree on all 2 rows."
    assert "→" not in html(found).split("</summary>")[1]


def test_a_bug_in_the_loss_shows_in_the_gradient():
    record = next(
        gradebook.bug(name)
        for name in gradebook.BUGS
        if not gradebook.bug(name).in_advantages
    )
    batch = gradebook.load(record.name).batch()
    found = gradebook.compare(record, batch)
    assert summary(found).endswith("part of the gradient.")
    assert "policy part of the gradient" in html(found)


def test_long_batches_are_cut_to_rows_that_differ():
    """Ten full groups of four agree; a group of three moves all that
    follow it into other groups."""
    sizes = [4] * 10 + [3] + [4] * 14
    prompt = [at for at, size in enumerate(sizes) for _ in range(size)]
    rows = len(prompt)
    batch = gradebook.Batch(prompt, [float(r * r % 7) for r in range(rows)])
    found = gradebook.compare(BUG, batch)
    text = html(found)
    assert f"{rows - 24} more rows are not shown." in text
    differs = found.differs("advantage").nonzero().flatten().tolist()
    assert min(differs) >= 40 and len(differs) > 24
    for row in range(rows):
        shown = f">{row}  {prompt[row]}<" in text
        assert shown == (row in differs[:24])
