"""TRL's own logs under other settings: what is read from their rows.

The expected weights, sizes and scales are the settings of the runs.
"""

from pathlib import Path

import formulas
import numpy as np
import pandas as pd
import promises
import pytest
from asking import verdict_on
from hypothesis import given
from hypothesis import strategies as st

from gradebook.logs.log import check, check_log
from gradebook.logs.read.log_columns import canonical, guessed
from gradebook.logs.trl_layout import explained, layout_of
from gradebook.logs.weights import least_squares, solved

LOGS = Path(__file__).parents[1] / "logs"


def rows_of(name):
    files = sorted((LOGS / name).glob("*.parquet"))
    return pd.concat(map(pd.read_parquet, files), ignore_index=True)


@pytest.mark.parametrize(
    "name, estimator, weights",
    [
        ("trl-group", "grpo", (1, 0.5)),
        ("trl-unscored", "grpo_batch_std", (1, 2)),
        ("trl-extra", "grpo_batch_std", (1, 0.5, 0, 0)),  # `answer` is no reward
        ("trl-named", "grpo", None),
        ("trl-normalized", "", (1, 0.5)),
    ],
)
def test_a_log_is_correct_under_the_settings_of_its_run(name, estimator, weights):
    found = check_log([LOGS / name], weights=weights)
    assert (found.verdict, found.judgement.settings["ddof"]) == ("correct", 1)
    assert "groups are 4 rows each, by position" in found.notes
    assert found.residual < 1e-5
    if estimator:
        assert (found.estimator, found.judgement.settings["eps"]) == (estimator, 1e-4)
    else:
        assert any("normalize_then_sum" in note for note in found.notes)
    if weights:
        alone = check_log([LOGS / name])
        assert (alone.verdict, alone.weights) == ("correct", weights)
        assert any("advantages determine them" in note for note in alone.notes)


def test_the_weights_of_a_frame_are_solved_too():
    assert {*check(rows_of("trl-group"))["verdict"]} == {"correct"}


def test_unscored_rows_that_count_as_zero_are_named():
    frame = rows_of("trl-unscored")
    total = frame["nans"].fillna(0) + 2 * frame["some"].fillna(0)
    group = total.groupby([frame["step"], np.arange(len(frame)) // 4])
    spread = group.transform("std") + 1e-4
    frame["advantage"] = (total - group.transform("mean")) / spread
    found = verdict_on(frame, weights=(1, 2))
    assert (found.verdict, found.bug) == ("asks", "unscored_rows")


def test_logged_ids_are_neither_prompts_nor_rewards():
    frame = rows_of("trl-named")
    frame.insert(4, "problem_id", np.arange(len(frame)))
    found = verdict_on(frame)
    assert found.verdict == "correct" and found.columns["prompt"] == "prompt"
    assert found.columns["reward"] == "length"


def test_strides_of_a_group_are_said_not_to_show():
    """Prompts of four rows, cut by twos; a deviation has ddof 1 and TRL's eps."""
    frame = rows_of("trl-group")
    total = frame["vowels"] + 0.5 * frame["short"]
    pairs = total.groupby(np.arange(len(frame)) // 2)
    spread = pairs.transform("std") + 1e-4
    frame["advantage"] = (total - pairs.transform("mean")) / spread
    notes = " ".join(verdict_on(frame, weights=(1, 0.5)).notes)
    assert "groups are 2 rows each" in notes and "in runs of 4" in notes


@pytest.mark.parametrize(
    "prompts, apart",
    [
        # After the second step's rows come three of evaluation, for which its
        # three oldest dropped out.
        ("aaaabbbb cddddxyz eeeeffff", [8, 13, 14, 15]),
        # The last two rows are of evaluation; so are those of step 4, by the others.
        ("aaaabbbb ccddddxy aaaabbbb aaaaaaxy", [8, 9, 14, 15, 24, 25, 30, 31]),
        ("aaaabbbb ccccdddd", None),
        ("aaaabbbb cccddd", None),  # rows are missing, none is of evaluation
    ],
)
def test_evaluation_rows_and_the_group_that_they_shorten_are_left_out(prompts, apart):
    """Two groups of four a step."""
    steps = prompts.split()
    frame = pd.DataFrame({"step": np.repeat(range(len(steps)), [*map(len, steps)])})
    frame["prompt"] = [*prompts.replace(" ", "")]
    frame = frame.assign(completion="", right=0.5, advantage=0.0)
    columns = guessed(
        {
            **dict.fromkeys(frame, "text"),
            **dict.fromkeys(("step", "right", "advantage"), "number"),
        }
    )
    layout = layout_of(canonical(frame, columns), columns)
    if apart is None:
        assert layout.training is None
    else:
        assert (~layout.training).nonzero()[0].tolist() == apart
        assert layout.group_size == 4


@pytest.mark.parametrize(
    "sizes, weights, baseline",
    [
        # Of a group of three, leave-one-out is 3/2 of the distance from the mean.
        ((3, 3, 3, 4), (1.0, 1.0), "others"),
        # 4/5 of these weights are as short, but none is 1.
        ((5, 5, 5, 5), (1.0, 0.5, 0.25), "mean"),
    ],
)
def test_weights_are_those_of_the_baseline_that_groups_agree_on(
    sizes, weights, baseline
):
    group = np.repeat(np.arange(len(sizes)), sizes)
    rewards = np.random.default_rng(1).normal(size=(len(group), len(weights)))
    total = rewards @ weights
    rows = np.bincount(group)[group]
    advantage = total - (np.bincount(group, total) / np.bincount(group))[group]
    if baseline == "others":
        advantage *= rows / (rows - 1)
    assert solved(rewards, advantage, group, 0 * group) == weights


def test_rounding_hides_no_eps_of_each_function():
    """Two functions, each normalized with eps 1e-4, in a log of four decimals."""
    name, right, found = promises.parts(61438018)
    assert name == "over std of 2, 4" and right is True
    assert "each reward normalized in its group (eps 0.0001)" in found.sentence


@given(
    st.lists(st.sampled_from([0.5, 1, 1.5, 2, -1]), min_size=2, max_size=3),
    st.sampled_from(["mean", "others", "group", "batch"]),
    st.integers(0, 10**6),
)
def test_weights_are_solved_with_their_size_if_nothing_divides(weights, divisor, seed):
    """Four groups of seven rows per step, in two steps; a deviation has ddof 1 and
    TRL's eps. Less the mean of its six other rows, a row is 7/6 as far away; 7/6 of
    none of these weights is short."""
    rewards = np.random.default_rng(seed).normal(size=(2, 4, 7, len(weights)))
    total = rewards @ np.array(weights, dtype=float)
    spread = {
        "mean": 1.0,
        "others": 6 / 7,
        "group": total.std(-1, ddof=1, keepdims=True) + 1e-4,
        "batch": total.reshape(2, 28).std(-1, ddof=1)[:, None, None] + 1e-4,
    }[divisor]
    advantage = ((total - total.mean(-1, keepdims=True)) / spread).ravel()
    rows, group = rewards.reshape(56, -1), np.arange(56) // 7
    size = np.array(weights) / solved(rows, advantage, group, group // 4)
    assert size == pytest.approx(size[0], rel=1e-6) and size[0] > 0
    if divisor in ("mean", "others"):
        assert least_squares(rows, advantage, group) == tuple(weights)
        assert size[0] == 1
    assert explained(rows @ weights, advantage, group) == 1
    wrong = [weights[0] + 1.1, *weights[1:]]
    assert explained(rows @ wrong, advantage, group) < 1


def test_weights_are_not_solved_if_group_mean_and_leave_one_out_give_the_same():
    """In pairs, 1 and 0.5 less the mean are 0.5 and 0.25 less the other row."""
    rows = np.random.default_rng(0).normal(size=(8, 2, 2))
    total = rows @ [1, 0.5]
    advantage = (total - total.mean(-1, keepdims=True)).ravel()
    assert least_squares(rows.reshape(16, 2), advantage, np.arange(16) // 2) is None


def test_rounded_advantages_do_not_hide_the_eps_of_each_function():
    # Two functions, each normalized with an eps of 1e-6, summed and normalized over the
    # batch, printed with four decimals: an eps of 1e-4 is further off.
    name, estimator, weights, frame = formulas.parts(61438021)
    assert name == "over std of 2, 4"
    found = verdict_on(frame)
    assert (found.exit_code, found.estimator) == (0, estimator)
    assert found.weights == weights and "(eps 1e−6)" in found.convention


def test_a_question_about_the_functions_sum_is_better_than_no_fit():
    # `score` explains nothing; the sum of the two functions does, if all rows count.
    _, _, weights, frame = formulas.parts(61438016)
    found = verdict_on(frame)
    assert (found.verdict, found.bug, found.exit_code) == ("asks", "rejected_rows", 2)
    assert found.weights == weights
    assert any("one takes the functions' sum" in note for note in found.notes)


def test_functions_that_use_another_eps_than_trl_are_explained():
    """GDPO as verl has it: eps 1e-6 in each group, then over the batch."""
    rng = np.random.default_rng(3)
    log = pd.DataFrame({"step": 1, "uid": np.repeat(range(8), 4)})
    log = log.assign(a=rng.normal(size=32) / 50, b=rng.normal(size=32) / 50)
    groups = log.groupby("uid")[["a", "b"]]
    away = log[["a", "b"]] - groups.transform("mean")
    scores = (away / (groups.transform("std") + 1e-6)).sum(axis=1)
    log["advantage"] = (scores - scores.mean()) / (scores.std() + 1e-6)
    answer = check(log, columns={"reward": "a + b"})
    assert answer["estimator"].tolist() == ["gdpo"]


@pytest.mark.filterwarnings("error")
def test_weights_are_not_solved_from_groups_whose_advantages_are_equal():
    """One function varies, but no advantage follows it."""
    rewards = np.array([[1.0, 4.0], [0.0, 4.0], [1.0, 4.0], [0.0, 4.0]])
    advantage, group = np.array([0.3, 0.3, 0.1, 0.1]), np.array([0, 0, 1, 1])
    assert solved(rewards, advantage, group, 0 * group) is None


def test_a_kl_that_hides_the_weights_is_said_for_weights_of_1():
    """TRL's RLOO: a + b less a KL that is 0 at first and grows by 0.02 a step, less the
    mean of the three other rows, which is 4/3 of the distance from the mean of all."""
    rng = np.random.default_rng(5)
    a, b, kl = rng.integers(0, 3, (8, 2, 4)), *rng.normal(size=(2, 8, 2, 4))
    reward = a + b - 0.02 * np.arange(8)[:, None, None] * kl
    advantage = (reward - reward.mean(-1, keepdims=True)) * 4 / 3
    log = pd.DataFrame({"step": np.repeat(range(8), 8), "prompt": ["p q"] * 64})
    log["prompt"] += [f" {row // 4}" for row in range(64)]
    log = log.assign(
        completion="", a=a.ravel(), b=b.ravel(), advantage=advantage.ravel()
    )
    found = verdict_on(log)
    assert (found.verdict, found.judgement.why) == ("cannot tell", "weights")
    assert found.near.startswith("If all weights are 1: In each prompt the logged")
    assert "A KL term in the reward does that" in found.near
    assert verdict_on(log, weights=(1, 1)).left_over == "kl"
