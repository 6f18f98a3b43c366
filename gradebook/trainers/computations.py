"""The computations that a probe tells apart, each written plainly.

`fitting` says which of them gives what a function returned. A computation is
a baseline, a scale, a ddof, an eps, and what follows over the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

Answers = Mapping[str, tuple[list[list[Any]], list[list[float]]]]
"""Batch name -> rewards and advantages, by prompt, all finite."""

BASELINES = ("group_mean", "leave_one_out", "batch_mean", "second_best", "none")
STD = ("group_std", "batch_std", "spread")
SCALES = ("none", *STD, "group_mean", "nonzero_share")
AFTER = ("", "normalized", "whitened", "whitened by token")
EPS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-9, 0.0)
LARGEST = ("near 100", "a flat group of 100.1")
"""Batches whose rewards lose digits in float32."""


@dataclass(frozen=True)
class Computation:
    """How advantages follow from rewards.

    scale  "spread" is the deviation about the baseline
    after  over all rows: "normalized", (a − mean) / (std + eps), or
           "whitened", (a − mean) / sqrt(var + 1e-8), also over tokens where
           each row has four of them
    """

    baseline: str
    scale: str
    ddof: int = 1
    eps: float = 0.0
    after: str = ""
    after_ddof: int = 1

    @property
    def text(self) -> str:
        """In a line, as '(r − group mean) / (group std, ddof 1, + 1e-06)'."""
        of = {
            "group_mean": "group mean",
            "batch_mean": "batch mean",
            "leave_one_out": "mean of the others",
            "second_best": "second best, for the best row",
            "none": "",
        }[self.baseline]
        line = f"r − {of}" if of else "r"
        if self.scale in STD:
            name = {"spread": "spread about it"}.get(
                self.scale, f"{self.scale[:5]} std"
            )
            std = f"{name}, ddof {self.ddof}, + {self.eps:g}"
            line = f"({line}) / ({std})"
        elif self.scale == "group_mean":
            line = f"({line}) / (group mean + {self.eps:g})"
        elif self.scale == "nonzero_share":
            line = f"({line}) / (share of rewards that are not 0)"
        then = f", then {self.after} over all rows, ddof {self.after_ddof}"
        return line + (then if self.after else "")

    def __call__(self, groups: list[list[float]]) -> list[list[float]]:
        """Advantages in float64, by prompt."""
        flat = np.concatenate([np.asarray(g, dtype=np.float64) for g in groups])
        rows = [self._group(np.asarray(group, np.float64), flat) for group in groups]
        if self.after:
            every = np.concatenate(rows)
            if self.after.endswith("token"):
                every = every.repeat(4)
            spread = every.std(ddof=self.after_ddof)
            white = self.after.startswith("whitened")
            by = np.sqrt(spread**2 + 1e-8) if white else spread + (self.eps or 1e-8)
            rows = [(row - every.mean()) / by for row in rows]
        return [row.tolist() for row in rows]

    def _group(self, x: np.ndarray, flat: np.ndarray) -> np.ndarray:
        if self.baseline == "second_best":
            top = np.sort(x)[::-1]
            a = np.where(np.arange(len(x)) == x.argmax(), top[0] - top[1], 0.0)
        elif self.baseline == "leave_one_out":
            a = x - (x.sum() - x) / (len(x) - 1)
        else:
            mean = {"group_mean": x.mean(), "batch_mean": flat.mean()}
            a = x - mean.get(self.baseline, 0.0)
        if self.scale in ("group_std", "batch_std"):
            of = x if self.scale == "group_std" else flat
            return a / (of.std(ddof=self.ddof) + self.eps)
        if self.scale == "spread":
            return a / (np.sqrt((a**2).sum() / (len(a) - self.ddof)) + self.eps)
        if self.scale == "group_mean":
            return a / (x.mean() + self.eps)
        if self.scale == "nonzero_share":
            return a * (len(flat) / max(int(np.count_nonzero(flat)), 1))
        return a


def computations() -> Iterator[Computation]:
    """All of them, the plainest first, with eps 0."""
    for after, baseline, scale in product(AFTER, BASELINES, SCALES):
        for ddof in (1, 0) if scale in STD else (1,):
            for last in (1, 0) if after else (1,):
                yield Computation(baseline, scale, ddof, 0.0, after, last)


def fitting(answers: Answers) -> Computation | None:
    """The plainest computation that gives all answers; of its eps the one
    that is nearest. Only batches of whole groups with spread count."""
    told = {
        name: pair
        for name, pair in answers.items()
        if all(len(set(g)) > 1 for g in pair[0]) and len({*map(len, pair[0])}) == 1
    }
    if not told:
        return None
    for plain in computations():
        plainly = {n: pair for n, pair in told.items() if "near 0" not in n}
        with np.errstate(all="ignore"):
            if all(_fits(plain, *pair, 2e-3) for pair in plainly.values()):
                white = plain.after.startswith("whitened") and plain.scale == "none"
                found = _with_eps(plain, plainly if white else told)
                if found:
                    return found
    return None


def _with_eps(plain: Computation, told: Answers) -> Computation | None:
    uses = plain.scale not in ("none", "nonzero_share") or plain.after == "normalized"
    best = None
    for eps in EPS if uses else (0.0,):
        one = replace(plain, eps=eps)
        allowed = {name: 1e-3 if name in LARGEST else 2e-5 for name in told}
        if all(_fits(one, *pair, allowed[name]) for name, pair in told.items()):
            off = sum(_distance(one, *pair) for pair in told.values())
            if best is None or off < best[0] * 0.5:
                best = (off, one)
    return best[1] if best else None


def _distance(one: Computation, rewards: list, advantages: list) -> float:
    due = np.concatenate(one(rewards))
    there = np.concatenate([np.asarray(group, float) for group in advantages])
    return float(np.abs(due - there).max())


def _fits(one: Computation, rewards: list, advantages: list, allowed: float) -> bool:
    largest = max((abs(a) for group in advantages for a in group), default=0.0)
    return _distance(one, rewards, advantages) <= allowed * (1 + largest)


def flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """All numbers of all groups."""
    return [one for group in groups for one in group]
