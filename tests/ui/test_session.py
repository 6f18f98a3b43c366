"""The room: on the lead's page, and at the top of a bug's page."""

import json
import re
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from html import escape

import pytest
from starlette.requests import Request
from streamlit.testing.v1 import AppTest
from ui.answered import answered

import gradebook
from gradebook.cases import edits
from gradebook.cases.reports import game
from gradebook.classroom.plan import CLOSING, OPENING, plan
from gradebook.training.study import studied
from gradebook.ui.board.component import taken
from gradebook.ui.rooms import news, panel
from gradebook.ui.rooms import seat as widgets

Q = "partial_groups"


def bug_page():
    """A bug's page as far as a room goes."""
    from functools import partial

    import streamlit as st

    from gradebook.cases.scenario import load
    from gradebook.ui.parts import address, drafts, predict
    from gradebook.ui.rooms import bar as room

    st.navigation(address.navigation(), position="hidden")
    name = st.session_state.get("case", "partial_groups")
    bug = load(name).bug
    if "stays" not in st.session_state:
        st.session_state.setdefault("cases", {})[bug] = name
    room.before(bug)
    scenario = address.case(bug)
    draft = drafts.of(scenario)
    room.bar(bug, scenario)
    if predict.covered(scenario.name):
        predict.choices(
            {f"choice-{bug}-{n}": c for n, c in enumerate(scenario.prediction.choices)},
            partial(room.pick, scenario),
            skip=f"skip-{bug}",
        )
    else:
        guess = predict.progress().guesses[scenario.name].choice
        st.markdown(f"The guess is {guess}.")
        if "pick" in st.session_state:
            draft.stage = st.session_state["pick"]
        st.markdown(f"stage {draft.stage}")
    st.markdown(f"row {draft.row}")
    room.moved(bug, draft)
    if address.presenting():
        address.present_foot()


def counts(code, question=Q):
    return widgets.rooms().room(code).counts.get(question, {})


class Seat:
    """A browser at a bug's page, in a room."""

    def __init__(self, room="", seat="", follow=True, **query):
        self.app = AppTest.from_function(bug_page, default_timeout=60)
        self.room = room
        if room:
            self.app.query_params["room"] = room
        for name, value in query.items():
            self.app.query_params[name] = value
        if seat:
            self.app.session_state["seat"] = seat
        if room and not follow:
            seat = seat or secrets.token_hex()
            self.app.session_state["seat"] = seat
            widgets.rooms().join(room, seat)
            widgets.rooms().follow(room, seat, False)
        self.cookie = seat
        self.run()

    def run(self):
        self.app.run()
        assert [e.value for e in self.app.exception] == []
        return self

    def click(self, key):
        self.app.button(key=key).click()
        return self.run()

    def at(self, case):
        """The page shows this case."""
        self.app.session_state["case"] = case
        return self.run()

    def has(self, key):
        return key in {button.key for button in self.app.button}

    @property
    def covered(self):
        return self.has("skip-partial_groups")

    @property
    def text(self):
        kinds = ("markdown", "html", "warning")
        found = [e.value for k in kinds for e in self.app.get(k)]
        return "\n".join([*found, *(one["said"] for one in self.news)])

    @property
    def news(self):
        """What the page's programs that ask for news were given."""
        return [
            json.loads(one.proto.json)[0]
            for one in self.app.get("bidi_component")
            if one.proto.component_name == "gradebook_room_news"
        ]

    def asks(self, part):
        """What the page was drawn with of a part of the counts, and what
        the server answers now."""
        (given,) = [one for one in self.news if f"part={part}&" in one["asked"]]
        asked = given.pop("asked")
        request = Request(
            {
                "type": "http",
                "path_params": {"room": self.room},
                "query_string": asked.partition("?")[2].encode(),
                "headers": [(b"cookie", f"gradebook-seat={self.cookie}".encode())],
            }
        )
        return given, json.loads(answered(news.answer(request)).body)


@pytest.fixture
def led(monkeypatch):
    """A room, its lead at the page, and what opens its lead's acts. Each read is
    a read of its own."""
    monkeypatch.setattr("gradebook.classroom.room.SHARED", 0)
    rooms = widgets.rooms()
    code = rooms.open("the-lead")
    yield Seat(code, "the-lead"), code
    if rooms.read(code):
        rooms.close(code, "the-lead")


@pytest.fixture
def sheet(visit):
    return visit("session")


def test_sessions_that_come_together_open_the_database_once(monkeypatch):
    """Each further opening takes connections until the database has none."""
    opened = []

    def slow(url):
        opened.append(url)
        time.sleep(0.05)

    monkeypatch.setattr(widgets, "Store", slow)
    monkeypatch.setattr(widgets, "_rooms", cache(widgets._rooms.__wrapped__))
    with ThreadPoolExecutor(8) as sessions:
        rooms = [sessions.submit(widgets.rooms) for _ in range(8)]
    assert len(opened) == len({one.result() for one in rooms}) == 1


# The lead's page


def test_opening_a_room_shows_its_code_and_carries_it(sheet):
    sheet.click("room-open")
    code = "".join(sheet.app.query_params["room"])
    assert f'class="gb-code">{code}<' in sheet.text
    links = [e.proto.query_string for e in sheet.app.get("page_link")]
    assert all(f"room={code}" in q for q in links if q)
    assert f"room={code}" in sheet.app.code[0].value
    sheet.click("room-close")
    assert not widgets.rooms().read(code)
    assert sheet.widget("room-open")


def test_joining_by_the_code(visit, led):
    _, code = led
    page = visit("session", {"seat": "a-learner"})
    widgets.rooms().join(code, "a-learner")
    widgets.rooms().follow(code, "a-learner", False)
    page.widget("room-code").set_value(f" {code.lower()} ")
    page.click("room-join")
    assert f"Room **{code}**. You are in it." in page.text
    assert widgets.rooms().room(code).here == 1
    assert page.widget("room-way").label.startswith("The lead is at")
    page.click("room-leave")
    assert widgets.rooms().room(code).here == 0 and page.widget("room-code")


def test_a_link_of_the_lead_joins_without_a_wait(visit, led, monkeypatch):
    """The code alone has to wait, and so has a link with another token."""
    _, code = led
    monkeypatch.setattr(widgets.WRONG_CODES[0], "wait", lambda client: 17.0)
    token = widgets.rooms().room(code).token
    assert len(token) >= 22
    invited = f"{code}.{token}"
    for address, comes_in in ((invited, True), (f"{invited}x", False)):
        page = visit("session", {"seat": f"seat-{comes_in}"}, room=address)
        assert (f"oom **{code}**" in page.text) == comes_in


def test_the_leads_own_link_leads_again(visit, led):
    _, code = led
    page = visit("session", {"seat": "the-lead"}, room=code)
    page.click("room-key")
    key = page.app.code[-1].value.partition("lead=")[2]
    page = visit("session", {"seat": "another-browser"}, room=code, lead=key)
    assert page.widget("room-close") and "lead" not in page.app.query_params
    page = visit("session", {"seat": "a-stranger"}, room=code, lead="wrong")
    assert "not the room's lead key" in page.app.warning[0].value
    assert not widgets.rooms().room(code).led_by("a-stranger")


def test_the_lead_locks_limits_times_and_resets_the_class(visit, led):
    lead, code = led
    page = visit("session", {"seat": "the-lead"}, room=code)
    assert 'alt="The link as a QR code" src="data:image/svg' in page.text
    page.widget("room-locked").set_value(True)
    page.widget("room-most").set_value(30)
    page.widget("room-ends").set_value(10)
    page.run()
    room = widgets.rooms().room(code)
    assert (room.locked, room.most) == (True, 30)
    assert "10 min left" in lead.run().text
    assert "not locked" in Seat(code, seat="a-newcomer").text
    page.widget("room-locked").set_value(False)
    page.run()
    Seat(code, seat="a-learner").click("choice-partial_groups-2")
    lead.click("room-reveal")
    assert "Negative" in page.run().text
    page.click("room-reset")
    room = widgets.rooms().room(code)
    assert not (room.counts or room.revealed or room.here) and room.led_by("the-lead")


def test_the_results_as_csv_and_handout(visit, led):
    lead, code = led
    Seat(code, seat="a-learner").click("choice-partial_groups-2")
    lead.click("room-reveal")
    room = widgets.rooms().room(code)
    asked = gradebook.load(Q).prediction
    lines = panel.results(room)
    assert [*lines] == ["question", "choice", "votes", "answer"]
    votes = {choice: tuple(rest) for _, choice, *rest in lines.values.tolist()}
    assert votes == {"Positive": (0, ""), "Zero": (0, ""), "Negative": (1, "yes")}
    assert panel.handout(room).count(escape(asked.question)) == 1
    page = visit("session", {"seat": "the-lead"}, room=code)
    (cells,) = re.findall(r"<td>The trainer.*?</td>", page.text)
    assert "prompt C: 2, beside 0 and 1" in cells
    for report in game("CDFGHJ")[:2]:
        widgets.rooms().vote(code, "a-learner", report.question, 1)
        widgets.rooms().reveal(code, "the-lead", report.question)
    lines = panel.results(widgets.rooms().room(code)).values.tolist()
    for report in game("CDFGHJ")[:2]:
        judged = {line[1]: line[2:] for line in lines if line[0] == report.source.claim}
        right = "A bug" if report.is_bug else "Not a bug"
        assert judged["Not a bug"][0] == 1 and judged[right][1] == "yes"


# The bar


def test_votes_stay_covered_until_a_reveal_opens_the_page_for_everyone(led):
    lead, code = led
    lead.click("choice-partial_groups-0").click("skip-partial_groups")
    assert lead.covered and counts(code) == {}  # the lead has no vote
    one, two = Seat(code), Seat(code)
    one.click("choice-partial_groups-2")
    two.click("choice-partial_groups-0")
    assert two.covered and "You said **Positive**" in two.text
    assert counts(code) == {0: 1, 2: 1}
    assert "<b>2 answers</b>; 2 of 2 are at this question" in lead.run().text
    assert lead.covered and not one.has("room-reveal")
    assert "Positive: <b>" not in lead.run().text + one.run().text
    lead.click("room-reveal")
    for seat in (lead, one.run(), two.run()):
        assert not seat.covered and not seat.has("room-reveal")
    assert "Negative: <b>1</b>, yours, the answer" in one.text
    assert "Positive: <b>1</b>, yours" in two.text and "The guess is 0." in two.text
    lead.click("room-hide")
    assert lead.covered and two.run().covered
    two.click("choice-partial_groups-2")
    assert counts(code) == {2: 2}


def test_who_skips_has_no_vote(led):
    _, code = led
    seat = Seat(code).click("choice-partial_groups-0")
    seat.click("skip-partial_groups")
    assert not seat.covered and "no vote" in seat.text
    assert counts(code) == {}
    assert not seat.run().covered
    again = Seat(code, seat=seat.app.session_state["seat"])  # a reload
    assert not again.covered and "no vote" in again.text


def test_an_answer_from_before_the_room_is_no_vote(led):
    _, code = led
    seat = Seat(follow=False).click("choice-partial_groups-2")
    assert not seat.covered
    widgets.rooms().join(code, seat.app.session_state["seat"])
    widgets.rooms().follow(code, seat.app.session_state["seat"], False)
    seat.app.query_params["room"] = code
    seat.at("rejected_rows")
    assert seat.at(Q).covered and counts(code) == {}


def test_each_case_has_its_own_question(led):
    """The tail has a fourth choice, which the report has not."""
    lead, code = led
    seat, tail = Seat(code, follow=False), "partial_groups-tail"
    seat.click("choice-partial_groups-2")
    lead.click("room-reveal")
    assert not seat.run().covered
    assert seat.at(tail).covered and counts(code, tail) == {}
    seat.click("choice-partial_groups-3")
    assert counts(code, tail) == {3: 1} and not seat.at(Q).covered
    lead.at(tail).click("room-reveal")
    assert "The guess is 3." in seat.at(tail).text and "You said" not in lead.text
    seat.click("room-leave")
    assert "You said" not in seat.at(Q).text


def test_followers_keep_their_batch_and_may_open_the_leads(led):
    lead, code = led
    lead.click("room-reveal")
    seat = Seat(code)
    own = seat.app.session_state["drafts"][Q]
    own.do(edits.set_cell, 0, "reward", "7")
    history = list(own.states)
    lead.app.session_state["drafts"][Q].do(edits.set_cell, 11, "reward", "3")
    lead.app.session_state["drafts"][Q].select(4)
    lead.app.session_state["pick"] = "score"
    lead.run().run()
    seat.run()
    assert "stage score" in seat.text and "row 4" not in seat.text
    seat.click("room-batch")
    assert "row 4" in seat.text
    shown = seat.app.session_state["room-followed"][Q]
    assert shown.state.batch().reward[[0, 11]].tolist() == [0.5, 3]
    shown.do(edits.set_cell, 0, "reward", "5")  # the lead's batch may be edited
    assert own.states == history
    seat.click("room-own")
    assert "row 4" not in seat.text
    assert seat.app.session_state["drafts"][Q].state.batch().reward[0] == 7


@pytest.mark.parametrize("follows", [True, False])
def test_a_page_is_drawn_again_when_the_lead_goes_on(led, follows):
    """Counts change without it, and a lead's stage concerns followers."""
    lead, code = led
    rooms = widgets.rooms()
    learner = Seat(code, seat="a-learner", follow=follows)
    drawn, now = learner.asks("so_far")
    assert now == drawn and "0 answers so far" in now["said"]
    rooms.join(code, "another", Q)
    rooms.vote(code, "another", Q, 1)
    now = learner.asks("so_far")[1]
    assert now["draw"] == drawn["draw"] and "1 answer so far" in now["said"]

    place = rooms.room(code).position
    rooms.move(code, "the-lead", replace(place, stage="score"))
    drawn, now = learner.asks("so_far")
    assert (now["draw"] != drawn["draw"]) == follows
    for act in (
        lambda: rooms.move(code, "the-lead", replace(place, question=f"{Q}-tail")),
        lambda: rooms.reveal(code, "the-lead", Q),
    ):
        rooms.move(code, "the-lead", place)
        drawn, now = learner.run().asks("so_far")
        assert now["draw"] == drawn["draw"]
        act()
        assert learner.asks("so_far")[1]["draw"] != drawn["draw"]
    rooms.close(code, "the-lead")
    assert learner.asks("so_far")[1]["draw"] == "closed"


def test_the_news_tell_no_stranger_which_code_is_a_room(led):
    _, code = led
    stranger = Seat(code, seat="a-learner")
    stranger.run().cookie = "a-stranger"
    for stranger.room in (code, "CCCCCC"):
        assert stranger.asks("so_far")[1] == news.CLOSED


def test_nobody_is_told_of_the_split_or_the_answer_before_the_reveal(led):
    lead, code = led
    learner = Seat(code, seat="a-learner").click("choice-partial_groups-2")
    for waits in (learner.asks("so_far")[1], lead.asks("tally")[1]):
        assert "Negative" not in waits["said"] and "reveal" not in waits
    lead.click("room-reveal")
    drawn, now = lead.asks("tally")
    assert now == drawn and "Negative: <b>1</b>, the answer" in now["said"]
    lead.cookie = "no seat of the room"
    assert lead.asks("tally")[1]["said"] == ""


def test_the_news_of_a_reveal_bring_the_board_before_the_page_is_drawn(led):
    """The faulty numbers are the engine's on the original batch, and the verdict
    is about the learner's own vote."""
    lead, code = led
    learner = Seat(code, seat="a-learner").click("choice-partial_groups-2")
    given = learner.asks("so_far")[0]
    lead.click("room-reveal")
    now = learner.asks("so_far")[1]
    assert "Negative: <b>1</b>, yours, the answer" in now["said"]
    board = now["reveal"]
    scenario = gradebook.load(Q)
    faulty = gradebook.run(gradebook.bug(Q).engine, scenario.batch()).advantage
    assert board["panels"][0]["engines"][1] == pytest.approx(faulty.tolist())
    assert board["box"]["guess"] == 2 and board["box"]["verdict"]["right"]
    assert [stage["faulty"] for stage in board["path"]["stages"]]
    assert not board["covered"] and now["draw"] != given["draw"]
    # What belongs to the learner's own draft is not overwritten.
    assert not {"epoch", "ack", "row", "history", "refused"} & {*board}


def test_a_board_that_is_edited_after_the_reveal_is_open_before_its_page(visit, led):
    """An edit's answer comes before the page's run, which waits for its turn."""
    lead, code = led
    page = visit(Q, {"seat": "a-learner"}, room=code)
    assert page.board["covered"]
    draft = page.app.session_state["drafts"][Q]
    edit = {"n": 1, "do": "cell", "row": 0, "column": "reward", "value": "7"}
    board = taken(draft, {"epoch": draft.epoch, "edits": [edit]})
    assert board["covered"] and len(board["panels"][0]["engines"]) == 1
    lead.click("room-reveal")
    board = taken(draft, {"epoch": draft.epoch, "edits": []})
    assert not board["covered"] and len(board["panels"][0]["engines"]) == 2


def test_a_training_run_is_voted_on_and_learners_are_taken_there(visit, led):
    _, code = led
    rooms = widgets.rooms()
    asked = next(s for s in plan() if s.trains and s.bug != studied()[0])
    lead = visit("consequences", {"seat": "the-lead"}, room=code, bug=asked.bug)
    assert "room-reveal" in lead.buttons
    assert not [key for key in lead.buttons if key.startswith("training-choice")]
    assert rooms.room(code).position.question == asked.question
    learner = visit("consequences", {"seat": "a-learner"}, room=code)
    assert learner.app.session_state["desk"].run.bug == asked.bug
    learner.click("training-choice-less")
    assert rooms.room(code).counts == {asked.question: {1: 1}}
    assert "You said" in learner.text and "training-choice-less" in learner.buttons
    lead.click("room-reveal")
    assert not [k for k in learner.run().buttons if k.startswith("training-choice")]
    assert "The lead has revealed the answer" in learner.text
    said = panel.results(rooms.room(code)).values.tolist()
    assert [line[0] for line in said] == [asked.ask.replace("-", "\u2212")] * 3
    (right,) = [line[1] for line in said if line[3] == "yes"]
    assert asked.truth.startswith(right)
    steps = [step for step in plan() if step.begin >= 0]
    for step, after in zip(steps, steps[1:]):
        if step.trains and after.trains:  # on the same page
            lead.put("training-bug-1", step.bug)
            lead.click("plan-next")
            assert rooms.room(code).position.question == after.question


@pytest.mark.parametrize("step", [OPENING, CLOSING])
def test_how_a_plan_opens_and_closes_is_voted_on(visit, led, step):
    _, code = led
    rooms = widgets.rooms()
    page = step.question
    lead = visit(page, {"seat": "the-lead"}, room=code)
    assert "step-0" not in lead.buttons and step.choices[2] in lead.text
    assert rooms.room(code).position.question == page
    learner = visit(page, {"seat": "a-learner"}, room=code)
    learner.click("step-1")
    assert rooms.room(code).counts == {page: {1: 1}}
    assert f"You said **{step.choices[1]}**" in learner.text
    assert step.truth not in learner.text
    lead.click("room-reveal")
    for seat in (lead, learner.run()):
        assert step.truth in seat.text and "step-0" not in seat.buttons
    lines = panel.results(rooms.room(code)).values.tolist()
    assert [line[1] for line in lines] == [*step.choices]
    assert [line[2] for line in lines] == [0, 1, 0]
    assert [line[3] for line in lines] == ["yes" * (step is OPENING), "", ""]
    held = [one for one in plan() if one.begin >= 0]
    assert f"Step {1 if step is OPENING else len(held)} of {len(held)}" in lead.text
    assert ("plan-next" in lead.buttons) == (step is OPENING)
    lead.click("room-hide")
    learner.run().click("step-skip")
    assert step.truth in learner.text and rooms.room(code).counts == {}


def test_a_follower_goes_to_the_leads_page(led, monkeypatch):
    lead, code = led
    lead.at("rejected_rows")
    gone = []

    def go(page, query_params):
        gone.append((page.name, query_params))

    monkeypatch.setattr(news.st, "switch_page", go)
    Seat(code)
    (file, query), *_ = gone
    assert file == "4_rejected_rows.py"
    assert query == {"room": code}


def test_who_does_not_follow_is_told_where_the_lead_is(led):
    lead, code = led
    seat = Seat(code, follow=False)
    lead.at("partial_groups-tail")
    title = gradebook.load("partial_groups-tail").title
    assert f"The lead is at “{title}”" in seat.run().app.button(key="room-way").label
    seat.app.session_state["stays"] = True  # the page's own choice of a case
    seat.click("room-way")
    assert not seat.has("room-way")
    assert seat.app.session_state["cases"][Q] == "partial_groups-tail"


def test_whoever_does_too_much_is_slowed_down():
    now = [0.0]
    wrong = widgets.Slowdown(free=2, clock=lambda: now[0])
    for pause in (0, 0, 2, 4, 8):
        wrong.note("one")
        assert wrong.wait("one") == pause and wrong.wait("another") == 0
    for _ in range(20):
        wrong.note("one")
    assert wrong.wait("one") == 60
    now[0] += 601
    wrong.note("another")
    assert wrong.wait("one") == 0


def test_too_many_wrong_codes_have_to_wait(sheet, monkeypatch):
    monkeypatch.setattr(widgets.WRONG_CODES[0], "free", -100)
    monkeypatch.setattr(widgets, "client", lambda: "one machine")
    sheet.widget("room-code").set_value("AAAAAA")
    for _ in range(2):
        sheet.click("room-join")
    assert "Too many wrong codes" in sheet.app.warning[0].value


def test_who_opens_many_rooms_has_to_wait(visit, monkeypatch):
    """Other browsers of the machine, too."""
    monkeypatch.setattr(widgets.OPENINGS, "free", -100)
    monkeypatch.setattr(widgets, "client", lambda: "192.0.2.1")
    first = visit("session", {"seat": "one"}).click("room-open")
    assert "gb-code" in first.text
    second = visit("session", {"seat": "another"}).click("room-open")
    said = second.app.warning[0].value
    assert re.search(r"Many rooms were opened.* again in \d+ s", said)
    assert "gb-code" not in second.text
    widgets.rooms().close(first.app.session_state["room"], "one")


@pytest.mark.parametrize("of_all", [False, True])
def test_whoever_sits_in_a_room_need_not_wait(visit, led, monkeypatch, of_all):
    """Not when their machine typed wrong codes, nor when the whole server did."""
    _, code = led
    limit = widgets.WRONG_CODES[of_all]
    monkeypatch.setattr(limit, "wait", lambda client: 17.0)
    widgets.rooms().join(code, "sits")
    other = widgets.rooms().open("sits")  # leads that one since
    assert f"oom **{code}**" in visit("session", {"seat": "sits"}, room=code).text
    widgets.rooms().close(other, "sits")
    page = visit("session", {"seat": "is new"}, room=code)
    assert "Try again in 17 s" in page.app.warning[0].value
    assert widgets.rooms().room(code).here == 1


def test_a_closed_room_is_said_and_can_be_left(led):
    _, code = led
    seat = Seat(code)
    widgets.rooms().close(code, "the-lead")
    assert "is closed" in seat.run().text
    assert seat.app.button(key="room-leave").label == "Go on alone"
    seat.click("room-leave")
    assert "closed" not in seat.text and seat.covered


def test_a_room_that_never_was_or_is_full_is_said(sheet, led, monkeypatch):
    _, code = led
    assert "No room with the code B is open" in Seat("<b>**").app.warning[0].value
    sheet.widget("room-code").set_value("nope")
    assert "NOPE" in sheet.click("room-join").app.warning[0].value
    monkeypatch.setattr("gradebook.classroom.room.MOST_SEATS", 0)
    assert "at most 0 learners" in Seat(code).text


# The presenter view


def test_the_presenter_view_is_on_by_the_address_alone():
    plain, shown = Seat(), Seat(present="1")
    assert plain.covered and "room" not in plain.text.lower()  # nothing of a room
    assert not plain.has("present-leave") and shown.has("present-leave")
    shown.click("present-leave")
    assert not shown.has("present-leave")
    assert "present" not in shown.app.query_params
