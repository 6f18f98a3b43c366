"""The check accuses nobody without evidence, and its sentences are true."""

import json

import numpy as np
import pandas as pd
import pytest
from logs.made import made

import gradebook
from gradebook.__main__ import main
from gradebook.logs.log import check_log
from gradebook.logs.read.sources import Source


def checked(frame, **said):
    data = frame.to_csv(index=False).encode()
    return check_log([Source("log.csv", data=data)], **said)


def one_row_steps(advantage, steps=64):
    """Steps of one row: rewards 0.5, 1.5, ..., and their advantages."""
    reward = np.arange(steps) % 7 + 0.5
    return pd.DataFrame(
        {
            "step": range(steps),
            "prompt": "p",
            "reward": reward,
            "advantage": advantage(reward),
        }
    )


def test_strides_under_a_listed_convention_are_named():
    """Groups of 4, 4 and 1 rows, strides of 4, ddof 0 and eps 1e-5: the
    last row is in no stride and gets reward / eps."""
    rng = np.random.default_rng(0)
    frames = []
    for step in range(12):
        reward = rng.normal(size=9).round(3)
        heads = reward[:8].reshape(2, 4)
        mean, std = heads.mean(1, keepdims=True), heads.std(1, keepdims=True)
        advantage = ((heads - mean) / (std + 1e-5)).ravel()
        frames.append(
            pd.DataFrame(
                {
                    "step": step,
                    "prompt": [0] * 4 + [1] * 4 + [2],
                    "reward": reward,
                    "advantage": [*advantage, reward[8] / 1e-5],
                }
            )
        )
    found = checked(pd.concat(frames))
    assert (found.verdict, found.bug) == ("suspect", "partial_groups")


def test_healthy_steps_of_one_row_are_no_suspects():
    assert checked(one_row_steps(lambda r: r)).verdict == "correct"
    quiet = checked(one_row_steps(lambda r: 0 * r))
    assert (quiet.verdict, quiet.bug) == ("cannot tell", "")


@pytest.mark.parametrize("seed", range(4))
def test_random_advantages_on_steps_of_one_row_are_no_suspects(seed):
    rng = np.random.default_rng(seed)
    found = checked(one_row_steps(lambda r: rng.normal(size=len(r)), 20))
    assert found.verdict not in ("suspect", "correct") and found.bug == ""


def test_random_advantages_over_constant_rewards_fit_nothing():
    frame = made()
    rng = np.random.default_rng(0)
    frame["reward"], frame["advantage"] = 1.0, rng.uniform(-1.9, 1.9, 96)
    found = checked(frame)
    assert found.verdict == "none fits"
    assert "nothing varies" not in found.sentence


def test_the_residual_is_the_true_distance():
    """Rewards 10000, 10000.01, ...: float32 moves them by up to 5e-4, and
    an advantage by about 0.05."""
    reward = (1e4 + 0.01 * np.array([0, 1, 3, 4])).repeat(2)
    single = reward.astype("float32").astype("float64")
    advantage = (single - single.mean()) / (single.std(ddof=1) + 1e-4)
    true = (reward - reward.mean()) / (reward.std(ddof=1) + 1e-4)
    off = np.abs(advantage - true).max()
    assert off > 0.001
    frame = pd.DataFrame({"prompt": 0, "reward": reward})
    found = gradebook.check(frame.assign(advantage=advantage)).iloc[0]
    assert found["residual"] >= 0.3 * off
    assert found["bug"] == ""


def test_exact_quarters_are_not_called_rounded():
    frame = made(estimator="dr_grpo")
    frame["reward"] = np.tile([0.0, 1.0, 1.0, 1.0], 24)
    frame["advantage"] = np.tile([-0.75, 0.25, 0.25, 0.25], 24)
    found = checked(frame)
    assert found.verdict == "correct"
    assert not any("rounded" in note for note in found.notes)


def test_a_combination_that_no_trainer_uses_is_no_clean_bill():
    """ddof 0 and eps 0.05: declared, it is what was asked for."""
    frame = made()
    groups = frame.groupby(["step", "prompt"])["reward"]
    away = frame["reward"] - groups.transform("mean")
    frame["advantage"] = away / (groups.transform("std", ddof=0) + 0.05)
    assert checked(frame).verdict == "none fits"
    asked = {"estimator": "grpo", "ddof": "0", "eps": "0.05"}
    assert checked(frame, declared=asked).verdict == "correct"


def test_a_declaration_settles_what_was_asked_for():
    frame = made(estimator="dr_grpo")
    assert checked(frame).verdict == "correct"
    asked = checked(frame, declared={"scale": "none"})
    assert asked.verdict == "correct" and "scale=none" in asked.sentence
    assert checked(frame, declared={"scale": "group"}).verdict != "correct"


def test_two_bugs_in_turn_are_told_apart():
    first = made("rejected_rows", steps=4)
    second = made("double_normalization", steps=4, seed=1)
    second["step"] += 4
    found = checked(pd.concat([first, second]))
    assert found.verdict == "suspect"
    assert "Steps 1 to 4: " in found.sentence
    assert "steps 5 to 8: " in found.sentence


def test_half_a_surrogate_pair_is_a_prompt(tmp_path, capsys):
    lines = made(steps=2).to_dict("records")
    for line in lines:
        line["prompt"] += "\ud800"
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert main(["check", str(path)]) == 0
    assert "correct" in capsys.readouterr().out


def test_an_unexpected_error_exits_2(monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("no \ud800 such thing")

    monkeypatch.setattr("gradebook.__main__.check_log", broken)
    assert main(["check", "a.csv"]) == 2
    assert "unexpected error" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_numbers_of_a_short_type_are_read_as_such(kind):
    import torch

    frame = made(steps=8)
    values = torch.tensor(frame["advantage"].to_numpy())
    short = values.to(getattr(torch, kind)).double().numpy()
    found = checked(frame.assign(advantage=short))
    assert found.verdict == "correct"
    assert any(f"stored as {kind}" in note for note in found.notes)
