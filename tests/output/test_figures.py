"""Numbers to Plotly figures."""

import math
from dataclasses import replace

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.tools import return_figure_from_figure_or_data

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.analysis.influence import influences
from gradebook.cases.scenario import names
from gradebook.output.figures import (
    CORRECT,
    FAULTY,
    MapPicture,
    Panel,
    RowPicture,
    Timeline,
    map_figure,
    rows_figure,
    squashes,
    stage_figure,
    symlog,
    timeline_figure,
)
from gradebook.output.figures.ready import Ready
from gradebook.output.figures.rows import HEADER, ROW_HEIGHT
from gradebook.output.panels import panels

NAN, INF = math.nan, math.inf
PANEL = Panel("advantage", [1.0, -2.0, 0.5], [1.0, 3.0, 0.25], [0, 1, 0])
PROMPTS = ["A", "A", "B"]


def drawn(correct, faulty, **more):
    panel = Panel("advantage", correct, faulty, more.pop("flips", ()))
    prompts = more.pop("prompts", ["A"] * len(correct))
    return go.Figure(rows_figure(RowPicture([panel], prompts, **more)))


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def marks(figure, name):
    (trace,) = named(figure, name)
    return dict(zip(trace.y, trace.x))


def hover(figure, name):
    return [text for t in named(figure, name) for text in t.hovertext]


def connectors(figure):
    """{row: (ends, width, colour)} of the lines between two marks."""
    return {
        line.y[at]: (line.x[at : at + 2], line.line.width, line.line.color)
        for line in figure.data
        if line.mode == "lines"
        for at in range(0, len(line.x), 3)
    }


def words(figure):
    return {note.y: note.text for note in figure.layout.annotations}


def test_a_mark_stands_on_its_row_at_its_value():
    figure = go.Figure(rows_figure(RowPicture([PANEL], PROMPTS)))
    assert marks(figure, "correct") == {0: 1, 1: -2, 2: 0.5}
    assert marks(figure, "faulty") == {0: 1, 1: 3, 2: 0.25}


def test_correct_is_a_filled_circle_and_faulty_an_open_diamond():
    figure = go.Figure(rows_figure(RowPicture([PANEL], PROMPTS)))
    for name, symbol, colour in (
        ("correct", "circle", CORRECT),
        ("faulty", "diamond-open", FAULTY),
    ):
        (trace,) = named(figure, name)
        assert trace.marker.symbol == symbol
        assert trace.marker.color == colour
        assert trace.showlegend


def test_a_flip_has_a_thick_connector_and_the_word():
    figure = go.Figure(rows_figure(RowPicture([PANEL], PROMPTS)))
    assert connectors(figure) == {
        1: ((-2, 3), 5, FAULTY),
        2: ((0.5, 0.25), 2, connectors(figure)[2][2]),
    }
    assert connectors(figure)[2][2] != FAULTY
    assert words(figure) == {1: "<b>FLIP</b>"}


def test_rows_that_print_alike_have_no_connector():
    assert connectors(drawn([1, 1e6, 0], [1 + 5e-7, 1e6 + 0.5, 1e-7])) == {}
    assert list(connectors(drawn([1, 0], [1.001, 0]))) == [0]


def test_dust_is_drawn_at_zero():
    assert marks(drawn([1e-7, -1e-8], [0, 2e-6]), "correct") == {0: 0, 1: 0}
    assert marks(drawn([1e-7, -1e-8], [0, 2e-6]), "faulty")[1] == 2e-6


def test_a_row_without_a_value_has_no_mark_and_says_so():
    figure = drawn([1, NAN, 0], [1, NAN, NAN])
    assert marks(figure, "correct") == {0: 1, 2: 0}
    assert marks(figure, "faulty") == {0: 1}
    assert words(figure) == {1: "no value", 2: "faulty: no value"}


def test_an_infinite_value_has_no_mark_and_says_so():
    figure = drawn([1, 0], [1, -INF])
    assert marks(figure, "faulty") == {0: 1}
    assert words(figure) == {1: "faulty \u2212\u221e"}


def test_marks_know_their_row_and_exact_value():
    (trace,) = named(drawn([NAN, 0.123456789], [1, 2]), "correct")
    assert [list(pair) for pair in trace.customdata] == [[1, 0.123456789]]


def test_the_selected_row_is_marked_on_the_axis():
    figure = go.Figure(rows_figure(RowPicture([PANEL], PROMPTS, selected=2)))
    ticks = figure.layout.yaxis.ticktext
    assert ticks == ("0", "1", "<b>2 \u25b8</b>")
    assert figure.layout.yaxis.tickvals == (0, 1, 2)


def test_rows_run_from_top_to_bottom_as_high_as_the_tables():
    figure = go.Figure(rows_figure(RowPicture([PANEL], PROMPTS)))
    assert figure.layout.yaxis.range == (2.5, -0.5)
    margin = figure.layout.margin
    assert margin.t == HEADER
    rows = figure.layout.height - margin.t - margin.b
    assert rows == ROW_HEIGHT * 3


def test_every_second_prompt_is_shaded():
    values = [0.0] * 6
    figure = drawn(values, values, prompts=list("AABBBA"))
    bands = [s for s in figure.layout.shapes if s.type == "rect"]
    assert [(b.y0, b.y1) for b in bands] == [
        (r - 0.5, r + 0.5) for r in (2, 3, 4)
    ]
    figure = drawn(values, values, prompts=list("ABABAB"))
    bands = [s for s in figure.layout.shapes if s.type == "rect"]
    assert [b.y0 for b in bands] == [0.5, 2.5, 4.5]


def test_every_panel_has_its_own_zero_line_and_title():
    other = replace(PANEL, title="KL part", flips=())
    figure = go.Figure(rows_figure(RowPicture([PANEL, other], PROMPTS)))
    assert figure.layout.xaxis.title.text == "advantage"
    assert figure.layout.xaxis2.title.text == "KL part"
    zeros = [s for s in figure.layout.shapes if s.type == "line"]
    assert [(s.xref, s.x0, s.x1) for s in zeros] == [
        ("x", 0, 0),
        ("x2", 0, 0),
    ]
    legends = [t.showlegend for t in named(figure, "correct")]
    assert legends == [True, False]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9))
def test_every_mark_is_inside_the_axis(values):
    figure = drawn(values, [-v for v in values])
    low, high = figure.layout.xaxis.range
    assert low < 0 < high
    for name in ("correct", "faulty"):
        assert all(low < x < high for x in marks(figure, name).values())


def test_the_spread_over_draws_is_a_pale_bar_within_reach():
    panel = replace(PANEL, ranges=[(-4, 2), (NAN, NAN), (INF, -INF)])
    figure = go.Figure(rows_figure(RowPicture([panel], PROMPTS)))
    bars = [t for t in figure.data if t.mode == "lines" and t.line.width == 9]
    assert [(tuple(b.x), b.y[0]) for b in bars] == [((-4, 2, None), 0)]
    assert figure.layout.xaxis.range[0] < -4


@pytest.mark.parametrize(
    "value, place",
    [
        (0, 0),
        (9, 1),
        (-9, -1),
        (99, 2),
        (0.5, math.log10(1.5)),
        (INF, INF),
    ],
)
def test_symlog(value, place):
    assert symlog(value) == pytest.approx(place)


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_symlog_keeps_sign_and_order(a, b):
    assert symlog(a) * a >= 0 and symlog(-a) == -symlog(a)
    if a < b:
        assert symlog(a) <= symlog(b)


def test_on_a_symlog_axis_the_ticks_are_powers_of_ten():
    figure = drawn([0, 1, 2], [0, 1e5, 2e5], symlog=True)
    assert marks(figure, "faulty")[2] == pytest.approx(math.log10(200001))
    axis = figure.layout.xaxis
    assert "0" in axis.ticktext and "\u22121" in axis.ticktext
    for text, place in zip(axis.ticktext, axis.tickvals):
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
        ([1, 1, 1, NAN], [1, 1, INF, 1], False),
        ([], [], False),
    ],
)
def test_a_value_that_would_squash_the_others(correct, faulty, squashed):
    assert squashes([Panel("advantage", correct, faulty)]) == squashed


def test_titles_beside_each_other_are_broken_and_have_room():
    """On a narrow screen a panel is some 150 pixels wide."""
    long = replace(PANEL, title="gradient, KL part (sum over tokens)")
    figure = go.Figure(rows_figure(RowPicture([long, long], PROMPTS)))
    titles = (figure.layout.xaxis.title.text, figure.layout.xaxis2.title.text)
    assert titles == ("gradient, KL part<br>(sum over tokens)",) * 2
    margin = figure.layout.margin
    assert margin.b > 60
    assert figure.layout.height - margin.t - margin.b == ROW_HEIGHT * 3
    one = go.Figure(rows_figure(RowPicture([long], PROMPTS)))
    assert one.layout.xaxis.title.text == long.title


def test_a_picture_of_no_rows():
    figure = drawn([], [])
    assert marks(figure, "correct") == {} == marks(figure, "faulty")


def test_the_hover_names_row_prompt_and_both_values():
    (trace,) = named(drawn([1.0], [-0.48], prompts=["&<i>"]), "correct")
    assert trace.hovertext == (
        "row 0, prompt &amp;&lt;i><br>correct +1.000<br>faulty \u22120.480",
    )


@pytest.mark.parametrize("name", names())
def test_plotly_accepts_every_figure(name):
    """Pages hand figures on unchecked, for speed; this checks them."""
    scenario = gradebook.load(name)
    swapped = gradebook.bug(scenario.bug)
    found = compare(swapped, scenario.batch())
    prompts = [str(p) for p in found.batch.prompt.tolist()]
    drawn = panels(found, scenario.telltale.kind)
    rows = RowPicture(drawn, prompts, 0, squashes(drawn))
    moved = influences(swapped.engine, found.batch)
    cells = MapPicture(
        moved.correct.tolist(),
        moved.faulty.tolist(),
        moved.leaks.tolist(),
        prompts,
        (0, 0),
    )
    steps = Timeline(["1", "2"], ["correct", "suspect"], [0.0, 1.5], [0, 2])
    for figure in (
        rows_figure(rows),
        map_figure(cells),
        timeline_figure(steps),
    ):
        go.Figure(figure)
        as_handed_on = return_figure_from_figure_or_data(Ready(figure), True)
        assert as_handed_on is figure


def map_of(values, leaks, prompts=("A", "B")):
    picture = MapPicture([[0.0, 0.0]] * 2, values, leaks, prompts, (0, 1))
    return go.Figure(map_figure(picture))


def test_a_cell_of_the_map_is_as_strong_as_the_root_of_its_share():
    figure = map_of([[4.0, -1.0], [math.nan, 1e-9]], [[False] * 2] * 2)
    correct, faulty = (t for t in figure.data if t.type == "heatmap")
    assert list(correct.z) == [[0, 0], [0, 0]]
    assert list(faulty.z) == [[1, -0.5], [None, 0]]
    assert (faulty.zmin, faulty.zmax, faulty.xaxis) == (-1, 1, "x2")
    assert named(figure, "leaks") == []


def test_a_leak_is_boxed_on_the_faulty_side():
    figure = map_of([[4.0, -1.0], [0.0, 1.0]], [[False, True], [False] * 2])
    (boxes,) = named(figure, "leaks")
    assert boxes.xaxis == "x2" and boxes.line.width == 3
    around = [(0.54, -0.46), (1.46, -0.46), (1.46, 0.46), (0.54, 0.46)]
    found = list(zip(boxes.x, boxes.y))
    assert found == [pytest.approx(p) for p in around[:4]] + [
        pytest.approx(around[0]),
        (None, None),
    ]
    signs = named(figure, "faulty")[0]
    assert signs.hovertext[1] == "row 1 moves row 0 by \u22121.000<br>a leak"
    assert signs.text == ("+", "\u2212", "", "+")


def stage(name, of, row=-1, **more):
    scenario = gradebook.load(name)
    found = compare(gradebook.bug(scenario.bug), scenario.batch())
    return go.Figure(stage_figure(found, of, row, **more))


def sides(figure):
    """The marks of both engines, correct first."""
    return [t for t in figure.data if t.mode == "markers+text"]


def test_a_stage_of_numbers_has_both_engines_on_one_axis_with_their_digits():
    # Rows 8 to 11 as one group: mean 25.75, deviation 49.5067
    figure = stage("partial_groups", "scale", 10)
    correct, faulty = sides(figure)
    assert correct.x[10] == pytest.approx(1, abs=1e-4)
    assert faulty.x[10] == pytest.approx(49.5067, abs=1e-3)
    assert faulty.text[10].strip() == "49.507"
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range
    assert correct.marker.symbol == "circle"
    assert faulty.marker.symbol == "diamond-open"


def test_a_stage_of_groups_joins_the_rows_of_a_group():
    figure = stage("partial_groups-tail", "group")
    _, faulty = sides(figure)
    assert list(faulty.x) == [0] * 4 + [1] * 4 + [-1] * 3
    assert figure.layout.xaxis2.ticktext[0] == "none"
    joined = [t for t in figure.data if t.mode == "lines"][1]
    assert [y for y in joined.y if y is not None] == [*range(8)]


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
    assert list(guarded.x) == pytest.approx(
        [0.0073645, 0, 0.0073645], abs=1e-6
    )
    assert list(written.x) == pytest.approx(
        [0.0122741, 0, 0.0122741], abs=1e-6
    )
    said = [note.text for note in figure.layout.annotations]
    assert said == [f"<b>{name}</b>" for name in names]


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


@pytest.mark.parametrize("name", names())
def test_every_stage_of_a_case_can_be_drawn(name):
    scenario = gradebook.load(name)
    found = compare(gradebook.bug(scenario.bug), scenario.batch())
    for of in found.stages:
        go.Figure(stage_figure(found, of, scenario.focus))


def test_the_map_has_a_legend():
    figure = map_of([[4.0, -1.0], [0.0, 1.0]], [[False] * 2] * 2)
    said = figure.layout.annotations[0].text
    assert "Thick frame: a leak" in said and "−: down" in said
