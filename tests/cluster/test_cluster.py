"""A folder of recordings, checked with Dask and with Ray Data on two workers.

Runs in the virtual environment of requirements.txt; .ci/run makes it.
"""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from logs.made import made

import gradebook

TESTS = Path(__file__).parents[1]
PATHS = [str(TESTS.parent), str(TESTS), str(TESTS / "cluster")]
PARTS = 6
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve steps of two ranks, divided as declared but for the last four,
    which nothing divides; of one more step a rank is missing."""
    there = tmp_path_factory.mktemp("run")
    chance = np.random.default_rng(0)
    for rank in (0, 1):
        ranks = {"rank": rank, "ranks": 2}
        declared = {"scale": "group", "eps": 1e-4}
        with gradebook.Recorder(
            there, declared=declared, strict=True, **ranks
        ) as recorder:
            for step in range(12 + rank):
                reward = chance.normal(size=(4, 8))
                away = reward - reward.mean(1, keepdims=True)
                spread = reward.std(1, ddof=1, keepdims=True) + 1e-4
                right = away / spread if step < 8 else away
                recorder.step(
                    step,
                    prompt=np.repeat(np.arange(4) + 4 * rank, 8),
                    reward=reward.ravel(),
                    advantage=right.ravel(),
                )
    return there


def dying(marker, part):
    """Judges a part; the first worker that is asked to dies instead."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return gradebook.check(part)
    os._exit(1)


def by_dask(parts, judge):
    distributed = pytest.importorskip("distributed")
    import dask.bag

    os.environ["PYTHONPATH"] = os.pathsep.join(PATHS)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    )
    with cluster, distributed.Client(cluster):
        bag = dask.bag.from_sequence(parts, npartitions=PARTS).map(judge)
        return pd.concat(bag.compute())


def by_ray(parts, judge):
    # Ray listens on the loopback address, whatever its name says.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    ray.init(
        address="local",  # not a cluster that happens to run here
        num_cpus=2,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(PATHS)}},
    )
    try:
        rows = data.from_items(parts, override_num_blocks=PARTS)
        judged = rows.flat_map(lambda row: judge(row["item"]).to_dict("records"))
        return pd.DataFrame(judged.take_all())
    finally:
        ray.shutdown()


@pytest.mark.parametrize("cluster", [by_dask, by_ray])
def test_a_cluster_gives_the_verdicts_of_one_machine(cluster, folder, tmp_path):
    direct = gradebook.check(gradebook.recording(folder))
    assert direct["verdict"].tolist() == ["correct"] * 8 + ["other"] * 4
    assert all("swapped_scale" in names for names in direct["asks"][8:])
    parts = gradebook.recording(folder).split(PARTS)
    assert len(parts) == PARTS
    judged = cluster(parts, partial(dying, tmp_path / "died"))
    assert (tmp_path / "died").exists()
    judged = judged.sort_values("step").reset_index(drop=True)
    names = ["step", "verdict", "bug", "estimator"]
    pd.testing.assert_frame_equal(judged[names], direct[names], check_dtype=False)
    # In another computation than the declared one, the row that is off most
    # depends on the settings that were left free, which a part alone may not show.
    pd.testing.assert_series_equal(judged["row"][:8], direct["row"][:8])


def test_a_map_over_files_of_whole_steps_equals_the_direct_result(tmp_path):
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    log = made("partial_groups", steps=4, seed=5)
    for number in range(2):
        rows = (log["step"] - 1) // 2 == number
        log[rows].to_parquet(tmp_path / f"part-{number}.parquet")
    meta = gradebook.check(made(steps=1)).iloc[:0]
    with dask.config.set({"scheduler": "threads", "dataframe.convert-string": False}):
        read = frames.read_parquet(tmp_path)
        steps = read.map_partitions(gradebook.check, meta=meta).compute()
    steps = steps.reset_index(drop=True)
    steps["ties"] = [tuple(ties) for ties in steps["ties"]]
    names = ["step", "verdict", "bug", "ties"]
    direct = gradebook.check(log)[names]
    pd.testing.assert_frame_equal(steps[names], direct, check_dtype=False)
