"""Comparisons and figures show themselves in a notebook."""

import gradebook
from gradebook.output.figures import MOST

BUG = gradebook.bug("partial_groups")


def test_a_comparison_shows_verdict_rows_and_stages():
    both = gradebook.compare(BUG, gradebook.load("partial_groups").batch())
    text = both._repr_html_()
    # The scenario's numbers, worked out by hand: row 10 is +1 and -0.480.
    assert "<b>+1.000 → −0.480</b>" in text
    assert "The engines part at the stage group." in text
    assert "<svg" in text and "FLIP" in text
    assert "<script" not in text
    text = gradebook.figures.stage_figure(both, "advantage", 10)._repr_html_()
    assert "<svg" in text and "FLIP" in text


def test_engines_that_agree_are_said_to_agree():
    batch = gradebook.Batch(["a", "a"], [1.0, 0.0])
    found = gradebook.compare(BUG, batch)
    said, stages = found._repr_html_().split("</summary>")
    assert "Both engines agree on all 2 rows." in said and "→" not in stages


def test_a_bug_in_the_loss_shows_in_the_gradient():
    bug = gradebook.bug("zero_std_kl")
    found = gradebook.compare(bug, gradebook.load("zero_std_kl").batch())
    assert "KL part of the gradient" in found._repr_html_()


def test_long_batches_are_cut_to_rows_that_differ():
    """Ten full groups of four agree; a group of three moves all that
    follow it into other groups."""
    sizes = [4] * 10 + [3] + [4] * 14
    prompt = [at for at, size in enumerate(sizes) for _ in range(size)]
    rows = len(prompt)
    batch = gradebook.Batch(prompt, [float(r * r % 7) for r in range(rows)])
    found = gradebook.compare(BUG, batch)
    text = found._repr_html_()
    assert f"{rows - MOST} more rows are not shown." in text
    differs = found.differs("advantage").nonzero().flatten().tolist()
    assert min(differs) >= 40 and len(differs) > MOST
    for row in range(rows):
        shown = f">{row}  {prompt[row]}<" in text
        assert shown == (row in differs[:MOST])
