"""Logs that are read a part at a time, and steps that are not whole."""

import gc

import numpy as np
import pandas as pd
import pytest
from logs.as_files import of, table
from logs.made import made

from gradebook.core.errors import GradebookError
from gradebook.logs.candidates.runs import StageRuns
from gradebook.logs.log import check_log
from gradebook.logs.read.log import read_files
from gradebook.logs.read.sources import Source
from gradebook.logs.verdict.explore import step_rows


def test_the_share_that_is_read_rises_to_1(tmp_path):
    for step in range(1, 6):
        log = made(steps=1, seed=step).assign(step=step)
        log.to_csv(tmp_path / f"{step}.csv", index=False)
    shares = []
    log = read_files([tmp_path], progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) == 5
    (table,) = log.tables()
    assert len(table) == log.rows == 5 * 16


def halves(log):
    """The first half of every step's rows, then the second halves."""
    place = log.groupby("step").cumcount()
    count = log.groupby("step")["step"].transform("size")
    late = place >= count / 2
    return pd.concat([log[~late], log[late]], ignore_index=True)


@pytest.mark.parametrize("bug", ["", "partial_groups"])
def test_steps_that_come_back_later_are_brought_together(bug):
    log = made(bug, steps=4)
    whole = check_log([of(table(log), "log.parquet")])
    source = of(table(halves(log)), "log.parquet")
    found = check_log([source])
    assert found.sentence == whole.sentence
    assert found.steps_judged == 4 and found.exit_code == whole.exit_code
    assert any("stand apart" in note for note in found.notes)
    opened = step_rows([source], found, 3)
    assert len(opened.table) == (log["step"] == 3).sum()


@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_checked(at):
    log = made("rejected_rows")
    files = [of(table(rows), f"{step}.parquet") for step, rows in log.groupby("step")]
    broken = files[at]
    half = broken.data[: len(broken.data) // 2]
    files[at] = Source(broken.name, data=half)
    found = check_log(files)
    assert (found.verdict, found.bug) == ("suspect", "rejected_rows")
    assert found.steps_judged == 5 and found.broken_files == 1
    assert found.broken[0].startswith(f"{broken.name}: expected a Parquet")
    assert any("1 of 6 files could not be read" in n for n in found.notes)


def test_a_log_with_an_unreadable_file_is_not_exit_0():
    log = made()
    files = [of(table(log), "1.parquet"), Source("2.csv", data=b"a,b\n1,2\n")]
    found = check_log(files)
    assert found.verdict == "correct" and found.exit_code == 2
    assert "2.csv, key 'step'" in found.broken[0]


def test_without_any_readable_file_the_first_is_named():
    files = [Source(f"{n}.parquet", data=b"PAR1") for n in (1, 2)]
    with pytest.raises(GradebookError, match="1.parquet"):
        check_log(files)


def test_a_check_leaves_nothing_of_its_search_behind():
    """Stages and their runs refer to each other; without a collection they
    would stay in memory until the next one."""

    def held():
        return sum(type(o) is StageRuns for o in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = held()
        check_log([of(table(made("rejected_rows")), "log.parquet")])
        assert held() == before
    finally:
        gc.enable()


FIRST, SECOND = made(steps=8), made(steps=8, seed=1)
RANK = FIRST["prompt"].isin(["prompt 2", "prompt 3"])
"""Rows that another rank wrote: the other half of the prompts."""
ODD = FIRST.index % 2 == 1
LATE = ODD & FIRST["step"].between(3, 6)


def part_of(log, first, last):
    return log[log["step"].between(first, last)]


@pytest.mark.parametrize(
    "pieces, steps, repeated",
    [
        # resumed after step 3, from the first step, for some steps only
        ([part_of(FIRST, 1, 6), part_of(SECOND, 4, 8)], 11, 3),
        ([part_of(FIRST, 1, 5), SECOND], 13, 5),
        ([FIRST, part_of(SECOND, 1, 3)], 11, 3),
        # the same file twice; a step directly after itself
        ([FIRST, FIRST], 16, 8),
        ([part_of(FIRST, 1, 4), part_of(SECOND, 4, 8)], 9, 1),
        # pieces of a step are one step: of two ranks, or of half groups
        ([FIRST[~RANK], part_of(FIRST[RANK], 1, 7)], 8, 0),
        ([FIRST[~ODD], FIRST[ODD]], 8, 0),
        ([FIRST[~(ODD & RANK)], FIRST[ODD & RANK]], 8, 0),
        ([FIRST[~LATE], FIRST[LATE]], 8, 0),
        # steps of other sizes
        ([part_of(FIRST, n, n)[:n] for n in (3, 4, 7, 5)], 4, 0),
    ],
)
def test_the_steps_of_a_resumed_run_are_told_apart(pieces, steps, repeated):
    rows = pd.concat(pieces, ignore_index=True)
    log = read_files([of(rows.to_csv(index=False))])
    (read,) = log.tables()
    assert read["step"].nunique() == steps and log.repeated == repeated
    assert len(read) == len(rows)
    again = [label for label in read["step"].unique() if "again" in str(label)]
    assert len(again) == repeated
    assert (np.diff(pd.factorize(read["step"])[0]) >= 0).all()  # each is whole


def test_a_step_whose_prompts_come_in_turn_is_not_taken_for_two():
    """The last of seven steps has twice the usual rows: a, b, c, d, twice."""
    rows = [(step, prompt) for step in range(6) for prompt in "aabb"]
    rows += [(6, prompt) for prompt in "abcdabcd"]
    log = pd.DataFrame(rows, columns=["step", "prompt"]).assign(reward=1.0)
    assert read_files([of(log.to_csv(index=False))]).repeated == 0
