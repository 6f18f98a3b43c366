"""What trainers write, and what nobody should: every log is judged or
refused, and the same rows give the same verdict in every form."""

import gzip
import json

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs.made import made

import gradebook
from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.logs.read.sources import Source

FUZZ = settings(suppress_health_check=[*HealthCheck])


def checked(data, name):
    return check_log([Source(name, data=data)])


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


PACKED = pytest.mark.parametrize("pack, ending", [(gzip.compress, "gz"), (zstd, "zst")])


@PACKED
def test_compressed_files_are_read(pack, ending):
    data = made(steps=3).to_csv(index=False).encode()
    found = checked(pack(data), f"log.csv.{ending}")
    assert (found.verdict, found.steps_judged) == ("correct", 3)
    with pytest.raises(GradebookError, match="log.csv"):
        checked(pack(data)[:40], f"log.csv.{ending}")


@PACKED
def test_a_compressed_bomb_is_refused(pack, ending):
    data = pack(b"step,reward\n" + bytes(2**26))
    with pytest.raises(GradebookError, match="at most 67,108,864 bytes"):
        checked(data, f"log.csv.{ending}")


def test_a_json_array_is_a_table():
    rows = made("rejected_rows", steps=3).to_dict("records")
    found = checked(json.dumps(rows).encode(), "log.json")
    assert (found.verdict, found.bug) == ("asks", "rejected_rows")
    rows[5]["reward"] = "oops"
    found = checked(json.dumps(rows).encode(), "log.json")
    assert "line 6, column reward" in found.broken[0]


def test_lists_of_tokens_in_text_are_read():
    """As verl writes them: an advantage a token, the reward at the last."""
    log = made(steps=3)
    tokens = log["response_length"]
    log["advantages"] = [str([a] * n) for a, n in zip(log["advantage"], tokens)]
    log["token_level_scores"] = [
        str([0.0] * (n - 1) + [r]) for r, n in zip(log["reward"], tokens)
    ]
    log["response_mask"] = [str([1] * n) for n in tokens]
    log = log.drop(columns=["reward", "advantage", "response_length"])
    for name, data in (
        ("log.csv", log.to_csv(index=False)),
        ("log.jsonl", log.to_json(orient="records", lines=True)),
    ):
        found = checked(data.encode(), name)
        assert (found.verdict, found.steps_judged) == ("correct", 3), name


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
        found = checked("\n".join(map(json.dumps, rows)).encode(), "a.jsonl")
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


def resumed(bug=""):
    """Steps 1 to 6, then 4 to 8 of the same run, resumed after step 3: the
    same prompts, and rewards of their own."""
    first, second = made(bug, steps=6), made(bug, steps=8, seed=1)
    return pd.concat([first, second[second["step"] >= 4]], ignore_index=True)


@pytest.mark.parametrize("bug", ["", "rejected_rows"])
def test_each_time_of_a_step_that_stands_twice_is_judged(bug):
    log, verdict = resumed(bug), "asks" if bug else "correct"
    found = checked(log.to_csv(index=False).encode(), "log.csv")
    assert (found.verdict, found.bug) == (verdict, bug)
    assert found.steps_fitted == found.steps_judged == 11
    assert any(n.startswith("3 steps stand twice") for n in found.notes)
    frame = gradebook.check(log)
    assert frame["step"].tolist()[5:8] == ["6", "4 (again)", "5 (again)"]
    assert set(frame["verdict"]) == {verdict}


def part_of(log, first, last):
    return log[log["step"].between(first, last)]


FIRST, SECOND = made(steps=8), made(steps=8, seed=1)


@pytest.mark.parametrize(
    "pieces, repeated",
    [
        ([part_of(FIRST, 1, 5), SECOND], 5),  # from its first step
        ([FIRST, part_of(SECOND, 1, 3)], 3),  # and stopped early
        ([FIRST, FIRST], 8),  # the same file twice
    ],
)
def test_every_way_in_which_steps_stand_twice_is_told_apart(pieces, repeated):
    log = pd.concat(pieces, ignore_index=True)
    found = checked(log.to_csv(index=False).encode(), "log.csv")
    assert found.verdict == "correct"
    assert found.steps_fitted == found.steps_judged == 8 + repeated
    assert any("twice" in note for note in found.notes)
    assert set(gradebook.check(log)["verdict"]) == {"correct"}


def test_the_files_of_two_ranks_are_not_taken_for_two_runs():
    """Rank 1 has the other half of the prompts, and one step less."""
    log = made(steps=8)
    late = log["prompt"].isin(["prompt 2", "prompt 3"])
    pieces = [log[~late], log[late & (log["step"] < 8)]]
    found = checked(pd.concat(pieces).to_csv(index=False).encode(), "log.csv")
    assert found.verdict == "correct" and found.steps_judged == 8


def test_steps_written_in_pieces_are_not_taken_for_a_resumed_run():
    """Rank 1 wrote its half of each group after rank 0, in steps 3 to 6."""
    log = made(steps=8)
    late = (log.index % 2 == 1) & log["step"].between(3, 6)
    found = checked(
        pd.concat([log[~late], log[late]]).to_csv(index=False).encode(),
        "log.csv",
    )
    assert found.verdict == "correct" and found.steps_judged == 8
    assert not any("stand twice" in note for note in found.notes)
