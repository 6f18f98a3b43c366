"""TRL's own logs under other settings: what is read from their rows.

The expected weights, sizes and scales are the settings of the runs.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from asking import verdict_on
from hypothesis import given
from hypothesis import strategies as st

from gradebook.logs.log import check, check_log
from gradebook.logs.read.columns import canonical, guessed
from gradebook.logs.trl import explained, normalized, read_as_trl, solved, summed

LOGS = Path(__file__).parents[1] / "logs"


def rows_of(name):
    files = sorted((LOGS / name).glob("*.parquet"))
    return pd.concat(map(pd.read_parquet, files), ignore_index=True)


def reading_of(frame):
    """The canonical table, and how it is read."""
    numbers = frame.select_dtypes("number").columns
    columns = guessed([*frame], [*numbers])
    table, broken = canonical(frame, columns)
    assert not broken
    return table, read_as_trl(table, columns)


@pytest.mark.parametrize(
    "name, estimator, weights",
    [
        ("trl-unscored", "grpo_batch_std", (1, 2)),
        ("trl-extra", "grpo_batch_std", (1, 0.5, 0, 0, 0)),
        ("trl-named", "grpo", (1,)),
    ],
)
def test_a_log_is_correct_under_the_settings_of_its_run(name, estimator, weights):
    found = check_log([LOGS / name])
    assert (found.verdict, found.estimator) == ("correct", estimator)
    assert found.weights == weights
    assert (found.settings["ddof"], found.settings["eps"]) == (1, 1e-4)
    assert "groups are 4 rows each, by position" in found.notes
    assert found.residual < 1e-6


def test_unscored_rows_that_count_as_zero_are_named():
    """As TRL before v1.6.0: a row without any reward has the reward 0."""
    frame = rows_of("trl-unscored")
    total = frame["nans"].fillna(0) + 2 * frame["some"].fillna(0)
    group = total.groupby([frame["step"], np.arange(len(frame)) // 4])
    spread = group.transform("std") + 1e-4
    frame["advantage"] = (total - group.transform("mean")) / spread
    assert any("give them as weights" in note for note in verdict_on(frame).notes)
    found = verdict_on(frame, weights=(1, 2))
    assert (found.verdict, found.bug) == ("asks", "unscored_rows")


def test_logged_ids_are_neither_prompts_nor_rewards():
    frame = rows_of("trl-named")
    frame.insert(4, "problem_id", np.arange(len(frame)))
    found = verdict_on(frame)
    assert found.verdict == "correct" and found.columns["prompt"] == "prompt"
    assert found.columns["reward"] == "length"


def test_rewards_that_were_normalized_before_they_were_summed_are_found():
    frame = rows_of("trl-normalized")
    table, reading = reading_of(frame)
    assert reading.normalized and reading.weights == (1, 0.5)
    assert any("normalize_then_sum" in note for note in reading.notes)
    total = 0.0
    place = np.arange(len(frame)) // 4
    for name, weight in (("vowels", 1), ("digits", 0.5)):
        group = frame.groupby(place)[name]
        mean, std = group.transform("mean"), group.transform("std")
        total = total + weight * (frame[name] - mean) / (std + 1e-4)
    grouped = normalized(table.assign(prompt=place), reading.normalized)
    grouped = summed(grouped, reading.weights)
    assert np.allclose(grouped["reward"], total, atol=1e-12)
    step = total.groupby(frame["step"])
    expected = (total - step.transform("mean")) / (step.transform("std") + 1e-4)
    assert np.allclose(frame["advantage"], expected, atol=1e-5)


def test_strides_of_a_group_are_said_not_to_show():
    """Prompts of four rows, cut by twos; a deviation has ddof 1 and TRL's eps."""
    frame = rows_of("trl-group")
    total = frame["vowels"] + 0.5 * frame["short"]
    pairs = total.groupby(np.arange(len(frame)) // 2)
    spread = pairs.transform("std") + 1e-4
    frame["advantage"] = (total - pairs.transform("mean")) / spread
    notes = " ".join(verdict_on(frame).notes)
    assert "groups are 2 rows each" in notes and "in runs of 4" in notes


def test_rows_of_evaluation_and_the_group_that_they_cut_short_are_set_apart():
    """Two groups of four a step; behind the second step's rows stand three of
    evaluation, for which its three oldest dropped out."""
    frame = pd.DataFrame({"step": np.repeat([1, 2, 3], 8)})
    frame["prompt"] = [*"aaaabbbb", *"cddddxyz", *"eeeeffff"]
    frame = frame.assign(completion="", right=0.5, advantage=0.0)
    _, reading = reading_of(frame)
    assert (~reading.training).nonzero()[0].tolist() == [8, 13, 14, 15]
    assert reading.group_size == 4


def test_a_log_that_nothing_explains_asks_for_the_weights():
    frame = rows_of("trl-group")
    frame["advantage"] = np.random.default_rng(0).normal(size=len(frame))
    _, reading = reading_of(frame)
    assert reading.weights == (1, 1) and reading.asks_weights
    assert "give them as weights" in reading.notes[0]


@given(
    st.lists(st.sampled_from([0.5, 1, 1.5, 2, 3]), min_size=2, max_size=3),
    st.sampled_from(["nothing", "group", "batch"]),
    st.integers(0, 10**6),
)
def test_weights_are_solved_whatever_divides(weights, divisor, seed):
    """Four groups of six rows a step, in two steps; a deviation has ddof 1 and
    TRL's eps."""
    rewards = np.random.default_rng(seed).normal(size=(2, 4, 6, len(weights)))
    total = rewards @ np.array(weights, dtype=float)
    spread = {
        "nothing": 1.0,
        "group": total.std(-1, ddof=1, keepdims=True) + 1e-4,
        "batch": total.reshape(2, 24).std(-1, ddof=1)[:, None, None] + 1e-4,
    }[divisor]
    advantage = ((total - total.mean(-1, keepdims=True)) / spread).ravel()
    rows = rewards.reshape(48, -1)
    step, group = np.arange(48) // 24, np.arange(48) // 6
    assert solved(rows, advantage, step, group) == tuple(weights)
    assert explained(rows @ weights, advantage, group) == 1
    wrong = [weights[0] + 1, *weights[1:]]
    assert explained(rows @ wrong, advantage, group) < 1


def test_functions_normalized_with_another_eps_than_trls_are_explained():
    """GDPO as verl has it: eps 1e-6 in each group, then over the batch."""
    rng = np.random.default_rng(3)
    log = pd.DataFrame({"step": 1, "uid": np.repeat(range(8), 4)})
    log = log.assign(a=rng.normal(size=32) / 50, b=rng.normal(size=32) / 50)
    groups = log.groupby("uid")[["a", "b"]]
    away = log[["a", "b"]] - groups.transform("mean")
    scores = (away / (groups.transform("std") + 1e-6)).sum(axis=1)
    log["advantage"] = (scores - scores.mean()) / (scores.std() + 1e-6)
    answer = check(log, columns={"reward": "a + b"})
    assert answer["verdict"].tolist() == ["correct"]
