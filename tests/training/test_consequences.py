"""Training runs: the tasks, the exact measures, and what each bug does."""

import math
from dataclasses import replace

import pytest
import torch

from gradebook.bugs import swap
from gradebook.engine.pipeline import CORRECT
from gradebook.training import train as training
from gradebook.training.environments import (
    letters_in_use,
    lock,
    ramble,
    spell,
    success,
    wasted_turns,
)
from gradebook.training.study import (
    LESS,
    MORE,
    SAME,
    Run,
    effect,
    study,
)
from gradebook.training.train import TabularTraining, luck_of, trained


def at_update(run, update):
    """measure -> effect after this update."""
    curves = trained(run, update)
    return {name: effect(*values[-1]) for name, values in curves.values.items()}


def first_batch(bug, value, seeds):
    """The training at its start, and the correct engine's batch of all seeds
    with its log-probabilities."""
    made = TabularTraining(Run(bug, value), CORRECT, seeds)
    return made, made.batch(next(luck_of(made, range(seeds))))


# Exact measures, against numbers worked out by hand

WORD = sum((n / 10) ** 3 for n in range(2, 10)) / 8
"""Chances 0.9, 0.8, .. 0.2 for each of two letters and EOS."""


@pytest.mark.parametrize(
    "task, measure, only_first, by_hand",
    [
        (spell(), success, False, WORD),
        # Free letters add only the chance not to stop early.
        (spell(free=2), success, False, WORD * 0.98**2),
        (spell(free=2), letters_in_use, False, 7),
        # Prompt 0 needs one right action (0.85) and quits with 0.05.
        (lock(), success, True, 0.85 * (1 - 0.1**8) / 0.9),
        # Turns without a solution end by quitting or after eight.
        (lock(-0.1, unsolvable=2), wasted_turns, False, (1 - 0.95**8) / 0.05),
        # Prompt 0: 0.4 says the answer, 0.12 is EOS; summed over the number of
        # tokens before the answer.
        (
            *(ramble(), success, True),
            sum(0.48**n * 0.4 * (1 - 0.88 ** (7 - n)) for n in range(8)),
        ),
    ],
)
def test_a_measure_of_the_reference_policy(task, measure, only_first, by_hand):
    if only_first:
        task = replace(task, solvable=torch.arange(8) == 0)
    assert float(measure(task, task.chance)) == pytest.approx(by_hand)


def test_what_is_sampled_has_the_exact_chance():
    """Rewards of 4096 rollouts beside the exact success, within four standard
    errors. A quarter to a third of the rollouts is rejected at the start."""
    made, (batch, _) = first_batch("partial_groups", 0.0, 16)
    exact = float(success(made.task, made.task.chance))
    error = math.sqrt(exact * (1 - exact) / batch.rows)
    assert batch.rows == 16 * 8 * 8
    assert abs(float(batch.reward.mean()) - exact) < 4 * error
    _, (batch, _) = first_batch("rejected_rows", 0.0, 16)
    assert 0.24 < 1 - float(batch.mask.any(-1).double().mean()) < 0.36


# The update


def test_one_update_is_the_optimizer_s_step_along_the_engine_s_gradient():
    """Central differences of the loss, with the advantages held fixed."""
    made = TabularTraining(Run("partial_groups", 0.0, "sgd"), CORRECT, 1)
    before = [table.detach().clone() for table in made.tables]
    luck = next(luck_of(made, [3]))
    batch, _ = made.batch(luck)
    _, chosen, _, _ = made.rollouts(sum(before).log_softmax(-1), luck)
    advantage = training.run(CORRECT, batch).advantage
    tokens = int(batch.mask.sum())

    def loss(own):
        logp = (own + before[1]).log_softmax(-1).reshape(-1)[chosen]
        return float(-(logp * batch.mask * advantage[:, None]).sum() / tokens)

    made.advance(luck)
    step = before[0] - made.tables[0].detach()
    for place in ((0, 0, 0, 4), (0, 3, 1, 3), (0, 7, 2, 7)):
        high, low = before[0].clone(), before[0].clone()
        high[place] += 1e-5
        low[place] -= 1e-5
        slope = (loss(high) - loss(low)) / 2e-5
        assert float(step[place]) == pytest.approx(slope, abs=1e-8)


def test_a_long_gradient_is_shortened_to_length_one():
    made = TabularTraining(
        Run("partial_groups", 5.0, "sgd"), swap("partial_groups").engine, 4
    )
    before = [table.detach().clone() for table in made.tables]
    made.advance(next(luck_of(made, range(4))))
    moved = sum(
        (a - b.detach()).square().flatten(1).sum(-1)
        for a, b in zip(before, made.tables)
    ).sqrt()
    assert bool((moved <= 1 + 1e-6).all())
    assert float(moved.max()) == pytest.approx(1, abs=1e-3)


def test_a_seed_trains_alike_alone_and_with_one_that_diverges():
    run = Run("no_eos_outliers", 1.1)
    together, alone = (
        TabularTraining(run, swap(run.bug).engine, 4),
        TabularTraining(run, swap(run.bug).engine, 1),
    )
    with torch.no_grad():
        together.tables[0][0, 3] = math.nan
    for made, seeds in ((together, range(4)), (alone, [2])):
        luck = luck_of(made, seeds)
        for _ in range(3):
            made.advance(next(luck))
    pair = together.tables[0].detach()[2], alone.tables[0].detach()[0]
    torch.testing.assert_close(*pair, rtol=0, atol=1e-12)
    isnan = list(map(math.isnan, together.measured("success")))
    assert isnan == [True, False, False, False]


def test_a_rollout_that_is_cut_has_a_row_for_each_token():
    _, (batch, logp) = first_batch("fan_out", 100.0, 2)
    _, (rollouts, _) = first_batch("fan_out", 0.0, 2)
    assert batch.tokens.tolist() == [1] * batch.rows
    assert logp.shape == batch.mask.shape
    assert torch.bincount(batch.rollout).tolist() == rollouts.tokens.tolist()
    assert batch.reward.tolist() == rollouts.reward[batch.rollout].tolist()


def test_a_rollout_without_a_score_has_the_filler_0():
    _, (batch, _) = first_batch("unscored_rows", -2.0, 16)
    share = 1 - float(batch.scored.double().mean())
    assert abs(share - 0.3) < 4 * math.sqrt(0.3 * 0.7 / batch.rows)
    assert set(batch.reward[~batch.scored].tolist()) == {0.0}
    assert set(batch.reward[batch.scored].tolist()) == {1.0, -2.0}


# What each bug does: a small size of the figures

LONG = pytest.mark.long


@pytest.mark.parametrize(
    "bug, value, update, kind, least, most",
    [
        # The prototype's direction and size.
        ("no_eos_outliers", 0.0, 100, MORE, 0.0, 0.05),
        ("no_eos_outliers", 1.5, 50, LESS, 0.7, 1.0),
        ("partial_groups", 5.0, 50, LESS, 0.25, 0.42),
        pytest.param("zero_std_kl", 0.04, 150, MORE, 0.3, 1.2, marks=LONG),
        pytest.param("double_normalization", -0.1, 200, MORE, 0.8, 2.6, marks=LONG),
        ("rejected_rows", 1.0, 50, LESS, 0.04, 0.14),
        # Those of 32 seeds, which the bench prints.
        ("missing_parentheses", 1.0, 50, LESS, 0.35, 0.5),
        ("uid_per_rollout", 0.0, 50, MORE, 0.0, 0.06),
        ("uid_per_rollout", 1.0, 50, LESS, 0.15, 0.32),
        ("micro_batch_means", 2.0, 50, MORE, 0.2, 0.6),
        ("bf16_rewards", 1001.0, 50, LESS, 0.6, 0.76),
        ("padded_mean", -0.1, 50, SAME, 0.0, 0.4),
        # Without dust the second normalization wastes no turns.
        ("double_normalization", -0.25, 200, SAME, 0.0, 0.2),
    ],
)
def test_the_effect_of_a_bug(bug, value, update, kind, least, most):
    run = Run(bug, value, "adam", 8)
    found = at_update(run, update)[study(bug).measure]
    assert found.kind == kind
    assert least <= abs(found.difference) < most


@pytest.mark.parametrize(
    "bug, value",
    [
        ("partial_groups", 0.0),
        ("zero_std_kl", 0.0),
        ("micro_batch_means", 64.0),
        ("fan_out", 0.0),
        ("whole_batch", 0.0),
    ],
)
def test_a_bug_that_is_off_changes_nothing_at_all(bug, value):
    run = Run(bug, value, "adam", 8)
    assert all(measure.exact for measure in at_update(run, 30).values())
