"""A batch under every estimator, by the numbers of the reports."""

import math
from dataclasses import replace

import pytest
import torch

import gradebook
from gradebook.analysis import matrix as module
from gradebook.analysis.matrix import matrix

# verl PR 6452, measured: one rejected row with reward 100, siblings 1, 2.
REPORT = {
    "grpo": ([0, -0.7071, 0.7071], [0, -0.5861, -0.5685]),
    "grpo_vectorized": ([0, -0.7071, 0.7071], [0, -0.5861, -0.5685]),
    "dr_grpo": ([0, -0.5, 0.5], [0, -33.3333, -32.3333]),
    "rloo": ([0, -1, 1], [0, -50, -48.5]),
    "rloo_vectorized": ([0, -1, 1], [0, -50, -48.5]),
    "opo": ([0, -0.5, 0.5], [0, -0.5, 0.5]),
    "gpg": ([0, -0.5, 0.5], [0, -33.3333, -32.3333]),
    "grpo_passk": ([0, 0, 1.4142], [0, 0, 0]),
    "none": ([0, 1, 2], [0, 1, 2]),
}


@pytest.fixture(scope="module")
def report():
    batch = gradebook.load("rejected_rows").batch()
    engine = gradebook.bug("rejected_rows").engine
    return {line.estimator: line for line in matrix(batch, engine)}


def test_every_estimator_has_its_line_in_order(report):
    assert list(report) == list(gradebook.ESTIMATORS)


@pytest.mark.parametrize("name", REPORT)
def test_the_advantages_are_the_reports(report, name):
    correct, faulty = REPORT[name]
    line = report[name]
    assert line.correct.tolist() == pytest.approx(correct, abs=1e-4)
    assert line.faulty.tolist() == pytest.approx(faulty, abs=1e-4)


def test_it_tells_which_leak_and_which_do_not(report):
    dry = {"opo", "reinforce_plus_plus_baseline", "none"}
    assert {n for n, line in report.items() if not line.leaks} == dry
    for name in dry:
        assert report[name].rows == [] and report[name].largest == 0


def test_rows_flips_and_the_largest_difference(report):
    assert report["rloo"].rows == [1, 2]
    assert report["rloo"].flips == [2]
    assert report["rloo"].largest == pytest.approx(49.5)
    # The best row falls to 0, which is no other sign.
    assert report["grpo_passk"].rows == [2]
    assert report["grpo_passk"].flips == []
    assert report["rloo"].gradient_rows == []


def test_one_run_for_each_estimator_and_side(monkeypatch):
    ran = []

    def counting(engine, batch):
        ran.append(engine)
        return gradebook.run(engine, batch)

    monkeypatch.setattr(module, "run", counting)
    engine = gradebook.bug("partial_groups").engine
    matrix(gradebook.load("partial_groups").batch(), engine)
    assert ran == [gradebook.CORRECT, engine] * len(gradebook.ESTIMATORS)


def test_what_an_estimator_does_not_set_stays():
    settings = gradebook.Settings(
        mask_no_eos=True, reward_clip=20.0, beta=0.1, group_size=3
    )
    batch = gradebook.Batch([0, 0], [1.0, 2.0], settings=settings)
    batch = replace(batch, logp=[[0.0]] * 2, ref_logp=[[0.0]] * 2)
    for line in matrix(batch, gradebook.CORRECT):
        now = line.comparison.batch.settings
        named = gradebook.ESTIMATORS[line.estimator]
        for name in settings:
            own = name in module.OF_ESTIMATOR
            assert now[name] == (named if own else settings)[name]


def test_an_estimator_that_cannot_be_computed_says_why():
    batch = gradebook.Batch([0, 0], [1.0, 2.0], mask=[[1], [0]])
    lines = matrix(batch, gradebook.bug("rejected_rows").engine)
    wrong = {line.estimator: line for line in lines if line.wrong}
    assert list(wrong) == ["reinforce_plus_plus_baseline"]
    (line,) = wrong.values()
    assert "token" in str(line.wrong)
    assert line.comparison is None and not line.leaks
    assert line.rows == line.flips == line.gradient_rows == []
    assert line.correct.tolist() == [] and line.largest == 0


def test_a_gradient_can_leak_where_no_advantage_does():
    batch = gradebook.load("zero_std_kl").batch()
    lines = matrix(batch, gradebook.bug("zero_std_kl").engine, ["grpo"])
    (line,) = lines
    assert line.rows == [] and line.gradient_rows == [0, 1] and line.leaks


def test_a_row_without_value_on_one_side_differs_without_bound():
    def lost(batch, standardized, credited):
        return standardized.where(standardized > 0, torch.nan)

    engine = replace(gradebook.CORRECT, advantage=lost)
    batch = gradebook.Batch([0, 0], [1.0, 2.0])
    (line,) = matrix(batch, engine, ["dr_grpo"])
    assert line.rows == [0] and line.largest == math.inf


def test_a_batch_without_rows_has_lines_without_rows():
    batch = gradebook.Batch([], [], mask=torch.zeros(0, 2))
    for line in matrix(batch, gradebook.bug("partial_groups").engine):
        assert not line.leaks and line.rows == []
