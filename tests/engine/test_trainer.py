"""Before the pipeline: subsampling; what settings keep of a step."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gradebook
from gradebook import Batch, Settings
from gradebook.engine.grouping import present
from gradebook.engine.trainer import draws, subsampled

GEM = Settings(ddof=0, eps=1e-9)
TWICE = gradebook.bug("double_normalization").engine
LENGTHS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)


def episodes(steps, kept, rewards=(4.0, 2.0)):
    rows = len(steps)
    return Batch([0] * rows, rewards, steps=steps, kept_steps=kept, settings=GEM)


@given(LENGTHS, st.integers(0, 1000))
def test_a_draw_keeps_as_many_of_each_step(lengths, seed):
    steps, kept, step = zip(*((s, min(k, s), t) for s, k, t in lengths))
    batch = Batch(
        [0] * len(steps),
        [0.0] * len(steps),
        steps=steps,
        kept_steps=kept,
        step=step,
    )
    drawn = subsampled(batch, seed)
    assert (drawn >= 0).all() and (drawn <= batch.steps).all()
    for t in set(step):
        of = batch.step == t
        assert drawn[of].sum() == batch.kept_steps[of].sum()


def test_a_draw_is_over_single_transitions():
    batch = episodes([1, 9], [1, 4])
    kept = [subsampled(batch, seed).tolist() for seed in range(400)]
    share = sum(k[0] for k in kept) / 400
    # Each of ten transitions is kept with probability one half.
    assert share == pytest.approx(0.5, abs=0.1)
    assert len({tuple(k) for k in kept}) == 2


def test_where_all_is_kept_every_draw_is_the_batch():
    batch = episodes([2, 10], [2, 10])
    assert subsampled(batch, 3).tolist() == [2, 10]
    taken = draws(TWICE, batch, times=5)
    assert taken.shape == (5, 2)
    for row in taken.tolist():
        assert row == pytest.approx([2.236068, -0.447214], abs=1e-6)


def test_draws_are_runs_of_their_own():
    steps, kept = [4, 2, 6, 3], [2, 0, 3, 1]
    batch = episodes(steps, kept, rewards=[1.0, 0.0, 0.0, 1.0])
    taken = draws(TWICE, batch, times=6)
    for seed in range(6):
        drawn = replace(batch, kept_steps=subsampled(batch, seed))
        alone = gradebook.run(TWICE, drawn).advantage
        torch.testing.assert_close(taken[seed], alone, equal_nan=True)


def test_a_draw_that_keeps_nothing_of_a_row_gives_it_no_value():
    batch = episodes([1, 9], [1, 4])
    taken = draws(TWICE, batch, times=40)
    kept = torch.stack([subsampled(batch, seed) for seed in range(40)])
    assert taken.isnan().equal(kept == 0)


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
    assert subsampled(batch, 0).tolist() == []
    assert present(batch).tolist() == []
    assert gradebook.run(gradebook.CORRECT, batch).advantage.tolist() == []
