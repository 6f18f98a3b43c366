"""Lines: whether advantages lie on a straight line through rewards."""

from __future__ import annotations

import numpy as np


def off_line(
    x: np.ndarray,
    y: np.ndarray,
    use: np.ndarray,
    of: np.ndarray,
    dust: np.ndarray,
    allowed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How far y is from the best line through x of each segment `of`,
    int64 [R], and whether that is more than `allowed` and the rounding of
    x, `dust`, explain: float64 and bool [R]. Rows not in `use`, or whose y
    is not finite, have no say and are never out."""
    use = use & np.isfinite(y)
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
        out = use & ~(away <= 4 * worst[of] + allowed)
    return np.where(np.isfinite(away), away, 0), out
