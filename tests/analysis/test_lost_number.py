"""Exact values, nearest floats and gaps in ulps, worked out by hand."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.analysis.lost_number import lost, nearest, ulp
from gradebook.core.batch import Batch
from gradebook.core.settings import Settings


def found(name, **changes):
    """What is lost on the report's focus row, by name."""
    case = gradebook.load(name)
    rows = {k: [r[k] for r in case.rows] for k in case.rows[0]}
    settings = changes.pop("settings", case.settings)
    batch = Batch(**rows | changes, settings=settings)
    one = gradebook.bug(name)
    comparison = compare(one, batch)
    typed = str(batch.reward[case.focus].item())
    return {loss.name: loss for loss in lost(comparison, case.focus, one.lost, typed)}


@pytest.mark.parametrize("value", [1.0, 100.1, 0.7, 3e-3, 1e9, 2.0**-130])
def test_an_ulp_is_the_distance_to_the_next_float(value):
    floor = float(np.float32(value))
    assert float(ulp(Fraction(floor), "float32")) == np.spacing(np.float32(value))
    assert float(nearest(Fraction(value), "float32")) == floor
    assert float(nearest(Fraction(value), "bfloat16")) == float(
        torch.tensor(value, dtype=torch.float64).bfloat16()
    )


def test_a_mean_of_seven_equal_rewards_misses_them_by_one_ulp():
    """float32 steps by 2^-17 near 100. 100.1 lies 0.2 of a step above the
    nearest float, and the float32 mean is one step below that float."""
    mean = found("float32_dust")["mean"]
    assert mean.ulp == Fraction(1, 2**17)
    assert float(mean.exact) == mean.nearest == float(np.float32(100.1))
    assert mean.faulty == mean.nearest - 2**-17 and mean.gap == -1
    reward = found("float32_dust")["reward"]
    assert reward.faulty is None
    assert reward.gap == pytest.approx(-0.2, abs=1e-9)


def test_a_bfloat16_mean_falls_back_to_the_smaller_rewards():
    """(3 + 1.0078125) / 4 = 1.001953125, a quarter of 1/128 above 1."""
    mean = found("bf16_rewards")["mean"]
    assert mean.exact == Fraction(1001953125, 10**9)
    assert mean.nearest == mean.faulty == 1
    assert mean.gap == -0.25


def test_three_equal_rewards_keep_a_variance_of_two_ulps():
    """float32(0.9)^2 = 0.80999996; floats lie 2^-24 apart there."""
    numbers = found("one_pass_variance")
    left = numbers["less the square of the mean"]
    assert left.exact == 0 and left.nearest == 0
    assert left.ulp == Fraction(1, 2**24)
    assert left.gap == pytest.approx(2, abs=1e-6)
    square = numbers["mean of the squares"]
    assert float(square.exact) == float(np.float32(0.9)) ** 2


def test_the_floor_puts_a_variance_of_its_own():
    """1 and the float32 of 1.00001: half the gap, squared, is 2.507e-11.
    The floor 1e-6 has ddof 1, so it stands for 5e-7 here."""
    numbers = found("variance_floor")
    left = numbers["less the square of the mean"]
    half = (float(np.float32(1.00001)) - 1) / 2
    assert float(left.exact) == pytest.approx(half * half, rel=1e-9)
    assert left.faulty == pytest.approx(5e-7, rel=1e-5)


def test_where_nothing_is_divided_the_faulty_variance_is_0():
    rewards = [0.5, 1.0, 1.0, 1.0]
    left = found("one_pass_variance", reward=rewards)
    assert left["less the square of the mean"].faulty == 0


def test_other_settings_take_no_such_number():
    assert not found("float32_dust", settings=Settings(baseline="none"))
    assert not found("variance_floor", settings=Settings(scale="none"))
