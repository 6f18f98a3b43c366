"""Decimals: to how many a log's numbers were rounded when written."""

from __future__ import annotations

import numpy as np

ENOUGH = 24
"""So many different numbers must agree before rounding is believed."""


def decimal_places(values: np.ndarray) -> int | None:
    """Decimals, 2 to 6, that all of many different numbers are rounded to;
    None when they are not, or too few to tell."""
    sizes = np.unique(np.abs(values[np.isfinite(values)]))
    sizes = sizes[(sizes > 0) & (sizes < 1e6)][:4096]
    if len(sizes) < ENOUGH:
        return None
    for places in range(2, 7):
        away = np.abs(sizes - np.round(sizes, places))
        if bool((away <= 1e-7 * np.maximum(sizes, 1e-3)).all()):
            return places
    return None
