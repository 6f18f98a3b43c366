"""Who moves whom, against one run a row and numbers worked out by hand."""

import itertools
from dataclasses import replace

import pytest
import torch
from drawn import any_settings, columns
from hypothesis import assume, given

import gradebook
from gradebook import CORRECT
from gradebook.analysis.comparison import (
    influence,
    influences,
    leaks,
    own_prompt,
    replacements,
)
from gradebook.analysis.law_check import couples_prompts

ENGINES = {"correct": CORRECT} | {
    name: gradebook.bug(name).engine for name in gradebook.BUGS
}


def shipped(name):
    return gradebook.load(name).batch(), ENGINES[name.partition("-")[0]]


@given(columns(), any_settings)
def test_a_reward_is_replaced_by_its_siblings_mean(rows, settings):
    rows |= {"rollout": range(len(rows["reward"])), "scored": None}
    batch = gradebook.Batch(**rows, settings=settings)
    key = list(zip(batch.prompt.tolist(), batch.step.tolist()))
    counts = batch.mask.any(-1) & (batch.eos | (not settings.mask_no_eos))
    for j, value in enumerate(replacements(batch).tolist()):
        siblings = [
            float(batch.reward[k])
            for k in range(batch.rows)
            if k != j and key[k] == key[j] and counts[k]
        ]
        assert value == pytest.approx(sum(siblings) / max(len(siblings), 1))


@pytest.mark.parametrize("engine", ENGINES)
@given(columns(), any_settings)
def test_one_pass_gives_what_one_run_a_row_gives(engine, rows, settings):
    batch, columns = gradebook.Batch(**rows, settings=settings), []

    def advantage(batch):
        return gradebook.run(ENGINES[engine], batch).advantage.double()

    try:
        moves, before = influence(ENGINES[engine], batch)[0], advantage(batch)
        for j, value in enumerate(replacements(batch)):
            reward = batch.reward.clone()
            reward[j] = value
            columns.append(before - advantage(replace(batch, reward=reward)))
    except gradebook.GradebookError:
        assume(False)
    assert torch.allclose(moves, torch.stack(columns, 1), 1e-9, 1e-9, equal_nan=True)


def test_equal_siblings_replace_without_rounding():
    rewards = [0.1, 0.7, 100.1, 1e-9, 1.7e308]
    for rows, reward in itertools.product(range(2, 12), rewards):
        batch = gradebook.Batch([0] * rows, [reward] * rows)
        assert replacements(batch).tolist() == [reward] * rows


@pytest.mark.parametrize(
    "change",
    [
        {"baseline": "batch_mean"},
        {"scale": "batch_std"},
        {"scale": "nonzero_share"},
        {"whiten_tokens": True},
    ],
)
def test_some_estimators_couple_prompts_by_design(change):
    settings = gradebook.Settings(**change)
    rewards, steps = [1, 0, 2, 5, 1, 3], [0] * 4 + [1] * 2
    batch = gradebook.Batch([0, 0, 1, 1, 0, 0], rewards, step=steps, settings=settings)
    moves = influence(CORRECT, batch)[0].nan_to_num()
    assert couples_prompts(settings).split()[0] in change
    assert bool((moves[~own_prompt(batch)] != 0).any())
    # By design is no leak; other steps stay apart all the same.
    assert not influences(CORRECT, batch).leaked.any()
    assert bool((moves[batch.step[:, None] != batch.step] == 0).all())


def test_row_11_moves_row_10_by_1_79_and_flips_three_rows():
    batch, faulty = shipped("partial_groups")
    moves = influence(faulty, batch)[0]
    # Alone in its prompt, row 11 gets 0: rows 8 to 11 are 0 1 2 0, mean
    # 0.75, std sqrt(2.75 / 3) = 0.957427: (2 - 0.75) / std = 1.305583.
    moved = -0.479733 - 1.305583
    assert float(moves[10, 11]) == pytest.approx(moved, abs=5e-5)
    before = gradebook.run(faulty, batch).advantage
    after = before - moves[:, 11]
    turned = (before.sign() * after.sign() < 0).nonzero().flatten()
    assert turned.tolist() == [9, 10, 11]
    assert influence(CORRECT, batch)[0][:, 11].eq(0).all()
    leaks = influences(faulty, batch).leaked.nonzero().tolist()
    assert leaks == [[8, 11], [9, 11], [10, 11]]


@pytest.mark.parametrize("name", ["no_eos_outliers", "rejected_rows"])
def test_a_row_without_a_say_leaks_inside_its_prompt(name):
    batch, faulty = shipped(name)
    maps = influences(faulty, batch)
    silent = int((~CORRECT.credited(batch)).int().argmax())
    assert (maps.leaked != 0).any(0).nonzero().flatten().tolist() == [silent]
    assert not maps.leaked[~own_prompt(batch)].any()
    assert torch.equal(maps.leaked[:, silent], (maps.faulty - maps.correct)[:, silent])


def test_a_change_that_does_not_show_is_no_leak():
    batch = gradebook.Batch([0, 1], [1, 2])
    for size, dust, leak in ((1.0, 4e-4, 6e-4), (1e5, 0.05, 0.5)):
        advantage = torch.full((2,), size).double()
        hidden, shown = (
            leaks(batch, torch.full((2, 2), moved).double(), advantage)
            for moved in (dust, leak)
        )
        assert not hidden.any()
        assert (shown != 0).tolist() == [[False, True], [True, False]]


def test_a_row_without_an_advantage_has_a_line_of_nan():
    batch, faulty = shipped("double_normalization-subsample")
    maps = influences(faulty, batch)
    for lines in (maps.correct.isnan(), maps.faulty.isnan()):
        assert lines.all(1).nonzero().flatten().tolist() == [1]
        assert lines.any(1).nonzero().flatten().tolist() == [1]
    assert not maps.leaked[1].any()


@pytest.mark.parametrize("rows", [0, 1])
def test_a_lone_row_moves_itself_alone(rows):
    batch = gradebook.Batch([0] * rows, [3.0] * rows)
    moved = influence(ENGINES["whole_batch"], batch)[0].flatten()
    assert moved.tolist() == [0.0] * rows
