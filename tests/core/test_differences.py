"""When two numbers differ, and when a number changes sign."""

import math

import numpy as np
import pytest
import torch

from gradebook.core.differences import flips, same

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "a, b, equal",
    [
        (1.0, 1.0, True),
        (1.0, 1.0004, True),  # 1.000 and 1.000
        (1.0, 1.0006, False),  # 1.000 and 1.001
        (0.5 / 0.7072, 0.5 / 0.7071, True),  # eps 1e-4 on a deviation
        (0.004, 0.0, False),  # a gradient
        (0.004, 0.004001, True),
        (0.00012, 0.00013, False),
        (0.0, 9e-7, True),  # rounding
        (0.0, 2e-6, False),
        (100_000.0, 100_000.05, True),
        (100_000.0, 100_001.0, False),
        (1e6, 1e6 + 0.9, True),
        (1e6, 1e6 + 2.0, False),
        (NAN, NAN, True),
        (NAN, 0.0, False),
        (INF, INF, True),
        (INF, -INF, False),
        (INF, 0.0, False),
    ],
)
def test_numbers_differ_where_their_printed_digits_do(a, b, equal):
    assert same(a, b) is same(b, a) is equal
    for array in (np.array, torch.tensor):
        with np.errstate(invalid="ignore"):
            assert same(array([a]), array([b])).tolist() == [equal]


@pytest.mark.parametrize(
    "a, b, turned",
    [
        (1.0, -1.0, True),
        (-1.0, 1.0, True),
        (1.0, 2.0, False),
        (1.0, 0.0, False),
        (1e-7, -1.0, False),
        (NAN, -1.0, False),
        (INF, -INF, True),
    ],
)
def test_a_flip_is_the_opposite_sign_of_a_number_that_is_not_0(a, b, turned):
    assert flips(a, b) is turned
    assert flips(torch.tensor([a]), torch.tensor([b])).tolist() == [turned]
    assert flips(np.array([a]), np.array([b])).tolist() == [turned]
