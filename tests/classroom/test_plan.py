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


def compared(name, **columns):
    """Both engines on a case, some of its columns replaced."""
    scenario = load(name)
    rows = {k: [r[k] for r in scenario.rows] for k in scenario.rows[0]}
    batch = Batch(**{**rows, **columns}, settings=scenario.settings)
    return compare(gradebook.bug(scenario.bug), batch)


def held(steps):
    """The steps within the session, which must follow each other, and how long
    they last."""
    inside, begin = [step for step in steps if step.begin >= 0], 0
    for step in inside:
        assert step.begin == begin and step.minutes >= LEAST
        begin += step.minutes
    return inside, begin


def test_the_hour_is_sixty_minutes_and_every_bug_is_in_it_or_past_it():
    assert held(STEPS) == (HOUR, 60) and MINUTES == 60
    assert all(step.begin == -1 for step in STEPS[len(HOUR) :])
    reports = [step.scenario for step in CASES if "-" not in step.scenario]
    assert sorted(reports) == sorted(gradebook.BUGS)


@pytest.mark.parametrize(
    "bugs",
    [["rejected_rows"], gradebook.BUGS[:3], *(p.bugs for p in plans.shelf().values())],
)
@pytest.mark.parametrize("minutes", [36, 45, 90])
def test_a_plan_of_chosen_bugs_fills_the_time(bugs, minutes):
    steps = plan(bugs, minutes)
    inside, lasts = held(steps)
    assert lasts == minutes
    assert {step.bug for step in inside if step.bug} == {*bugs}
    left = [step.bug for step in steps[len(inside) :]]
    assert left == [name for name in gradebook.BUGS if name not in bugs]


def test_more_time_opens_more_cases_of_every_bug_and_training_runs():
    bugs = ["partial_groups", "zero_std_kl"]
    short, long = (held(plan(bugs, minutes))[0][1:-1] for minutes in (22, 60))
    assert [step.scenario for step in short] == ["partial_groups", "zero_std_kl"]
    assert [step.scenario for step in long if step.scenario] == [
        "partial_groups",
        "partial_groups-interleaved",
        "zero_std_kl",
        "zero_std_kl-one_generation",
    ]
    steps, _ = held(plan(["no_eos_outliers"], 60))
    assert [step.trains for step in steps].count(True) == 1


def test_the_shelf_has_the_hour_first_then_trainers_and_stages():
    shelf = plans.shelf()
    assert next(iter(shelf)) == plans.HOUR
    assert shelf[plans.HOUR].bugs == tuple(dict.fromkeys(step.bug for step in OPENED))
    trl = {"swapped_scale", "unscored_rows", "zero_std_kl"}
    assert {*shelf["trainer-TRL"].bugs} == trl
    assert "trainer-GEM" not in shelf  # it has one bug
    records = map(gradebook.bug, shelf["stage-group"].bugs)
    assert {record.stage for record in records} == {"group"}


def test_too_little_time_is_said():
    # Four minutes to open, five to close, three for each bug.
    said = "key 'minutes': expected at least 15 for 2 bugs, found 14"
    with pytest.raises(gradebook.GradebookError, match=f"^{said}$"):
        plan(["partial_groups", "rejected_rows"], 14)
    assert held(plan(["partial_groups", "rejected_rows"], 15))[1] == 15


@pytest.mark.parametrize("step", CASES, ids=lambda s: s.scenario)
def test_a_step_asks_what_its_case_asks_and_its_link_opens_it_covered(step):
    asked = load(step.scenario).prediction
    assert step.ask == asked.question and step.choices == asked.choices
    assert step.truth == f"{asked.choices[asked.answer]}. {asked.why}"
    link = decode(query(step.scenario))
    assert link.state.scenario.name == step.scenario
    assert link.covered and not link.problem
    assert not decode(query(step.scenario, covered=False)).covered


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.title)
def test_nothing_is_left_unsaid_and_the_tempting_answer_is_wrong(step):
    assert step.ask and step.usual and step.why and step.truth and step.do
    if step.scenario or step.trains:
        assert not step.truth.startswith(step.usual)


@pytest.mark.parametrize("step", OPENED, ids=lambda s: s.scenario)
def test_next_is_a_case_of_the_same_bug_that_the_hour_does_not_open(step):
    cases = {scenario.name for scenario in variants(step.bug)}
    assert step.next in cases - {other.scenario for other in OPENED}


def test_two_steps_of_the_hour_train_policies_after_the_cases_of_their_bugs():
    trained = [step for step in HOUR if step.trains]
    assert [step.bug for step in trained] == ["no_eos_outliers", "partial_groups"]
    for step in trained:
        assert all(s.begin < step.begin for s in OPENED if s.bug == step.bug)
        assert step.ask.endswith("better or worse than the correct run?")
        assert step.choices == ("Better", "Worse", "No difference")
        assert step.truth.startswith("Worse. ") and step.usual == "No difference."


def test_a_case_that_is_gone_is_no_step(monkeypatch):
    left = tuple(n for n in names() if n != "partial_groups-tail")
    monkeypatch.setattr(plans, "names", lambda: left)
    steps = {step.scenario: step for step in plan()}
    assert steps["partial_groups"].next == ""


# What the lead is told to do does what it says.


def test_the_opening_shrinks_the_first_advantage():
    before, after, flat = (
        gradebook.run(gradebook.CORRECT, Batch([0] * 4, rewards))
        for rewards in ([1, 0, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1])
    )
    assert before.baseline[0] == 0.5 and after.baseline[0] == 0.75
    assert 0 < after.advantage[0] < before.advantage[0]
    assert not flat.advantage.any()


def test_one_reward_moves_the_rows_that_the_notes_name():
    rewards = [row["reward"] for row in load("partial_groups").rows]
    before = compared("partial_groups")
    after = compared("partial_groups", reward=[*rewards[:11], 0.0])
    moved = before.faulty.advantage != after.faulty.advantage
    assert moved.nonzero().flatten().tolist() == [8, 9, 10, 11]
    assert bool((before.correct.advantage == after.correct.advantage)[:11].all())
    a, b = (compared("no_eos_outliers", reward=[1.0, r]) for r in (5.0, 50.0))
    assert a.correct.advantage[0] == b.correct.advantage[0] == 0
    assert a.faulty.advantage[0] != b.faulty.advantage[0]


@pytest.mark.parametrize("steps", [[1, 1], [2, 3], [50, 1], [1, 50]])
def test_no_length_turns_a_sign(steps):
    both = compared("double_normalization", steps=steps, kept_steps=steps)
    assert not both.flips.any()


def test_six_of_eight_estimators_change():
    estimators = ["grpo", "grpo_vectorized", "rloo", "rloo_vectorized", "opo", "gpg"]
    estimators += ["grpo_passk", "reinforce_plus_plus_baseline"]
    changed = 0
    for name in estimators:
        batch = load("rejected_rows").batch(settings=gradebook.ESTIMATORS[name])
        both = compare(gradebook.bug("rejected_rows"), batch)
        changed += bool(both.differs("advantage").any())
    assert changed == 6


@pytest.mark.parametrize(
    "name, tidy",
    [
        ("partial_groups-full", {}),
        ("double_normalization-equal_lengths", {}),
        ("double_normalization-manufactured", {"reward": [0.0] * 3 + [1.0] * 3}),
        ("no_eos_outliers", {"eos": [True, True]}),
        ("rejected_rows", {"mask": [[True] * 3] * 3}),
        ("zero_std_kl-beta_zero", {}),
    ],
)
def test_each_tidy_batch_hides_its_bug(name, tidy):
    assert compared(name, **tidy).agree
