"""`gradebook.check` on Dask's map over files of whole steps."""

import pandas as pd
import pytest
from logs.made import made

import gradebook


def test_a_map_over_files_of_whole_steps_equals_the_direct_result(tmp_path):
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    log = made("partial_groups", steps=4, seed=5)
    for number in range(2):
        rows = (log["step"] - 1) // 2 == number
        log[rows].to_parquet(tmp_path / f"part-{number}.parquet")
    meta = gradebook.check(made(steps=1)).iloc[:0]
    with dask.config.set({"scheduler": "threads", "dataframe.convert-string": False}):
        mapped = frames.read_parquet(tmp_path).map_partitions(
            gradebook.check, meta=meta
        )
        steps = mapped.compute().reset_index(drop=True)
    steps["ties"] = [tuple(ties) for ties in steps["ties"]]
    names = ["step", "verdict", "bug", "ties"]
    direct = gradebook.check(log)[names]
    pd.testing.assert_frame_equal(steps[names], direct, check_dtype=False)
