"""What the session keeps beside a draft, and what the browser remembers."""

import pytest

import gradebook
from gradebook.analysis.comparison import compared
from gradebook.cases.scenario import load, names
from gradebook.cases.state import start
from gradebook.output import axes
from gradebook.ui import keys
from gradebook.ui.parts import drafts
from gradebook.ui.parts.drafts import LONGEST, SKIPPED, Guess, Progress

SCENARIO = gradebook.load("rejected_rows")


def both(comparison):
    traces = (comparison.correct, comparison.faulty)
    return [value for trace in traces for value in trace.advantage.tolist()]


def test_the_comparison_of_the_case_belongs_to_its_bugs():
    draft = drafts.PageDraft(SCENARIO)
    draft.edit(table=draft.state.table.with_cells({(0, "reward"): "7"}))
    # Rewards 100, 1, 2, the first of them rejected: see the case's file.
    correct, faulty = [0, -0.7071, 0.7071], [0, -0.5861, -0.5686]
    assert both(draft.original) == pytest.approx(correct + faulty, abs=1e-4)
    draft.edit(bugs=())
    assert both(draft.original) == pytest.approx(correct * 2, abs=1e-4)


def test_no_two_keys_of_a_session_share_a_name():
    names = [key.name for key in vars(keys).values() if isinstance(key, keys.Key)]
    assert len(names) > 10 and len(set(names)) == len(names)


# Progress, and the axis of a covered board


@pytest.mark.parametrize(
    "correct, places, due",
    [
        ([0, 0], [], 1),  # nothing to hold
        ([1.2402], [], 2),  # 1.86, the next end is 2
        ([0.577], [-0.4, -1.5], 1.5),  # 0.87, and the choice -1.5
        ([0.012], [], 0.02),  # a gradient: 0.018
        ([100], [], 150),
    ],
)
def test_the_reach_before_the_answer(correct, places, due):
    axis = axes.result_axis(correct, places, [])
    assert axis == {"reach": [pytest.approx(due)] * 2, "unit": [None, None]}


@pytest.mark.parametrize(
    "correct, places, reach, unit",
    [([0.577], [-944], 1000, 1), ([0, float("nan")], [0, -49.5], 50, 1)],
)
def test_a_choice_that_is_far_away_bends_the_axis(correct, places, reach, unit):
    axis = axes.result_axis(correct, places, [0.1, -3])
    assert axis == {"reach": [reach, reach], "unit": [unit, unit]}


@pytest.mark.parametrize("name", [n for n in names() if load(n).prediction.places])
def test_every_choice_is_on_the_axis_of_the_guess(name):
    case = load(name)
    values = compared(start(case)).correct.advantage.nan_to_num().tolist()
    axis = axes.result_axis(values, case.prediction.places, [])
    assert all(abs(place) <= axis["reach"][0] for place in case.prediction.places)


def test_the_axis_widens_only_for_a_value_beyond_it():
    assert axes.round_up([2, 1.5, -2]) == 2
    assert axes.round_up([2, -2.236]) == 2.5


def test_a_room_hides_an_answered_case_until_it_is_answered_in_the_room():
    progress = Progress({"fan_out": Guess(1)}, hidden={"fan_out"})
    assert progress.covered("fan_out") and progress.covered("partial_groups")
    progress.answer("fan_out", 0)
    assert not progress.covered("fan_out")


def test_progress_comes_back_from_its_cookie():
    progress = Progress(
        {"partial_groups": Guess(2, -0.5), "fan_out": Guess(SKIPPED)},
        {"partial_groups": {0, 2}, "fan_out": set()},
        {"partial_groups": set(), "fan_out": {1}},
        unnamed={"checkpoint-3": True, "fan_out-divided": False},
        trained={"fan_out": (2, "5 % lost"), "bf16_rewards": (None, "bf16")},
        mine=("verl", "0.9.1"),
    )
    assert Progress.read(progress.text()) == progress


@pytest.mark.parametrize(
    "text", ["", "x", "a:b:c:d:e", "a:1:nan::", "a:-2:::", "|||", "!a", "?a:x:", "@a"]
)
def test_a_cookie_that_cannot_be_read_is_no_progress(text):
    assert Progress.read(text).guesses == {}


def test_a_cookie_is_never_too_long():
    many = {f"case-{n}-{'x' * 40}": Guess(1, 0.25) for n in range(200)}
    text = Progress(many | {"partial_groups": Guess(0)}).text()
    assert len(text) <= LONGEST and text.startswith("partial_groups:0:")
