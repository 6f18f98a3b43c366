"""Numbers as people read them, and when two of them differ."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradebook.core.formatting import (
    digits_apart,
    flips,
    minus,
    plain,
    same,
    settled,
    signed,
)

SIZES = st.floats(-1e8, 1e8)


@pytest.mark.parametrize(
    "value, text",
    [
        (1.0, "+1.000"),
        (-0.4797326, "\u22120.480"),
        (-0.0, "0.000"),
        (1234567.8, "+1\u2009234\u2009567.800"),
        (2e9, "+2e9"),
        (0.0004, "+0.0004"),
        (-1.234e-7, "\u22121.23e\u22127"),
        (math.inf, "+\u221e"),
        (math.nan, "no value"),
    ],
)
def test_a_signed_number(value, text):
    assert signed(value) == text


def test_a_plain_number_has_no_plus():
    assert (plain(-0.5, 1), plain(0.0122741, 5)) == ("\u22120.5", "0.01227")
    assert (plain(math.nan), plain(math.inf)) == ("no value", "\u221e")


@pytest.mark.parametrize(
    "a, b, digits",
    [
        (1, 2, 3),
        (1.0012, 1.0018, 3),
        (0.00012, 0.00034, 4),
        (1, 1 + 1e-9, 3),
        (1e6, 1e6 + 0.5, 3),
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


def test_rounding_is_shown_as_zero():
    assert [*map(settled, (1e-6, -1.4e-8, 1.1e-6, -2))] == [0, 0, 1.1e-6, -2]
    assert math.copysign(1, settled(-1e-9)) == 1
    assert math.isnan(settled(math.nan)) and settled(math.inf) == math.inf


@pytest.mark.parametrize(
    "text, said",
    [
        ("from -49.5 to -1/3 or -.5", "from −49.5 to −1/3 or −.5"),
        ("-2 falls", "−2 falls"),
        ("1e-06 to 2.5e+09, 7e0123", "1e−6 to 2.5e9, 7e0123"),
        ("1 - 50.5 is (2) - (1)", "1 − 50.5 is (2) − (1)"),
        ("rows 3-5, 2.-1, well-known - 5", "rows 3-5, 2.-1, well-known - 5"),
        ("rewards.view(-1, 4)", "rewards.view(-1, 4)"),
    ],
)
def test_a_number_below_zero_has_the_sign_of_the_pictures(text, said):
    assert minus(text) == said


@pytest.mark.parametrize(
    "a, b, equal",
    [
        (1.0, 1.0004, True),  # 1.000 and 1.000
        (1.0, 1.0006, False),  # 1.000 and 1.001
        (0.5 / 0.7072, 0.5 / 0.7071, True),  # eps 1e-4 on a deviation
        (0.004, 0.0, False),  # a gradient
        (0.004, 0.004001, True),
        (0.0, 9e-7, True),  # rounding
        (0.0, 2e-6, False),
        (1e6, 1e6 + 0.9, True),
        (1e6, 1e6 + 2.0, False),
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
    ],
)
def test_numbers_differ_if_their_printed_digits_do(a, b, equal):
    assert same(a, b) is same(b, a) is equal
    for array in (np.array, torch.tensor):
        with np.errstate(invalid="ignore"):
            assert same(array([a]), array([b])).tolist() == [equal]


@pytest.mark.parametrize(
    "a, b, turned",
    [
        (1.0, -1.0, True),
        (1.0, 0.0, False),
        (1e-7, -1.0, False),
        (math.nan, -1.0, False),
    ],
)
def test_a_flip_is_the_opposite_sign_of_a_number_that_is_not_0(a, b, turned):
    assert flips(a, b) is turned
    assert flips(torch.tensor([a]), torch.tensor([b])).tolist() == [turned]
    assert flips(np.array([a]), np.array([b])).tolist() == [turned]
