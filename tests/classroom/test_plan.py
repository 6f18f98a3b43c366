"""The hour adds up, opens real cases, and says what the engines say."""

import pytest

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.cases.link import decode
from gradebook.cases.scenario import load, variants
from gradebook.classroom import plan as plans
from gradebook.classroom.plan import LESSONS, MINUTES, plan, query
from gradebook.core.batch import Batch

STEPS = plan()
CASES = [step for step in STEPS if step.scenario]


def found(name, **columns):
    """Both engines on a case, some of its columns replaced."""
    scenario = load(name)
    rows = {k: [r[k] for r in scenario.rows] for k in scenario.rows[0]}
    batch = Batch(**{**rows, **columns}, settings=scenario.settings)
    return compare(gradebook.bug(scenario.bug), batch)


def test_the_hour_is_sixty_minutes_without_a_gap():
    begin = 0
    for step in STEPS:
        assert step.begin == begin
        begin += step.minutes
    assert begin == MINUTES == 60


def test_every_bug_has_its_report_and_a_variant():
    for bug in gradebook.BUGS:
        own = [step.scenario for step in CASES if step.bug == bug]
        assert own[0] == bug and len(own) > 1


@pytest.mark.parametrize("step", CASES, ids=lambda s: s.scenario)
def test_a_step_asks_what_its_case_asks(step):
    asked = load(step.scenario).prediction
    assert step.ask == asked.question and step.choices == asked.choices
    assert step.truth.startswith(asked.choices[asked.answer])
    assert asked.why in step.truth


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.scenario)
def test_the_usual_answer_is_a_wrong_choice(lesson):
    asked = load(lesson.scenario).prediction
    assert 0 <= lesson.usual < len(asked.choices)
    assert lesson.usual != asked.answer


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.title)
def test_nothing_is_left_unsaid(step):
    assert step.ask and step.usual and step.why and step.truth and step.do


@pytest.mark.parametrize("step", CASES, ids=lambda s: s.scenario)
def test_next_is_a_case_of_the_same_bug_that_the_hour_does_not_open(step):
    own = {scenario.name for scenario in variants(step.bug)}
    opened = {other.scenario for other in CASES}
    assert step.next in own - opened


@pytest.mark.parametrize("step", CASES, ids=lambda s: s.scenario)
def test_a_link_opens_the_case_covered(step):
    read = decode(query(step.scenario))
    assert read.state.scenario.name == step.scenario
    assert read.covered and read.problems == ()
    assert not decode(query(step.scenario, covered=False)).covered


def test_a_bug_without_a_lesson_stands_past_the_hour(monkeypatch):
    kept = tuple(x for x in LESSONS if load(x.scenario).bug != "zero_std_kl")
    monkeypatch.setattr(plans, "LESSONS", kept)
    last = plan()[-1]
    assert (last.bug, last.begin) == ("zero_std_kl", -1)
    assert last.ask == load("zero_std_kl").prediction.question


def test_a_case_that_is_gone_is_no_step(monkeypatch):
    names = tuple(n for n in plans.names() if n != "partial_groups-tail")
    monkeypatch.setattr(plans, "names", lambda: names)
    steps = {step.scenario: step for step in plan()}
    assert steps["partial_groups"].next == ""


# What the lead is told to do does what it says.


def test_the_opening_shrinks_the_first_advantage():
    before = gradebook.run(gradebook.CORRECT, Batch([0] * 4, [1, 0, 0, 1]))
    after = gradebook.run(gradebook.CORRECT, Batch([0] * 4, [1, 1, 0, 1]))
    assert before.baseline[0] == 0.5 and after.baseline[0] == 0.75
    assert 0 < after.advantage[0] < before.advantage[0]
    flat = gradebook.run(gradebook.CORRECT, Batch([0] * 4, [1, 1, 1, 1]))
    assert not flat.advantage.any()


def test_row_11_moves_three_rows_of_prompt_c():
    rewards = [row["reward"] for row in load("partial_groups").rows]
    before = found("partial_groups")
    after = found("partial_groups", reward=[*rewards[:11], 0.0])
    moved = before.faulty.advantage != after.faulty.advantage
    assert moved.nonzero().flatten().tolist() == [8, 9, 10, 11]
    still = before.correct.advantage == after.correct.advantage
    assert bool(still[:11].all())
    assert after.diverging[0] == "group"


@pytest.mark.parametrize("steps", [[1, 1], [2, 3], [50, 1], [1, 50]])
def test_no_length_turns_a_sign(steps):
    both = found("double_normalization", steps=steps, kept_steps=steps)
    assert not both.flips.any()


def test_rewards_of_0_and_1_leave_no_dust():
    both = found(
        "double_normalization-manufactured", reward=[0.0] * 3 + [1.0] * 3
    )
    assert both.agree and not both.faulty.advantage.any()


def test_the_no_eos_row_moves_row_0_in_the_faulty_engine_only():
    a, b = (found("no_eos_outliers", reward=[1.0, r]) for r in (5.0, 50.0))
    assert a.correct.advantage[0] == b.correct.advantage[0] == 0
    assert a.faulty.advantage[0] != b.faulty.advantage[0]


def test_six_of_eight_estimators_change():
    scenario = load("rejected_rows")
    changed = 0
    for name in scenario.estimators:
        batch = scenario.batch(settings=gradebook.ESTIMATORS[name])
        both = compare(gradebook.bug("rejected_rows"), batch)
        changed += bool(both.differs("advantage").any())
    assert (changed, len(scenario.estimators)) == (6, 8)


@pytest.mark.parametrize(
    "name, tidy",
    [
        ("partial_groups-full", {}),
        ("double_normalization-equal_lengths", {}),
        ("no_eos_outliers", {"eos": [True, True]}),
        ("rejected_rows", {"mask": [[True] * 3] * 3}),
        ("zero_std_kl-beta_zero", {}),
    ],
)
def test_each_tidy_batch_hides_its_bug(name, tidy):
    assert found(name, **tidy).agree
