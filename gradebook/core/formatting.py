"""How numbers are printed, and when two of them differ or change sign: floats,
NumPy arrays and tensors alike."""

import math
import re
from collections.abc import Callable
from typing import Any

DUST = 1e-6
"""A number of at most this size is 0: it is rounding. 16 operations in float32 on
numbers of size 1 are off by at most 16 times 2 ** -24, which is 9.5e-7."""

SHOWS = 5e-4
"""Half of the third decimal. Numbers are printed with three decimals, and
numbers below 1 with three digits, so a smaller difference does not show."""


def same(a: Any, b: Any) -> Any:
    """The two print alike: their difference is below SHOWS, as a share of their size if
    they are below 1, or it is rounding. NaN is like NaN. Elementwise.

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


EXPONENT = re.compile(r"(?<=[0-9]e)(?:\+0*|(-)0*)(?=[0-9])")
NEGATIVE = re.compile(
    r"(?:(?<=\s)|^)-(?=\.?[0-9])|(?<=[0-9)] )-(?= [0-9(])|(?<=[0-9]e)-(?=[0-9])"
)


def signed(value: float, digits: int = 3, plus: str = "+") -> str:
    """'+1.000', '−0.480', '0.000'; 'no value' for NaN."""
    if math.isnan(value):
        return "no value"
    sign, size = "−" if value < 0 else plus, abs(value)
    if math.isinf(value):
        return f"{sign}∞"
    # A billion with three decimals is 17 characters wide: too wide for a table's cell.
    if size >= 1e9 or 0 < size < 10**-digits:
        return sign + short(size, 3)
    text = f"{size:,.{digits}f}".replace(",", "\u2009")
    return sign + text if size else text


def plain(value: float, digits: int = 3) -> str:
    """As `signed`, without a plus."""
    return signed(value, digits, plus="")


def short(value: float, digits: int = 6) -> str:
    """As few digits as the value needs, at most `digits`: '0.25', '1e−6', '2.5e9'."""
    return minus(f"{value:.{digits}g}")


def digits_apart(a: float, b: float, least: int = 3) -> int:
    """Decimals needed to tell `a` from `b`; `least` for equal numbers."""
    if not (math.isfinite(a) and math.isfinite(b)) or same(a, b):
        return least
    # Numbers that are not the same are more than DUST apart: seven decimals tell them.
    apart = (d for d in range(least, 9) if f"{a:.{d}f}" != f"{b:.{d}f}")
    return next(apart, 9)


def pair(
    a: float,
    b: float,
    least: int = 3,
    write: Callable[[float, int], str] = signed,
) -> tuple[str, str]:
    """Both numbers as text, with the digits that tell them apart; rounding is 0."""
    a, b = settled(a), settled(b)
    digits = digits_apart(a, b, least)
    return write(a, digits), write(b, digits)


def counted(count: int, single: str, several: str = "") -> str:
    """'1 row', '2 rows', '1,000 rows'."""
    return f"{count:,} {single if count == 1 else several or single + 's'}"


def settled(value: float) -> float:
    """The value, or 0 if it is rounding: what a page shows."""
    return 0.0 if abs(value) <= DUST else value


def minus(text: str) -> str:
    """Numbers as pictures have them, '−1' for '-1' and '1e−6' for '1e-06'. For
    sentences: code and what a person typed are shown as they are."""
    return NEGATIVE.sub("\u2212", EXPONENT.sub(r"\1", text))
