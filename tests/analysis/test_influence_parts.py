"""The influence map of gradients, its single cells, what has no value."""

from dataclasses import replace

import pytest
import torch
from analysis.influenced import (
    CORRECT,
    ENGINES,
    shipped,
)

import gradebook
from gradebook.analysis.influence import (
    derivative,
    influence,
    influences,
    kl_influence,
    own_prompt,
    replacements,
)


def test_a_reward_that_makes_its_group_flat_takes_the_kl_away():
    batch, faulty = shipped("zero_std_kl")
    correct = kl_influence(CORRECT, batch).moved
    # Three tokens of 0.04 * (1 - 2) / 10 each.
    expected = torch.zeros(4, 4).double()
    expected[2:, 2:] = 0.012
    assert torch.allclose(correct, expected, atol=1e-6)
    assert kl_influence(faulty, batch).moved.eq(0).all()


def test_under_bnpo_the_fix_moves_the_neighbours():
    batch, faulty = shipped("zero_std_kl-bnpo")
    mixed = batch.reward.clone()
    mixed[0] = 0
    batch = replace(batch, reward=mixed)
    outside = ~own_prompt(batch)
    assert kl_influence(CORRECT, batch).moved[outside].ne(0).any()
    assert kl_influence(faulty, batch).moved[outside].eq(0).all()


def test_no_gradient_without_logp():
    with pytest.raises(gradebook.GradebookError, match="logp"):
        kl_influence(CORRECT, shipped("partial_groups")[0])


def test_a_cell_is_the_two_advantages_and_the_value():
    batch, faulty = shipped("partial_groups")
    found = influence(faulty, batch)
    assert replacements(batch)[11] == 0
    assert float(found.before[10]) == pytest.approx(-0.47973, abs=5e-5)
    assert float(found.after[10, 11]) == pytest.approx(1.30557, abs=5e-5)
    assert float(found.moved[10, 11]) == pytest.approx(-1.7853, abs=5e-5)


def test_a_row_without_an_advantage_has_a_line_of_nan():
    batch, faulty = shipped("double_normalization-subsample")
    for engine in (CORRECT, faulty):
        lines = influence(engine, batch).moved.isnan()
        assert lines.all(1).nonzero().flatten().tolist() == [1]
        assert lines.any(1).nonzero().flatten().tolist() == [1]
    assert not influences(faulty, batch).leaks[1].any()


def test_the_map_reads_the_batch_and_leaves_it_alone():
    batch, faulty = shipped("zero_std_kl")
    before = batch.reward.clone(), batch.logp.clone()
    influences(faulty, batch)
    kl_influence(faulty, batch)
    derivative(faulty, batch)
    assert torch.equal(batch.reward, before[0])
    assert torch.equal(batch.logp, before[1])
    assert not batch.reward.requires_grad and not batch.logp.requires_grad


@pytest.mark.parametrize("rows", [0, 1])
def test_the_smallest_batches(rows):
    batch = gradebook.Batch([0] * rows, [3.0] * rows)
    # The one bug that subtracts mean / (deviation + eps), of deviation 1,
    # leaves a lone row 3 - 3 / (1 + 1e-4); its reward replaced by 0, none.
    own = {"missing_parentheses": 3 - 3 / 1.0001}
    for name, engine in ENGINES.items():
        found = influence(engine, batch).moved.flatten().tolist()
        assert found == pytest.approx([own.get(name, 0.0)] * rows, abs=1e-12)
        assert derivative(engine, batch).shape == (rows, rows)
        assert influences(engine, batch).totals.victim is None


def test_float32_stays_float32():
    reward = torch.tensor([1.0, 2.0, 5.0])
    batch = gradebook.Batch([0, 0, 0], reward)
    assert influence(CORRECT, batch).moved.dtype == torch.float32
    assert derivative(CORRECT, batch).dtype == torch.float32


def test_the_kl_part_before_and_after_is_the_cell_of_the_gradient_map():
    batch, faulty = shipped("zero_std_kl")
    # Without its 1, prompt B is flat: the correct engine leaves it out.
    gone, kept = (kl_influence(one, batch) for one in (CORRECT, faulty))
    before = float(gone.before[2])
    assert before == kept.before[2] == kept.after[2, 2] != 0
    assert gone.after[2, 2] == 0 == kept.moved[2, 2]
    assert float(gone.moved[2, 2]) == pytest.approx(abs(before))
