"""Float32 dust: verl PR 4598, open."""

import numpy as np
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.lazy_pandas import pd
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
    groups = pd.Series(reward).groupby(prompt)
    equal = groups.transform("min") == groups.transform("max")
    return (equal & (groups.transform("size") > 1)).to_numpy()


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
    n = np.bincount(prompt)[prompt[rows], None].astype("float64")
    score = np.abs(reward[rows, None]).astype("float32")
    size = np.abs(advantage[rows, None])
    q = np.spacing(score).astype("float64") * [0.25, 0.5, *range(1, 33)]
    # The deviation is about the rounded mean, with ddof 0 or 1, or the exact one.
    spreads = (q, q * np.sqrt(n / (n - 1)), 0 * q)
    with np.errstate(divide="ignore"):  # an eps of 0 beside the exact deviation
        left = [q] if ddof is None else [q / (spread + eps) for spread in spreads]
    near = np.abs(size - np.hstack(left)) <= 0.02 * size
    inexact = score[:, 0] * 1024 != np.round(score[:, 0] * 1024)
    shown = np.zeros(len(rows), dtype="int64")
    shown[rows] = 2 * (near.any(1) & inexact)
    return shown
