"""Rows as SVG and in a notebook, Plotly's charts, and what a panel says in words."""

import math
import xml.etree.ElementTree as ET

import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plotly.tools import return_figure_from_figure_or_data

import gradebook
from gradebook.analysis.comparison import Influences, compare, influences
from gradebook.cases.scenario import names
from gradebook.output.axes import bent, unit_of
from gradebook.output.charts import (
    Ready,
    curves_figure,
    dose_figure,
    map_figure,
    timeline_figure,
)
from gradebook.output.figures import MOST, picture, rows_figure, stage_figure
from gradebook.output.panels import Panel, stage_panel, symlog
from gradebook.training.environments import MEASURES
from gradebook.training.study import study

NAN, INF = math.nan, math.inf


def both(name):
    scenario = gradebook.load(name)
    return compare(gradebook.bug(scenario.bug), scenario.batch())


def marks(svg, kind):
    tag = f"{{http://www.w3.org/2000/svg}}{kind}"
    return [e for e in ET.fromstring(svg) if e.tag == tag]


def words(svg):
    return [e.text for e in marks(svg, "text")]


# Rows as SVG


def test_a_picture_marks_both_sides_of_each_row():
    text = picture(
        Panel("advantage", [1.0, -1.0], [-1.0, -1.0], [True, False]), ["A", "B"]
    )
    circles, diamonds = marks(text, "circle"), marks(text, "path")
    assert len(circles) == len(diamonds) == 2
    zero = [e for e in marks(text, "line") if e.get("x1") == e.get("x2")]
    assert len(zero) == 1
    left, right = float(circles[1].get("cx")), float(circles[0].get("cx"))
    assert left < float(zero[0].get("x1")) < right
    assert diamonds[0].get("d").startswith(f"M{left} ")
    assert words(text).count("FLIP") == 1
    thick = [e for e in marks(text, "line") if e.get("stroke-width") == "5"]
    assert len(thick) == 1 and len(marks(text, "rect")) == 1


def test_a_row_without_a_value_has_no_mark():
    text = picture(Panel("advantage", [1.0, NAN], [1.0, NAN]), ["A", "A"])
    assert len(marks(text, "circle")) == len(marks(text, "path")) == 1
    assert "nan" not in text.lower()


def test_a_stage_has_its_digits_beside_the_marks():
    """Rows 8 to 11 as one group: mean 25.75, deviation 49.5067."""
    text = stage_figure(both("partial_groups"), "scale", 10)
    assert words(text).count("1.000 → 49.507") == 4
    assert any(word.startswith("▸10") for word in words(text))
    text = stage_figure(both("partial_groups"), "advantage", 10)
    assert "1.000 → −0.480" in words(text) and words(text).count("FLIP") == 1


@pytest.mark.parametrize(
    "name, stage, correct, faulty, said",
    [
        ("partial_groups-tail", "group", None, [0] * 4 + [1] * 4 + [-1] * 3, "none"),
        ("no_eos_outliers", "counted", [True, False], [True, True], "no → yes"),
        (
            "zero_std_kl",
            "learns",
            # Rows 0 and 1 are flat: their tokens learn without the guard only.
            [0, 0, 3, 3],
            [2, 2, 3, 3],
            "0 → 2",
        ),
    ],
)
def test_a_stage_of_groups_of_flags_and_of_tokens(name, stage, correct, faulty, said):
    panel = stage_panel(both(name), stage)
    assert correct is None or panel.correct == correct
    assert panel.faulty == faulty
    assert said in " ".join(words(stage_figure(both(name), stage)))


def test_of_many_rows_the_selected_and_the_differing_ones_are_drawn():
    prompt = [0] * 81 + [1] * 19
    batch = gradebook.Batch(prompt, [float(r % 3) for r in range(100)])
    comparison = gradebook.compare(gradebook.bug("partial_groups"), batch)
    differs = comparison.differs("advantage")
    text = stage_figure(comparison, "advantage", 5)
    assert len(marks(text, "circle")) == MOST
    drawn = {int(w.strip("▸").split()[0]) for w in words(text)[: 2 * MOST : 2]}
    assert 5 in drawn
    rest = sorted(differs.nonzero().flatten().tolist())[: MOST - 1]
    assert {*rest} <= drawn
    assert f"{100 - MOST} more rows are not drawn" in text
    assert f"{100 - MOST} more rows are not shown." in comparison._repr_html_()


def test_a_bug_in_the_loss_is_drawn_by_its_gradient():
    assert "KL part of the gradient" in rows_figure(both("zero_std_kl"))
    assert "advantage" in rows_figure(both("zero_std_kl"), "advantage")


# The axis


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_symlog_keeps_sign_and_order(a, b):
    assert symlog(a) * a >= 0 and symlog(-a) == -symlog(a)
    assert abs(symlog(a)) == pytest.approx(math.log10(1 + abs(a)))
    if a < b:
        assert symlog(a) <= symlog(b)


@pytest.mark.parametrize(
    "correct, faulty, squashed",
    [
        ([1, -1, 0, 1], [1, -1, 1e5, 2e5], True),
        ([1, -1, 0, 1], [1, -1, 0.5, -2], False),
        ([0, 0], [-49.5, 0], False),
        ([1, 1, -40, 1], [1, 1, 1, 1], True),
        ([1, 1, -11, 1], [1, 1, 1, 1], False),
        ([0.01, 1, 1, 1], [1, 1, 1, 1], False),
        ([1, 1, 1, NAN], [1, 1, INF, 1], False),
        ([], [], False),
    ],
)
def test_a_value_that_would_squash_the_others(correct, faulty, squashed):
    assert (unit_of([*correct, *faulty]) is not None) == squashed


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.sampled_from([1e-3, 1, 10]))
def test_a_bent_axis_keeps_sign_and_order(a, b, unit):
    assert bent(a, unit) * a >= 0 and bent(-a, unit) == -bent(a, unit)
    if a < b:
        assert bent(a, unit) <= bent(b, unit)


# Plotly's charts


@pytest.mark.parametrize("name", names())
def test_plotly_accepts_every_map(name):
    comparison = both(name)
    moved = influences(gradebook.bug(name.split("-")[0]).engine, comparison.batch)
    prompts = [str(p) for p in comparison.batch.prompt.tolist()]
    go.Figure(Ready(map_figure(moved, prompts)).to_dict())


def timeline(steps, verdicts, distances):
    columns = {"step": steps, "verdict": verdicts, "correct_residual": distances}
    return pd.DataFrame(columns).assign(flips=0)


def test_plotly_accepts_every_other_chart_and_takes_it_as_it_is():
    runs = [[[0.0, 1.0], [NAN, 0.5]]] * 3
    steps = timeline(["1", "2"], ["correct", "suspect"], [0.0, 1.5])
    names, slider = ["correct", "faulty"], study("partial_groups").slider
    for figure in (
        timeline_figure(steps),
        curves_figure([0, 1, 2], runs, names, MEASURES["success"]),
        dose_figure([(1, 0.5, NAN)], slider, 1, "a"),
    ):
        ready = Ready(figure)
        go.Figure(ready.to_dict())
        assert return_figure_from_figure_or_data(ready, True) is ready.to_dict()


def test_the_timeline_has_a_mark_for_each_step_and_ticks_at_powers_of_ten():
    steps = timeline(list("abc"), ["correct", "suspect", "suspect"], [0, 1.5, 200])
    figure = timeline_figure(steps)
    correct, suspect = figure["data"]
    assert (correct["x"], suspect["x"]) == ([0], [1, 2])
    assert suspect["y"] == pytest.approx([math.log10(2.5), math.log10(201)])
    axis = figure["layout"]["yaxis"]
    assert axis["ticktext"] == ["0", "1", "10", "100", "1000"]
    assert axis["tickvals"][2] == pytest.approx(math.log10(11))


def map_of(faulty):
    """Two rows of a prompt each, that do not move each other in the correct engine."""
    moved = torch.tensor(faulty)
    leaked = moved.nan_to_num() * (1 - torch.eye(2))
    return map_figure(Influences(torch.zeros(2, 2), moved, leaked), ("A", "B"))


def test_the_shade_of_a_maps_cell_is_the_root_of_its_share():
    figure = map_of([[4.0, -1.0], [NAN, 1e-9]])
    correct, faulty = figure["data"]
    assert correct["z"] == [[0, 0], [0, 0]]
    assert faulty["z"][0] == [1, -0.5]
    assert math.isnan(faulty["z"][1][0]) and faulty["z"][1][1] == 0


def test_a_leak_is_framed_on_the_faulty_side():
    figure = map_of([[4.0, -1.0], [0.0, 1.0]])
    (frame,) = [s for s in figure["layout"]["shapes"] if s["line"]["width"] == 3]
    ends = [frame[end] for end in ("x0", "x1", "y0", "y1")]
    assert frame["xref"] == "x2" and ends == [0.5, 1.5, -0.5, 0.5]
    cells = figure["data"][1]
    assert cells["customdata"][0] == ["+4.000", "\u22121.000<br>a leak"]
    assert cells["text"] == [["+", "\u2212"], ["", "+"]]


# A notebook


BUG = gradebook.bug("partial_groups")


def test_a_comparison_shows_verdict_rows_and_stages():
    both = gradebook.compare(BUG, gradebook.load("partial_groups").batch())
    text = both._repr_html_()
    # The scenario's numbers, worked out by hand: row 10 is +1 and -0.480.
    assert "<b>+1.000 → −0.480</b>" in text
    assert "The engines first differ at the stage group." in text
    assert "<svg" in text and "FLIP" in text
    assert "<script" not in text
    text = gradebook.figures.stage_figure(both, "advantage", 10)._repr_html_()
    assert "<svg" in text and "FLIP" in text


def test_a_batch_without_rows_has_a_picture():
    empty = compare(gradebook.bug("rejected_rows"), gradebook.Batch([], []))
    assert "<svg" in rows_figure(empty)
