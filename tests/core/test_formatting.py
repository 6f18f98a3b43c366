"""Numbers as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradebook.core.formatting import (
    digits_apart,
    minus,
    plain,
    settled,
    signed,
)

SIZES = st.floats(-1e8, 1e8)


@pytest.mark.parametrize(
    "value, text",
    [
        (1.0, "+1.000"),
        (-0.4797326, "\u22120.480"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (2 / 3, "+0.667"),
        (1234567.8, "+1\u2009234\u2009567.800"),
        (-200000.0, "\u2212200\u2009000.000"),
        (2e9, "+2e9"),
        (0.0004, "+0.0004"),
        (0.0007, "+0.0007"),
        (-1.234e-7, "\u22121.23e\u22127"),
        (math.inf, "+\u221e"),
        (-math.inf, "\u2212\u221e"),
        (math.nan, "no value"),
    ],
)
def test_a_signed_number(value, text):
    assert signed(value) == text


def test_a_plain_number_has_no_plus():
    assert (plain(1.0), plain(-0.5, 1)) == ("1.000", "\u22120.5")
    assert (plain(0.0122741, 5), plain(25.75, 0)) == ("0.01227", "26")
    assert (plain(math.nan), plain(math.inf)) == ("no value", "\u221e")


@pytest.mark.parametrize(
    "a, b, digits",
    [
        (1, 2, 3),
        (1.00012, 1.00034, 3),
        (1.0012, 1.0018, 3),
        (0.00012, 0.00034, 4),
        (0, 0.000002, 6),
        (1, 1 + 1e-9, 3),
        (1e6, 1e6 + 0.5, 3),
        (math.nan, 1, 3),
        (math.inf, 1, 3),
    ],
)
def test_as_many_decimals_as_tell_two_numbers_apart(a, b, digits):
    assert digits_apart(a, b) == digits_apart(b, a) == digits


@given(SIZES, SIZES)
def test_numbers_that_differ_look_different(a, b):
    if abs(a - b) > 1e-6 * max(1, abs(a), abs(b)):
        digits = digits_apart(a, b)
        assert f"{a:.{digits}f}" != f"{b:.{digits}f}"


@given(SIZES)
def test_a_sign_is_never_lost(value):
    text = signed(value)
    assert text.startswith("\u2212") == (value < 0)
    assert text.startswith("+") == (value > 0)


def test_rounding_is_shown_as_zero():
    assert [*map(settled, (1e-6, -1.4e-8, 1.1e-6, -2))] == [0, 0, 1.1e-6, -2]
    assert math.copysign(1, settled(-1e-9)) == 1
    assert math.isnan(settled(math.nan)) and settled(math.inf) == math.inf


@pytest.mark.parametrize(
    "text, said",
    [
        ("from -49.5 to -1/3 or -.5", "from −49.5 to −1/3 or −.5"),
        ("-2 falls", "−2 falls"),
        ("1 - 50.5 is (2) - (1)", "1 − 50.5 is (2) − (1)"),
        ("rows 3-5, 2.-1, well-known - 5", "rows 3-5, 2.-1, well-known - 5"),
        ("rewards.view(-1, 4)", "rewards.view(-1, 4)"),
        ("-1 expected, found '-5 -2'", "−1 expected, found '-5 -2'"),
        ("eps: a number, found -1.0", "eps: a number, found -1.0"),
    ],
)
def test_a_number_below_zero_has_the_sign_of_the_pictures(text, said):
    assert minus(text) == said
