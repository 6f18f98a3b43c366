"""When two numbers differ, and when a number changes sign.

One place for these facts, for floats, NumPy arrays and tensors alike: the
pages, the counts, the pictures and the check of a log all ask here.
"""

from __future__ import annotations

from typing import Any

DUST = 1e-6
"""A number of at most this size is 0: it is rounding."""

SHOWS = 5e-4
"""Half of the third decimal. Numbers are printed with three decimals, and
numbers below 1 with three digits, so a smaller difference does not show."""


def same(a: Any, b: Any) -> Any:
    """The two print alike: their difference is below SHOWS, as a share of
    their size where they are below 1, or it is rounding. NaN is like NaN.

    Elementwise; bool, or an array or tensor of bool.

    >>> same(1.0, 0.99999), same(0.004, 0.0), same(100000.0, 100001.0)
    (True, False, False)
    """
    gap, size_a, size_b = abs(a - b), abs(a), abs(b)
    share = (gap <= SHOWS * size_a) | (gap <= SHOWS * size_b)
    rounding = (gap < DUST * size_a) | (gap < DUST * size_b)
    no_value = (a != a) & (b != b)
    hidden = (gap <= SHOWS) & share
    return (a == b) | no_value | (gap <= DUST) | rounding | hidden


def flips(a: Any, b: Any) -> Any:
    """The two have opposite signs, and neither is 0. Elementwise.

    >>> flips(0.5, -0.5), flips(0.5, -1e-9)
    (True, False)
    """
    return ((a > DUST) & (b < -DUST)) | ((a < -DUST) & (b > DUST))
