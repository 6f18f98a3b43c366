"""The numbers of the reports, and of rounding, to the digit."""

import math
from itertools import product

import pytest
import torch
from engine.traces import AREAL, ENGINES, close, trace

from gradebook import ESTIMATORS

# the reports' numbers (TRUTH.md)

ISSUE = {
    "prompt": [0] * 4 + [1] * 4 + [2] * 3 + [3],
    "reward": [0.5, -0.5, 1, -1, 2, -2, 0, 3, 0, 1, 2, 100],
    "settings": {**AREAL, "group_size": 4},
}


def test_double_normalization_acts_on_rows_without_credit():
    # 0 (rejected), 0, 2 about nothing: mean 2/3, variance 4/3 - 4/9 = 8/9.
    # The rejected row becomes -(2/3) / sqrt(8/9) = -1/sqrt(2).
    found = trace(
        [0] * 3,
        [7, 0, 2],
        mask=[[0], [1], [1]],
        engine="double_normalization",
        settings=ESTIMATORS["none"],
    )
    low, high = -math.sqrt(0.5), math.sqrt(2)
    close(found.advantage, [low, low, high], 1e-6)  # the trainer works in float32


# float32, size, and nothing at all


def test_float32_makes_signal_of_constant_rewards_and_float64_hides_it():
    # 100.1 seven times: the mean is off by one ulp, 2^-17 = 7.6294e-6;
    # std sqrt(7/6) * ulp = 8.2407e-6. ulp / (8.2407e-6 + 1e-6) = 0.8256.
    reward = torch.full((7,), 100.1)
    found = trace([0] * 7, reward, settings=ESTIMATORS["grpo"]).advantage
    assert found.dtype == torch.float32
    assert found.tolist() == pytest.approx([0.8256] * 7, abs=5e-5)
    found = trace([0] * 7, [100.1] * 7, settings=ESTIMATORS["grpo"]).advantage
    assert found.dtype == torch.float64 and found.abs().max() < 1e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_batch_gives_an_empty_trace(engine):
    assert trace([], [], engine).advantage.shape == (0,)
    for settings, width in product(ESTIMATORS.values(), (0, 3)):
        mask = torch.zeros(0, width, dtype=torch.bool)
        logp = torch.zeros(0, width)
        found = trace([], [], engine, settings, mask=mask, logp=logp)
        assert found.advantage.shape == (0,)
        assert found.group.dtype == torch.int64
        assert found.gradient.shape == (0, width)
        assert float(found.loss) == 0
        assert found.policy_loss.shape == (0,)


# min_group_size


def test_small_groups_leave_before_either_engine_sees_them():
    correct = trace(**ISSUE, min_group_size=2)
    close(correct.advantage[8:], [-1, 0, 1, math.nan], 2e-5)
    assert not correct.counted[11] and correct.group[11] == -1
    faulty = trace(**ISSUE, min_group_size=2, engine="partial_groups")
    assert faulty.group.tolist() == [0] * 4 + [1] * 4 + [-1] * 4
    close(faulty.advantage[8:], [0, 1e5, 2e5, math.nan], 1e-9)


def test_strides_run_over_the_rows_that_are_left():
    # Prompt 0 leaves; 1, 3 | 10, 30 are strides of two again.
    settings = {"min_group_size": 2, "scale": "none", "engine": "partial_groups"}
    found = trace([0, 1, 1, 2, 2], [9, 1, 3, 10, 30], **settings)
    assert found.group.tolist() == [-1, 0, 0, 1, 1]
    close(found.advantage, [math.nan, -1, 1, -10, 10])
