"""The example logs of the check page are what scenarios/logs/README.md says.

`PYTHONPATH=. python tests/logs/test_example_logs.py` writes them anew.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pandas.testing import assert_frame_equal

import gradebook

ROOT = Path(__file__).parents[2]
REAL = ROOT / "tests" / "logs" / "trl-group"
SHIPPED = ROOT / "scenarios" / "logs"
LOST = {4: [5, 9, 10, 12], 7: [0, 7, 8, 14], 10: [1, 2, 6, 7]}
"""By step: the rows of it that were lost."""


def real():
    """The twelve files that TRL wrote, one after the other."""
    files = sorted(REAL.glob("*.parquet"))
    parts = [pd.read_parquet(file) for file in files]
    return pd.concat(parts, ignore_index=True)


def rollouts():
    """The same with one summed reward, and the group that TRL drew."""
    log = real()
    log["reward"] = log["vowels"] + 0.5 * log["short"]
    log["group"] = np.arange(len(log)) // 4
    return log[["step", "group", "prompt", "completion", "reward"]]


def lost_rollouts():
    """Some rows are missing; the rest is cut into strides of 4."""
    log = rollouts()
    place = log.groupby("step").cumcount()
    gone = [row in LOST.get(s, []) for s, row in zip(log["step"], place)]
    kept = log[~np.array(gone)].reset_index(drop=True)
    settings = gradebook.Settings(eps=1e-5, group_size=4)
    return with_advantages(kept, "partial_groups", settings)


def rejected_answers():
    """Answers of 30 characters and more have an empty response mask; their
    rewards still enter their group's statistics."""
    log = rollouts()
    length = log["completion"].str.len()
    log["response_length"] = length.where(length < 30, 0)
    mask = torch.tensor(log["response_length"].to_numpy() > 0)[:, None]
    settings = gradebook.Settings(eps=1e-6)
    return with_advantages(log, "rejected_rows", settings, mask=mask)


def with_advantages(log, bug, settings, **columns):
    batch = gradebook.Batch(
        prompt=log["group"].tolist(),
        reward=log["reward"].tolist(),
        step=log["step"].tolist(),
        settings=settings,
        **columns,
    )
    trace = gradebook.run(gradebook.bug(bug).engine, batch)
    single = trace.advantage.to(torch.float32).numpy()
    return log.assign(advantage=single)


READ = {
    "trl.parquet": (pd.read_parquet, real),
    "lost-rollouts.csv": (pd.read_csv, lost_rollouts),
    "rejected-answers.jsonl": (
        lambda path: pd.read_json(path, lines=True),
        rejected_answers,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_example_log_is_made_from_the_real_one(name):
    read, make = READ[name]
    shipped, wanted = read(SHIPPED / name), make()
    assert_frame_equal(
        shipped.fillna(""), wanted.fillna(""), check_dtype=False, atol=1e-8
    )


if __name__ == "__main__":
    real().to_parquet(SHIPPED / "trl.parquet", index=False)
    lost_rollouts().to_csv(SHIPPED / "lost-rollouts.csv", index=False)
    rejected_answers().to_json(
        SHIPPED / "rejected-answers.jsonl",
        orient="records",
        lines=True,
        double_precision=9,
    )
