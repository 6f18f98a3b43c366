"""Logs that are read a part at a time, and steps that are not whole."""

import gc

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
