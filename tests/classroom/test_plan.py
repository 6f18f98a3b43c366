"""The hour adds up, opens real cases, and says what the engines say."""

import pytest

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.cases.link import decode
from gradebook.cases.scenario import load, names, variants
from gradebook.classroom import plan as plans
from gradebook.classroom.plan import LEAST, MINUTES, plan, query
from gradebook.core.batch import Batch

STEPS = plan()
HOUR = [step for step in STEPS if step.begin >= 0]
CASES = [step for step in STEPS if step.scenario]
OPENED = [step for step in HOUR if step.scenario]
TAUGHT = [name for name in names() if load(name).plan is not None]


def found(name, **columns):
    """Both engines on a case, some of its columns replaced."""
    scenario = load(name)
    rows = {k: [r[k] for r in scenario.rows] for k in scenario.rows[0]}
    batch = Batch(**{**rows, **columns}, settings=scenario.settings)
    return compare(gradebook.bug(scenario.bug), batch)


def lasts(steps):
    """The minutes of the steps, which must follow each other."""
    begin = 0
    for step in steps:
        assert step.begin == begin
        begin += step.minutes
    return begin


def test_the_hour_is_sixty_minutes_without_a_gap():
    assert lasts(HOUR) == MINUTES == 60
    assert all(step.begin == -1 for step in STEPS[len(HOUR) :])


def test_every_bug_is_in_the_hour_or_past_it():
    assert {step.bug for step in CASES} == {*gradebook.BUGS}
    reports = [step.scenario for step in CASES if "-" not in step.scenario]
    assert sorted(reports) == sorted(gradebook.BUGS)


@pytest.mark.parametrize("bugs", [["rejected_rows"], gradebook.BUGS[:3]])
@pytest.mark.parametrize("minutes", [20, 45, 60, 90])
def test_a_plan_of_chosen_bugs_fills_the_time(bugs, minutes):
    steps = plan(bugs, minutes)
    held = [step for step in steps if step.begin >= 0]
    assert lasts(held) == minutes
    assert {step.bug for step in held if step.scenario} == {*bugs}
    assert all(step.minutes >= LEAST for step in held)
    left = [step.bug for step in steps[len(held) :]]
    assert left == [name for name in gradebook.BUGS if name not in bugs]


def test_more_time_opens_more_cases_of_every_bug():
    bugs = ["partial_groups", "zero_std_kl"]
    short, long = plan(bugs, 22), plan(bugs, 60)
    cases = [
        [s.scenario for s in steps if s.scenario and s.bug in bugs]
        for steps in (short, long)
    ]
    assert cases[0] == ["partial_groups", "zero_std_kl"]
    assert cases[1] == [
        "partial_groups",
        "partial_groups-interleaved",
        "zero_std_kl",
        "zero_std_kl-one_generation",
    ]


@pytest.mark.parametrize("name", plans.shelf())
@pytest.mark.parametrize("minutes", [35, 75])
def test_every_plan_on_the_shelf_fills_the_time(name, minutes):
    bugs = plans.shelf()[name].bugs
    held = [s for s in plan(bugs, minutes) if s.begin >= 0]
    assert lasts(held) == minutes
    assert {step.bug for step in held if step.bug} == {*bugs}


def test_the_shelf_has_the_hour_first_then_trainers_and_stages():
    shelf = plans.shelf()
    assert next(iter(shelf)) == plans.HOUR
    assert shelf[plans.HOUR].bugs == tuple(dict.fromkeys(step.bug for step in OPENED))
    assert {*shelf["trainer-TRL"].bugs} == {
        "swapped_scale",
        "unscored_rows",
        "zero_std_kl",
    }
    assert "trainer-GEM" not in shelf  # it has one bug
    records = map(gradebook.bug, shelf["stage-group"].bugs)
    assert {one.stage for one in records} == {"group"}


def test_the_hours_bugs_fit_into_other_minutes():
    steps = [step for step in plan(minutes=40) if step.begin >= 0]
    assert lasts(steps) == 40
    opened = {step.bug for step in steps if step.scenario}
    assert opened == {step.bug for step in OPENED}


def test_more_time_also_opens_training_runs():
    steps = [s for s in plan(["no_eos_outliers"], 60) if s.begin >= 0]
    assert [step.trains for step in steps].count(True) == 1
    assert lasts(steps) == 60


def test_too_little_time_is_said():
    with pytest.raises(gradebook.GradebookError) as caught:
        plan(["partial_groups", "rejected_rows"], 14)
    # Four minutes to open, five to close, three for each bug.
    assert str(caught.value) == (
        "key 'minutes': expected at least 15 for 2 bugs, found 14"
    )


@pytest.mark.parametrize("step", CASES, ids=lambda s: s.scenario)
def test_a_step_asks_what_its_case_asks(step):
    asked = load(step.scenario).prediction
    assert step.ask == asked.question and step.choices == asked.choices
    assert step.truth.startswith(asked.choices[asked.answer])
    assert asked.why in step.truth


@pytest.mark.parametrize("name", TAUGHT)
def test_the_tempting_answer_is_a_wrong_choice(name):
    case = load(name)
    assert case.plan.usual != case.prediction.answer


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.title)
def test_nothing_is_left_unsaid(step):
    assert step.ask and step.usual and step.why and step.truth and step.do


@pytest.mark.parametrize("step", OPENED, ids=lambda s: s.scenario)
def test_next_is_a_case_of_the_same_bug_that_the_hour_does_not_open(step):
    own = {scenario.name for scenario in variants(step.bug)}
    opened = {other.scenario for other in OPENED}
    assert step.next in own - opened


@pytest.mark.parametrize("step", CASES, ids=lambda s: s.scenario)
def test_a_link_opens_the_case_covered(step):
    read = decode(query(step.scenario))
    assert read.state.scenario.name == step.scenario
    assert read.covered and read.problems == ()
    assert not decode(query(step.scenario, covered=False)).covered


def test_two_steps_of_the_hour_train_policies_no_eos_outliers_first():
    """Each asks what the page of training runs asks, after the case of its
    bug, and the tempting answer is a wrong one."""
    trained = [step for step in HOUR if step.trains]
    assert [step.bug for step in trained] == [
        "no_eos_outliers",
        "partial_groups",
    ]
    for step in trained:
        cases = [one for one in OPENED if one.bug == step.bug]
        assert all(one.begin < step.begin for one in cases)
        assert step.ask.endswith("better or worse than the correct run?")
        assert step.choices == ("Better", "Worse", "No difference")
        assert step.truth.startswith("Worse. ")
        assert step.usual == "No difference."


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
    both = found("double_normalization-manufactured", reward=[0.0] * 3 + [1.0] * 3)
    assert both.agree and not both.faulty.advantage.any()


def test_the_no_eos_row_moves_row_0_in_the_faulty_engine_only():
    a, b = (found("no_eos_outliers", reward=[1.0, r]) for r in (5.0, 50.0))
    assert a.correct.advantage[0] == b.correct.advantage[0] == 0
    assert a.faulty.advantage[0] != b.faulty.advantage[0]


def test_six_of_eight_estimators_change():
    scenario = load("rejected_rows")
    changed = 0
    estimators = [
        "grpo",
        "grpo_vectorized",
        "rloo",
        "rloo_vectorized",
        "opo",
        "gpg",
        "grpo_passk",
        "reinforce_plus_plus_baseline",
    ]
    for name in estimators:
        batch = scenario.batch(settings=gradebook.ESTIMATORS[name])
        both = compare(gradebook.bug("rejected_rows"), batch)
        changed += bool(both.differs("advantage").any())
    assert changed == 6


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
