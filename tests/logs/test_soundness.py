"""What aimed attacks found: small advantages are no proof of a computation, a declared
mask is the mask, copies that vote are asked about, and a least deviation, or a tail of
strides, is one of the known ways."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from asking import verdict_on

from gradebook.logs.log import check_log

SMALL = sorted((Path(__file__).parent / "soundness").glob("*.csv"))
"""Dr. GRPO times 0.05, GRPO over the longest response, and noise of 0.1."""


@pytest.mark.parametrize("declared", [{}, {"estimator": "grpo"}], ids=["", "grpo"])
@pytest.mark.parametrize("log", SMALL, ids=lambda log: log.stem)
def test_small_advantages_are_no_known_computation_and_no_bug(log, declared):
    verdict = check_log([log], declared=declared)
    assert (verdict.exit_code, verdict.verdict) == (2, "none fits")
    assert not verdict.bug


def a_log(steps=6, prompts=3, size=4, seed=0):
    """Rows of equal groups with rewards that differ."""
    chance = np.random.default_rng(seed)
    group = np.repeat(np.arange(steps * prompts), size)
    frame = pd.DataFrame({"step": group // prompts, "uid": group})
    return frame.assign(reward=chance.normal(size=len(frame)).round(3))


def grpo(frame, reward=None, least=0.0, by=("uid",)):
    """The reward less its group's mean, over the group's deviation + 1e-6, or over a
    least deviation."""
    reward = frame["reward"] if reward is None else reward
    of = reward.groupby([frame[name] for name in by])
    deviation = of.transform("std")
    divisor = np.maximum(deviation, least) if least else deviation + 1e-6
    return (reward - of.transform("mean")) / divisor


def with_copies(frame):
    """The frame, its last step filled with two copies of the step's first row."""
    last = frame[frame["step"] == frame["step"].max()]
    return pd.concat([frame, last.iloc[[0, 0]]], ignore_index=True)


def test_copies_that_fill_a_step_and_vote_are_asked_about():
    frame = with_copies(a_log())
    voting = verdict_on(frame.assign(advantage=grpo(frame)))
    assert (voting.exit_code, voting.verdict, voting.bug) == (2, "asks", "")
    assert "2 rows" in voting.sentence and "repeat" in voting.sentence


def test_copies_without_a_vote_match_the_computation():
    frame = a_log()
    frame = with_copies(frame.assign(advantage=grpo(frame)))
    verdict = verdict_on(frame)
    assert (verdict.exit_code, verdict.estimator) == (0, "grpo")


def test_masked_rows_that_vote_beside_copies_without_a_vote_are_asked_about():
    frame = a_log()
    frame = with_copies(frame.assign(advantage=grpo(frame)))
    # Every fourth row is rejected, and a copy need not say what its original says.
    rejected = frame.assign(accepted=frame.index % 4 != 1)
    verdict = verdict_on(rejected)
    assert (verdict.exit_code, verdict.verdict) == (2, "asks")
    assert "rejected_rows" in (verdict.bug, *verdict.asks)


@pytest.mark.parametrize("least", [0.6, 0.85])
def test_a_least_deviation_is_a_computation_of_its_own(least):
    frame = a_log(steps=10)
    verdict = verdict_on(frame.assign(advantage=grpo(frame, least=least)))
    assert (verdict.exit_code, verdict.estimator) == (0, "grpo")
    assert f"eps {least:g} as the least" in verdict.convention


MASKS = ([1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1])
"""A mask of tokens for each row of a prompt; the third is masked whole."""


def masked(votes):
    """Dr. GRPO of prompts whose third row the loss masks, with or without its vote."""
    frame = a_log()
    frame["loss_mask"] = [list(mask) for mask in MASKS] * (len(frame) // 4)
    counts = np.array([any(mask) for mask in frame["loss_mask"]])
    reward = frame["reward"].where(counts | votes)
    mean = reward.groupby(frame["uid"]).transform("mean")
    away = frame["reward"] - mean
    return frame.assign(advantage=away if votes else away.where(counts, 0.0))


@pytest.mark.parametrize(
    "votes, declared, code",
    [
        (True, {}, 2),
        (True, {"counts": "length"}, 1),
        (True, {"estimator": "dr_grpo", "counts": "length"}, 1),
        (False, {"estimator": "dr_grpo", "counts": "length"}, 0),
    ],
)
def test_a_declared_mask_is_the_mask_that_the_log_has(votes, declared, code):
    verdict = verdict_on(masked(votes), declared=declared)
    assert (verdict.exit_code, verdict.bug) == (code, "rejected_rows" if votes else "")


@pytest.mark.parametrize("divides", [False, True])
def test_strides_whose_last_piece_is_one_row_are_found(divides):
    frame = a_log(steps=6, prompts=4, size=4).drop(index=[5, 18, 19, 37, 50, 51, 52])
    frame = frame.reset_index(drop=True)
    rows = frame.groupby("step").cumcount()
    piece = frame.assign(piece=rows // 4)
    sizes = piece.groupby(["step", "piece"]).size()
    assert 1 in set(sizes)
    of = piece.groupby(["step", "piece"])["reward"]
    away = piece["reward"] - of.transform("mean")
    a = away / (of.transform("std").fillna(0) + 1e-6) if divides else away
    verdict = verdict_on(frame.assign(advantage=a))
    assert (verdict.exit_code, verdict.bug) == (1, "partial_groups")


def test_a_rows_missing_score_does_not_halve_trls_groups():
    chance = np.random.default_rng(3)
    prompts = [f"What is {n}+1?" for n in range(24) for _ in range(8)]
    frame = pd.DataFrame({"prompt": prompts, "completion": "x"})
    frame.insert(0, "step", np.arange(len(frame)) // 48)
    score = pd.Series(chance.normal(size=len(frame)))
    score[chance.random(len(frame)) < 0.15] = np.nan
    voted = grpo(frame, score.fillna(0.0), by=("prompt",))
    verdict = verdict_on(frame.assign(acc=score, advantage=voted.round(4)))
    assert "groups are 8 rows each, by position" in verdict.notes
    assert (verdict.exit_code, verdict.bug) == (2, "unscored_rows")


def test_what_is_left_over_is_looked_for_with_rows_that_the_log_leaves_out_too():
    frame = a_log(steps=10, size=6)
    bounded = np.clip(grpo(frame), -1, 1)
    frame = frame.assign(advantage=bounded, accepted=frame.index % 5 > 0)
    verdict = verdict_on(frame)
    assert (verdict.exit_code, verdict.left_over) == (2, "clamp")
    assert "marks as left out" in verdict.near


def test_the_last_row_of_a_rollout_is_found_though_some_rollouts_are_left_out():
    """Two rows for each rollout, the first with advantage 0; a column marks every fifth
    rollout as left out, whose rows count like others."""
    frame = a_log(steps=4)
    frame["reward"] = (8 * frame["reward"]).round() / 8
    frame = frame.assign(advantage=grpo(frame), trajectory_id=frame.index)
    frame = frame.assign(accepted=frame.index % 5 > 0)
    frame = frame.loc[frame.index.repeat(2)].reset_index(drop=True)
    frame.loc[::2, "advantage"] = 0.0
    verdict = verdict_on(frame)
    assert (verdict.exit_code, verdict.left_over) == (2, "one row")
    assert "marks as left out" in verdict.near


def test_rows_of_zero_without_a_vote_are_found_without_a_rollout_id():
    frame = a_log(steps=4)
    frame["reward"] = (8 * frame["reward"]).round() / 8 + frame.index % 4
    frame = frame.assign(advantage=grpo(frame))
    assert (frame["advantage"].abs() > 1e-3).all()
    frame = frame.loc[frame.index.repeat(2)].reset_index(drop=True)
    frame.loc[::2, "advantage"] = 0.0
    verdict = verdict_on(frame)
    assert (verdict.exit_code, verdict.left_over) == (2, "no vote")
    assert verdict.near.startswith("48 rows have advantage 0. GRPO fits all other rows")


def one_pass(rewards):
    """The advantages of one prompt under NeMo-RL's leave-one-out: the distance from the
    other rows' mean, over their deviation if that is above 0. Their variance is the
    mean of squares minus the squared mean, in float32."""
    x = np.asarray(rewards, dtype="float32")
    out = []
    for row in range(len(x)):
        others = np.delete(x, row)
        mean = others.sum(dtype="float32") / np.float32(len(others))
        square = (others * others).sum(dtype="float32") / np.float32(len(others))
        variance = (square - mean * mean) * np.float32(len(others) / (len(others) - 1))
        away = rewards[row] - np.delete(rewards, row).mean()
        out.append(away / (np.sqrt(variance) + 1e-6) if variance > 0 else away)
    return out


def test_a_one_pass_variance_is_named_beside_siblings_that_differ_a_little():
    frame = a_log(steps=8, size=4)
    reward = frame["reward"].to_numpy(copy=True)
    # Equal siblings, whose variance float32 gets wrong: the proof. And siblings
    # 0.005 apart: float32 moves the last row's advantage of -32.2 by 0.02.
    reward[0::12], reward[1::12], reward[2::12], reward[3::12] = 1.0, 0.9, 0.9, 0.9
    reward[4:8] = 0.7, 0.71, 0.705, 0.544
    advantage = np.concatenate([one_pass(each) for each in np.split(reward, 24)])
    verdict = verdict_on(frame.assign(reward=reward, advantage=advantage))
    assert (verdict.exit_code, verdict.bug) == (1, "one_pass_variance")


def test_a_division_by_eps_alone_is_no_one_pass_variance():
    """Two of the last row's siblings are equal: over their deviation of 0 and 1e-6 it
    has an advantage of a million, which a one-pass variance of 0 would not divide."""
    frame = a_log(steps=8, size=3)
    frame["reward"] = np.where(frame.index % 3 == 2, 1.0, 0.0)
    others = np.array([0.5**0.5, 0.5**0.5, 0.0])[frame.index % 3]
    away = np.array([-0.5, -0.5, 1.0])[frame.index % 3]
    verdict = verdict_on(frame.assign(advantage=away / (others + 1e-6)))
    assert verdict.exit_code == 2
    assert "one_pass_variance" not in (verdict.bug, *verdict.asks)


def test_rounding_of_rewards_explains_nothing_of_rows_without_siblings():
    frame = a_log(steps=8, prompts=12, size=1)
    place = frame.index // 4  # they were compared with their neighbours
    frame = frame.assign(advantage=grpo(frame.assign(place=place), by=("place",)))
    verdict = verdict_on(frame)
    assert (verdict.exit_code, verdict.verdict) == (2, "none fits")


def test_a_second_normalization_is_asked_about_without_a_count_of_transitions():
    frame = a_log()
    # Without prompts of equal rewards, twice would be once with ddof 0.
    frame.loc[frame["uid"] % 3 == 0, "reward"] = 1.0
    once = grpo(frame)
    of_step = once.groupby(frame["step"])
    deviation = of_step.transform(lambda a: a.std(ddof=0))  # as GEM has it
    twice = (once - of_step.transform("mean")) / (deviation + 1e-9)
    verdict = verdict_on(frame.assign(advantage=twice))
    assert verdict.exit_code == 0
    assert (
        "If GRPO was configured, these are the numbers of the bug Double normalization."
        in verdict.sentence
    )


def test_what_grows_is_shown_also_if_rounding_of_the_rewards_hides_the_computation():
    frame = a_log(steps=10, size=6)
    # A deviation of 0.01 is ten times the rewards' last digit, and the KL about one.
    frame["reward"] = (frame["reward"] / 100).round(3)
    kl = np.random.default_rng(1).random(len(frame)) * 2e-4 * frame["step"]
    verdict = verdict_on(frame.assign(advantage=grpo(frame, frame["reward"] - kl)))
    assert (verdict.exit_code, verdict.left_over) == (2, "kl")
    assert verdict.sentence.startswith("Cannot tell: within the rounding")


def test_a_log_without_steps_that_nothing_fits_is_told_so():
    frame = a_log()
    of_step = frame.groupby("step")["reward"]
    score = (frame["reward"] - of_step.transform("mean")) / of_step.transform("std")
    frame = frame.assign(advantage=score)
    verdict = verdict_on(frame.drop(columns="step"))
    assert (verdict.exit_code, verdict.verdict) == (2, "none fits")
    assert "does not say which step a row belongs to" in verdict.sentence
    assert not any("third" in said for said in verdict.signal.sentences)
    assert verdict_on(frame).estimator == "batch_zscore"


def test_neighbouring_steps_are_compared_also_if_one_of_them_tells_nothing():
    frame = a_log(prompts=1)
    # Rows 1 and 3 of the third prompt have its mean: their step has only zeros.
    frame.loc[8:11, "reward"] = [0.0, 0.5, 1.0, 0.5]
    half = frame.groupby("uid").cumcount() % 2
    frame = frame.assign(advantage=grpo(frame), step=2 * frame["step"] + half)
    verdict = verdict_on(frame.sort_values(["step", "uid"], kind="stable"))
    assert (verdict.exit_code, verdict.left_over) == (2, "neighbours")


def test_a_kl_in_the_reward_is_seen_though_deviations_differ_and_pairs_hide_it():
    frame = a_log(steps=12, prompts=2)
    # Deviations of 0.1 to 10, and every third step has pairs, whose advantages are
    # 0.707 and -0.707 whatever their rewards are.
    frame["reward"] *= 10.0 ** (frame["uid"] % 3 - 1)
    pairs = (frame["step"] % 3 == 1) & (frame.groupby("uid").cumcount() > 1)
    frame = frame[~pairs].reset_index(drop=True)
    kl = np.random.default_rng(1).random(len(frame)) * 0.02 * frame["step"]
    verdict = verdict_on(frame.assign(advantage=grpo(frame, frame["reward"] - kl)))
    assert (verdict.exit_code, verdict.left_over) == (2, "kl")


def test_a_floor_of_deviations_is_seen_beside_prompts_of_equal_rewards():
    frame = a_log(steps=10, size=5)
    frame["reward"] *= 2.0 ** (frame["uid"] % 4 - 2)
    # The float64 mean of five times 0.815017 is not 0.815017.
    frame.loc[frame["uid"] % 5 == 0, "reward"] = 0.815017
    advantage = grpo(frame, least=0.4013).round(5)
    verdict = verdict_on(frame.assign(advantage=advantage))
    assert (verdict.exit_code, verdict.left_over) == (2, "floor")
    assert "divided by 0.4013 instead" in verdict.near
