"""The page "Bug or not?", alone and by link. (A room's game: test_rooms.py.)"""

import pytest

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.cases.reports import game

PAGE = "bug_or_not"
SEED = "FIRST"
REPORTS = game(SEED)
ALARM = next(r for r in REPORTS if not r.is_bug)
BUG = next(r for r in REPORTS if r.is_bug)


def right_of(report):
    return 0 if report.is_bug else 1


def judge(page, right=True):
    at = page.app.session_state["quiz"].at
    choice = right_of(REPORTS[at]) if right else 1 - right_of(REPORTS[at])
    page.click(f"quiz-{choice}")
    return page.click("quiz-next")


def test_a_whole_game_ends_with_the_score(visit):
    page = visit(PAGE, seed=SEED)
    assert not any(r.source.is_disputed for r in REPORTS)
    for at in range(len(REPORTS)):
        judge(page, right=at != 3)
    assert "11 of 12 right" in page.text
    for report in REPORTS:
        assert report.source.title in page.text
    assert page.address == {"v": "1", "seed": SEED}
    again = visit(PAGE, **page.address)
    assert REPORTS[0].complaint in again.text and "quiz-0" in again.buttons
    page.click("quiz-again")
    assert page.address["seed"] != SEED and "quiz-0" in page.buttons


@pytest.mark.parametrize("report", [ALARM, BUG], ids=["alarm", "bug"])
def test_nothing_of_the_answer_is_sent_before_it(visit, report):
    page = visit(PAGE, seed=SEED, round=str(report.number + 1))
    source = report.source
    hidden = [source.title, source.name, source.sources[0].label]
    hidden += [source.rule, source.prediction.why] if report.is_bug else []
    hidden += [] if report.is_bug else [source.lesson, source.verdict]
    assert report.complaint in page.text
    sent = str(page.app._tree).replace("\\", "")
    # The navigation names every bug, on every page.
    assert not [text for text in hidden if text in page.text + str(page.board)]
    assert not [text for text in hidden[2:] if text in sent]
    assert page.board["covered"] and len(page.board["causes"]) == 1
    page.click(f"quiz-{right_of(report)}")
    shown = page.text.replace("\u2212", "-")
    assert "that is right" in shown
    assert source.title in shown
    if report.is_bug:  # both engines, and the way to its page
        assert not page.board["covered"] and len(page.board["causes"]) == 2
        links = [e.proto.label for e in page.app.get("page_link")]
        assert [one for one in links if source.title in one]
        stage = compare(gradebook.bug(source.bug), source.batch()).diverging[0]
        assert f"The first stage that differs is `{stage}`" in shown


def test_an_alarm_shows_its_numbers_and_they_follow_the_board(visit):
    (at,) = (r.number for r in game("S11") if r.source.name == "centred_deviation")
    page = visit(PAGE, seed="S11", round=str(at + 1))
    page.click("quiz-0")
    assert "that is wrong" in page.text and "Not a bug" in page.text
    assert "<td>0.500 ×4</td>" in page.text
    # 2 0 0 0: twice the distances, so twice the deviation.
    page.cell(0, reward="2")
    assert "<td>1.000 ×4</td>" in page.text
    assert "<td>0.500 ×4</td>" in page.text  # the other batch stays
    page.cell(0, reward="two")
    assert "<td>1.000 ×4</td>" in page.text


def test_a_disputed_report_is_not_scored(visit):
    reports = game("S10")
    (at,) = (r.number for r in reports if r.source.is_disputed)
    page = visit(PAGE, seed="S10", round=str(at + 1))
    page.click("quiz-1")
    assert "The report is disputed, so no answer is scored." in page.text
    assert f"Disputed: {reports[at].source.title}" in page.text
    assert "0 of 0 right" in page.text
    last = visit(PAGE, seed="S10", round="99")
    assert f"0 of {len(reports) - 1} right" in last.text


@pytest.mark.parametrize(
    "query",
    [
        {"seed": "\u00fc" * 9},
        {"seed": SEED, "round": "99"},
        {"seed": SEED, "round": "x", "t": "nonsense"},
        {"seed": SEED, "nobody": "knows"},
    ],
)
def test_a_link_that_makes_no_sense_still_opens_a_game(visit, query):
    page = visit(PAGE, **query)
    assert page.app.title[0].value == "Bug or not?"
    assert "quiz-0" in page.buttons or "Your score" in page.text
