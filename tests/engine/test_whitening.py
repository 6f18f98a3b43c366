"""Whitening over tokens, with and without the factor S / (S - 1)."""

import math

import pytest

import gradebook
from gradebook import CORRECT, Batch, Settings


def whitened(rewards, mask, ddof):
    settings = Settings(
        baseline="none", scale="none", whiten_tokens=True, whiten_ddof=ddof
    )
    rows = {"prompt": [0] * len(rewards), "reward": rewards, "mask": mask}
    batch = Batch(**rows, settings=settings)
    return gradebook.run(CORRECT, batch).advantage.tolist()


@pytest.mark.parametrize(
    "ddof, variance",
    # Tokens 4, 0, 0, 0: mean 1, squares 9 + 1 + 1 + 1 = 12.
    [(1, 12 / 3), (0, 12 / 4)],
)
def test_the_variance_over_tokens(ddof, variance):
    mask = [[1, 0, 0], [1, 1, 1]]
    root = math.sqrt(variance + 1e-8)
    found = whitened([4, 0], mask, ddof)
    assert found == pytest.approx([3 / root, -1 / root])


def test_one_token_is_enough_without_the_factor():
    assert whitened([3, 5], [[1], [0]], ddof=0) == [0, 0]
