"""Step by step: what is named, and that neither shortcuts nor neighbours
change it."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from logs.made import NEEDED, made

import gradebook
from gradebook.core.settings import OF_ESTIMATOR

GOLDEN = Path(__file__).parents[1] / "golden"
BUGS = [path.stem for path in sorted(GOLDEN.glob("*.json"))]
SHOWN = [bug for bug in BUGS if gradebook.bug(bug).in_advantages]
HIDDEN = [bug for bug in BUGS if bug not in SHOWN]


def numbers(values):
    return [math.nan if v is None else float(v) for v in values]


def measured(bug, side):
    """The measured cases of a bug as one log, a case a step."""
    file = json.loads((GOLDEN / f"{bug}.json").read_text())
    frames = []
    for case in file["cases"]:
        rows = case["rows"]
        frame = {
            "step": case["name"],
            "prompt": [str(p) for p in rows["prompt"]],
            "reward": numbers(rows["reward"]),
            "advantage": numbers(case[side]["advantage"]),
        }
        if "mask" in rows:
            frame["length"] = [sum(mask) for mask in rows["mask"]]
        more = ("scored", "rollout", "rank", "text")
        for name in ("eos", "steps", "kept_steps", *more):
            if name in rows:
                frame[name] = rows[name]
        frames.append(pd.DataFrame(frame))
    return pd.concat(frames, ignore_index=True)


# What was measured upstream


@pytest.mark.parametrize("bug", BUGS)
def test_measured_correct_advantages_are_never_suspect(bug):
    found = gradebook.check(measured(bug, "correct"))
    assert set(found["bug"]) == {""}


SAID = ("mask_no_eos", "reward_clip", "group_size", "prompts_per_step")


def declared(case):
    """What a person knows of a measured run: its configuration."""
    own = {*OF_ESTIMATOR, *SAID, "reward_bias", "reward_scaling"}
    return {k: v for k, v in case["settings"].items() if k in own}


def is_wider(case):
    """The trainer's rows are wider than the longest response: no log of
    lengths says so."""
    masks = case["rows"].get("mask", [[]])
    return len(masks[0]) > max(sum(mask) for mask in masks)


@pytest.mark.parametrize(
    "side", ["faulty", pytest.param("correct", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("bug", SHOWN)
def test_declared_settings_tell_the_measured_sides_apart(bug, side):
    """Some bugs are another setting's correct numbers: with the settings
    declared, each case that shows is named, or tied."""
    own, other = measured(bug, side), measured(bug, "correct")
    own["faulty"] = measured(bug, "faulty")["advantage"]
    far = ~np.isclose(own["faulty"], other["advantage"], 1e-4, 1e-4, equal_nan=True)
    shows = own.assign(far=far).groupby("step")["far"].any()
    file = json.loads((GOLDEN / f"{bug}.json").read_text())
    cases = {case["name"]: case for case in file["cases"]}
    for name, rows in own.drop(columns="faulty").groupby("step", sort=False):
        said = declared(cases[name])
        row = gradebook.check(rows, declared=said).iloc[0]
        if side == "correct":
            assert row["verdict"] in ("correct", "cannot tell"), name
        elif shows[name] and not is_wider(cases[name]):
            assert bug == row["bug"] or bug in row["ties"], name


@pytest.mark.long
@pytest.mark.parametrize("bug", SHOWN)
def test_undeclared_no_other_bug_is_named_alone(bug):
    found = gradebook.check(measured(bug, "faulty"))
    for row in found[found["verdict"] == "suspect"].itertuples():
        assert bug == row.bug or bug in row.ties, row.step


@pytest.mark.parametrize("bug", HIDDEN)
def test_a_bug_outside_advantages_is_never_named(bug):
    found = gradebook.check(measured(bug, "faulty"))
    assert set(found["bug"]) == {""}
    assert not any(bug in ties for ties in found["ties"])


def test_rloo_whose_advantages_trl_normalizes_is_correct():
    """TRL's RLOO with normalize_advantages divides by the deviation of the
    leave-one-out advantages themselves, + 1e-4 (rloo_trainer.py)."""
    frame = made(steps=1).drop(columns=["eos", "response_length"])
    reward = frame["reward"].to_numpy().reshape(4, 4)
    away = reward - (reward.sum(1, keepdims=True) - reward) / 3
    frame["advantage"] = (away / (away.std(ddof=1) + 1e-4)).ravel()
    found = gradebook.check(frame).iloc[0]
    assert found["verdict"] == "correct"
    assert found["estimator"] == "leave_one_out/batch_std"


# A step by itself


@pytest.mark.parametrize(
    "bug",
    ["", "partial_groups"]
    + [
        pytest.param(bug, marks=pytest.mark.long)
        for bug in sorted(NEEDED)
        if bug != "partial_groups"
    ],
)
def test_a_step_alone_gives_the_same_row(bug):
    frame = made(bug, steps=4, seed=4)
    whole = gradebook.check(frame)
    alone = [gradebook.check(rows) for _, rows in frame.groupby("step")]
    pd.testing.assert_frame_equal(
        whole, pd.concat(alone, ignore_index=True), rtol=1e-9, atol=1e-12
    )


def test_steps_in_pieces_give_the_same_rows(monkeypatch):
    frame = made("rejected_rows", steps=9, seed=6)
    whole = gradebook.check(frame)
    monkeypatch.setattr("gradebook.logs.check.AT_ONCE", 40)
    pd.testing.assert_frame_equal(gradebook.check(frame), whole)


def test_rows_of_a_step_may_stand_apart():
    frame = made("rejected_rows", steps=4, seed=6)
    mixed = frame.sort_values("step", key=lambda step: step % 2, kind="stable")
    apart = gradebook.check(mixed).sort_values("step")
    pd.testing.assert_frame_equal(apart.reset_index(drop=True), gradebook.check(frame))


# Numbers at the edge of what float32 can say


def test_a_flat_group_whose_mean_is_off_by_one_ulp_tells_nothing():
    """Seven times 100.1 in float32 gives verl's GRPO +0.8256 (TRUTH.md)."""
    frame = pd.DataFrame({"prompt": 0, "reward": [100.1] * 7})
    frame["advantage"] = 0.8256
    found = gradebook.check(frame)
    assert found["verdict"].tolist() == ["cannot tell"]


def test_the_same_advantage_on_exact_rewards_fits_nothing():
    frame = pd.DataFrame({"prompt": 0, "reward": [1.0] * 7})
    frame["advantage"] = 0.8256
    found = gradebook.check(frame)
    assert found["verdict"].tolist() == ["none fits"]


def test_signal_made_from_rounding_dust_names_double_normalization():
    """Two constant groups of three, 0.1 and 0.7: -0.984 and +0.984
    (TRUTH.md, section 2)."""
    frame = pd.DataFrame(
        {
            "prompt": [0] * 3 + [1] * 3,
            "reward": [0.1] * 3 + [0.7] * 3,
            "steps": 1,
        }
    )
    settings = gradebook.Settings(ddof=0, eps=1e-9)
    batch = gradebook.Batch(
        frame["prompt"].tolist(), frame["reward"].tolist(), settings=settings
    )
    engine = gradebook.bug("double_normalization").engine
    frame["advantage"] = gradebook.run(engine, batch).advantage.numpy()
    assert frame["advantage"].abs().round(3).tolist() == [0.984] * 6
    found = gradebook.check(frame)
    assert found["bug"].tolist() == ["double_normalization"]


def test_a_score_over_eps_is_read_as_such():
    """AReaL's rows past the last stride: 0, 1e5, 2e5 (TRUTH.md)."""
    frame = pd.DataFrame(
        {
            "prompt": [0] * 4 + [1] * 4 + [2] * 3,
            "reward": [0.5, -0.5, 1, -1, 2, -2, 0, 3, 0, 1, 2],
        }
    )
    scores = torch.tensor(frame["reward"].tolist())
    strides = [scores[:4], scores[4:8]]
    expected = [(s - s.mean()) / (s.std() + 1e-5) for s in strides]
    frame["advantage"] = torch.cat([*expected, scores[8:] / 1e-5]).tolist()
    found = gradebook.check(frame).iloc[0]
    assert (found["bug"], found["estimator"]) == ("partial_groups", "grpo")
    assert found["correct_residual"] == pytest.approx(2e5, rel=1e-4)
    assert found["row"] == 10


@pytest.mark.parametrize(
    "value",
    [math.nan] + [pytest.param(v, marks=pytest.mark.long) for v in (math.inf, 1e300)],
)
def test_an_advantage_that_is_no_finite_number_is_not_correct(value):
    frame = made(steps=1)
    frame.loc[3, "advantage"] = value
    assert gradebook.check(frame)["verdict"].tolist() == ["none fits"]


def test_a_row_without_transitions_has_no_advantage():
    frame = made(steps=1).assign(kept_steps=1)
    frame.loc[3, "kept_steps"] = 0
    frame.loc[3, "advantage"] = math.nan
    assert gradebook.check(frame)["verdict"].tolist() == ["correct"]


@pytest.mark.parametrize("places", [3, pytest.param(4, marks=pytest.mark.long)])
def test_advantages_rounded_in_text_are_read_as_rounded(places):
    frame = made(steps=6).round({"advantage": places})
    assert set(gradebook.check(frame)["verdict"]) == {"correct"}


def test_the_number_of_torch_threads_is_left_as_it_was():
    before = torch.get_num_threads()
    gradebook.check(made(steps=1))
    assert torch.get_num_threads() == before
