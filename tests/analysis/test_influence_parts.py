"""The influence map of gradients, its single cells, what has no value."""

import itertools
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
    changed,
    changed_kl,
    derivative,
    influence,
    influences,
    kl_influence,
    own_prompt,
)


def test_a_reward_that_makes_its_group_flat_takes_the_kl_away():
    batch, faulty = shipped("zero_std_kl")
    correct = kl_influence(CORRECT, batch)
    # Three tokens of 0.04 * (1 - 2) / 10 each.
    expected = torch.zeros(4, 4).double()
    expected[2:, 2:] = 0.012
    assert torch.allclose(correct, expected, atol=1e-6)
    assert kl_influence(faulty, batch).eq(0).all()


def test_under_bnpo_the_fix_moves_the_neighbours():
    batch, faulty = shipped("zero_std_kl-bnpo")
    mixed = batch.reward.clone()
    mixed[0] = 0
    batch = replace(batch, reward=mixed)
    outside = ~own_prompt(batch)
    assert kl_influence(CORRECT, batch)[outside].ne(0).any()
    assert kl_influence(faulty, batch)[outside].eq(0).all()


def test_no_gradient_without_logp():
    with pytest.raises(gradebook.GradebookError, match="logp"):
        kl_influence(CORRECT, shipped("partial_groups")[0])


def test_a_cell_is_the_two_advantages_and_the_value():
    batch, faulty = shipped("partial_groups")
    cell = changed(faulty, batch, 10, 11)
    assert cell.value == 0
    assert cell.before == pytest.approx(-0.47973, abs=5e-5)
    assert cell.after == pytest.approx(1.30557, abs=5e-5)
    for engine in ENGINES.values():
        found = influence(engine, batch)
        # A row of each prompt, and rows of a stride over two prompts.
        for i, j in itertools.product((0, 4, 8, 10, 11), repeat=2):
            cell = changed(engine, batch, i, j)
            assert cell.before - cell.after == pytest.approx(
                float(found[i, j]), abs=1e-9
            )


def test_a_row_without_an_advantage_has_a_line_of_nan():
    batch, faulty = shipped("double_normalization-subsample")
    for engine in (CORRECT, faulty):
        lines = influence(engine, batch).isnan()
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
        found = influence(engine, batch).flatten().tolist()
        assert found == pytest.approx([own.get(name, 0.0)] * rows, abs=1e-12)
        assert derivative(engine, batch).shape == (rows, rows)
        assert influences(engine, batch).totals.victim is None


def test_float32_stays_float32():
    reward = torch.tensor([1.0, 2.0, 5.0])
    batch = gradebook.Batch([0, 0, 0], reward)
    assert influence(CORRECT, batch).dtype == torch.float32
    assert derivative(CORRECT, batch).dtype == torch.float32


def test_the_kl_part_before_and_after_is_the_cell_of_the_gradient_map():
    batch = gradebook.load("zero_std_kl").batch()
    faulty = gradebook.bug("zero_std_kl").engine
    for engine in (CORRECT, faulty):
        cells = kl_influence(engine, batch)
        for i in range(batch.rows):
            for j in range(batch.rows):
                cell = changed_kl(engine, batch, i, j)
                assert cell.moved == pytest.approx(float(cells[i, j]))
    # Without its 1, prompt B is flat: the correct engine leaves it out.
    gone, kept = (changed_kl(e, batch, 2, 2) for e in (CORRECT, faulty))
    assert gone.before == kept.before == kept.after != 0 == gone.after
    assert gone.moved == abs(gone.before) and kept.moved == 0


def test_the_kl_part_needs_log_probabilities():
    batch = gradebook.load("partial_groups").batch()
    with pytest.raises(gradebook.GradebookError, match="logp"):
        changed_kl(CORRECT, batch, 0, 1)
