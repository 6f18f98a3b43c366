"""The names under which the check asks for whole steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.log import Log

__all__ = ["Log", "whole_steps"]

ROWS = 131_072
"""About so many rows are held at once, in whole steps."""


def whole_steps(log: Log) -> Iterator[pd.DataFrame]:
    """Canonical tables of whole steps, of about ROWS rows."""
    for table in log.tables():
        step = pd.factorize(table["step"])[0]
        heads = np.flatnonzero(np.diff(step, prepend=-1))
        part = np.repeat(heads // ROWS, np.diff(np.append(heads, len(table))))
        for number in np.unique(part):
            yield table[part == number].reset_index(drop=True)
