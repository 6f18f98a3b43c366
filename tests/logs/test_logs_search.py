"""Large logs: what a few steps call for is tried on all of them."""

import io

import numpy as np
import pandas as pd
import pytest
from logs.made import NEEDED, made

from gradebook.logs.log import check_log
from gradebook.logs.read.sources import Source


@pytest.fixture(autouse=True)
def large_from_64_rows(monkeypatch):
    """Try candidates on samples of a few steps first, as in a log of a
    million rows."""
    monkeypatch.setattr("gradebook.logs.verdict.search.FEW", 64)


def checked(frame, **said):
    data = io.BytesIO()
    frame.to_parquet(data)
    return check_log([Source("log.parquet", data=data.getvalue())], **said)


def later(frame, after):
    """The frame with its steps numbered on from `after`."""
    return frame.assign(step=frame["step"] + after)


@pytest.mark.parametrize(
    "estimator",
    ["grpo"] + [pytest.param(e, marks=pytest.mark.long) for e in ("dr_grpo", "rloo")],
)
@pytest.mark.parametrize("bug", sorted(NEEDED))
def test_the_bug_is_named_and_every_step_is_tried(bug, estimator):
    found = checked(made(bug, estimator, steps=40))
    assert (found.verdict, found.bug) == ("suspect", bug)
    assert estimator in {found.estimator, *(t.name for t in found.ties)}
    assert found.steps_fitted == found.steps_judged == 40


def test_a_clean_log_is_correct():
    found = checked(made(steps=40))
    assert found.verdict == "correct" and found.steps_fitted == 40
    assert "partial_groups" in {tie.name for tie in found.ties}


def test_one_wrong_step_among_many_is_found():
    frame = made(steps=60)
    row = int(np.flatnonzero(frame["step"] == 37)[5])
    frame.loc[row, "advantage"] += 0.25
    found = checked(frame)
    assert found.verdict == "none fits"
    assert (found.step, found.row, found.steps_fitted) == (37, 5, 59)


def test_a_bug_that_begins_halfway_is_named():
    clean = made(steps=30)
    frame = pd.concat([clean, later(made("rejected_rows", steps=30), 30)])
    found = checked(frame)
    assert (found.verdict, found.bug) == ("suspect", "rejected_rows")
    assert found.step > 30
    assert (found.frame["verdict"][:30] == "correct").all()


def test_a_bug_that_shows_on_one_step_alone_is_named():
    """Full groups everywhere, but for one step: strides show there."""
    clean = made(steps=50)
    odd = made("partial_groups", steps=1, seed=4).assign(step=50)
    frame = pd.concat([clean[clean["step"] < 50], odd])
    found = checked(frame)
    assert (found.verdict, found.bug) == ("suspect", "partial_groups")
    assert found.step == 50
    assert (found.frame["verdict"] == "suspect").sum() == 1


def test_noise_is_searched_for_a_while_and_that_is_said():
    frame = made(steps=200)
    frame["advantage"] = np.random.default_rng(0).normal(size=len(frame))
    found = checked(frame)
    assert found.verdict == "none fits"
    assert (found.frame["verdict"] == "none fits").all()
    assert any("tried only with what was found" in n for n in found.notes)


@pytest.mark.long
def test_rounded_advantages_are_read_as_rounded():
    frame = made("no_eos_outliers", steps=40)
    frame["advantage"] = frame["advantage"].round(3)
    found = checked(frame)
    assert (found.verdict, found.bug) == ("suspect", "no_eos_outliers")


# One large step


@pytest.fixture
def large_steps_from_256_rows(monkeypatch):
    monkeypatch.setattr("gradebook.logs.candidates.trials.FEW", 64)
    for module in ("candidates.trials", "verdict.search"):
        monkeypatch.setattr(f"gradebook.logs.{module}.LARGE", 256)


OVER_BATCH = {"scale": "batch_std", "eps": 1e-4, "lone_row": "zero"}


def one_step(bug="", estimator="grpo", groups=200, **changes):
    frame = made(bug, estimator, steps=1, groups=groups, **changes)
    return frame.drop(columns="step")


@pytest.mark.parametrize(
    "changes",
    [{}, pytest.param(OVER_BATCH, marks=pytest.mark.long)],
    ids=["group", "batch"],
)
@pytest.mark.parametrize("bug", sorted(NEEDED))
def test_the_bug_of_one_large_step_is_named(bug, changes, large_steps_from_256_rows):
    found = checked(one_step(bug, **changes))
    assert (found.verdict, found.bug) == ("suspect", bug)
    assert found.residual < 1e-3


@pytest.mark.parametrize(
    "estimator, changes",
    [
        ("grpo", {}),
        ("grpo", OVER_BATCH),
        ("rloo", {}),
        ("reinforce_plus_plus_baseline", {}),
        ("none", {"baseline": "batch_mean", "lone_row": "zero"}),
    ],
)
def test_one_large_clean_step_is_correct(estimator, changes, large_steps_from_256_rows):
    found = checked(one_step("", estimator, **changes))
    assert (found.verdict, found.bug) == ("correct", "")


def test_one_wrong_row_of_a_large_step_is_found(large_steps_from_256_rows):
    frame = one_step()
    frame.loc[700, "advantage"] += 0.25
    found = checked(frame)
    assert found.verdict == "none fits" and found.row == 700


def test_noise_in_a_large_step_fits_nothing(large_steps_from_256_rows):
    frame = one_step()
    noise = np.random.default_rng(0).normal(size=len(frame))
    found = checked(frame.assign(advantage=noise))
    assert found.verdict == "none fits"
    assert any("some prompts were searched" in n for n in found.notes)
