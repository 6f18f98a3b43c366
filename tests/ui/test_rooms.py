"""A room on the pages of its lead and its learners."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest
import streamlit as st
from starlette.requests import Request
from ui.answered import answered

import gradebook
from gradebook.cases.reports import game
from gradebook.classroom.plan import CLOSING, OPENING, plan
from gradebook.training.study import studied
from gradebook.ui.board.component import taken
from gradebook.ui.pages.session import results
from gradebook.ui.parts.drafts import SKIPPED, Guess, Progress
from gradebook.ui.rooms import news, seat
from gradebook.ui.rooms.seat import rooms

Q = "partial_groups"


@pytest.fixture
def at(visit, room):
    """Opens a page in the room, which nobody there has answered yet:
    `at("a-learner", Q)`."""

    def opened(seat, page=Q, follows=True, progress=None, **query):
        if not follows:
            rooms().join(room, seat)
            rooms().change_seat(room, seat, follows=False)
        state = {"seat": seat, "progress": progress or Progress()}
        return visit(page, state, room=room, **query)

    return opened


def counts(room, question=Q):
    return rooms().read(room).counts.get(question, {})


def covered(page):
    return page.board["covered"]


def asking(room, seat, have):
    """A browser's question for news that waits for other ones than it has."""
    return Request(
        {
            "type": "http",
            "path_params": {"room": room},
            "query_string": f"question={Q}&covered=1&have={have}".encode(),
            "headers": [(b"cookie", f"gradebook-seat={seat}".encode())],
        }
    )


def asks(page, room, seat=None):
    """What the page was drawn with of the room's counts, and what the server answers
    now, to this seat or to another."""
    (drawn,) = page.sent("room_news")
    query = drawn.pop("asked").partition("?")[2]
    cookie = f"gradebook-seat={seat or page.app.session_state['seat']}"
    scope = {
        "type": "http",
        "path_params": {"room": room},
        "query_string": query.encode(),
        "headers": [(b"cookie", cookie.encode())],
    }
    now = json.loads(answered(news.answer(Request(scope))).body)
    for told in (drawn, now):
        told.pop("clock")  # the seconds go on
    return drawn, now


# A bug's page


def test_votes_stay_hidden_until_the_reveal_shows_them_to_everyone(at, room):
    lead = at("the-lead").answer(0).answer(SKIPPED)
    assert covered(lead) and counts(room) == {}  # the lead has no vote
    one, two = at("one").answer(2), at("two").answer(0)
    assert covered(two) and "You said **Positive**" in two.text
    assert counts(room) == {0: 1, 2: 1}
    assert "<b>2 answers</b>; 2 of 2 learners at this question" in lead.run().text
    assert covered(lead) and "room-reveal" not in one.buttons
    lead.click("room-reveal")
    for page in (lead, one.run(), two.run()):
        assert not covered(page) and "room-reveal" not in page.buttons
    assert "Negative: <b>1</b>, yours, the answer" in one.text
    assert "Positive: <b>1</b>, yours" in two.text and two.board["box"]["guess"] == 0
    lead.click("room-hide")
    assert covered(lead) and covered(two.run())
    two.answer(2)
    assert counts(room) == {2: 2}


def test_who_skips_has_no_vote_also_after_a_reload(at, room):
    at("a-learner").answer(0).answer(SKIPPED)
    for page in (at("a-learner"), at("a-learner").run()):
        assert not covered(page) and "no vote" in page.text
    assert counts(room) == {}


def test_a_restarted_server_finds_the_room_of_a_browser_that_was_in_one(
    at, visit, monkeypatch
):
    at("a-learner")
    assert f"{seat.BEEN}=1; path=/;" in news.PROGRAM
    for cookies, is_in in (({}, False), ({seat.BEEN: "1"}, True)):
        monkeypatch.setattr(type(st.context), "cookies", cookies)
        page = visit(Q, {"seat": "a-learner"})
        assert ("Nobody sees who said what" in page.text) == is_in


def test_an_answer_from_before_the_room_is_no_vote(visit, room):
    page = visit(Q, {"seat": "a-learner", "progress": Progress()}).answer(2)
    assert not covered(page)
    page.app.query_params["room"] = room
    page.go("rejected_rows").go(Q)
    assert covered(page) and counts(room) == {}


def test_each_case_has_its_own_question(at, room):
    lead, page, tail = at("the-lead"), at("a-learner", follows=False), f"{Q}-tail"
    page.answer(2)
    lead.click("room-reveal")
    assert not covered(page.run())
    page.choose(tail)
    assert covered(page) and counts(room, tail) == {}
    page.answer(3)
    assert counts(room, tail) == {3: 1}
    lead.choose(tail).click("room-reveal")
    assert page.run().board["box"]["guess"] == 3 and "You said" not in lead.text
    page.click("room-leave")
    assert "You said" not in page.text


def test_followers_keep_their_batch_and_may_open_the_leads(at):
    lead = at("the-lead").click("room-reveal")
    page = at("a-learner").cell(0, reward="7")
    history = page.board["history"]
    lead.cell(11, reward="3").select(4).edit({"do": "stage", "stage": "score"})
    page.run()
    assert page.board["path"]["open"] == "score" and page.row == 10
    page.click("room-batch")
    assert page.row == 4
    assert [page.table["reward"][row] for row in (0, 11)] == ["0.5", "3"]
    page.press("undo")
    assert page.row == 10 and page.table["reward"][0] == "7"
    assert page.board["history"][0] == history[0]


def test_learners_who_do_not_follow_see_where_the_lead_is(at):
    lead, page = at("the-lead"), at("a-learner", follows=False)
    lead.app.session_state["cases"] = {Q: f"{Q}-tail"}
    lead.run()
    way = page.run().widget("room-way")
    assert "The lead is at “Partial groups”" in way.label.replace("\\", "")
    page.click("room-way")
    assert "room-way" not in page.buttons
    assert page.board["name"] == f"{Q}-tail"


@pytest.mark.parametrize("follows", [True, False])
def test_a_lead_on_a_page_of_a_newer_server_is_passed_over(at, room, follows):
    at("the-lead")
    rooms().move(room, "the-lead", "page_to_come", "its question", "v=1", "")
    page = at("a-learner", follows=follows)
    assert page.board["name"] == Q and "Nobody sees who said what." in page.text
    assert not {"room-way", "room-batch"} & {*page.buttons}


def test_a_board_edited_after_the_reveal_shows_the_answer_before_its_page_does(at):
    lead, page = at("the-lead"), at("a-learner")
    draft = page.app.session_state["drafts"][Q]
    edit = {"n": 1, "do": "cell", "row": 0, "column": "reward", "value": "7"}
    board = taken(draft, {"epoch": draft.channel.epoch, "edits": [edit]})
    assert board["covered"] and len(board["panels"][0]["engines"]) == 1
    lead.click("room-reveal")
    board = taken(draft, {"epoch": draft.channel.epoch, "edits": []})
    assert not board["covered"] and len(board["panels"][0]["engines"]) == 2


def test_a_room_that_is_closed_full_or_locked_is_said(at, visit, room, monkeypatch):
    page = at("a-learner")
    rooms().change(room, "the-lead", locked=True)
    assert "is locked" in at("a-newcomer").text
    monkeypatch.setattr("gradebook.classroom.store.MOST_SEATS", 0)
    rooms().change(room, "the-lead", locked=False)
    assert "at most 0 learners" in at("a-newcomer").text
    rooms().close(room, "the-lead")
    assert "is closed" in page.run().text
    page.click("room-leave")
    assert "closed" not in page.text and covered(page)
    state = {"progress": Progress(), "seat": "lost"}
    assert "No room with the code B is open" in visit(Q, state, room="<b>**").text


def test_the_presenter_view_is_on_by_the_address_alone(visit):
    assert "present-leave" not in visit(Q).buttons
    page = visit(Q, present="1").click("present-leave")
    assert "present-leave" not in page.buttons and "present" not in page.address


# What the server answers to a page that waits


@pytest.mark.parametrize("follows", [True, False])
def test_a_page_is_drawn_again_when_the_lead_goes_on(at, room, follows):
    at("the-lead")
    page = at("a-learner", follows=follows)
    drawn, now = asks(page, room)
    assert now == drawn and "0 answers so far" in now["counts"]
    rooms().join(room, "another", Q)
    rooms().vote(room, "another", Q, 1)
    now = asks(page, room)[1]
    assert now["draw"] == drawn["draw"] and "1 answer so far" in now["counts"]

    opened, question, link, _ = vars(rooms().read(room).position).values()
    rooms().move(room, "the-lead", opened, question, link, "score")
    drawn, now = asks(page, room)
    assert (now["draw"] != drawn["draw"]) == follows
    for act in (
        lambda: rooms().move(room, "the-lead", opened, f"{Q}-tail", link),
        lambda: rooms().reveal(room, "the-lead", Q),
    ):
        rooms().move(room, "the-lead", opened, question, link)
        drawn, now = asks(page.run(), room)
        assert now["draw"] == drawn["draw"]
        act()
        assert asks(page, room)[1]["draw"] != drawn["draw"]
    rooms().close(room, "the-lead")
    assert asks(page, room)[1]["draw"] == "closed"


def test_before_the_reveal_no_browser_gets_the_votes_or_the_answer(at, room):
    """And no stranger, whether a code is a room."""
    lead, page = at("the-lead"), at("a-learner").answer(2)
    for waits in (asks(page, room)[1], asks(lead, room)[1]):
        assert "Negative" not in waits["counts"] and "reveal" not in waits
    lead.click("room-reveal")
    drawn, now = asks(lead, room)
    assert now == drawn and "Negative: <b>1</b>, the answer" in now["counts"]
    for code in (room, "CCCCCC"):
        closed = {**news.CLOSED}
        del closed["clock"]
        assert asks(lead, code, seat="a-stranger")[1] == closed


def test_a_reveal_updates_the_board_before_the_page_is_redrawn(at, room):
    lead, page = at("the-lead"), at("a-learner").answer(2)
    drawn = asks(page, room)[0]
    lead.click("room-reveal")
    now = asks(page, room)[1]
    assert "Negative: <b>1</b>, yours, the answer" in now["counts"]
    board = now["reveal"]
    faulty = gradebook.run(gradebook.bug(Q).engine, gradebook.load(Q).batch())
    assert board["panels"][0]["engines"][1] == pytest.approx(faulty.advantage.tolist())
    assert board["box"]["guess"] == 2 and board["box"]["verdict"]["right"]
    assert all(len(s["texts"]) == 2 for s in board["path"]["chapters"][0]["stages"])
    assert not board["covered"] and now["draw"] != drawn["draw"]
    # What belongs to the learner's own draft is not overwritten.
    assert not {"epoch", "ack", "row", "history", "refused"} & {*board}


# Other pages that ask a room


TRAINED = next(s for s in plan() if s.trains and s.bug != studied()[0])


@pytest.mark.parametrize("step", [OPENING, TRAINED, CLOSING])
def test_what_a_plan_asks_on_another_page_is_voted_on(at, room, step):
    page, vote, skip = step.page, "step-1", "step-skip"
    if step.trains:
        page, vote, skip = "consequences", "training-1", "training-skip"
    lead = at("the-lead", page, **({"bug": step.bug} if step.trains else {}))
    assert vote not in lead.buttons
    assert rooms().read(room).position.question == step.question
    learner = at("a-learner", page).click(vote)
    assert rooms().read(room).counts == {step.question: {1: 1}}
    assert f"You said **{step.choices[1]}**" in learner.text
    assert vote in learner.buttons and step.truth not in learner.text
    lead.click("room-reveal")
    for page in (lead, learner.run()):
        assert vote not in page.buttons
    lines = results(rooms().read(room)).values.tolist()
    assert {line[0] for line in lines} == {step.ask.replace("-", "\u2212")}
    assert [line[1:3] for line in lines] == [*map(list, zip(step.choices, (0, 1, 0)))]
    right = [line[1] for line in lines if line[3] == "yes"]
    assert right == [] if step is CLOSING else len(right) == 1
    held = [one.question for one in plan()]
    assert f"Step {held.index(step.question) + 1} of {len(held)}" in lead.text
    onward = f"plan-next__at__{held.index(step.question) + 1}"
    assert (onward in lead.buttons) == (step is not CLOSING)
    lead.click("room-hide")
    learner.run().click(skip)
    assert vote not in learner.buttons and counts(room, step.question) == {}


GAME = "bug_or_not"


def test_a_game_is_judged_report_by_report_and_the_result_counts_the_votes(at, room):
    lead, reports = at("the-lead", GAME, seed="FIRST"), game("FIRST")[:4]
    one, two = (at(name, GAME) for name in ("one", "two"))
    for report in reports:
        right, source = 0 if report.is_bug else 1, report.source
        settles = source.rule if report.is_bug else source.lesson
        for page in (lead, one.run()):
            assert report.complaint in page.text
            assert settles not in page.text and covered(page)
        one.click(f"quiz-{right}")
        if report.number < 2:
            two.run().click(f"quiz-{right}").click(f"quiz-{1 - right}")
            assert counts(room, report.question) == {0: 1, 1: 1}
        lead.click("room-reveal")
        for page in (lead, one.run()):
            assert settles in page.text and "quiz-0" not in page.buttons
        assert "yours, the answer" in one.text
        lead.click("quiz-next")
    lead = at("the-lead", GAME, seed="FIRST", round="13")
    assert "4 of 6 votes were right" in lead.text
    assert "4 of 4 right" in one.run().text
    assert "0 of 4 right" in two.run().text


def test_followers_move_to_the_leads_page_and_others_stay(at):
    lead = at("the-lead", GAME, seed="FIRST")
    page, alone = at("a-follower"), at("alone", GAME, follows=False)
    assert page.app.title[0].value == "Bug or not?"
    assert game("FIRST")[0].complaint in page.text
    lead.go(Q)
    assert "You play alone here" in alone.run().text and "quiz-0" in alone.buttons


# A second vote, the class on the axis, the timer


def test_the_class_votes_again_and_both_votes_are_shown_with_the_reveal(at, room):
    lead, one, two = at("the-lead"), at("one").answer(0), at("two").answer(2)
    assert "room-again" in lead.run().buttons
    lead.click("room-again")
    assert "room-again" not in lead.buttons and covered(one.run())
    assert "discuss it, then vote once more" in one.text
    one.answer(2)
    two.run().answer(2)
    lead.run().click("room-reveal")
    # Of two votes one was right at first, then both.
    assert "Negative: <b>2</b>, yours, the answer, before: 1" in one.run().text
    assert "Right: 1 of 2, then 2 of 2." in lead.text


def test_the_classes_guesses_are_on_the_board_after_the_reveal(at, room):
    lead = at("the-lead", progress=Progress({Q: Guess(0, 0.5)}))
    one = at("a-learner")
    for name, place in (("two", -0.4), ("three", 0.9)):
        rooms().join(room, name, Q)
        rooms().vote(room, name, Q, 2, place)
    assert "crowd" not in lead.run().board and "crowd" not in one.run().board
    drawn = asks(one, room)[0]
    lead.click("room-reveal")
    assert asks(one, room)[1]["reveal"]["crowd"] == [-0.4, 0.9]
    assert lead.board["crowd"] == one.run().board["crowd"] == [-0.4, 0.9]
    assert drawn and lead.board["box"]["guess"] is None, "the lead's own is not shown"


def test_learners_see_the_timer_and_its_end_ends_their_vote(at, room):
    lead, page = at("the-lead"), at("a-learner")
    lead.click("room-timer-60")
    (told,) = page.run().sent("room_news")
    assert 50 < told["clock"]["left"] <= 60 and not page.board["box"]["over"]
    before = asks(page, room)[0]
    rooms().change(room, "the-lead", ends=time.time() - 1)
    assert asks(page, room)[1]["draw"] != before["draw"], "the page is drawn again"
    assert page.run().board["box"]["over"]
    assert "time for this question is up" in page.answer(2).text
    assert counts(room) == {}


def test_who_waits_is_woken_only_by_a_change_of_the_room(at, room, monkeypatch):
    """The room is looked at once for all of them."""
    seats = ["learner-1", "learner-2"]
    for name in seats:
        at(name)
    looks, rendered, read, tell = [], [], rooms().read, news._state

    def looked(code):
        looks.append(code)
        if len(looks) == 10:
            rooms().vote(room, seats[0], Q, 2)
        return read(code)

    def told(*given):
        rendered.append(given)
        return tell(*given)

    async def both():
        return await asyncio.gather(
            *(news.answer(asking(room, name, have[name])) for name in seats)
        )

    have = {name: news._state(read(room), Q, name, Q)["have"] for name in seats}
    monkeypatch.setattr("gradebook.classroom.room.WHOLE", 3600)
    monkeypatch.setattr(news, "PACE", 0)
    monkeypatch.setattr(news, "LOOK", 0.001)
    monkeypatch.setattr(rooms(), "read", looked)
    monkeypatch.setattr(news, "_state", told)
    for answer in answered(both()):
        assert json.loads(answer.body)["counts"].startswith(
            '<p class="gb-live">1 answer'
        )
    assert len(rendered) == 4 and not news._next


@pytest.mark.parametrize(
    "counts_are_new, least, most", [(False, news.WAIT / 2, news.WAIT), (True, 0, 2)]
)
def test_who_asks_at_one_time_is_not_answered_at_one_time(
    counts_are_new, least, most, at, room, monkeypatch
):
    at("a-learner")
    waits = []

    async def next_of(room, seconds):
        waits.append(seconds)

    now = rooms().read(room)
    have = news._state(now, Q, "a-learner", Q)["have"]
    if counts_are_new:
        have = have.partition(".")[0] + ".others"
    monkeypatch.setattr(news, "PACE", 1)
    monkeypatch.setattr(news, "_next_of", next_of)
    stopped = SimpleNamespace(monotonic=lambda: 0.0, time=time.time)
    monkeypatch.setattr(news, "time", stopped)
    for _ in range(30):
        answered(news.answer(asking(room, "a-learner", have)))
    assert len({*waits}) == 30
    assert min(waits) >= least and max(waits) <= most


# A database that is away


SENTENCE = "The room's database is away; your own work goes on."


@pytest.fixture
def lost(monkeypatch):
    """Takes the database away, and brings it back."""
    database = rooms().database
    monkeypatch.setattr(database, "_try_again", lambda: None)

    def away(is_away=True):
        if is_away:
            database._lost(OSError("unplugged"))
        else:
            database.is_away = False

    yield away
    away(False)


def test_pages_go_on_as_without_a_room_and_say_why(at, room, lost):
    lead, page = at("the-lead"), at("a-learner").answer(2)
    lost()
    for each in (lead.run(), page.run()):
        assert SENTENCE in each.text and "room-reveal" not in each.buttons
        assert covered(each)  # nobody is shown the answer for it
        edited = each.cell(0, reward="7")
        assert edited.table["reward"][0] == "7"
    page.answer(0)
    assert covered(page) and page.text.count(SENTENCE) == 1
    lost(False)
    assert counts(room) == {2: 1}
    assert SENTENCE not in page.run().text and "You said" in page.text
    assert "room-reveal" in lead.run().buttons


def test_the_news_answer_503_and_then_have_the_page_drawn_again(at, room, lost):
    page = at("a-learner")
    lost()
    page.run()
    (drawn,) = page.sent("room_news")
    assert drawn["draw"] == "away"

    def asked(code=room):
        scope = {"type": "http", "path_params": {"room": code}}
        scope |= {
            "query_string": b"",
            "headers": [(b"cookie", b"gradebook-seat=a-learner")],
        }
        answer = answered(news.answer(Request(scope)))
        return answer.status_code, json.loads(answer.body)

    assert asked() == (503, {"away": SENTENCE})
    assert asked("-")[0] == 503
    lost(False)
    status, now = asked()
    assert status == 200 and now["draw"] not in ("away", "closed")
    assert asked("-") == (200, news.CLOSED)
    assert asked("\0")[1] == news.CLOSED


def test_a_bug_page_asks_no_database_for_a_visitor_without_a_room(visit, monkeypatch):
    monkeypatch.setattr(type(st.context), "cookies", {})
    asked = []
    monkeypatch.setattr(rooms().database, "begin", lambda: asked.append(1))
    page = visit(Q, {"seat": "alone", "progress": Progress()}).answer(2)
    assert not covered(page) and asked == []


@pytest.mark.parametrize(
    "page, vote, query",
    [
        (GAME, "quiz-0", {"seed": "FIRST"}),
        ("consequences", "training-1", {"bug": TRAINED.bug}),
        (OPENING.page, "step-0", {}),
    ],
)
def test_nobody_plays_a_rooms_question_alone_while_its_database_is_away(
    at, room, lost, page, vote, query
):
    """The answer would be seen before the vote."""
    lead = at("the-lead", page, **query)
    learner = at("a-learner", page)
    assert vote in learner.buttons
    lost()
    assert vote not in learner.run().buttons and SENTENCE in learner.text
    assert OPENING.truth not in learner.text
    lost(False)
    assert vote in learner.run().buttons and lead


def test_a_cookie_of_yesterday_is_no_room_and_the_board_is_there(
    visit, lost, monkeypatch
):
    monkeypatch.setattr(type(st.context), "cookies", {seat.BEEN: "1"})
    lost()
    page = visit(Q, {"seat": "alone", "progress": Progress()})
    assert SENTENCE in page.text
    assert not covered(page.answer(2)) and page.table["reward"]


def test_the_door_says_that_the_database_is_away(visit, lost):
    page = visit("session", {"seat": "a-newcomer"})
    lost()
    page.widget("room-code").set_value("CCCCCC")
    assert SENTENCE in page.click("room-join").text
    assert SENTENCE in page.click("room-open").text


def test_an_invitation_waits_for_the_database(visit, room, lost):
    lost()
    page = visit(Q, {"seat": "invited"}, room=room)
    assert SENTENCE in page.text and page.address["room"] == room
    lost(False)
    assert "Nobody sees who said what" in page.run().text
