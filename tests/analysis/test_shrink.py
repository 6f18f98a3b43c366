"""The smallest batch that still shows the bug, step by step."""

import random
from dataclasses import replace

import pytest
from one_a_stage import BY_STAGE
from output.typed import edited, opened

import gradebook
from gradebook.analysis import shrink as shrinking
from gradebook.analysis.comparison import compared
from gradebook.analysis.shrink import shrink, way
from gradebook.cases.edits import replace_rows
from gradebook.cases.scenario import names
from gradebook.cases.table import MOST_ROWS, Table

HIDING = [n for n in names() if gradebook.load(n).kind == "hides"]


def last(name, **settings):
    return [*shrink(opened(name, **settings))][-1]


def size(state):
    """Rows, tokens and digits: what a step may only make smaller."""
    table = state.table
    numbers = [
        shrinking.roundness(part)
        for name in ("reward", "logp", "ref_logp")
        for cell in table.cells.get(name, ())
        for part in str(cell).split()
    ]
    masked = sum(map(sum, table["mask"] if table.width else ()))
    return len(table), table.width, masked, sorted(numbers, reverse=True)


def shown(state):
    comparison = compared(state)
    assert not comparison.agree
    return comparison.correct.advantage.tolist(), comparison.faulty.advantage.tolist()


def test_the_reported_batch_shrinks_to_three_rows():
    # A row to be better than, the row itself, and a larger reward of another
    # prompt, cut into one group of three.
    state = last("partial_groups")
    assert list(state.table["prompt"]) == ["C", "C", "D"]
    assert state.settings.group_size == 3
    correct, faulty = shown(state)
    assert correct[state.row] > 0.5 and faulty[state.row] < 0
    assert state.table["prompt"][state.row] == "C"


def test_an_uneven_batch_keeps_its_tail():
    # Two rows of one prompt, fewer than the group size, are all tail.
    state = last("partial_groups-tail")
    assert len(state.table) == 2 and state.settings.group_size == 4
    correct, faulty = shown(state)
    assert abs(faulty[state.row]) > 1e4 and abs(correct[state.row]) < 2


def test_a_rejected_row_keeps_two_survivors():
    # One survivor alone would be another face: it has no siblings left.
    state = last("rejected_rows")
    assert len(state.table) == 3
    assert state.table["t1"] == (False, True, True)
    assert state.table.width == 1
    correct, faulty = shown(state)
    assert correct[state.row] > 0 > faulty[state.row]
    assert max(abs(float(r)) for r in state.table["reward"]) <= 4


def test_a_flat_group_keeps_two_rows_of_one_token():
    state = last("zero_std_kl")
    assert len(state.table) == 2 and {*state.table["reward"]} == {"1"}
    assert state.table.width == 1
    comparison = compared(state)
    assert comparison.correct.gradient[state.row].tolist() == [0]
    assert comparison.faulty.gradient[state.row].tolist() != [0]


@pytest.mark.parametrize("name", HIDING)
def test_a_batch_that_hides_the_bug_yields_nothing(name):
    # A case may hide the bug only under the page's switches.
    assert compared(opened(name)).agree == ([*shrink(opened(name))] == [])


def test_text_of_a_tool_keeps_its_place_between_two_tokens():
    # The row's tokens: the model's, the tool's, the model's. The faulty return
    # stops at the tool's, so the first token gets none of the reward.
    state = last("tool_wall")
    assert len(state.table) == 2 and state.table.width == 3
    assert [state.table[f"t{t}"][state.row] for t in (1, 2, 3)] == [True, False, True]
    comparison = compared(state)
    assert comparison.correct.token_advantage[state.row, 0] > 0
    assert comparison.faulty.token_advantage[state.row, 0] < 0


@pytest.mark.parametrize(
    "name",
    [
        bug if bug in BY_STAGE.values() else pytest.param(bug, marks=pytest.mark.long)
        for bug in gradebook.BUGS
    ],
)
def test_every_reduction_is_smaller_or_rounder_and_shows_the_bug_in_the_same_way(name):
    state = edited(0, name)
    before, wanted, steps = state, None, [*shrink(state)]
    for step in steps:
        assert size(step) <= size(before)
        assert step != before
        shown_now = way(compared(step), step.row)
        assert shown_now is not None and shown_now == (wanted or shown_now)
        before, wanted = step, shown_now
    assert len(before.table) <= 8
    assert [*shrink(state)] == steps
    assert [*shrink(before)] == []  # and nothing more can go


def test_the_bound_on_the_runs_holds(monkeypatch):
    ran = []
    monkeypatch.setattr(shrinking, "MOST_RUNS", 8)
    monkeypatch.setattr(shrinking, "compared", lambda s: ran.append(s) or compared(s))
    assert [*shrink(edited(1, "double_normalization", rows=12))]
    assert len(ran) == 9  # the batch itself, and the candidates


def test_a_thousand_rows_come_down_to_a_few():
    state = opened("rejected_rows")
    chance = random.Random(0)
    block = "\n".join(str(chance.randrange(9)) for _ in range(MOST_ROWS))
    table = replace_rows(state, block).table
    labels = [str(r // 8) for r in range(MOST_ROWS)]
    none = [False] * table.width
    table = Table.of_columns({"prompt": labels}, table.cells).with_cells(
        {(row, "mask"): none for row in range(3, MOST_ROWS, 8)}
    )
    assert len([*shrink(replace(state, table=table, row=2))][-1].table) <= 4
