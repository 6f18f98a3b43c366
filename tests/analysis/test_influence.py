"""Who moves whom, against one run a row and numbers worked out by hand."""

import itertools
from dataclasses import replace

import pytest
import torch
from analysis.influenced import (
    CORRECT,
    DIVISIBLE,
    ENGINES,
    ESTIMATORS,
    ROUNDED,
    drawn,
    shipped,
)

import gradebook
from gradebook.analysis.influence import (
    Influence,
    Influences,
    advantages,
    derivative,
    influence,
    influences,
    kl_influence,
    own_prompt,
    replacements,
)
from gradebook.analysis.law_check import couples_prompts

SMALLEST = [pytest.param(1, marks=pytest.mark.long), 3]
"""Least sizes of a group; with 3 some groups are dropped."""


def siblings_mean(batch, j):
    """What reward j is replaced by, in a loop over rows."""
    key = list(zip(batch.prompt.tolist(), batch.step.tolist()))
    ended = batch.eos | (not batch.settings.mask_no_eos)
    counts = batch.mask.any(-1) & ended  # every row is a rollout, and scored
    others = [
        float(batch.reward[k])
        for k in range(batch.rows)
        if k != j and key[k] == key[j] and counts[k]
    ]
    return sum(others) / len(others) if others else 0.0


def slope(engine, batch):
    """(A_i at r_j + h less A_i at r_j - h) / 2h, [R, R], with h a
    thousandth of eps: the derivative where it cannot be computed."""
    h = torch.eye(batch.rows).double() * batch.settings.eps * 1e-3
    up, down = (advantages(engine, batch, batch.reward + s) for s in (h, -h))
    return ((up - down) / (2 * h.max())).T


def one_by_one(engine, batch, part):
    """The map by one run for each changed row."""
    before = part(gradebook.run(engine, batch))
    columns = []
    for j in range(batch.rows):
        reward = batch.reward.clone()
        reward[j] = siblings_mean(batch, j)
        after = part(gradebook.run(engine, replace(batch, reward=reward)))
        columns.append(before - after)
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("smallest", SMALLEST)
def test_one_pass_gives_what_one_run_a_row_gives(engine, smallest):
    for key, (size, seed) in zip(ESTIMATORS, itertools.cycle(DIVISIBLE)):
        settings = replace(
            ESTIMATORS[key],
            mask_no_eos=True,
            min_group_size=smallest,
            group_size=size,
            reward_clip=2.5,
        )
        batch = drawn(settings, seed)
        found = influence(ENGINES[engine], batch).moved
        # An engine in float32 is subtracted in float64, as the map does.
        by_row = one_by_one(ENGINES[engine], batch, lambda t: t.advantage.double())
        assert torch.allclose(found, by_row, 1e-9, 1e-9, equal_nan=True), key
        assert found.isnan().any(), key


def test_an_engine_that_refuses_the_batch_has_no_map():
    batch = gradebook.Batch([0] * 6, range(6)).under(gradebook.Settings(group_size=4))
    with pytest.raises(gradebook.GradebookError, match="6 rows do not divide"):
        influence(ENGINES["filtered_first"], batch)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "loss",
    ["dapo", "bnpo"]
    + [pytest.param(n, marks=pytest.mark.long) for n in ("grpo", "dr_grpo")],
)
@pytest.mark.parametrize("smallest", SMALLEST)
def test_the_gradient_map_is_that_of_one_run_a_row(engine, loss, smallest):
    size, seed = DIVISIBLE[0]
    settings = gradebook.Settings(
        beta=0.1,
        loss=loss,
        mask_no_eos=True,
        min_group_size=smallest,
        group_size=size,
    )
    batch = drawn(settings, seed, logp=True)
    batch = replace(batch, kept_steps=batch.steps)
    found = kl_influence(ENGINES[engine], batch).moved
    change = one_by_one(ENGINES[engine], batch, lambda t: t.kl_gradient)
    assert torch.allclose(found, change.abs().sum(-1), 1e-9, 1e-12)


def test_a_replacement_is_the_mean_of_the_raw_siblings_that_count():
    batch = gradebook.Batch(
        prompt=["A", "A", "A", "B", "A", "B"],
        reward=[100, 1, 2, 7, 5, 0.5],
        mask=[[0], [1], [1], [1], [1], [1]],
        step=[0, 0, 0, 0, 1, 1],
        settings=gradebook.Settings(reward_clip=3.0),
    )
    # Rejected row 0 counts nowhere; rows 3 to 5 have no sibling.
    assert replacements(batch).tolist() == [1.5, 2, 1, 0, 0, 0]


def test_in_the_report_of_rejected_rows_the_survivors_move_each_other():
    # Rewards 100 (rejected), 1, 2: row 2 becomes 1, the group is flat, and
    # both survivors fall from -0.7071 and +0.7071 to 0.
    batch = gradebook.load("rejected_rows").batch()
    found = influence(gradebook.CORRECT, batch).moved
    assert found[:, 2].tolist() == pytest.approx([0, -0.7071, 0.7071], abs=1e-3)
    assert found[:, 0].tolist() == [0, 0, 0]


def test_equal_siblings_replace_without_rounding():
    rewards = [0.1, 0.7, 100.1, 1e-9, 1.7e308]
    for rows, reward in itertools.product(range(2, 12), rewards):
        batch = gradebook.Batch([0] * rows, [reward] * rows)
        assert replacements(batch).tolist() == [reward] * rows


def test_a_row_at_its_siblings_mean_has_no_influence():
    batch = gradebook.Batch([0, 0, 0], [1, 2, 3])
    assert influence(CORRECT, batch).moved[:, 1].tolist() == [0, 0, 0]


SETTINGS = [
    gradebook.Settings(
        baseline=baseline,
        scale=scale,
        spread_about=about,
        ddof=ddof,
        lone_row=lone,
        mask_no_eos=mask,
        reward_clip=clip,
    )
    for baseline, scale, about, ddof, lone, mask, clip in itertools.product(
        (
            "group_mean",
            "leave_one_out",
            "length_weighted_mean",
            "second_best",
            "none",
        ),
        ("group_std", "none"),
        ("mean", "baseline"),
        (0, 1),
        ("zero", "raw"),
        (False, True),
        (None, 2.0),
    )
]


def test_correct_rows_move_no_other_prompt_under_any_settings():
    assert len(SETTINGS) == 320
    for settings in SETTINGS:
        batch = drawn(settings)
        found = influence(CORRECT, batch).moved.nan_to_num()
        assert couples_prompts(settings) == ""
        assert bool((found[~own_prompt(batch)] == 0).all()), settings
        assert bool((found != 0).any())
        assert not influences(CORRECT, batch).leaks.any()


@pytest.mark.parametrize(
    "change, why",
    [
        ({"baseline": "batch_mean"}, "baseline batch_mean"),
        ({"scale": "batch_std"}, "scale batch_std"),
        ({"scale": "nonzero_share"}, "scale nonzero_share"),
        ({"whiten_tokens": True}, "whiten_tokens"),
    ],
)
def test_some_estimators_couple_prompts_by_design(change, why):
    batch = drawn(gradebook.Settings(**change))
    outside = ~own_prompt(batch)
    found = influence(CORRECT, batch).moved.nan_to_num()
    assert couples_prompts(batch.settings) == why
    assert bool((found[outside] != 0).any())
    # By design is no leak; other steps stay apart all the same.
    assert not influences(CORRECT, batch).leaks.any()
    apart = batch.step[:, None] != batch.step
    assert bool((found[apart] == 0).all())


# The report's batch


def test_row_11_moves_row_10_by_1_79_and_flips_three_rows():
    batch, faulty = shipped("partial_groups")
    found = influence(faulty, batch).moved
    # Alone in its prompt, row 11 gets 0: rows 8 to 11 are 0 1 2 0, mean
    # 0.75, std sqrt(2.75 / 3) = 0.957427: (2 - 0.75) / std = 1.305583.
    moved = -0.479733 - 1.305583
    assert float(found[10, 11]) == pytest.approx(moved, abs=5e-5)
    before = gradebook.run(faulty, batch).advantage
    after = before - found[:, 11]
    turned = (before.sign() * after.sign() < 0).nonzero().flatten()
    assert turned.tolist() == [9, 10, 11]
    assert influence(CORRECT, batch).moved[:, 11].eq(0).all()


def test_the_derivative_hides_what_the_finite_change_shows():
    batch, faulty = shipped("partial_groups")
    found = derivative(faulty, batch)
    assert round(float(found[10, 11]), 4) == -0.0002
    assert not found.isnan().any()
    assert float(slope(faulty, batch)[10, 11]) == pytest.approx(
        float(found[10, 11]), abs=1e-6
    )
    # C: -1 0 1 with mean 1 and std 1: d A_10 / d r_10 = 1 - 1/3 - 1/2.
    correct = derivative(CORRECT, batch)
    assert float(correct[10, 10]) == pytest.approx(1 / 6, abs=1e-4)
    assert correct[11].tolist() == [0] * 12


@pytest.mark.parametrize("eps, value", [(1e-6, 750_000), (1e-5, 75_000)])
def test_the_derivative_explodes_on_a_flat_group(eps, value):
    batch = gradebook.Batch(
        [0, 0, 0, 0, 1, 1],
        [1, 1, 1, 1, 0, 1],
        settings=gradebook.Settings(eps=eps),
    )
    assert gradebook.run(CORRECT, batch).advantage[:4].tolist() == [0] * 4
    found = slope(CORRECT, batch)
    assert float(found[2, 2]) == pytest.approx(value, rel=1e-3)
    assert float(found[2, 3]) == pytest.approx(-value / 3, rel=1e-3)
    by_autograd = derivative(CORRECT, batch)
    flat = torch.arange(6) < 4
    assert torch.equal(by_autograd.isnan(), flat[:, None] & flat)
    assert influence(CORRECT, batch).moved[:4].eq(0).all()


@pytest.mark.parametrize("key", ESTIMATORS)
def test_the_derivative_is_the_slope(key):
    settings = replace(ESTIMATORS[key], min_group_size=2, mask_no_eos=True, eps=1e-2)
    batch = drawn(settings, seed=3)
    # No ties, at which the best of a group has no derivative.
    reward = batch.reward + torch.linspace(0, 0.9, 14).double()
    batch = replace(batch, reward=reward)
    for name, engine in ENGINES.items():
        found, error = derivative(engine, batch), ROUNDED.get(name, 1e-4)
        exact = CORRECT if name in ROUNDED else engine
        expected = slope(exact, batch)
        at = ~found.isnan()
        assert bool(at.any())
        assert torch.allclose(found[at], expected[at], 1e-3, error), name
        lost = (batch.kept_steps == 0) | (batch.prompt_rows < 2)
        assert found[lost].isnan().all()


def test_a_flat_group_has_no_derivative_in_float32_either():
    # Beside 100, float32 steps by 7.6e-6: a smaller change moves nothing.
    batch = gradebook.Batch([0, 0, 0, 0, 1, 1], [100] * 4 + [0, 1])
    flat = torch.arange(6) < 4
    for engine in (CORRECT, ENGINES["float32_dust"]):
        nothing = derivative(engine, batch).isnan()
        assert torch.equal(nothing, flat[:, None] & flat)


# Leaks


def test_partial_groups_leaks_across_prompts():
    batch, faulty = shipped("partial_groups")
    found = influences(faulty, batch)
    rows, columns = found.leaks.nonzero().T.tolist()
    assert set(zip(rows, columns)) == {
        (8, 11),
        (9, 11),
        (10, 11),
    }
    assert not (found.leaks & own_prompt(batch)).any()
    sums = found.totals
    assert (sums.victim, sums.culprit) == (10, 11)
    assert float(sums.victims[10]) == pytest.approx(1.78532, abs=5e-5)


@pytest.mark.parametrize("name", ["no_eos_outliers", "rejected_rows"])
def test_a_row_without_a_say_leaks_inside_its_prompt(name):
    batch, faulty = shipped(name)
    found = influences(faulty, batch)
    silent = int((~CORRECT.credited(batch)).int().argmax())
    assert found.leaks.any(0).nonzero().flatten().tolist() == [silent]
    assert not (found.leaks & ~own_prompt(batch)).any()
    assert found.totals.culprit == silent
    assert found.totals.victim == gradebook.load(name).focus


def test_double_normalization_leaks_into_every_prompt():
    batch, faulty = shipped("double_normalization-erased")
    found = influences(faulty, batch)
    # Row 4 is at its prompt's mean, and 0 stays 0 whatever divides it.
    across = found.leaks & ~own_prompt(batch)
    assert across[:, 0].tolist() == [False] * 3 + [True, False, True]
    assert across[:, 3].tolist() == [True] * 3 + [False] * 3
    assert not (found.leaks & own_prompt(batch)).any()


def test_gpg_shows_faulty_less_correct():
    batch, faulty = shipped("rejected_rows-other_groups")
    batch = replace(batch.under(ESTIMATORS["gpg"]), reward=[0, 1, 2, 0, 3])
    found = influences(faulty, batch)
    gap = found.faulty.moved - found.correct.moved
    assert bool((found.correct.moved[~own_prompt(batch)] != 0).any())
    assert torch.equal(found.leaked[found.leaks], gap[found.leaks])
    assert found.leaks.any()


@pytest.mark.parametrize(
    "name", ["partial_groups-full", "rejected_rows-no_leak", "zero_std_kl"]
)
def test_where_nothing_leaks_nobody_is_named(name):
    found = influences(ENGINES[name.partition("-")[0]], shipped(name)[0])
    assert not found.leaks.any()
    assert found.totals.victim is None and found.totals.culprit is None
    assert found.totals.victims.eq(0).all()


def moving(batch, moved, size=0.0):
    """Faulty rows of advantage `size` that move so; no correct row moves."""
    before = torch.full((batch.rows,), size).double()
    still = Influence(before, before.expand(moved.shape).T, 0 * moved)
    faulty = Influence(before, before[:, None] - moved, moved)
    return Influences(batch, still, faulty)


def test_a_change_that_does_not_show_is_no_leak():
    batch = gradebook.Batch([0, 1], [1, 2])
    none = torch.zeros(2, 2).double()
    for size, dust, leak in ((1.0, 4e-4, 6e-4), (1e5, 0.05, 0.5)):
        assert not moving(batch, none + dust, size).leaks.any()
        found = moving(batch, none + leak, size).leaks
        assert found.tolist() == [[False, True], [True, False]]


def test_totals_are_sums_of_sizes():
    batch = gradebook.Batch([0, 1, 1], [1, 2, 3])
    moved = torch.tensor([[0.0, -2.0, 0.5], [1.0, 0.0, 9.0], [0, 0, 0]])
    found = moving(batch, moved.double()).totals
    # Rows 1 and 2 are of one prompt: what moves between them is no leak.
    assert found.victims.tolist() == [2.5, 1, 0]
    assert found.culprits.tolist() == [1, 2, 0.5]
    assert (found.victim, found.culprit) == (0, 1)
