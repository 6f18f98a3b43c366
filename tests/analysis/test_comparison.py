"""Two traces of one batch: where they differ, and which rows flip."""

import math
from dataclasses import replace

import pytest
import torch

import gradebook
from gradebook import Batch, Settings
from gradebook.analysis.comparison import (
    compare,
    compared,
    mean_kl,
    row_weight,
    same,
    sign,
    token_advantage,
    trained_tokens,
    voters,
)
from gradebook.cases.state import start

NAN, INF = math.nan, math.inf


def scenario(name, **settings):
    found = gradebook.load(name)
    batch = found.batch(settings=replace(found.settings, **settings))
    return compare(gradebook.bug(found.bug), batch)


def test_flags_and_groups_are_the_same_only_when_equal():
    a, b = torch.tensor([1, -1, 0]), torch.tensor([1, 0, 0])
    assert same(a, b).tolist() == [True, False, True]
    assert same(a > 0, b > 0).tolist() == [True, True, True]


def test_dust_and_no_value_have_no_sign():
    values = torch.tensor([2.0, -3e-6, 1e-6, -1e-7, NAN, -INF])
    assert sign(values).tolist() == [1, -1, 0, 0, 0, -1]


def test_the_report_of_partial_groups_flips_row_10_alone():
    found = scenario("partial_groups")
    assert found.flips.nonzero().flatten().tolist() == [10]
    # Rows 8, 9, 10 and 11 differ; nothing before the groups does.
    differs = found.differs("advantage").nonzero().flatten()
    assert differs.tolist() == [8, 9, 10, 11]
    assert found.diverging == (
        "group",
        "baseline",
        "scale",
        "standardized",
        "advantage",
        "trained",
    )


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_the_first_stage_that_differs_is_the_swapped_one(name):
    first = gradebook.bug(name).stage
    if name == "float32_dust":
        # A score in float32 is off by less than what counts as a
        # difference; the deviation of equal rewards is the first to show it.
        first = "scale"
    assert scenario(name).diverging[0] == first


def test_the_loss_is_a_stage_only_where_there_is_one():
    assert scenario("partial_groups").stages[-1] == "trained"
    assert scenario("zero_std_kl").stages[-1] == "loss"
    assert not scenario("partial_groups").differs("loss")


def test_zero_std_kl_differs_in_the_gradient_and_not_in_advantages():
    found = scenario("zero_std_kl")
    assert not found.differs("advantage").any()
    assert found.gradient_differs.tolist() == [True, True, False, False]
    assert not found.agree


def test_a_gradient_alone_is_enough_to_disagree():
    # bnpo: the loss is the same number, the gradient is not.
    found = scenario("zero_std_kl-bnpo")
    assert not found.differs("loss") and not found.agree


@pytest.mark.parametrize(
    "name",
    [
        "partial_groups-full",
        "double_normalization-equal_lengths",
        "no_eos_outliers-off",
        "rejected_rows-no_leak",
        "zero_std_kl-beta_zero",
    ],
)
def test_both_engines_agree_where_the_bug_is_hidden(name):
    assert scenario(name).agree


@pytest.mark.parametrize(
    "settings, row, correct, faulty",
    [
        ({}, 10, [8, 9, 10], [8, 9, 10, 11]),
        ({}, 11, [11], [8, 9, 10, 11]),
        ({"baseline": "leave_one_out"}, 10, [8, 9], [8, 9, 11]),
        ({"baseline": "none"}, 10, [], []),
        ({"baseline": "batch_mean"}, 0, list(range(12)), list(range(12))),
        ({"min_group_size": 4}, 10, [], []),
    ],
)
def test_whose_scores_enter_the_baseline(settings, row, correct, faulty):
    found = scenario("partial_groups", **settings)
    batch = found.batch
    assert voters(batch, found.correct, row) == correct
    assert voters(batch, found.faulty, row) == faulty


def test_a_row_in_no_group_hears_nobody():
    found = scenario("partial_groups-tail")
    assert voters(found.batch, found.faulty, 10) == []


def test_a_row_without_a_say_does_not_vote():
    found = scenario("rejected_rows")
    assert voters(found.batch, found.correct, 2) == [1, 2]
    assert voters(found.batch, found.faulty, 2) == [0, 1, 2]


def test_a_batch_mean_hears_the_rows_of_its_step():
    settings = Settings(baseline="batch_mean")
    batch = Batch([0, 1, 0], [1, 2, 3], step=[0, 1, 1], settings=settings)
    trace = gradebook.run(gradebook.CORRECT, batch)
    assert voters(batch, trace, 2) == [1, 2]


def test_what_a_trainer_logs():
    found = scenario("zero_std_kl")
    # ln 2 apart at every token: 2 - ln 2 - 1.
    for trace, tokens in ((found.correct, 6), (found.faulty, 10)):
        assert mean_kl(found.batch, trace) == pytest.approx(0.306853, abs=1e-6)
        assert trained_tokens(found.batch, trace) == tokens


def test_without_a_reference_or_a_trained_row_the_logged_kl_is_zero():
    found = scenario("partial_groups")
    assert mean_kl(found.batch, found.correct) == 0
    alone = scenario("zero_std_kl-one_generation")
    assert mean_kl(alone.batch, alone.correct) == 0


def test_an_advantage_weighs_the_unmasked_tokens():
    found = scenario("no_eos_outliers")
    assert token_advantage(found.batch, found.faulty).tolist() == [
        [-49.5, 0, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize(
    "loss, correct, faulty",
    [
        ("dapo", 1 / 10, 1 / 10),
        ("bnpo", 1 / 6, 1 / 10),
        ("grpo", 1 / 12, 1 / 12),
        ("dr_grpo", 1 / 12, 1 / 12),
    ],
)
def test_the_weight_of_a_token_of_row_2(loss, correct, faulty):
    found = scenario("zero_std_kl", loss=loss)
    assert row_weight(found.batch, found.correct, 2) == pytest.approx(correct)
    assert row_weight(found.batch, found.faulty, 2) == pytest.approx(faulty)


def test_an_empty_batch_agrees_with_itself():
    batch = Batch([], [])
    for name in gradebook.BUGS:
        found = compare(gradebook.bug(name), batch)
        assert found.agree and found.diverging == ()


def test_in_an_evaluation_the_weight_is_of_the_rows_that_are_there():
    """Two prompts of one row each, with two and three tokens: dapo gives
    each of the five 1 / 5."""
    state = start(gradebook.load("zero_std_kl"))
    found = compared(replace(state, typed={**state.typed, "evaluation": True}))
    assert row_weight(found.batch, found.faulty, 0) == pytest.approx(1 / 5)
    assert row_weight(found.batch, found.faulty, 1) == 0


def test_a_piece_of_a_rollout_is_not_compared_with_its_own_rollout():
    # Rows 0 and 1 are one rollout, and row 0 votes for it.
    batch = gradebook.Batch(
        prompt=[0] * 4,
        reward=[1.0, 1.0, 3.0, 5.0],
        rollout=[0, 0, 1, 2],
        settings=gradebook.Settings(baseline="leave_one_out", scale="none"),
    )
    trace = gradebook.run(gradebook.CORRECT, batch)
    heard = [voters(batch, trace, row) for row in range(4)]
    assert heard == [[2, 3], [2, 3], [0, 3], [0, 2]]
    assert trace.baseline.tolist() == [4.0, 4.0, 3.0, 2.0]
