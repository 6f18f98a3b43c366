"""Whatever stands in its cells, a log is judged or refused; steps that stand
again are told apart."""

import json

import pandas as pd
import pytest
from asking import verdict_on
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs.as_files import of
from logs.made import made

import gradebook
from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log

FUZZ = settings(suppress_health_check=[*HealthCheck])
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(0, 1), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
NAMES = ("step", "prompt", "reward", "advantage", "length", "eos", "rollout")


@FUZZ
@given(st.data())
def test_any_json_value_in_any_cell_is_judged_or_named(data):
    rows = [
        {"step": i // 4, "prompt": "p", "reward": i % 2, "advantage": 0.5}
        for i in range(8)
    ]
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.sampled_from(NAMES))] = data.draw(CELLS)
    try:
        found = check_log([of("\n".join(map(json.dumps, rows)), "a.jsonl")])
    except GradebookError:
        return
    assert found.exit_code in (0, 1, 2) and found.sentence
    json.loads(found.to_json())


@FUZZ
@given(st.data())
def test_any_frame_gives_a_row_a_step_or_an_error(data):
    size = data.draw(st.integers(1, 6))
    column = st.lists(CELLS, min_size=size, max_size=size)
    names = data.draw(st.lists(st.sampled_from(NAMES), unique=True))
    frame = pd.DataFrame({n: data.draw(column) for n in names}, dtype=object)
    try:
        found = gradebook.check(frame)
    except GradebookError:
        return
    assert 1 <= len(found) <= size


def part_of(log, first, last):
    return log[log["step"].between(first, last)]


FIRST, SECOND = made(steps=8), made(steps=8, seed=1)


@pytest.mark.parametrize(
    "pieces, repeated",
    [
        ([part_of(FIRST, 1, 6), part_of(SECOND, 4, 8)], 3),  # resumed after step 3
        ([part_of(FIRST, 1, 5), SECOND], 5),  # from its first step
        ([FIRST, part_of(SECOND, 1, 3)], 3),  # and stopped early
        ([FIRST, FIRST], 8),  # the same file twice
    ],
)
def test_every_way_in_which_steps_repeat_is_told_apart(pieces, repeated):
    log = pd.concat(pieces, ignore_index=True)
    found = verdict_on(log)
    assert found.verdict == "correct"
    assert found.steps_fitted == found.steps_judged == 8 + repeated
    assert any(
        n.startswith(f"{repeated} steps occur more than once") for n in found.notes
    )
    frame = gradebook.check(log)
    assert set(frame["verdict"]) == {"correct"}
    assert frame["step"].str.endswith(" (again)").sum() == repeated


LATE = FIRST["prompt"].isin(["prompt 2", "prompt 3"])
PIECES = (FIRST.index % 2 == 1) & FIRST["step"].between(3, 6)


@pytest.mark.parametrize(
    "pieces",
    [
        # Rank 1 has the other half of the prompts, and one step less.
        [FIRST[~LATE], FIRST[LATE & (FIRST["step"] < 8)]],
        # Rank 1 wrote its half of each group after rank 0, in steps 3 to 6.
        [FIRST[~PIECES], FIRST[PIECES]],
    ],
)
def test_ranks_are_not_taken_for_a_resumed_run(pieces):
    found = verdict_on(pd.concat(pieces))
    assert found.verdict == "correct" and found.steps_judged == 8
    assert not any("more than once" in note for note in found.notes)
