"""What settings keep of a step."""

from dataclasses import replace

import pytest

import gradebook
from gradebook import Batch, Settings
from gradebook.engine.grouping import present

GEM = Settings(ddof=0, eps=1e-9)
TWICE = gradebook.bug("double_normalization").engine


def episodes(steps, kept, rewards=(4.0, 2.0)):
    rows = len(steps)
    return Batch([0] * rows, rewards, steps=steps, kept_steps=kept, settings=GEM)


@pytest.mark.parametrize(
    "over, values",
    [
        # Over two rows, over 2 and 10 transitions (m = -2/3, s = sqrt(5)/3),
        # over 2 and 2 of them.
        ("rows", [1, -1]),
        ("steps", [2.236068, -0.447214]),
        ("kept_steps", [1, -1]),
        ("none", [1, -1]),
    ],
)
def test_what_the_second_normalization_runs_over(over, values):
    for kept in (2, 0):
        batch = episodes([2, 10], [2, kept])
        batch = batch.under(replace(GEM, second_over=over))
        advantage = gradebook.run(TWICE, batch).advantage
        if kept:
            assert advantage.tolist() == pytest.approx(values, abs=1e-6)
        else:
            assert advantage.isnan().tolist() == [False, True]


def test_an_evaluation_takes_each_prompts_first_row_of_each_step():
    evaluation = Settings(evaluation=True)
    batch = Batch(list("ABABC"), [1.0, 2, 3, 4, 5], settings=evaluation)
    assert present(batch).tolist() == [True, True, False, False, True]
    batch = Batch(list("AAA"), [1.0, 2, 3], step=[0, 1, 1], settings=evaluation)
    assert present(batch).tolist() == [True, True, False]


@pytest.mark.parametrize(
    "evaluation, skip, correct",
    [
        # Prompt A is flat: 6 of 10 tokens are left. 0.04 (exp(ln 2) - ln 2 - 1)
        # is 0.0122741, whatever the number of tokens; 6 / 10 of it 0.0073645.
        (False, "always", 0.0073645),
        (False, "training", 0.0073645),
        (False, "never", 0.0122741),
        # One row a prompt: every group is a lone row, so nothing is left.
        (True, "always", 0.0),
        (True, "training", 0.0122741),
        (True, "never", 0.0122741),
    ],
)
def test_when_flat_groups_leave_the_loss(evaluation, skip, correct):
    batch = gradebook.load("zero_std_kl").batch()
    batch = batch.under(replace(batch.settings, evaluation=evaluation, skip_flat=skip))
    right = gradebook.run(gradebook.CORRECT, batch)
    wrong = gradebook.run(gradebook.bug("zero_std_kl").engine, batch)
    assert float(right.loss) == pytest.approx(correct, abs=1e-7)
    assert float(wrong.loss) == pytest.approx(0.0122741, abs=1e-7)
    assert wrong.advantage.isnan().tolist() == [False, evaluation] * 2


def test_an_empty_batch_passes_through():
    batch = Batch([], [], settings=Settings(evaluation=True, eos_by_width=True))
    assert present(batch).tolist() == []
    assert gradebook.run(gradebook.CORRECT, batch).advantage.tolist() == []
