"""The deviation of a row's group without the row, against fractions."""

import math
import random
from fractions import Fraction

import pytest
import torch
from engine.traces import trace

from gradebook import Settings

EPS = 1e-6


OTHERS = Settings(baseline="leave_one_out", scale="others_std", eps=EPS)


def divisors(rewards, prompt=None, **more):
    prompt = prompt or [0] * len(rewards)
    return trace(prompt, rewards, settings=OTHERS, **more).scale.tolist()


def exact(rewards, ddof=1):
    """The divisors in fractions: no number is rounded before the root."""
    scores = [Fraction(r) for r in rewards]
    found = []
    for row in range(len(scores)):
        rest = scores[:row] + scores[row + 1 :]
        spread = 0.0
        if len(rest) >= 2:
            mean = sum(rest) / len(rest)
            squares = sum((x - mean) ** 2 for x in rest)
            spread = math.sqrt(squares / (len(rest) - ddof))
        found.append(spread + EPS if spread > 1e-8 else 1.0)
    return found


@pytest.mark.parametrize(
    "rewards",
    [
        [10000, 0.9001, 0.9, 0.9],
        [0.9, 0.9, 0.9001, 10000],
        [-10000, 10000, 0.9001, 0.9],
        [0.5, 0.9, 0.9, 0.9],
        [0.9, 0.9001, 0.9002, 0.5],
        [1, 1, 2, 2],
        [3, 3, 1, 1, 1],
        [1e6, 1e6 + 1, 1e6 + 2],
        [0.1, 0.2],
        [7.0],
        [100.1] * 7,
    ],
)
@pytest.mark.parametrize("ddof", [1, 0])
def test_the_divisor_is_the_exact_one(rewards, ddof):
    found = divisors(rewards, ddof=ddof)
    assert found == pytest.approx(exact(rewards, ddof), rel=1e-9)


def test_random_groups_have_the_exact_divisors():
    draw = random.Random(1)
    for _ in range(60):
        count = draw.randint(1, 9)
        values = [draw.choice([0, 0.9, 0.9001, 1e4, -3, 1]) for _ in range(count)]
        assert divisors(values) == pytest.approx(exact(values), rel=1e-9)


@pytest.mark.parametrize("value", [0.9, 0.3, 100.1])
def test_equal_others_divide_by_exactly_one_in_float32_too(value):
    for place in range(4):
        rewards = [value] * 4
        rewards[place] = 0.5
        found = divisors(torch.tensor(rewards, dtype=torch.float32))
        assert found[place] == 1
    assert divisors(torch.full((7,), value, dtype=torch.float32)) == [1] * 7


def test_a_rollout_in_several_rows_has_the_divisor_of_its_vote():
    # Votes 1, 2, 4: without 1 the deviation is sqrt(2), without 2 it is
    # sqrt(4.5), without 4 sqrt(0.5).
    found = divisors([1, 1, 2, 4, 4], rollout=[0, 0, 1, 2, 2])
    one, two, four = (math.sqrt(x) + EPS for x in (2, 4.5, 0.5))
    assert found == pytest.approx([one, one, two, four, four])


def test_a_row_in_no_group_is_not_divided():
    rows = {"settings": OTHERS, "group_size": 3}
    found = trace([0, 0, 0, 1], [1, 2, 4, 9], "partial_groups", **rows)
    assert found.group.tolist() == [0, 0, 0, -1]
    assert found.scale[3] == 1
