"""Which rows are said to miss, in logs whose fault is known by hand."""

import io

import numpy as np
import pandas as pd
import pytest

from gradebook.logs.read.sources import Source
from gradebook.logs.verdict.near_miss import near_miss
from gradebook.logs.verdict.verdict import Verdict

REWARDS = [0.0, 1.0, 3.0, 7.0, 2.0, 2.5, 6.0, 1.0, 5.0, 0.5, 0.25, 9.0]
"""Three prompts of four rows."""


def healthy(steps=4):
    """A log of (reward - mean) / (deviation + 1e-4), ddof 1."""
    frames = []
    for step in range(1, steps + 1):
        reward = np.roll(np.array(REWARDS) * step, step)
        groups = reward.reshape(3, 4)
        centred = groups - groups.mean(1, keepdims=True)
        scale = groups.std(1, ddof=1, keepdims=True) + 1e-4
        frame = {"step": step, "prompt": np.repeat(list("abc"), 4)}
        frame |= {"reward": reward, "advantage": (centred / scale).ravel()}
        frames.append(pd.DataFrame(frame))
    log = pd.concat(frames, ignore_index=True)
    log["place"] = np.tile(np.arange(12), steps)
    log["eos"] = log["place"] != 5
    return log


def said(log, verdict="none fits"):
    """What is said of a log whose steps are all called so."""
    text = io.BytesIO()
    log.drop(columns="place").to_csv(text, index=False)
    source = Source("run.csv", data=text.getvalue())
    steps = log["step"].unique()
    frame = pd.DataFrame({"step": steps, "verdict": verdict})
    return near_miss([source], Verdict("", verdict, frame=frame))


def test_a_log_that_fits_misses_nothing():
    assert said(healthy(), "correct") is None


FAULTS = {
    "Only the last rows of each step miss: a tail.": lambda a, log: a.where(
        log["place"] < 10, 0.125
    ),
    "Only the first rows of each step miss.": lambda a, log: a.where(
        log["place"] > 2, 0.125
    ),
    "Only rows without EOS miss.": lambda a, log: a.where(log["eos"], -3),
    "Only the largest advantages miss: the log clips them.": (
        lambda a, log: a.clip(-1.1, 1.1)
    ),
    "Some groups miss as a whole, and the others fit.": (
        lambda a, log: a.where(log["prompt"] != "b", a * 1.7 + 0.3)
    ),
    "The rows that miss have nothing in common that the columns show.": (
        lambda a, log: a.where(~log["place"].isin([1, 6]), a + 0.5)
    ),
}


@pytest.mark.parametrize("sentence", FAULTS)
def test_the_rows_that_miss_are_told(sentence):
    log = healthy()
    log["advantage"] = FAULTS[sentence](log["advantage"], log)
    found = said(log)
    assert found.found.startswith("Near miss: ")
    assert "of the 36 rows" in found.found
    assert found.found.endswith(sentence)


WHOLE = {
    "the log is GRPO with the opposite sign.": lambda a, log: -a,
    "the log is GRPO times 2.5 on every row.": lambda a, log: 2.5 * a,
    "each step has another one: 1.25 to 3.75.": lambda a, log: 1.25 * a * log["step"],
    "plus one number a step.": lambda a, log: a + 0.37 * log["step"],
}


@pytest.mark.parametrize("sentence", WHOLE)
def test_what_was_done_to_every_row_is_told(sentence):
    log = healthy()
    log["advantage"] = WHOLE[sentence](log["advantage"], log)
    found = said(log)
    assert sentence in found.found


def test_noise_is_no_near_miss():
    log = healthy()
    noise = np.random.default_rng(0).normal(size=len(log))
    log["advantage"] = noise
    assert said(log) is None
