"""Rounding: how the numbers of a column were rounded before they were logged.

Numbers may be stored in a type of few digits, printed with few decimals or with few
significant digits, or both, one after the other.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from gradebook.core import tolerance
from gradebook.core.formatting import counted
from gradebook.core.tolerance import TYPES

LARGEST = 1e6
"""Larger numbers say nothing about decimals: float32 numbers are a 16th apart there,
and a multiple of 1/16 has at most four decimals."""

MOST_DECIMALS, MOST_DIGITS = 6, 6
"""Half of a seventh decimal is a 200th of what is always allowed (`tolerance.BASE`),
and float32 numbers near 1 are 1.2e-7 apart, so that they have seven by chance."""

MOST_TEXT = 8
"""Text of more decimals holds all digits of a float32 advantage."""

FEW = 5
"""So many numbers of the largest decade tell significant digits from decimals: that all
of them end in a zero by chance has a probability of 1e-5."""

TELLING = 4
"""So many numbers must be those of a type, each of which would be one in four times by
chance at most: 1/256 for all of them."""

FLOAT32_DIGITS, NO_SIZE = 6e-8, 1e-12
"""Numbers that passed through float32 are off by half its spacing, times their size. A
difference that should be 0 is dust: of numbers near 1,000, float64 leaves 1e-13."""


@dataclass(frozen=True)
class Rounding:
    """How a column was rounded when it was written, in `words`: each number was
    moved by at most `share` of its size and `half`."""

    words: str = ""
    share: float = 0.0
    half: float = 0.0

    @classmethod
    def to(cls, places: int) -> Self:
        words = f"rounded to {counted(places, 'decimal')}"
        return cls(words, half=tolerance.DECIMAL_MARGIN * 10.0**-places)

    @classmethod
    def to_digits(cls, digits: int) -> Self:
        """A half of the last digit is the largest share of a number such as 1.00."""
        words = f"rounded to {counted(digits, 'significant digit')}"
        return cls(words, share=tolerance.DECIMAL_MARGIN * 10.0 ** (1 - digits))

    @classmethod
    def as_type(cls, name: str) -> Self:
        if name not in TYPES:
            return cls()
        share = tolerance.TYPE_MARGIN * TYPES[name]
        return cls(f"stored as {name}", share, half=tolerance.TYPE_LEAST)

    def then(self, other: Self) -> Self:
        """This rounding, and the other one after it."""
        words = f"{self.words}, then {other.words}"
        return type(self)(words, self.share + other.share, self.half + other.half)

    def __bool__(self) -> bool:
        return bool(self.words)

    def of(self, values: np.ndarray) -> np.ndarray:
        """How far rounding may have moved each number. [R]"""
        return self.share * np.abs(np.where(np.isfinite(values), values, 0)) + self.half


def rounding_of(values: np.ndarray, kind: str = "") -> Rounding:
    """The rounding that the numbers share; `kind` is the column's type if
    it is known: a float type, or "text 4" for text of at most 4 decimals.

    Two different numbers are enough for decimals if neither is exactly
    in binary with few digits. Types are compared after float32.

    >>> rounding_of(np.array([0.333, -0.667])).words, rounding_of(np.array([0.5])).words
    ('rounded to 3 decimals', '')
    """
    if kind in TYPES:
        return Rounding.as_type(kind)
    sizes = np.unique(np.abs(values[np.isfinite(values)]))
    sizes = sizes[(sizes > 0) & (sizes < LARGEST)]
    telling = sizes[sizes * 64 != np.round(sizes * 64)]
    if len(sizes) > 1 and len(telling):
        for name in TYPES:
            stored = _as_stored(sizes, name)
            if np.isclose(stored, sizes.astype("float32"), rtol=1e-7, atol=0).all():
                return Rounding.as_type(name)
    printed = _printed(sizes, telling, kind)
    if not printed:
        return printed
    for name in TYPES:
        if _is_beneath(telling, name, printed):
            return Rounding.as_type(name).then(printed)
    return printed


def _as_stored(sizes: np.ndarray, name: str) -> np.ndarray:
    """The numbers as a type of few digits holds them."""
    single = torch.from_numpy(sizes.astype("float32"))
    return single.to(getattr(torch, name)).float().numpy()


def _printed(sizes: np.ndarray, telling: np.ndarray, kind: str) -> Rounding:
    """The decimals or the significant digits that numbers were printed with."""
    decimals: int | None = None
    if kind.startswith("text "):
        decimals = int(kind.removeprefix("text "))
    elif len(telling) > 1:
        each = (p for p in range(1, MOST_DECIMALS + 1) if _has_decimals(sizes, p))
        decimals = next(each, None)
    digits = _digits(telling, decimals)
    if digits is not None:
        return Rounding.to_digits(digits)
    if decimals is None or decimals > MOST_TEXT:
        return Rounding()
    return Rounding.to(decimals)


def _has_decimals(sizes: np.ndarray, places: int) -> bool:
    away = np.abs(sizes - np.round(sizes, places))
    return bool((away <= FLOAT32_DIGITS * sizes + NO_SIZE).all())


def _digits(telling: np.ndarray, decimals: int | None) -> int | None:
    """The significant digits that the numbers share, if these leave the largest numbers
    fewer decimals than the smallest ones have; else None."""
    if len(telling) < FEW:
        return None
    decade = np.floor(np.log10(telling))
    top = decade.max()
    if (decade == top).sum() < FEW:
        return None
    for digits in range(3, MOST_DIGITS + 1):
        unit = 10.0 ** (decade - digits + 1)
        away = np.abs(telling - np.round(telling / unit) * unit)
        if (away <= FLOAT32_DIGITS * telling + NO_SIZE).all():
            left = digits - 1 - top
            return digits if decimals is None or left < decimals else None
    return None


def _is_beneath(telling: np.ndarray, name: str, printed: Rounding) -> bool:
    """The numbers are those of a type of few digits, as they were printed. Only those
    tell it whose printed digits are finer than the type's own."""
    spacing = 2 * TYPES[name] * 2.0 ** np.floor(np.log2(telling))
    unit = 2 * printed.of(telling)
    fine = spacing > TELLING * unit
    away = np.abs(telling - _as_stored(telling, name))
    limit = printed.of(telling) + FLOAT32_DIGITS * telling
    return bool(fine.sum() >= TELLING and (away[fine] <= limit[fine]).all())
