"""Two traces of one batch: where they differ, and which rows flip."""

from dataclasses import replace

import pytest

import gradebook
from gradebook import Batch, Settings
from gradebook.analysis.comparison import compare, compared, push, voters
from gradebook.cases.state import start
from gradebook.engine.pipeline import CORRECT, run


def both(name, **settings):
    scenario = gradebook.load(name)
    batch = scenario.batch(settings=replace(scenario.settings, **settings))
    return compare(gradebook.bug(scenario.bug), batch)


def test_the_report_of_partial_groups_flips_row_10_alone():
    report = both("partial_groups")
    assert report.flips.nonzero().flatten().tolist() == [10]
    differs = report.differs("advantage").nonzero().flatten()
    assert differs.tolist() == [8, 9, 10, 11]
    assert report.diverging[:2] == ("group", "baseline")
    assert report.stages[-1] == "trained"


def test_engines_may_differ_in_the_gradient_alone():
    report = both("zero_std_kl")
    assert report.stages[-1] == "weight" and not report.agree
    assert not report.differs("advantage").any()
    assert report.differs("gradient").tolist() == [True, True, False, False]
    # bnpo: the loss is the same number, the gradient is not.
    report = both("zero_std_kl-bnpo")
    assert not report.differs("loss") and not report.agree


def test_an_empty_batch_agrees_with_itself():
    for name in gradebook.BUGS:
        empty = compare(gradebook.bug(name), Batch([], []))
        assert empty.agree and empty.diverging == ()


@pytest.mark.parametrize(
    "name, settings, row, correct, faulty",
    [
        ("partial_groups", {}, 10, [8, 9, 10], [8, 9, 10, 11]),
        ("partial_groups", {}, 11, [11], [8, 9, 10, 11]),
        ("partial_groups", {"baseline": "leave_one_out"}, 10, [8, 9], [8, 9, 11]),
        ("partial_groups", {"baseline": "none"}, 10, [], []),
        ("partial_groups", {"baseline": "batch_mean"}, 0, [*range(12)], [*range(12)]),
        ("partial_groups", {"min_group_size": 4}, 10, [], []),
        ("partial_groups-tail", {}, 10, [8, 9, 10], []),
        ("rejected_rows", {}, 2, [1, 2], [0, 1, 2]),
    ],
)
def test_whose_scores_enter_the_baseline(name, settings, row, correct, faulty):
    report = both(name, **settings)
    assert voters(report.batch, report.correct, row) == correct
    assert voters(report.batch, report.faulty, row) == faulty


def test_a_piece_of_a_rollout_is_not_compared_with_its_own_rollout():
    # Rows 0 and 1 are one rollout, and row 0 votes for it.
    batch = Batch(
        prompt=[0] * 4,
        reward=[1.0, 1.0, 3.0, 5.0],
        rollout=[0, 0, 1, 2],
        settings=Settings(baseline="leave_one_out", scale="none"),
    )
    trace = gradebook.run(gradebook.CORRECT, batch)
    heard = [voters(batch, trace, row) for row in range(4)]
    assert heard == [[2, 3], [2, 3], [0, 3], [0, 2]]
    assert trace.baseline.tolist() == [4.0, 4.0, 3.0, 2.0]


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
    report = both("zero_std_kl", loss=loss)
    assert float(report.correct.weight[2]) == pytest.approx(correct)
    assert float(report.faulty.weight[2]) == pytest.approx(faulty)


def test_in_an_evaluation_the_loss_weighs_the_first_row_of_each_prompt_alone():
    """Two prompts of one row each, with two and three tokens: dapo gives
    each of the five 1 / 5."""
    state = start(gradebook.load("zero_std_kl"))
    report = compared(replace(state, settings=replace(state.settings, evaluation=True)))
    assert float(report.faulty.weight[0]) == pytest.approx(1 / 5)
    assert report.faulty.weight[1].isnan() and not report.faulty.learns[1].any()


def test_a_push_is_the_advantage_if_the_loss_is_a_mean_over_the_steps_tokens():
    # Without division the advantages are 0.5 and -0.5; three tokens of one step.
    settings = Settings(scale="none", loss="dapo")
    batch = Batch(
        prompt=[0, 0],
        reward=[1, 0],
        mask=[[True, False], [True, True]],
        logp=[[-1.0, -1.0], [-1.0, -1.0]],
        settings=settings,
    )
    pushes = push(batch, run(CORRECT, batch))
    assert pushes.flatten().tolist() == pytest.approx([0.5, 0.0, -0.5, -0.5])


def test_two_denominators_are_seen_since_both_engines_count_the_same_tokens():
    # Passes of 4 and of 16 tokens, each half of the loss: 0.866 * 20 / (2 * 4).
    report = both("micro_batch_means")
    faulty = push(report.batch, report.faulty)
    assert float(faulty[0, 0]) == pytest.approx(0.86602 * 2.5, abs=1e-4)
    assert float(faulty[2, 0]) == pytest.approx(-0.86602 * 20 / 32, abs=1e-4)
