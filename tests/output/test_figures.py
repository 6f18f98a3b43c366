"""Numbers to Plotly figures."""

import math

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.tools import return_figure_from_figure_or_data

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.analysis.influence import influences
from gradebook.cases.scenario import names
from gradebook.output.figures import rows_figure, stage_figure
from gradebook.output.figures.base import symlog, symlog_ticks
from gradebook.output.figures.charts import (
    MapPicture,
    Timeline,
    map_figure,
    timeline_figure,
)
from gradebook.output.figures.ready import Ready
from gradebook.output.panels import Panel, squashes

NAN, INF = math.nan, math.inf


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def picture(name, kind="advantage"):
    batch = gradebook.load(name).batch()
    both = compare(gradebook.bug(name), batch)
    return go.Figure(rows_figure(both, kind))


def words(figure):
    (texts,) = (trace.text for trace in figure.data if trace.mode == "text")
    return [text.strip() for text in texts]


def test_rows_stand_at_their_advantages_and_the_flipped_one_is_told():
    figure = picture("partial_groups")
    for name, symbol, advantage in (
        ("correct", "circle", 1.0),
        ("faulty", "diamond-open", -0.480),
    ):
        (marks,) = named(figure, name)
        assert marks.marker.symbol == symbol
        assert marks.x[10] == pytest.approx(advantage, abs=5e-4)
    assert words(figure)[10] == "1.000 → −0.480  <b>FLIP</b>"
    assert words(figure)[0] == "0.548"
    assert sum("FLIP" in text for text in words(figure)) == 1
    thin, thick = (t for t in figure.data if t.mode == "lines")
    assert thin.y == (8, 8, None, 9, 9, None, 11, 11, None)
    assert thick.y == (10, 10, None)
    bands = [shape.y0 for shape in figure.layout.shapes]
    assert bands == [7.5, 8.5, 9.5, 10.5]


def test_parts_of_a_gradient_stand_side_by_side():
    figure = picture("zero_std_kl", "gradient")
    titles = (figure.layout.xaxis.title.text, figure.layout.xaxis2.title.text)
    assert titles == (
        "policy part of the gradient<br>(sum over tokens)",
        "KL part of the gradient<br>(sum over tokens)",
    )
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert [t.showlegend for t in named(figure, "correct")] == [True, False]


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_symlog_keeps_sign_and_order(a, b):
    assert symlog(a) * a >= 0 and symlog(-a) == -symlog(a)
    assert abs(symlog(a)) == pytest.approx(math.log10(1 + abs(a)))
    if a < b:
        assert symlog(a) <= symlog(b)


def test_on_a_symlog_axis_the_ticks_are_powers_of_ten():
    axis = symlog_ticks([0, 1, -2e5])
    assert "0" in axis["ticktext"] and "\u22121" in axis["ticktext"]
    for text, place in zip(axis["ticktext"], axis["tickvals"]):
        value = float(text.replace("\u2212", "-"))
        assert place == pytest.approx(symlog(value))


@pytest.mark.parametrize(
    "correct, faulty, squashed",
    [
        ([1, -1, 0, 1], [1, -1, 1e5, 2e5], True),
        ([1, -1, 0, 1], [1, -1, 0.5, -2], False),
        ([0, 0], [-49.5, 0], False),
        ([1, 1, -40, 1], [1, 1, 1, 1], True),
        ([1, 1, -29, 1], [1, 1, 1, 1], False),
        ([0.01, 1, 1, 1], [1, 1, 1, 1], False),
        ([1, 1, 1, NAN], [1, 1, INF, 1], False),
        ([], [], False),
    ],
)
def test_a_value_that_would_squash_the_others(correct, faulty, squashed):
    assert squashes([Panel("advantage", correct, faulty)]) == squashed


@pytest.mark.parametrize("name", names())
def test_plotly_accepts_every_figure(name):
    """Pages hand figures on unchecked, for speed; this checks them."""
    scenario = gradebook.load(name)
    swapped = gradebook.bug(scenario.bug)
    found = compare(swapped, scenario.batch())
    prompts = [str(p) for p in found.batch.prompt.tolist()]
    moved = influences(swapped.engine, found.batch)
    cells = MapPicture(
        moved.correct.tolist(),
        moved.faulty.tolist(),
        (moved.leaked != 0).tolist(),
        prompts,
    )
    steps = Timeline(["1", "2"], ["correct", "suspect"], [0.0, 1.5], [0, 2])
    for figure in (
        rows_figure(found, scenario.telltale.kind),
        *(stage_figure(found, stage, scenario.focus) for stage in found.stages),
        map_figure(cells),
        timeline_figure(steps),
    ):
        go.Figure(figure)
        as_handed_on = return_figure_from_figure_or_data(Ready(figure), True)
        assert as_handed_on is figure


def map_of(values, leaks, prompts=("A", "B")):
    picture = MapPicture([[0.0, 0.0]] * 2, values, leaks, prompts)
    return go.Figure(map_figure(picture))


def test_a_cell_of_the_map_is_as_strong_as_the_root_of_its_share():
    figure = map_of([[4.0, -1.0], [math.nan, 1e-9]], [[False] * 2] * 2)
    correct, faulty = (t for t in figure.data if t.type == "heatmap")
    assert list(correct.z) == [[0, 0], [0, 0]]
    assert list(faulty.z) == [[1, -0.5], [None, 0]]
    assert (faulty.zmin, faulty.zmax, faulty.xaxis) == (-1, 1, "x2")
    assert not [shape for shape in figure.layout.shapes if shape.line.width == 3]


def test_a_leak_is_framed_on_the_faulty_side():
    figure = map_of([[4.0, -1.0], [0.0, 1.0]], [[False, True], [False] * 2])
    (frame,) = [shape for shape in figure.layout.shapes if shape.line.width == 3]
    assert (frame.xref, frame.x0, frame.x1, frame.y0, frame.y1) == (
        *("x2", 0.5, 1.5),
        *(-0.5, 0.5),
    )
    cells = figure.data[1]
    assert cells.hovertext[0][1] == "row 1 moves row 0 by \u22121.000<br>a leak"
    assert list(map(list, cells.text)) == [["+", "\u2212"], ["", "+"]]


def stage(name, of, row=-1, **more):
    scenario = gradebook.load(name)
    found = compare(gradebook.bug(scenario.bug), scenario.batch())
    return go.Figure(stage_figure(found, of, row, **more))


def sides(figure):
    """The marks of both engines, correct first."""
    return [t for t in figure.data if t.mode == "markers"]


def test_a_stage_of_numbers_has_both_engines_on_one_axis_with_their_digits():
    # Rows 8 to 11 as one group: mean 25.75, deviation 49.5067
    figure = stage("partial_groups", "scale", 10)
    correct, faulty = sides(figure)
    assert words(figure)[10] == "1.000 → 49.507"
    assert correct.x[10] == pytest.approx(1, abs=1e-4)
    assert faulty.x[10] == pytest.approx(49.5067, abs=1e-3)
    assert correct.marker.symbol == "circle"
    assert faulty.marker.symbol == "diamond-open"


def test_a_stage_of_groups_says_which_rows_are_in_none():
    figure = stage("partial_groups-tail", "group")
    _, faulty = sides(figure)
    assert list(faulty.x) == [0] * 4 + [1] * 4 + [-1] * 3
    assert figure.layout.xaxis.ticktext[0] == "none"


def test_a_stage_of_flags_says_no_and_yes():
    figure = stage("no_eos_outliers", "counted")
    assert figure.layout.xaxis.ticktext == ("no", "yes")
    assert [list(t.x) for t in sides(figure)] == [[1, 0], [1, 1]]


def test_rows_that_differ_are_marked_and_the_selected_row_too():
    ticks = stage("partial_groups", "group", 10).layout.yaxis.ticktext
    assert [r for r, text in enumerate(ticks) if "≠" in text] == [11]
    assert ticks[10].startswith("<b>▸ 10")


def test_the_loss_has_three_lines_under_the_names_of_the_engines():
    # 10 tokens of beta / 10 * 0.306853, of which 6 train with the guard
    names = ("with the guard", "as written")
    figure = stage("zero_std_kl", "loss", names=names)
    guarded, written = sides(figure)
    assert list(guarded.x) == pytest.approx([0.0073645, 0, 0.0073645], abs=1e-6)
    assert list(written.x) == pytest.approx([0.0122741, 0, 0.0122741], abs=1e-6)
    assert [trace.name for trace in sides(figure)] == list(names)
    assert [label[:11] for label in figure.layout.yaxis.ticktext] == [
        "loss ≠",
        "policy part",
        "KL part ≠",
    ]


def test_among_many_rows_the_selected_rows_group_comes_first():
    batch = gradebook.Batch([r // 10 for r in range(100)], [0.0, 1.0] * 50)
    found = compare(gradebook.bug("partial_groups"), batch)
    figure = go.Figure(stage_figure(found, "advantage", 55))
    labels = figure.layout.yaxis.ticktext
    assert [int(t.strip("<b>▸ ").split()[0]) for t in labels[:11]] == [
        *range(50, 60),
        0,
    ]
    assert figure.layout.annotations[-1].text == "40 more rows are not drawn."
