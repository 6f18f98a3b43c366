"""The hour adds up, opens real cases, and says what the engines say."""

import pytest

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.cases.link import decode
from gradebook.cases.scenario import load, variants
from gradebook.classroom import plan as plans
from gradebook.classroom.plan import LEAST, MINUTES, plan, query
from gradebook.core.batch import Batch

HOUR = plan()
OPENED = [step for step in HOUR if step.scenario]


def lasts(steps):
    """How many minutes the steps last, which must follow each other."""
    begin = 0
    for step in steps:
        assert step.begin == begin and step.minutes >= LEAST
        begin += step.minutes
    return begin


@pytest.mark.parametrize(
    "bugs",
    [
        ["rejected_rows"],
        ["rejected_rows"] * 2,
        gradebook.BUGS[:3],
        *plans.shelf().values(),
    ],
)
@pytest.mark.parametrize("minutes", [45, 60, 90])
def test_a_plan_of_chosen_bugs_fills_the_time(bugs, minutes):
    steps = plan(bugs, minutes)
    assert lasts(steps) == minutes
    assert {step.bug for step in steps[1:-1]} == {*bugs}


def test_more_time_opens_more_cases_of_every_bug_and_training_runs():
    bugs = ["partial_groups", "zero_std_kl"]
    short, long = (plan(bugs, minutes)[1:-1] for minutes in (22, 60))
    assert [step.scenario for step in short] == bugs
    assert [step.scenario for step in long if step.scenario] == [
        "partial_groups",
        "partial_groups-interleaved",
        "zero_std_kl",
        "zero_std_kl-one_generation",
    ]
    assert sum(step.trains for step in plan(["no_eos_outliers"], 60)) == 1


def test_the_shelf_has_the_hour_first_then_trainers_and_stages():
    shelf = plans.shelf()
    assert next(iter(shelf)) == plans.HOUR
    assert shelf[plans.HOUR] == tuple(dict.fromkeys(step.bug for step in OPENED))
    trl = {"swapped_scale", "unscored_rows", "wrong_window", "zero_std_kl"}
    assert {*shelf["Trainer: TRL"]} == trl
    assert "Trainer: GEM" not in shelf  # it has one bug
    records = map(gradebook.bug, shelf["Stage: group"])
    assert {record.stage for record in records} == {"group"}


def test_a_titled_plan_fills_the_minutes_that_it_is_made_for():
    assert {named.title: named.minutes for named in plans.named()} == {
        "The loss": 45,
        "Agents and tools": 30,
    }
    for named in plans.named():
        assert plans.minutes_of(named.title) == named.minutes
        steps = plan(plans.shelf()[named.title], named.minutes)
        assert lasts(steps) == named.minutes
        assert {step.bug for step in steps[1:-1]} == {*named.bugs}
    assert plans.minutes_of(plans.HOUR) == 60


def test_too_little_time_is_said():
    # Four minutes to open, five to close, three for each bug.
    bugs = ["partial_groups", "rejected_rows"]
    said = "key 'minutes': expected at least 15 for 2 bugs, found 14"
    with pytest.raises(gradebook.GradebookError, match=f"^{said}$"):
        plan(bugs, 14)
    assert lasts(plan(bugs, 15)) == 15


def test_the_hour_has_notes_for_every_step_and_trains_after_the_cases():
    assert lasts(HOUR) == MINUTES == 60
    for step in HOUR:
        assert step.ask and step.usual and step.why and step.truth and step.do
        if step.scenario or step.trains:  # the tempting answer is wrong
            assert not step.truth.startswith(step.usual)
    trained = [step for step in HOUR if step.trains]
    assert [step.bug for step in trained] == ["no_eos_outliers", "partial_groups"]
    for step in trained:
        assert all(s.begin < step.begin for s in OPENED if s.bug == step.bug)
        assert step.choices == ("Better", "Worse", "No difference")
        assert step.truth.startswith("Worse. ") and step.usual == "No difference."


@pytest.mark.parametrize("step", OPENED, ids=lambda s: s.scenario)
def test_a_plans_step_asks_its_cases_question_and_its_link_hides_the_answer(step):
    asked = load(step.scenario).prediction
    assert step.ask == asked.question and step.choices == asked.choices
    assert step.truth == f"{asked.choices[asked.answer]}. {asked.why}"
    link = decode(query(step.scenario))
    assert link.state.scenario.name == step.scenario
    assert link.covered and not link.problem
    # If there is time, a case follows that the hour does not open.
    cases = {scenario.name for scenario in variants(step.bug)}
    assert step.next in cases - {other.scenario for other in OPENED}


# What the lead is told to do does what it says


def compared(name, **columns):
    scenario = load(name)
    batch = Batch(**{**scenario.rows.values(), **columns}, settings=scenario.settings)
    return compare(gradebook.bug(scenario.bug), batch)


def test_the_opening_shrinks_the_first_advantage():
    before, after, flat = (
        gradebook.run(gradebook.CORRECT, Batch([0] * 4, rewards))
        for rewards in ([1, 0, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1])
    )
    assert before.baseline[0] == 0.5 and after.baseline[0] == 0.75
    assert 0 < after.advantage[0] < before.advantage[0]
    assert not flat.advantage.any()


def test_one_reward_moves_the_rows_that_the_notes_name():
    rewards = load("partial_groups").rows.values()["reward"]
    before = compared("partial_groups")
    after = compared("partial_groups", reward=[*rewards[:11], 0.0])
    moved = before.faulty.advantage != after.faulty.advantage
    assert moved.nonzero().flatten().tolist() == [8, 9, 10, 11]
    assert bool((before.correct.advantage == after.correct.advantage)[:11].all())
    a, b = (compared("no_eos_outliers", reward=[1.0, r]) for r in (5.0, 50.0))
    assert a.correct.advantage[0] == b.correct.advantage[0] == 0
    assert a.faulty.advantage[0] != b.faulty.advantage[0]


def test_no_length_turns_a_sign():
    for steps in ([1, 1], [2, 3], [50, 1], [1, 50]):
        both = compared("double_normalization", steps=steps, kept_steps=steps)
        assert not both.flips.any()


def test_six_of_eight_estimators_change():
    names = ["grpo", "grpo_vectorized", "rloo", "rloo_vectorized", "opo", "gpg"]
    names += ["grpo_passk", "reinforce_plus_plus_baseline"]
    bug, case = gradebook.bug("rejected_rows"), load("rejected_rows")
    batches = [case.batch(settings=gradebook.ESTIMATORS[name]) for name in names]
    changed = [compare(bug, batch).differs("advantage").any() for batch in batches]
    assert sum(map(bool, changed)) == 6


@pytest.mark.parametrize(
    "name, tidy",
    [
        ("double_normalization-manufactured", {"reward": [0.0] * 3 + [1.0] * 3}),
        ("no_eos_outliers", {"eos": [True, True]}),
        ("rejected_rows", {"mask": [[True] * 3] * 3}),
    ],
)
def test_each_tidy_batch_hides_its_bug(name, tidy):
    assert compared(name, **tidy).agree
