"""Float32 dust: verl PR 4598, open."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine import grouping


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in float32. float32 [R].

    The trainer sees advantages that are not 0 in a group whose rewards are
    all equal: the float32 mean is not exactly the reward.
    """
    return grouping.score(batch).float()


def unexplained(reward: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """The rewards of the row's group, of two or more rows, are equal: no exact
    formula leaves an advantage there. bool [R]."""
    size = np.bincount(prompt)
    first = np.empty(len(size))
    first[prompt[::-1]] = reward[::-1]
    differs = np.bincount(prompt, reward != first[prompt])
    return (differs == 0)[prompt] & (size > 1)[prompt]


def evidence(
    rows: np.ndarray,
    reward: np.ndarray,
    prompt: np.ndarray,
    advantage: np.ndarray,
    baseline: np.ndarray,
    ddof: int | None,
    eps: float,
) -> np.ndarray:
    """2 for those of `rows`, bool [R], whose advantage a float32 mean leaves:
    q / (q c + eps), with q a multiple of the rewards' spacing and c what the
    deviation makes of it; else 0. int [R]. `ddof` is None where nothing
    divides."""
    places = np.flatnonzero(rows)
    n = np.bincount(prompt)[prompt[places]].astype("float64")
    score, size = np.abs(reward[places]).astype("float32"), np.abs(advantage[places])
    spacing = np.spacing(score).astype("float64")
    near = np.zeros(len(places), dtype=bool)
    for multiple in (0.25, 0.5, *range(1, 33)):
        q = multiple * spacing
        spreads = (q, q * np.sqrt(n / (n - 1)), np.zeros(len(places)))
        for spread in spreads if ddof is not None else (np.ones(len(places)),):
            with np.errstate(divide="ignore"):
                left = q / (spread + (0 if ddof is None else eps))
            near |= np.isfinite(left) & (np.abs(size - left) <= 0.02 * left)
    shown = np.zeros(len(rows), dtype="int64")
    shown[places[near & (score * 1024 != np.round(score * 1024))]] = 2
    return shown
