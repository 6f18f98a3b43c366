"""What a page says before and after the answer: the mechanism, a correction for each
wrong choice, and an insight that its hint has not given away."""

from collections import Counter
from difflib import SequenceMatcher

import pytest

import gradebook
from gradebook.cases.reports import alarms
from gradebook.cases.scenario import KINDS, load, names, variants

CHALLENGES = [
    pytest.param(task, id=f"{name}-{task.title}")
    for name in names()
    for task in load(name).challenges
]


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_every_page_says_what_the_faulty_engine_does(bug):
    mechanism = load(bug).mechanism
    assert mechanism.endswith(".") and 5 <= len(mechanism.split()) <= 16
    assert all(case.mechanism == mechanism for case in variants(bug))
    assert mechanism not in load(bug).prediction.question


@pytest.mark.parametrize("name", names())
def test_a_wrong_choice_gets_a_correction(name):
    """What is true in the guess, then *But* and the fact that is missing."""
    asked = load(name).prediction
    for number, sentence in enumerate(asked.said):
        if number == asked.answer:
            # The reason is in `why`; the sentence adds something to it.
            assert SequenceMatcher(None, sentence, asked.why).ratio() < 0.7
        else:
            true, _, missing = sentence.partition(". But ")
            assert true and missing, sentence


def test_neither_a_question_nor_its_place_gives_the_answer_away():
    asked = [load(name).prediction for name in names()]
    questions = Counter(one.question for one in asked)
    assert max(questions.values()) == 1
    # A title in the menu of cases is read before the answer.
    assert not [name for name in names() if " hide" in load(name).title.casefold()]
    for kind in KINDS:
        cases = [load(name) for name in names() if load(name).kind == kind]
        places = Counter(case.prediction.answer for case in cases)
        assert min(places[0], places[1], places[2]) * 8 >= len(cases)
        assert max(places.values()) * 3 <= len(cases) * 2


@pytest.mark.parametrize("task", CHALLENGES)
def test_an_insight_is_not_its_hint(task):
    said = (task.insight.casefold(), task.hint.casefold())
    assert SequenceMatcher(None, *said).ratio() < 0.75, said


REPORTS = {load(bug).name: load(bug) for bug in gradebook.BUGS}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_the_game_complains_and_does_not_explain(name):
    """Real bugs are written as the false alarms are: by whoever saw it in a run."""
    report = REPORTS[name]
    assert report.complaint.endswith(".")
    assert report.complaint.count(". ") <= 1
    assert SequenceMatcher(None, report.complaint, report.claim).ratio() < 0.7
    assert report.title.casefold() not in report.complaint.casefold()


def test_the_length_of_a_report_does_not_say_whether_it_is_a_bug():
    real = [len(report.complaint) for report in REPORTS.values()]
    false = [len(alarm.claim) for alarm in alarms()]
    assert abs(sum(real) / len(real) - sum(false) / len(false)) < 40
