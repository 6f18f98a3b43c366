"""Sampled: some rows of a TRL log under one reading of its groups and
rewards, and how well weights explain their advantages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.candidates import correct_ones
from gradebook.logs.candidates.conventions import Convention, conventions
from gradebook.logs.candidates.fit import ABSOLUTE, FLOAT32, RELATIVE
from gradebook.logs.candidates.logged_steps import to_logged
from gradebook.logs.candidates.trials import Trials
from gradebook.logs.candidates.weights import TRL_EPS, sums
from gradebook.logs.read.canonical import unscored

TRL_ESTIMATORS = (
    "grpo",
    "grpo_batch_std",
    "dr_grpo",
    "rloo",
    "leave_one_out/batch_std",
)
"""The estimators that TRL has."""

SOLVED = "the logged advantages determine them"
"""Where weights come from that were worked out."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """A sample's rows that have a say, as one reading has them.

    rewards    float64 [R, functions], 0 where empty
    advantage  float64 [R]
    step       int64 [R]
    group      int64 [R], one for each (step, group)
    """

    rewards: np.ndarray
    advantage: np.ndarray
    step: np.ndarray
    group: np.ndarray

    @classmethod
    def of(
        cls,
        sample: pd.DataFrame,
        size: int | None,
        normalized: bool,
        zeros: bool = False,
    ) -> Sampled:
        """The sample with groups of `size` rows; `zeros`: a row without
        any reward counts, with the reward 0."""
        names = [n for n in sample if n.startswith("reward ")]
        step, group = _group(sample, size)
        rewards = sample[names].to_numpy()
        if normalized:
            rewards = normalized_rewards(rewards, group)
        in_ = ~unscored(sample) | zeros
        return cls(
            np.nan_to_num(rewards[in_], posinf=0, neginf=0),
            sample["advantage"].to_numpy()[in_],
            pd.factorize(step[in_])[0],
            pd.factorize(group[in_])[0],
        )


def normalized_rewards(rewards: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Each function's rewards, less their group's mean and over its
    standard deviation (ddof 1) + eps: NaN where empty, 0 for the only one
    of a group. [R, functions]"""
    has = ~np.isnan(rewards)
    count = sums(has.astype("float64"), group)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums(np.where(has, rewards, 0), group) / count
        away = rewards - mean[group]
        square = sums(np.where(has, away, 0) ** 2, group)
        spread = np.sqrt(square / (count - 1))
        found = np.nan_to_num(away / (spread[group] + TRL_EPS))
        return np.where(has, found, np.nan)


def steps_of(table: pd.DataFrame) -> np.ndarray:
    """int64 [R] steps from 0."""
    if "step" not in table:
        return np.zeros(len(table), dtype="int64")
    return pd.factorize(table["step"])[0].astype("int64")


def codes_of(step: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """int64 [R], one for each (step, prompt)."""
    return pd.factorize(step * (len(step) + 1) + prompt)[0]


def place_groups(table: pd.DataFrame, size: int) -> np.ndarray:
    """int64 [R] position in the step // size."""
    place = pd.Series(steps_of(table)).groupby(steps_of(table)).cumcount()
    return place.to_numpy() // size


def _group(
    sample: pd.DataFrame, size: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Step int64 [R] and group int64 [R], one for each (step, group)."""
    step = steps_of(sample)
    if size is None:
        return step, codes_of(step, pd.factorize(sample["prompt"])[0])
    return step, codes_of(step, place_groups(sample, size))


def merit_of(
    seen: Sampled, weights: tuple[float, ...], why: str, only_own: bool = False
) -> tuple[float, ...]:
    """How well a reward explains the advantages: steps that one correct
    convention fits, TRL's own preferred, then the residual, then how
    short the weights are. Solved weights make any advantages raw rewards
    (of weight 1 / eps, say), so that does not count. `only_own`: no other
    convention than TRL's own is tried."""
    digits = digits_of(weights)
    reward = seen.rewards @ np.array(weights)
    rows = _straight(seen, reward)
    if not rows.any():
        return 0.0, 1.0, 0.0, -digits
    table = pd.DataFrame(
        {
            "step": seen.step[rows],
            "prompt": seen.group[rows],
            "reward": reward[rows],
            "advantage": seen.advantage[rows],
        }
    )
    table_of = tuple(c for c in conventions() if not only_own or _is_own(c))
    trials = Trials(to_logged(table))
    every = np.ones(trials.steps.step_count, dtype=bool)
    trials.try_on(every, correct_ones(table_of, trials.seen))
    best: tuple[float, ...] = (-1.0,)
    for candidate, fit in trials.fits.items():
        if why == SOLVED and candidate.settings.baseline == "none":
            continue
        worst = float(np.where(fit.loose, fit.residual, 0).max())
        merit = (
            float(fit.loose.sum()),
            float(_is_own(candidate.convention)),
            -round(worst, 6),
            -digits,
        )
        best = max(best, merit)
    return best


def digits_of(weights: tuple[float, ...]) -> int:
    """How many digits it takes to write the weights."""
    return sum(len(f"{w:g}".strip("-0.")) for w in weights)


def _is_own(convention: Convention) -> bool:
    """TRL computes so."""
    s = convention.settings
    own = convention.estimator in TRL_ESTIMATORS and s.ddof == 1
    return own and (s.scale == "none" or s.eps == TRL_EPS)


def _straight(seen: Sampled, reward: np.ndarray) -> np.ndarray:
    """bool [R]: in the row's step, the advantages of every group are a
    straight line through its rewards, as all of TRL's computations are."""
    dust = FLOAT32 * np.abs(reward)
    allowed = 4 * (ABSOLUTE + RELATIVE * np.abs(seen.advantage))
    out = _off_line(reward, seen.advantage, seen.group, dust, allowed)
    return (np.bincount(seen.step, out) == 0)[seen.step]


def _off_line(
    x: np.ndarray,
    y: np.ndarray,
    of: np.ndarray,
    dust: np.ndarray,
    allowed: np.ndarray,
) -> np.ndarray:
    """bool [R]: y is further from the best line through x of its segment
    `of`, int64 [R], than `allowed` and the rounding of x, `dust`, explain.
    Rows whose y is not finite have no say and are never out."""
    use = np.isfinite(y)
    x, y = np.where(use, x, 0), np.where(use, y, 0)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(of, values)[of]

    n = np.maximum(total(use.astype("float64")), 1)
    dx = np.where(use, x - total(x) / n, 0)
    dy = np.where(use, y - total(y) / n, 0)
    across, up = total(dx * dx), total(dy * dy)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.where(across > 0, total(dx * dy) / across, 0)
        steep = np.where(across > 0, np.sqrt(up / across), 0)
        away = np.abs(dy - slope * dx)
        worst = np.zeros(int(of.max()) + 1)
        np.maximum.at(worst, of, dust * steep)
        return use & ~(away <= 4 * worst[of] + allowed)
