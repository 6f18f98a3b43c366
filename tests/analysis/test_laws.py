"""The laws: the correct engine keeps them, and each bug breaks its own."""

from dataclasses import replace

import pytest
import torch
from drawn import columns, token_settings
from hypothesis import assume, given
from trainers.advantages import missing_is_zero

import gradebook
from gradebook.analysis import laws
from gradebook.analysis.law_check import (
    BROKEN,
    BY_CONVENTION,
    HOLDS,
    NOT_MEASURED,
    REFUSED,
    check,
    groups_of,
    judge,
    on_groups,
    paragraphs,
    step_of,
    words,
)
from gradebook.analysis.laws import LAWS
from gradebook.cases.scenario import names
from gradebook.core.errors import GradebookError

CORRECT = gradebook.CORRECT
OF_REWARDS = [law.__name__ for law in laws.OF_REWARDS]
OF_BUGS = [(b, name) for b in gradebook.BUGS for name in gradebook.bug(b).laws]


def batch(reward, prompt=None, **columns):
    return gradebook.Batch(prompt or [0] * len(reward), reward, **columns)


def case(name):
    return gradebook.load(name).batch()


@pytest.mark.parametrize("name", LAWS)
def test_a_law_says_what_holds_and_what_it_needs(name):
    law, needs = paragraphs(name)
    assert law.endswith(".") and needs.startswith("It needs ")


# The correct engine keeps them, the bugs do not


@pytest.mark.parametrize("name", LAWS)
def test_the_correct_engine_keeps_a_law_on_every_case(name):
    for scenario in names():
        outcome = check(name, CORRECT, case(scenario))
        assert outcome.answer not in (BROKEN, REFUSED), (scenario, outcome)


@pytest.mark.parametrize("name", LAWS)
@given(columns(by_token=True), token_settings)
def test_the_correct_engine_keeps_a_law_under_any_settings(name, rows, settings):
    try:
        outcome = check(name, CORRECT, gradebook.Batch(**rows, settings=settings))
    except GradebookError:
        assume(False)  # too few tokens to whiten
    assert outcome.answer != BROKEN
    assert outcome.answer != REFUSED or settings.whiten_tokens


ASKED = {
    "rejected": {"off_policy": "reject", "loss": "bnpo"},
    "weight_of_one": {"off_policy": "reject"},
    "kept_prompts": {"filter_flat": True, "baseline": "group_mean", "scale": "none"},
}
"""What a law needs beyond what drawn settings often have."""


@pytest.mark.parametrize("name", ASKED)
@given(columns(by_token=True), token_settings)
def test_the_correct_engine_keeps_a_law_of_rare_settings(name, rows, settings):
    plain = {"whiten_tokens": False, "overlong_limit": None, "reward_clip": None}
    chosen = gradebook.Settings(**{**settings, **plain, **ASKED[name]})
    batch = gradebook.Batch(**rows, settings=chosen)
    assert check(name, CORRECT, batch).answer not in (BROKEN, BY_CONVENTION)


@pytest.mark.parametrize("bug, name", OF_BUGS)
def test_a_bug_breaks_each_law_of_its_record_on_one_of_its_cases(bug, name):
    engine = gradebook.bug(bug).engine
    cases = [case(n) for n in names() if n.split("-")[0] == bug]
    answers = [check(name, engine, each).answer for each in cases]
    assert BROKEN in answers


# Mistakes of trainers, each as one faulty stage


def each_row_alone(batch):
    return torch.arange(batch.rows)


def by_position(batch):
    return torch.arange(batch.rows) // 4


def missing_brackets(score, credited, baseline, scale):
    return torch.where(credited, score - baseline / scale, 0)


def turned(score, credited, baseline, scale):
    return torch.where(credited, (baseline - score) / scale, 0)


def divided_by_the_deviation(batch, score, counted, group, baseline):
    other = batch.under(replace(batch.settings, scale="group_std"))
    return CORRECT.scale(other, score, counted, group, baseline)


FOUR = [1.0, 0.0, 0.5, 2.0]
EIGHT = batch([*FOUR, 1.0, 0.0, 0.0, 0.0], [0] * 4 + [1] * 4)
SEVEN = batch([*FOUR, 1.0, 0.0, 0.0], [0] * 4 + [1] * 3)
RAW = gradebook.Settings(lone_row="raw")
PLAIN = batch(FOUR, settings=gradebook.Settings(scale="none"))
SOLVED = batch([1, 1, 1, 0], settings=gradebook.Settings(eps=1e-9))


# The other laws are broken by a bug each, as their records say.
@pytest.mark.parametrize(
    "name, stage, mistake, on, numbers",
    [
        ("other_prompts", "group", by_position, SEVEN.select(SEVEN.reward < 2), None),
        ("shift", "group", each_row_alone, EIGHT.under(RAW), None),
        ("order", "group", by_position, SEVEN, None),
        # Mean .75, deviation .5: 1 - 1.5 and 0 - 1.5 add up to -3.
        ("zero_sum", "standardized", missing_brackets, SOLVED, (0, -3)),
        # Mean .875: row 3 has 1.125 over the deviation .853913, before and after.
        ("scale", "scale", divided_by_the_deviation, PLAIN, (13.173, 1.3173)),
        # Mean .875. The best row has -1.125; the worst has .875, the most below it.
        ("rising", "standardized", turned, PLAIN, (0.875, -1.125)),
    ],
)
def test_a_mistake_breaks_the_law_that_the_correct_engine_keeps(
    name, stage, mistake, on, numbers
):
    assert check(name, CORRECT, on).answer == HOLDS
    outcome = check(name, replace(CORRECT, **{stage: mistake}), on)
    assert outcome.answer == BROKEN
    if numbers:
        assert (outcome.due, outcome.value) == pytest.approx(numbers, abs=1e-3)


def test_a_division_by_a_mean_below_0_turns_an_order_and_is_said_as_the_convention():
    over_mean = gradebook.Settings(scale="group_mean", eps=0.0)
    # Rewards -1 and -3, mean -2: 1 / -2 and -1 / -2.
    below = batch([-1.0, -3.0], settings=over_mean)
    assert gradebook.run(CORRECT, below).advantage.tolist() == [-0.5, 0.5]
    assert check("rising", CORRECT, below).answer == BY_CONVENTION
    values = on_groups(lambda groups: [[-0.5, 0.5] for _ in groups])
    step = step_of([[-1.0, -3.0]])
    settings = gradebook.Settings()
    outcome = judge("rising", values, [step], settings, lambda step: [0.0, 0.0])
    assert (outcome.answer, outcome.row) == (BROKEN, 0)
    assert "−0.500, and a row with a lower reward has +0.500" in outcome.sentence


@pytest.mark.parametrize(
    "baseline, answer",
    [("none", BY_CONVENTION), ("batch_others", BY_CONVENTION), ("group_mean", HOLDS)],
)
def test_a_deviation_of_the_others_keeps_the_order_around_the_groups_own_mean(
    baseline, answer
):
    settings = gradebook.Settings(baseline=baseline, scale="others_std", eps=0.0)
    rows = batch([1.0, 2.0, 2.25], settings=settings)
    assert check("rising", CORRECT, rows).answer == answer
    if baseline == "none":
        # Others of row 0: 2 and 2.25, deviation 0.25 / √2; of row 1: 1.25 / √2.
        advantage = gradebook.run(CORRECT, rows).advantage.tolist()
        assert advantage[:2] == pytest.approx([4 * 2**0.5, 1.6 * 2**0.5])


# Counterexamples, by hand


DENIED = batch([1, 2, 9], mask=[[1], [1], [0]], kept_steps=[1, 3, 1])


@pytest.mark.parametrize(
    "name, bug, on, row, due, value, sentence",
    [
        # Rows 8 to 11 are one group. With 0 in place of row 11's 100: 0 1 2 0,
        # mean 0.75, squares 2.75, std 0.957427; (2 - 0.75) / 0.957427 = 1.3056
        (
            *("other_prompts", "partial_groups", case("partial_groups")),
            *(10, -0.47973, 1.3056, "row 11 changes from 100 to 0"),
        ),
        # Standardized: -a, a, 0 with weights 1, 3, 1: mean 2a/5 = 0.4 a, mean
        # square 4 a^2 / 5, variance 0.64 a^2, deviation 0.8 a. Row 2: -0.5.
        ("missing", "double_normalization", DENIED, 2, 0, -0.5, "row 2 is"),
        # beta / 10 tokens * (1 - exp(ln 2)) = -0.004
        ("flat_gradient", "zero_std_kl", case("zero_std_kl"), 0, 0, -4e-3, "−0.00400"),
    ],
)
def test_a_broken_law_names_its_row(name, bug, on, row, due, value, sentence):
    outcome = check(name, gradebook.bug(bug).engine, on)
    assert outcome.row == row and sentence in outcome.sentence
    assert outcome.due == pytest.approx(due, rel=1e-4)
    assert outcome.value == pytest.approx(value, rel=5e-4)


# What a batch cannot test, and what a convention breaks by design


BATCH_MEAN = gradebook.Settings(baseline="batch_mean")
CLIPPED = gradebook.Settings(reward_clip=0.9)
SMALL_EPS = gradebook.Settings(eps=1e-6)


@pytest.mark.parametrize(
    "name, on, answer, sentence",
    [
        ("other_prompts", batch(FOUR), NOT_MEASURED, "two prompts"),
        ("missing", batch(FOUR), NOT_MEASURED, "without tokens"),
        ("flat_gradient", batch(FOUR), NOT_MEASURED, "log-probabilities"),
        ("order", batch([]), NOT_MEASURED, "two rollouts"),
        # 1e10 has steps of 2e-6, which eps divides by 1e-6.
        ("flat", batch([1e10] * 3, settings=SMALL_EPS), NOT_MEASURED, "compared"),
        ("other_prompts", EIGHT.under(BATCH_MEAN), BY_CONVENTION, "batch_mean"),
        ("scale", EIGHT.under(CLIPPED), BY_CONVENTION, "reward_clip"),
        ("shift", EIGHT.under(CLIPPED), BY_CONVENTION, "reward_clip"),
    ],
)
def test_a_law_that_is_not_tried_says_why(name, on, answer, sentence):
    outcome = check(name, CORRECT, on)
    assert outcome.answer == answer and sentence in outcome.sentence


def test_rounding_neither_breaks_a_law_nor_hides_that_it_is_broken():
    huge = batch([1e10, 1e10 + 7, 1e10 - 3, 5e9], [0, 0, 1, 1])
    assert check("shift", CORRECT, huge).answer == HOLDS
    position = replace(CORRECT, group=by_position)
    assert check("other_prompts", position, huge).answer == BROKEN
    alone = replace(CORRECT, group=each_row_alone)
    assert check("shift", alone, huge.under(RAW)).answer == BROKEN


def test_a_float32_sum_over_many_rows_breaks_no_law():
    # One after the other, 512 numbers of 100.1 add up to another mean in float32.
    many = batch(torch.full((512,), 100.1)).under(gradebook.Settings(scale="none"))
    assert gradebook.run(CORRECT, many).advantage.abs().max() > 1e-4
    assert check("flat", CORRECT, many).answer == HOLDS


def test_a_law_by_a_wrong_name_is_an_error_with_the_names():
    with pytest.raises(GradebookError, match="other_prompts"):
        words("other_promts")


# Any function from groups of rewards to groups of advantages


def group_means(groups):
    """r - mean over the rewards that are there; 0 if there is none."""
    means = []
    for group in groups:
        there = [reward for reward in group if reward is not None]
        mean = sum(there) / max(1, len(there))
        means.append([0.0 if r is None else r - mean for r in group])
    return means


def one_mean(groups):
    rewards = [r or 0.0 for group in groups for r in group]
    mean = sum(rewards) / len(rewards)
    return [[(r or 0.0) - mean for r in group] for group in groups]


def even_groups_only(groups):
    if len({len(group) for group in groups}) > 1:
        raise GradebookError(expected="groups of one size", found="ragged ones")
    return group_means(groups)


DR_GRPO = gradebook.Settings(scale="none")
GROUPS = [[1.0, 0.0, 0.5], [2.0, 2.0, 0.0]]
GAPS = [[-1.0, -1.0, -1.0, None]]


@pytest.mark.parametrize(
    "name, function, groups, answer",
    [
        *((n, group_means, GROUPS, HOLDS) for n in OF_REWARDS if n != "missing"),
        ("missing", group_means, GAPS, HOLDS),
        ("missing", missing_is_zero, GAPS, BROKEN),
        ("missing", group_means, GROUPS, NOT_MEASURED),
        ("other_prompts", one_mean, GROUPS, BROKEN),
        ("lost_row", one_mean, GROUPS, BROKEN),
        ("lost_row", even_groups_only, GROUPS, REFUSED),
        ("shift", even_groups_only, GROUPS, HOLDS),
    ],
)
def test_a_function_of_groups_is_judged(name, function, groups, answer):
    steps, values = [step_of(groups)], on_groups(function)
    outcome = judge(name, values, steps, DR_GRPO, lambda step: [1e-9] * len(step))
    assert outcome.answer == answer


def test_a_broken_law_shows_the_groups_and_the_numbers():
    # -1 -1 -1 and a missing reward as 0: mean -0.75, so 0.25 under the 0 due
    steps, values = [step_of(GAPS)], on_groups(missing_is_zero)
    outcome = judge("missing", values, steps, DR_GRPO, lambda step: [0.0] * len(step))
    assert (outcome.row, outcome.due, outcome.value) == (3, 0.0, 0.75)
    assert "row 3 is +0.750, and must be 0.000" in outcome.sentence
    assert groups_of(outcome.follow_up.step) == GAPS
