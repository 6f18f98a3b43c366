"""The laws: the correct engine keeps them, and each bug breaks its own."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

import gradebook
from gradebook.analysis.law_check import Broken, Held, Silent, law, laws
from gradebook.analysis.laws import LAWS
from gradebook.cases.scenario import names
from gradebook.core.errors import GradebookError

CORRECT = gradebook.CORRECT
OF_BUGS = [(b, name) for b in gradebook.BUGS for name in gradebook.bug(b).laws]


def said(name, engine, batch):
    return law(name).check(engine, batch)


def batch(reward, prompt=None, **columns):
    return gradebook.Batch(prompt or [0] * len(reward), reward, **columns)


def case(name, **settings):
    scenario = gradebook.load(name)
    return scenario.batch(settings=replace(scenario.settings, **settings))


def faulty(bug):
    return gradebook.bug(bug).engine


def drawn(settings, seed):
    """Small batches with ties, flat prompts, lone rows and two steps."""
    g = torch.Generator().manual_seed(seed)
    rows = 12
    token = torch.rand((2, rows, 2), generator=g, dtype=torch.float64)
    mask = torch.rand((rows, 2), generator=g) < 0.7
    mask[[0, 7]] = True
    eos = torch.rand(rows, generator=g) < 0.7
    eos[[0, 7]] = True
    scored = torch.rand(rows, generator=g) < 0.9
    scored[[0, 7]] = True
    reward = torch.randint(0, 3, (rows,), generator=g).double() * 0.7 - 0.1
    rollout = list(range(rows))
    if seed % 3 == 1:  # rows 1 and 2 are one rollout, and so are 4, 5 and 6
        rollout = [0, 1, 1, 3, 4, 4, 4, 7, 8, 9, 10, 11]
        reward[2], reward[5], reward[6] = reward[1], reward[4], reward[4]
    return gradebook.Batch(
        prompt=[0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 4],
        reward=reward,
        mask=mask,
        eos=eos,
        scored=scored,
        rollout=rollout,
        rank=torch.randint(0, 2, (rows,), generator=g),
        step=[0] * 7 + [1] * 5,
        steps=torch.randint(1, 5, (rows,), generator=g),
        logp=-token[0],
        ref_logp=-token[1],
        settings=settings,
    )


# The correct engine keeps them, the bugs do not


@pytest.mark.parametrize("name", LAWS)
def test_the_correct_engine_keeps_a_law_on_every_case(name):
    for scenario in names():
        found = said(name, CORRECT, gradebook.load(scenario).batch())
        assert not isinstance(found, Broken), (scenario, found)


CHOICES = [
    ("group_mean", "group_std", "mean", 1),
    ("group_mean", "none", "mean", 1),
    ("group_mean", "batch_std", "baseline", 0),
    ("batch_mean", "batch_std", "mean", 1),
    ("leave_one_out", "none", "mean", 1),
    ("leave_one_out", "others_std", "mean", 1),
    ("leave_one_out", "group_std", "baseline", 0),
    ("length_weighted_mean", "none", "mean", 1),
    ("second_best", "group_std", "mean", 1),
    ("group_mean", "nonzero_share", "mean", 1),
    ("none", "none", "mean", 1),
    ("none", "group_std", "baseline", 0),
]


# Each fifth combination: each choice, each extra and cut rollouts are there.
@pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LAWS)
def test_the_correct_engine_keeps_a_law_under_any_settings(name, each):
    tested = 0
    extras = itertools.product(("zero", "raw"), (False, True), (False, True))
    every = list(enumerate(itertools.product(CHOICES, extras)))
    for seed, (choice, extra) in every[::each]:
        baseline, scale, about, ddof = choice
        lone, mask, whiten = extra
        settings = gradebook.Settings(
            baseline=baseline,
            scale=scale,
            spread_about=about,
            ddof=ddof,
            lone_row=lone,
            mask_no_eos=mask,
            whiten_tokens=whiten,
            whiten_ddof=seed % 2,
            beta=0.1,
            loss=("dapo", "grpo", "bnpo", "dr_grpo")[seed % 4],
        )
        found = said(name, CORRECT, drawn(settings, seed))
        assert not isinstance(found, Broken), (settings, found)
        tested += isinstance(found, Held)
    assert tested


@pytest.mark.parametrize("bug, name", OF_BUGS)
def test_a_bug_breaks_each_law_of_its_record_on_one_of_its_cases(bug, name):
    cases = [gradebook.load(n) for n in names()]
    found = [
        said(name, faulty(bug), scenario.batch())
        for scenario in cases
        if scenario.bug == bug
    ]
    assert any(isinstance(one, Broken) for one in found)


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_a_bug_does_not_keep_its_first_law_on_its_main_case(bug):
    """It breaks the law, or the law cannot be tested there."""
    first = laws(gradebook.bug(bug))[0]
    assert not isinstance(first.check(faulty(bug), case(bug)), Held)


# Mistakes of trainers, each as one faulty stage


def each_row_alone(batch):
    return torch.arange(batch.rows)


def by_position(batch):
    return torch.arange(batch.rows) // 4


def by_text(batch):
    return batch.within_step(batch.text)


def whole_step_if_uneven(batch):
    even = batch.step_rows % 4 == 0
    return torch.where(
        even[batch.step_index], batch.prompt_index, batch.step_index + 10**6
    ).unique(return_inverse=True)[1]


def everybody(batch):
    return torch.ones(batch.rows, dtype=torch.bool)


def everybody_counts(batch, credited):
    return torch.ones_like(credited)


def every_row_votes(batch, credited):
    return credited


def missing_brackets(score, credited, baseline, scale):
    return torch.where(credited, score - baseline / scale, 0)


def floor_under_the_root(batch, score, counted, group, baseline):
    right = CORRECT.scale(batch, score, counted, group, baseline)
    return right.clamp(min=math.sqrt(batch.settings.eps))


def loss_by_micro_batch(batch, advantage, trained, logp):
    size = batch.settings.micro_batch or batch.rows
    weight = 1.0 / (1 + batch.place // size).to(logp.dtype)
    found = CORRECT.loss(batch, advantage * weight, trained, logp)
    return found


def by_rank(batch, standardized, credited):
    return standardized * (1 + batch.rank)


def never_one(batch, score, counted, group, baseline):
    return torch.full_like(score, 0.1)


FOUR = [1.0, 0.0, 0.5, 2.0]
EIGHT = batch([*FOUR, 1.0, 0.0, 0.0, 0.0], [0] * 4 + [1] * 4)
SEVEN = batch([*FOUR, 1.0, 0.0, 0.0], [0] * 4 + [1] * 3)
CUT = batch([1.0, 1.0, 0.0, 0.5], rollout=[0, 0, 2, 3])
OTHERS = gradebook.Settings(baseline="leave_one_out", scale="others_std", eps=1e-6)


UNFINISHED = gradebook.Settings(mask_no_eos=True)
RAW = gradebook.Settings(lone_row="raw")
TINY_EPS = gradebook.Settings(eps=1e-6)
MISTAKES = [
    ("own_prompt", "group", by_position, SEVEN.select(SEVEN.reward < 2)),
    ("removed_row", "group", whole_step_if_uneven, EIGHT),
    ("shift", "group", each_row_alone, EIGHT.under(RAW)),
    ("shift", "standardized", missing_brackets, EIGHT),
    ("zero_sum", "standardized", missing_brackets, EIGHT),
    (
        *("scaling", "scale", floor_under_the_root),
        batch([0.0005, 0, 0.001], settings=TINY_EPS),
    ),
    (
        *("flat", "counted", everybody_counts),
        batch([1.0, 1, 9], eos=[1, 1, 0], settings=UNFINISHED),
    ),
    (
        *("no_credit", "credited", everybody),
        batch(FOUR, mask=[[1], [1], [1], [0]]),
    ),
    (
        *("left_out", "counted", everybody_counts),
        batch(FOUR, scored=[1, 1, 1, 0]),
    ),
    ("split_rollout", "counted", every_row_votes, batch(FOUR)),
    ("one_rollout", "advantage", by_rank, replace(CUT, rank=[0, 1, 0, 0])),
    ("padding", "counted", everybody_counts, batch(FOUR)),
    ("labels", "group", by_text, EIGHT),
    ("labels", "advantage", by_rank, EIGHT),
    (
        *("equal_siblings", "scale", never_one),
        batch([0.5, 0.9, 0.9, 0.9], settings=OTHERS),
    ),
    (
        *("micro_batch", "loss", loss_by_micro_batch),
        batch(FOUR, logp=[[-1.0]] * 4),
    ),
]


@pytest.mark.parametrize("name, stage, mistake, on", MISTAKES)
def test_a_mistake_breaks_the_law_that_the_correct_engine_keeps(
    name, stage, mistake, on
):
    wrong = replace(CORRECT, **{stage: mistake})
    assert isinstance(said(name, CORRECT, on), Held)
    assert isinstance(said(name, wrong, on), Broken)


# Counterexamples, by hand


def test_partial_groups_names_row_10_and_the_reward_of_row_11():
    # Rows 8 to 11 are one group. With 0 in place of 100: rewards 0 1 2 0,
    # mean 0.75, squares 2.75, std 0.957427; (2 - 0.75) / 0.957427 = 1.3056
    found = said("own_prompt", faulty("partial_groups"), case("partial_groups"))
    assert found.row == 10
    assert found.expected == pytest.approx(-0.47973, abs=1e-4)
    assert found.found == pytest.approx(1.3056, abs=1e-3)
    assert found.sentence == (
        "When the reward of row 11 changes from 100 to 0, the advantage of"
        " row 10 changes from −0.480 to +1.306."
    )


def test_a_counterexample_names_the_rows_of_the_whole_batch():
    # The second step is the reported one: its row 10 is row 12 here.
    report = case("partial_groups")
    reward = torch.cat((torch.tensor([1.0, 0.0]), report.reward))
    two = gradebook.Batch(
        [9, 9, *report.prompt.tolist()],
        reward,
        step=[0] * 2 + [1] * 12,
        settings=report.settings,
    )
    found = said("own_prompt", faulty("partial_groups"), two)
    assert found.row == 12
    assert "the reward of row 13" in found.sentence


def test_a_denied_row_gets_minus_the_mean_over_the_deviation():
    # Standardized: -a, a, 0 with weights 1, 3, 1: mean 2a/5 = 0.4 a, mean
    # square 4 a^2 / 5, variance 0.64 a^2, deviation 0.8 a. Row 2: -0.5.
    on = batch([1, 2, 9], mask=[[1], [1], [0]], kept_steps=[1, 3, 1])
    found = said("no_credit", faulty("double_normalization"), on)
    assert (found.row, found.expected) == (2, 0.0)
    assert found.found == pytest.approx(-0.5, abs=1e-3)


def test_the_sum_of_a_prompt_is_named():
    # 1 1 1 0: mean 0.75, sd 0.5; 1 - 1.5 and 0 - 1.5 add up to -3
    on = batch([1, 1, 1, 0], settings=gradebook.Settings(eps=1e-9))
    found = said("zero_sum", replace(CORRECT, standardized=missing_brackets), on)
    assert found.found == pytest.approx(-3, abs=1e-6)
    assert found.sentence == ("The advantages of row 0's prompt add up to −3.000.")


def test_the_gradient_of_a_flat_group_is_named():
    # beta / 10 tokens * (1 - exp(ln 2)) = -0.004
    found = said("flat_gradient", faulty("zero_std_kl"), case("zero_std_kl"))
    assert found.sentence == (
        "The gradient at a token of row 0 is −0.00400, and must be 0.00000."
    )


def divided_by_the_deviation(batch, score, counted, group, baseline):
    other = batch.under(replace(batch.settings, scale="group_std"))
    return CORRECT.scale(other, score, counted, group, baseline)


def test_where_nothing_divides_the_advantages_grow_with_the_rewards():
    # 1 0 0.5 2: mean 0.875; row 3: 1.125, ten times 11.25
    on = batch(FOUR, settings=gradebook.Settings(scale="none"))
    assert isinstance(said("scaling", CORRECT, on), Held)
    wrong = replace(CORRECT, scale=divided_by_the_deviation)
    found = said("scaling", wrong, on)
    # The deviation is 0.853913, so row 3 has 1.3173 before and after.
    assert found.found == pytest.approx(1.3173, abs=1e-3)
    assert found.expected == pytest.approx(13.173, abs=1e-2)


# What a batch cannot test


BATCH_MEAN = gradebook.Settings(baseline="batch_mean")
CLIPPED = gradebook.Settings(reward_clip=0.9)


@pytest.mark.parametrize(
    "name, on, needs",
    [
        ("own_prompt", batch(FOUR), "two prompts"),
        ("own_prompt", EIGHT.under(BATCH_MEAN), "only rows of one prompt"),
        ("shift", EIGHT.under(CLIPPED), "no clip"),
        ("no_credit", batch(FOUR), "without tokens"),
        ("flat_gradient", batch(FOUR), "log-probabilities"),
        ("lengths", batch([]), "a transition"),
    ],
)
def test_a_law_says_what_it_needs(name, on, needs):
    found = said(name, CORRECT, on)
    assert isinstance(found, Silent) and needs in found.sentence


def test_rounding_neither_breaks_a_law_nor_hides_that_it_is_broken():
    huge = batch([1e10, 1e10 + 7, 1e10 - 3, 5e9], [0, 0, 1, 1])
    assert isinstance(said("shift", CORRECT, huge), Held)
    position = replace(CORRECT, group=by_position)
    assert isinstance(said("own_prompt", position, huge), Broken)
    alone = replace(CORRECT, group=each_row_alone)
    assert isinstance(said("shift", alone, huge.under(RAW)), Broken)


def test_where_rounding_decides_a_law_says_nothing():
    # 1e10 has steps of 2e-6, which eps divides by 1e-6
    flat = batch([1e10] * 3, settings=TINY_EPS)
    assert isinstance(said("flat", CORRECT, flat), Silent)


def test_a_difference_that_does_not_print_breaks_no_law():
    # 0 1 2 has deviation 1, so eps 1e-4 moves the fourth decimal alone
    slightly = replace(CORRECT, standardized=missing_brackets)
    on = batch([0, 1, 2])
    assert isinstance(said("zero_sum", slightly, on), Held)


def test_a_law_by_a_wrong_name_is_an_error_with_the_names():
    with pytest.raises(GradebookError, match="own_prompt"):
        law("own_promt")


@pytest.mark.parametrize("name", LAWS)
def test_a_law_has_words_and_says_what_it_needs(name):
    assert law(name).words.endswith(".")
    assert law(name).needs.startswith("It needs")
