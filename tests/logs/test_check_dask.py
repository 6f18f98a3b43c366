"""`gradebook.check` on Dask's group-wise map over a folder of Parquet."""

import pandas as pd
import pytest
from logs.made import made

import gradebook


@pytest.fixture(scope="module")
def dask():
    """Dask with its data frames; its import takes two seconds."""
    pytest.importorskip("dask.dataframe")
    return pytest.importorskip("dask")


@pytest.fixture(scope="module")
def meta():
    """The columns of the check, for Dask."""
    return gradebook.check(made(steps=1)).iloc[:0]


@pytest.fixture
def folder(tmp_path):
    """A log of 4 steps in 2 files; each step stands in one of them."""
    log = made("partial_groups", steps=4, seed=5)
    for number in range(2):
        rows = (log["step"] - 1) // 2 == number
        log[rows].to_parquet(tmp_path / f"part-{number}.parquet")
    return tmp_path, log


def same(found, direct):
    found = found.reset_index(drop=True).sort_values("step")
    found = found.reset_index(drop=True)
    found["ties"] = [tuple(t) for t in found["ties"]]
    pd.testing.assert_frame_equal(found, direct, check_dtype=False)


def test_a_map_over_steps_equals_the_direct_result(folder, dask, meta):
    path, log = folder
    with dask.config.set(
        {"scheduler": "synchronous", "dataframe.convert-string": False}
    ):
        steps = dask.dataframe.read_parquet(path).groupby("step")[list(log.columns)]
        found = steps.apply(gradebook.check, meta=meta).compute()
    direct = pd.concat(
        [gradebook.check(rows) for _, rows in log.groupby("step")],
        ignore_index=True,
    )
    same(found, direct)


def test_a_map_over_files_of_whole_steps_equals_the_direct_result(folder, dask, meta):
    path, log = folder
    with dask.config.set({"scheduler": "threads", "dataframe.convert-string": False}):
        found = (
            dask.dataframe.read_parquet(path)
            .map_partitions(gradebook.check, meta=meta)
            .compute()
        )
    verdicts = ["step", "verdict", "bug"]
    same(found[[*verdicts, "ties"]], gradebook.check(log)[[*verdicts, "ties"]])
