"""The laws: kept by the correct engine everywhere, broken by each bug."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

import gradebook
from gradebook.analysis import laws as invariants
from gradebook.analysis.laws import Broken, Held, Law, Silent, laws
from gradebook.cases.scenario import names

CORRECT = gradebook.CORRECT
ALL = [(bug, law) for bug in gradebook.BUGS for law in laws(bug)]
EVERY = tuple(dict.fromkeys(law for _, law in ALL))
IDS = [f"{bug}-{law.name}" for bug, law in ALL]


def faulty(bug):
    return gradebook.bug(bug).engine


def outcome(bug, law, name=None, engine=None, **settings):
    """What the bug's law says of its own engine on a scenario."""
    scenario = gradebook.load(name or bug)
    (found,) = [one for one in laws(bug) if one.name == law]
    changed = replace(scenario.settings, **settings)
    batch = scenario.batch(settings=changed)
    return found.check(engine or faulty(bug), batch)


def drawn(settings, seed):
    """Small batches with ties, flat prompts, lone rows and two steps."""
    g = torch.Generator().manual_seed(seed)
    rows = 12
    token = torch.rand((2, rows, 2), generator=g, dtype=torch.float64)
    mask = torch.rand((rows, 2), generator=g) < 0.7
    mask[[0, 7]] = True
    eos = torch.rand(rows, generator=g) < 0.7
    eos[[0, 7]] = True
    return gradebook.Batch(
        prompt=[0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 4],
        reward=torch.randint(0, 3, (rows,), generator=g) * 0.7 - 0.1,
        mask=mask,
        eos=eos,
        step=[0] * 7 + [1] * 5,
        steps=torch.randint(1, 5, (rows,), generator=g),
        logp=-token[0],
        ref_logp=-token[1],
        settings=settings,
    )


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_each_bug_breaks_its_first_law_on_its_main_batch(bug):
    assert isinstance(outcome(bug, laws(bug)[0].name), Broken)


@pytest.mark.parametrize("bug, law", ALL, ids=IDS)
def test_every_law_is_broken_by_its_bug_somewhere(bug, law):
    found = [
        law.check(faulty(bug), gradebook.load(n).batch())
        for n in names()
        if n.partition("-")[0] == bug
    ]
    if law.name == "denied":
        found.append(outcome_of_a_denied_row())
    assert any(isinstance(one, Broken) for one in found)


def outcome_of_a_denied_row():
    (law,) = [one for one in EVERY if one.name == "denied"]
    batch = gradebook.Batch(
        [0, 0, 0], [1, 2, 9], mask=[[1], [1], [0]], kept_steps=[1, 3, 1]
    )
    return law.check(faulty("double_normalization"), batch)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("law", EVERY, ids=lambda law: law.name)
def test_the_correct_engine_keeps_every_law(name, law):
    found = law.check(CORRECT, gradebook.load(name).batch())
    assert isinstance(found, Held | Silent), found


GRID = [
    dict(zip(("baseline", "scale", "lone_row", "ddof", "eps"), values))
    for values in itertools.product(
        (
            "group_mean",
            "batch_mean",
            "leave_one_out",
            "length_weighted_mean",
            "second_best",
            "none",
        ),
        ("group_std", "batch_std", "nonzero_share", "none"),
        ("zero", "raw"),
        (0, 1),
        (1e-9, 1e-4),
    )
]


@pytest.mark.parametrize("law", EVERY, ids=lambda law: law.name)
def test_the_correct_engine_keeps_it_under_any_settings(law):
    said = 0
    for seed, base in enumerate(GRID):
        settings = gradebook.Settings(
            **base,
            mask_no_eos=bool(seed % 2),
            beta=0.1,
            loss=("dapo", "bnpo")[seed % 2],
            spread_about=("mean", "baseline")[seed // 2 % 2],
            reward_clip=(None, 1.0)[seed // 4 % 2],
            whiten_tokens=seed % 7 == 0,
        )
        found = law.check(CORRECT, drawn(settings, seed))
        assert not isinstance(found, Broken), (settings, found)
        said += isinstance(found, Held)
    assert said > 5


@pytest.mark.parametrize("bug, law", ALL, ids=IDS)
def test_a_counterexample_is_rows_numbers_and_a_sentence(bug, law):
    for name in names():
        if name.partition("-")[0] != bug:
            continue
        batch = gradebook.load(name).batch()
        found = law.check(faulty(bug), batch)
        if not isinstance(found, Broken):
            said = found.sentence if isinstance(found, Held) else found.reason
            assert said.endswith(".")
            continue
        assert found.rows and all(0 <= row < batch.rows for row in found.rows)
        assert all(math.isfinite(number) for number in found.numbers)
        assert f"row {found.rows[0]}" in found.sentence.lower()
        assert found.sentence.endswith(".")


# The numbers, by hand


def test_partial_groups_names_row_10_and_row_11():
    found = outcome("partial_groups", "own_prompt")
    assert found.rows == (10, 11)
    numbers = (100, 0, -0.47973, 1.30557)
    assert found.numbers == pytest.approx(numbers, abs=5e-5)
    assert found.sentence == (
        "Changing the reward of row 11 from 100 to 0 moves row 10 from"
        " -0.4797 to +1.306."
    )


def test_a_tail_breaks_the_second_law_only():
    name = "partial_groups-tail"
    assert isinstance(outcome("partial_groups", "own_prompt", name), Held)
    found = outcome("partial_groups", "shift", name)
    assert found.rows == (8, 9, 10)
    assert found.numbers == pytest.approx((0, 1e5))


@pytest.mark.parametrize("name", ["full", "dropped"])
@pytest.mark.parametrize("law", ["own_prompt", "shift"])
def test_full_groups_keep_both(name, law):
    found = outcome("partial_groups", law, f"partial_groups-{name}")
    assert isinstance(found, Held)


def test_one_transition_more_moves_the_other_row():
    found = outcome("double_normalization", "lengths")
    assert found.rows == (1, 0)
    # Of 3 and 10 transitions: -sqrt(3 / 10).
    numbers = (2, 3, -0.447214, -0.547723)
    assert found.numbers == pytest.approx(numbers, abs=1e-6)
    assert found.sentence == (
        "One more transition in row 0, 3 for 2, moves row 1 from"
        " -0.4472 to -0.5477."
    )


def test_dust_becomes_an_advantage():
    found = outcome(
        "double_normalization", "flat", "double_normalization-manufactured"
    )
    assert found.rows == (0,)
    assert found.numbers == pytest.approx((-0.9842,), abs=1e-4)


def test_a_denied_row_gets_minus_the_mean():
    found = outcome_of_a_denied_row()
    # -0.707 once, +0.707 three times, 0 once: m = 0.283, s = 0.583.
    a = (0.5 / (0.5**0.5 + 1e-4)) ** 1
    m, square = (3 * a - a) / 5, 4 * a * a / 5
    assert found.rows == (2,)
    assert found.numbers == pytest.approx(
        (-m / (square - m * m) ** 0.5,), rel=1e-6
    )


def test_the_no_eos_row_moves_row_0():
    found = outcome("no_eos_outliers", "no_eos")
    assert found.rows == (0, 1)
    assert found.numbers == (100, 1, -49.5, 0)


def test_the_rejected_row_moves_row_2():
    found = outcome("rejected_rows", "rejected")
    assert found.rows == (2, 0)
    # At 1.5, the siblings' mean, the deviation is 0.5.
    assert found.numbers == pytest.approx((100, 1.5, -0.56854, 1), abs=5e-5)


def test_a_leak_at_the_siblings_mean_is_found_by_another_change():
    found = outcome("no_eos_outliers", "no_eos", "no_eos_outliers-recipe")
    assert found.numbers == (1, 2, 0, -0.5)
    assert isinstance(
        outcome("no_eos_outliers", "removed", "no_eos_outliers-recipe"), Held
    )


def test_a_survivor_moves_when_the_rejected_are_gone():
    name = "rejected_rows-lone_survivor"
    found = outcome("rejected_rows", "removed", name)
    assert found.rows == (0, 1, 2, 3)
    assert found.numbers == pytest.approx((-1.466, 0.5), abs=5e-4)


def test_a_flat_group_has_a_kl_gradient_and_that_is_disputed():
    found = outcome("zero_std_kl", "no_gradient")
    assert found.rows == (0,)
    # Two tokens of 0.04 * (1 - 2) / 10.
    assert found.numbers == pytest.approx((0, -0.008), abs=1e-6)
    assert laws("zero_std_kl")[0].disputed
    assert "disputed" in laws("zero_std_kl")[0].words
    others = [law for law in EVERY if law.name != "no_gradient"]
    assert not any(law.disputed for law in others)


# Where a law says nothing


@pytest.mark.parametrize(
    "bug, law, settings, reason",
    [
        ("partial_groups", "own_prompt", {"scale": "batch_std"}, "by design"),
        ("partial_groups", "own_prompt", {"whiten_tokens": True}, "by design"),
        ("partial_groups", "shift", {"reward_clip": 20.0}, "clip"),
        ("partial_groups", "shift", {"baseline": "none"}, "baseline none"),
        ("double_normalization", "flat", {}, "all equal"),
        ("double_normalization", "denied", {}, "may earn"),
        ("no_eos_outliers", "no_eos", {"mask_no_eos": False}, "have a say"),
        ("no_eos_outliers", "removed", {"mask_no_eos": False}, "has a say"),
        ("rejected_rows", "removed", {"min_group_size": 2}, "min_group"),
        ("zero_std_kl", "no_gradient", {"beta": 0.0}, "beta"),
        ("zero_std_kl", "no_gradient", {"scale": "batch_std"}, "No step"),
    ],
)
def test_it_says_nothing_and_why(bug, law, settings, reason):
    found = outcome(bug, law, **settings)
    assert isinstance(found, Silent)
    assert reason in found.reason


def test_nothing_is_said_of_rows_that_are_not_there():
    plain = gradebook.Batch([0, 0], [1, 2])
    for law in EVERY:
        found = law.check(CORRECT, gradebook.Batch([], []))
        assert found == Silent("There are no rows.")
        if law.name in ("no_eos", "rejected", "own_prompt", "no_gradient"):
            assert isinstance(law.check(CORRECT, plain), Silent)


def test_under_batch_std_a_flat_step_is_a_flat_group():
    scenario = gradebook.load("zero_std_kl")
    settings = replace(scenario.settings, scale="batch_std")
    batch = scenario.batch(settings=settings)
    batch = replace(batch, reward=torch.ones(4))
    (law,) = laws("zero_std_kl")
    assert isinstance(law.check(CORRECT, batch), Held)
    assert law.check(faulty("zero_std_kl"), batch).rows == (0,)


def test_many_episodes_are_tried_only_in_part():
    rows = invariants.MOST_LENGTHS + 8
    batch = gradebook.Batch([0] * rows, list(range(rows)))
    (law,) = [one for one in EVERY if one.name == "lengths"]
    found = law.check(CORRECT, batch)
    assert f"the first {invariants.MOST_LENGTHS}" in found.sentence


def test_a_new_bug_has_no_law_and_that_is_no_error():
    assert laws("a_bug_of_tomorrow") == ()


def test_names_and_words_are_distinct():
    for bug in gradebook.BUGS:
        assert laws(bug)
        for part in ("name", "words"):
            said = [getattr(law, part) for law in laws(bug)]
            assert len(set(said)) == len(said)
    assert all(isinstance(law, Law) for law in EVERY)
    assert all(law.words.endswith(".") for law in EVERY)
