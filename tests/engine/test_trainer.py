"""Around the pipeline: EOS by width, subsampling, evaluation."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gradebook
from gradebook import Batch, Settings
from gradebook.engine.trainer import (
    NORMALIZATIONS,
    draws,
    eos_by_width,
    evaluated,
    first_generations,
    normalized,
    subsampled,
)

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


def test_a_row_as_long_as_the_padding_has_no_eos():
    mask = [[1, 1, 0], [1, 1, 1], [0, 0, 0]]
    batch = Batch([0, 0, 0], [1, 2, 3], mask=mask)
    assert eos_by_width(batch).tolist() == [True, False, True]


def test_one_more_column_gives_every_row_its_eos():
    mask = [[1, 1, 0, 0], [1, 1, 1, 0]]
    assert eos_by_width(Batch([0, 0], [1, 2], mask=mask)).tolist() == [
        True,
        True,
    ]


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


def test_a_seed_always_draws_the_same():
    batch = episodes([5, 9], [3, 4])
    assert subsampled(batch, 7).equal(subsampled(batch, 7))


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
    "how, values",
    [
        # Over two rows, over 2 and 10 transitions (m = -2/3, s = sqrt(5)/3),
        # over 2 and 2 of them.
        ("twice, by episode", [1, -1]),
        ("twice, by transition", [2.236068, -0.447214]),
        ("twice, after subsampling", [1, -1]),
    ],
)
def test_what_the_second_normalization_runs_over(how, values):
    trace = normalized(TWICE, episodes([2, 10], [2, 2]), how)
    assert trace.advantage.tolist() == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("how", NORMALIZATIONS[1:])
def test_a_row_without_transitions_has_no_value_whichever_way(how):
    trace = normalized(TWICE, episodes([2, 10], [2, 0]), how)
    assert math.isnan(trace.advantage[1]) and math.isfinite(trace.advantage[0])


def test_evaluation_takes_each_prompts_first_row():
    batch = Batch(list("ABABC"), [1.0, 2, 3, 4, 5])
    assert first_generations(batch).tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_a_prompt_of_another_step_is_another_prompt():
    batch = Batch(list("AAA"), [1.0, 2, 3], step=[0, 1, 1])
    assert first_generations(batch).tolist() == [True, True, False]


def test_the_fix_blanks_an_evaluation():
    batch = gradebook.load("zero_std_kl").batch()
    fixed = evaluated(gradebook.CORRECT, batch)
    plain = evaluated(gradebook.bug("zero_std_kl").engine, batch)
    assert float(fixed.loss) == 0
    # 0.04 * (exp(ln 2) - ln 2 - 1), whatever the number of tokens.
    assert float(plain.loss) == pytest.approx(0.0122741, abs=1e-7)
    assert plain.advantage.isnan().tolist() == [False, True, False, True]
    assert plain.kl_gradient.sum(-1).tolist() == pytest.approx(
        [-0.016, 0, -0.024, 0], abs=1e-6
    )


def test_an_empty_batch_passes_through():
    batch = Batch([], [])
    assert subsampled(batch, 0).tolist() == []
    assert eos_by_width(batch).tolist() == []
    assert first_generations(batch).tolist() == []
    assert evaluated(gradebook.CORRECT, batch).advantage.tolist() == []
