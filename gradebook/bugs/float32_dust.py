"""Float32 dust: verl PR 4598, open."""

import numpy as np
from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.vocabulary import SCALES
from gradebook.engine import grouping


def score(batch: Batch) -> Tensor:
    """Reward after bias, scaling and clip, in float32. float32 [R].

    The trainer sees advantages that are not 0 in a group whose rewards are
    all equal: the float32 mean is not exactly the reward.
    """
    return grouping.score(batch).float()


def unexplained(log: "pd.DataFrame") -> np.ndarray:
    """The rewards of the row's group, of two or more rows, are equal: no exact
    formula leaves an advantage there. bool [R]."""
    groups = log.groupby("prompt")["reward"]
    equal = groups.transform("min") == groups.transform("max")
    return (equal & (groups.transform("size") > 1)).to_numpy()


def evidence(log: "pd.DataFrame", settings: Settings) -> np.ndarray:
    """2 for odd rows of groups of equal rewards, if a float32 mean explains their
    advantage: q / (q c + eps), with q a multiple of the rewards' spacing, and q c
    the deviation of a group that is off by q; else 0. int [R]."""
    odd = log["odd"].to_numpy() & unexplained(log)
    divides = SCALES[settings.scale].is_std
    n = log.groupby("prompt")["reward"].transform("size").to_numpy()[odd, None]
    score = log["reward"].abs().to_numpy("float32")[odd, None]
    size = log["advantage"].abs().to_numpy()[odd, None]
    q = np.spacing(score).astype("float64") * [0.25, 0.5, *range(1, 33)]
    # The deviation is about the rounded mean, with ddof 0 or 1, or the exact one.
    spreads = (q, q * np.sqrt(n / (n - 1)), 0 * q)
    with np.errstate(divide="ignore"):  # an eps of 0 beside the exact deviation
        left = [q / (s + settings.eps) for s in spreads] if divides else [q]
    near = np.abs(size - np.hstack(left)) <= 0.02 * size
    inexact = score[:, 0] * 1024 != np.round(score[:, 0] * 1024)
    shown = np.zeros(len(log), dtype="int64")
    shown[odd] = 2 * (near.any(1) & inexact)
    return shown
