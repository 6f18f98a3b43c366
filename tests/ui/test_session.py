"""The lead's page: a room, and the hour as a plan."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from html import escape
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit import config

import gradebook
from gradebook.cases.link import decode
from gradebook.cases.reports import game
from gradebook.classroom.after import of_room, read
from gradebook.classroom.plan import plan
from gradebook.ui import keys
from gradebook.ui.pages.session import results
from gradebook.ui.parts import address
from gradebook.ui.rooms import bar, news
from gradebook.ui.rooms import seat as widgets
from gradebook.ui.rooms.after_page import handout

Q = "partial_groups"


@pytest.fixture
def sheet(visit):
    return visit("session")


@pytest.fixture
def led(visit, room):
    return visit("session", {"seat": "the-lead"}, room=room)


def test_sessions_that_come_together_open_the_database_once(monkeypatch):
    opened = []

    def slow(url):
        opened.append(url)
        time.sleep(0.05)

    monkeypatch.setattr("gradebook.classroom.room.Rooms", slow)
    widgets.rooms.clear()
    with ThreadPoolExecutor(8) as sessions:
        rooms = [sessions.submit(widgets.rooms) for _ in range(8)]
    assert len(opened) == len({one.result() for one in rooms}) == 1
    widgets.rooms.clear()


# The room


def test_opening_a_room_shows_its_code_and_its_link(sheet):
    sheet.click("room-open")
    code = sheet.app.session_state["room"]
    assert f'class="gb-code">{code}<' in sheet.text
    assert f"room={code}" in sheet.app.code[0].value
    sheet.click("room-close")
    assert not widgets.rooms().read(code)
    assert sheet.widget("room-open")


def test_joining_by_the_code(sheet, visit, room):
    visit(Q, {"seat": "the-lead"}, room=room)
    sheet.widget("room-code").set_value("nope")
    assert "NOPE" in sheet.click("room-join").text
    sheet.widget("room-code").set_value(f" {room[:2].lower()}-{room[2:].lower()} ")
    # A follower is taken to the lead's page.
    sheet.click("room-join")
    assert sheet.app.title[0].value == gradebook.load(Q).title
    assert f"Room **{room}**" in sheet.text
    assert widgets.rooms().read(room).present.total() == 1
    sheet.click("room-leave")
    assert not widgets.rooms().read(room).present and "oom **" not in sheet.text


def test_the_leads_own_link_leads_on_another_device(led, visit, room):
    led.click("room-key")
    key = led.app.code[-1].value.partition("lead=")[2]
    page = visit("session", {"seat": "another-browser"}, room=room, lead=key)
    assert page.widget("room-close") and "lead" not in page.app.query_params
    page = visit("session", {"seat": "a-stranger"}, room=room, lead="wrong")
    assert "this link of its lead" in page.text and page.widget("room-join")
    assert "room" not in page.app.query_params, "it is no invitation"
    led.click("room-close").click("room-open")
    assert led.widget("room-key"), "the next room has a key of its own"


def test_the_lead_locks_limits_times_and_resets_the_class(led, visit, room):
    assert 'alt="The link as a QR code" src="data:image/svg' in led.text
    led.widget("room-locked").set_value(True)
    led.widget("room-most").set_value(30)
    led.widget("room-ends").set_value(10)
    led.run()
    kept = widgets.rooms().read(room)
    assert (kept.locked, kept.most) == (True, 30)
    (told,) = visit(Q, {"seat": "the-lead"}, room=room).sent("room_news")
    assert 590 < told["clock"]["left"] <= 600
    widgets.rooms().reveal(room, "the-lead", Q)
    assert "Negative" in led.run().text
    led.click("room-reset")
    kept = widgets.rooms().read(room)
    assert not (kept.counts or kept.revealed or kept.present)
    assert kept.seat("the-lead").leads


def test_the_results_as_csv_and_handout(led, room):
    rooms, reports = widgets.rooms(), game("CDFGHJ")[:2]
    rooms.join(room, "a-learner")
    for question, choice in ((Q, 2), *((r.question, 1) for r in reports)):
        rooms.vote(room, "a-learner", question, choice)
        rooms.reveal(room, "the-lead", question)
    lines = results(rooms.read(room))
    assert [*lines] == ["question", "choice", "votes", "answer", "first vote"]
    votes = {choice: (n, a) for _, choice, n, a, _ in lines.values.tolist()[:3]}
    assert votes == {"Positive": (0, ""), "Zero": (0, ""), "Negative": (1, "yes")}
    asked = escape(gradebook.load(Q).prediction.question)
    asked = asked.replace("-", "\u2212")
    table = led.run().text.partition("The class's predictions")[2]
    assert table.count(f'<th rowspan="3" valign="top">{asked}</th>') == 1
    assert re.findall("<th>(.*?)</th>", table)[:5] == [*lines]
    taken = {f"take-gradebook-class.{kind}" for kind in ("csv", "html")}
    assert taken <= {e.key for e in led.app.get("download_button")}
    for report in reports:
        told = lines[lines["question"] == report.complaint]
        judged = {line[1]: line[2:] for line in told.values.tolist()}
        right = "A bug" if report.is_bug else "Not a bug"
        assert judged["Not a bug"][0] == 1 and judged[right][1] == "yes"


# Whoever tries too many codes, or opens too many rooms, has to wait


def test_a_client_that_does_too_much_is_slowed_down(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(widgets.time, "monotonic", lambda: now[0])
    wrong = widgets.Slowdown(free=2)
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
    assert "Too many wrong codes" in sheet.text


@pytest.mark.parametrize("of_all", [False, True])
def test_a_seat_in_the_room_or_its_link_need_not_wait(visit, room, monkeypatch, of_all):
    rooms = widgets.rooms()
    monkeypatch.setattr(widgets.WRONG_CODES[of_all], "wait", lambda client: 17.0)
    monkeypatch.setattr(widgets.WRONG_CODES[0], "knows", lambda client: True)
    rooms.join(room, "sits")
    other = rooms.open("sits")  # leads that one since
    token = rooms.read(room).token
    assert len(token) >= 22
    for seat, invited, comes_in in (
        ("sits", room, True),
        ("is new", room, False),
        ("guesses", f"{room}.{token}x", False),
        ("is invited", f"{room}.{token}", True),
    ):
        page = visit("session", {"seat": seat}, room=invited)
        assert (f"oom **{room}**" in page.text) == comes_in
        assert ("Try again in 17 s" in page.text) != comes_in
    rooms.close(other, "sits")


def test_who_opens_many_rooms_has_to_wait(visit, monkeypatch):
    monkeypatch.setattr(widgets.OPENINGS, "free", -100)
    monkeypatch.setattr(widgets, "client", lambda: "192.0.2.1")
    first = visit("session", {"seat": "one"}).click("room-open")
    assert "gb-code" in first.text
    second = visit("session", {"seat": "another"}).click("room-open")
    assert re.search(r"Many rooms were opened.* again in \d+ s", second.text)
    assert "gb-code" not in second.text
    widgets.rooms().close(first.app.session_state["room"], "one")


# The plan


def steps(page):
    """(begin, end, title) of the plan's steps."""
    heads = [e.value.replace("\\", "").split(" · ", 1) for e in page.app.subheader]
    times = [map(int, time.removesuffix(" min").split("\u2013")) for time, _ in heads]
    return [(*time, title) for time, (_, title) in zip(times, heads)]


def test_the_page_has_the_whole_hour_and_every_handout(sheet):
    text = sheet.text.replace("\u2212", "-")  # the minus sign
    due = [(step.begin, step.begin + step.minutes) for step in plan()]
    assert [time for *time, _ in steps(sheet)] == list(map(list, due))
    # A class may see the page: the answers come when the lead asks for them.
    assert all(step.ask in text and step.why not in text for step in plan())
    text = sheet.put("plan-answers", True).text.replace("\u2212", "-")
    assert all(step.why in text and step.truth in text for step in plan())
    keys = {e.key for e in sheet.app.get("download_button")}
    assert keys == {f"take-gradebook-{bug}.html" for bug in gradebook.BUGS}


def test_a_lead_takes_a_plan_from_the_shelf_or_makes_one(sheet):
    def adds_up(minutes):
        """The bugs between the opening and the closing."""
        held = steps(sheet)
        assert held[0][0] == 0 and held[-1][1] == minutes
        assert all(a[1] == b[0] for a, b in zip(held, held[1:]))
        return {title.split(":")[0] for _, _, title in held[1:-1]}

    assert adds_up(60) >= {"Partial groups", "Zero-std KL"}
    sheet.put("plan", "Trainer: TRL")
    # TRL has four bugs; the plan still takes the hour.
    of_trl = {"Swapped scale", "Unscored rows", "Wrong window", "Zero-std KL"}
    assert adds_up(60) == of_trl
    sheet.put("minutes", 25)
    assert adds_up(25) == of_trl
    sheet.put("minutes", 20)
    # Four to open, five to close, three for each bug.
    assert "expected at least 21 for 4 bugs, found 20" in sheet.text
    sheet.put("plan", "Bugs that I choose")
    assert "Choose the bugs of your plan." in sheet.text
    sheet.put("bugs", ["fan_out"])
    assert adds_up(20) == {"Fan-out"}
    # A lead who opens a case comes back to the plan.
    sheet.go("fan_out").go("session")
    assert adds_up(20) == {"Fan-out"}


def test_a_plan_of_ones_own_has_a_link(visit):
    address = {"plan": "Bugs that I choose", "bugs": "Fan\\-out", "minutes": "20"}
    _, bug, closing = steps(visit("session", **address))
    assert bug[0] == 4 and "Fan-out" in bug[2] and closing[:2] == (15, 20)


def test_each_step_is_a_link_to_its_case_or_its_training_runs(sheet):
    links = [
        dict(pair.split("=") for pair in e.proto.query_string.split("&"))
        for e in sheet.app.get("page_link")
        if e.proto.query_string
    ]
    queries = [q for q in links if "s" in q]
    opened = [q for q in queries if "present" not in q]
    presented = [q for q in queries if q.get("present") == "1"]
    named = {step.scenario for step in plan() if step.scenario}
    after = {step.next for step in plan() if step.next}
    assert {q["s"] for q in presented} == named
    assert {q["s"] for q in opened} == named | after
    for query in queries:
        found = decode(query)
        assert found.covered and not found.problem
    trained = [q["bug"] for q in links if "s" not in q]
    assert trained == [step.bug for step in plan() if step.trains]


def test_the_lead_sees_how_far_the_plan_has_come(led, room):
    count = len(plan())
    assert f"0 of {count} questions revealed" in led.text
    first, second, third = plan()[1:4]
    widgets.rooms().reveal(room, "the-lead", first.question)
    assert f"1 of {count} questions revealed" in led.run().text
    assert steps(led)[1][2].endswith("✓")
    led.go(first.bug)
    assert f"Step 2 of {count}" in led.text
    # The hour's second case is on the same page, the third step on another.
    led.click("plan-next__at__2")
    assert f"Step 3 of {count}" in led.run().text
    assert widgets.rooms().read(room).position.question == second.question
    led.click("plan-next__at__3")
    assert widgets.rooms().read(room).position.question == third.question


def test_wrong_codes_of_others_let_nobody_wait_who_typed_none(monkeypatch, room):
    """210 wrong codes from 42 addresses made everybody wait for a minute."""
    codes = widgets.Slowdown(free=5), widgets.Slowdown(free=200)
    monkeypatch.setattr(widgets, "WRONG_CODES", codes)
    said, at = [], [""]
    monkeypatch.setattr(widgets, "client", lambda: at[0])
    monkeypatch.setattr(widgets, "SEAT", SimpleNamespace(get=lambda: "a newcomer"))
    problem = SimpleNamespace(put=said.append)
    monkeypatch.setattr(widgets.keys, "ROOM_PROBLEM", problem)
    for typed in range(210):
        at[0] = f"192.0.2.{typed % 42}"
        assert not widgets.admitted("AAAAAA")
    at[0] = "198.51.100.1"
    assert widgets.admitted(room)
    at[0] = "192.0.2.1"
    assert not widgets.admitted(room) and "Too many wrong codes" in said[-1]


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("2001:db8:1:2::5", "2001:db8:1:2:aaaa:bbbb:cccc:dddd", True),
        ("2001:db8:1:2::5", "2001:db8:1:3::5", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_an_address_of_ipv6_counts_by_its_network(one, other, same, monkeypatch):
    def client(address):
        context = SimpleNamespace(ip_address=address)
        monkeypatch.setattr(widgets.st, "context", context)
        return widgets.client()

    assert (client(one) == client(other)) == same


# Notes on another device, and what is left after the class


def notes_of(led, visit, room):
    """The lead's own page on a phone, opened by the link that the lead made here."""
    led.click("room-key")
    key = led.app.code[-1].value.partition("lead=")[2]
    return visit("session", {"seat": "a-phone"}, room=room, lead=key)


def test_the_leads_own_link_has_notes_that_follow_the_room(led, visit, room):
    truth = plan()[1].truth
    notes = notes_of(led, visit, room)
    assert "They appear here" in notes.text and "room-notes" not in led.text
    (before,) = notes.sent("room_news")
    opened = visit(Q, {"seat": "the-lead"}, room=room)
    assert truth not in opened.text and truth not in led.run().text
    assert truth.replace("-", "\u2212") in notes.run().text.replace("-", "\u2212")
    (now,) = notes.sent("room_news")
    assert now["draw"] != before["draw"], "the lead's next move draws it again"
    assert widgets.rooms().read(room).position.question == Q, "notes move nobody"


def test_the_notes_take_the_class_and_the_projector_to_the_next_step(led, visit, room):
    notes = notes_of(led, visit, room)
    projector = visit(Q, {"seat": "the-lead"}, room=room)
    (before,) = projector.sent("room_news")
    steps = plan()
    number = [step.question for step in steps].index(Q)
    following = steps[number + 1]
    notes.run()
    notes.click(f"notes-next__at__{number + 1}")
    assert widgets.rooms().read(room).position.question == following.question
    # The projector hears of it, and goes there; the notes stay, a step further.
    state = widgets.rooms().read(room)
    now = news._state(state, Q, "the-lead", at=Q)
    assert now["draw"] != before["draw"]
    projector.run()
    assert widgets.rooms().read(room).position.question == following.question
    cases = projector.app.session_state[keys.CASES.name]
    assert cases[following.bug] == following.scenario != Q
    notes.run()
    assert f"notes-next__at__{number + 2}" in [b.key for b in notes.app.button]
    # A lead's own move is no way back, and a lead who comes anew stays.
    again = visit(Q, {"seat": "the-lead"}, room=room)
    assert widgets.rooms().read(room).position.question == Q
    assert again.run() and widgets.rooms().read(room).position.question == Q


def test_the_notes_reveal_to_the_class_and_the_projector(led, visit, room):
    notes = notes_of(led, visit, room)
    projector = visit(Q, {"seat": "the-lead"}, room=room)
    (before,) = projector.sent("room_news")
    notes.run()
    notes.click("room-reveal")
    state = widgets.rooms().read(room)
    assert state.revealed == [Q]
    # The votes are beside the notes.
    assert "gb-split" in notes.run().sent("room_news")[0]["counts"]
    now = news._state(state, Q, "the-lead", at=Q)
    assert now["draw"] != before["draw"], "the projector is drawn again"
    projector.run()
    assert not projector.board["covered"]
    # Both devices offer the way back.
    projector.click("room-hide")
    assert widgets.rooms().read(room).revealed == []
    notes.run()
    assert "room-reveal" in [b.key for b in notes.app.button]


def test_a_projector_that_is_drawn_again_leaves_the_room_where_the_notes_took_it(
    led, visit, room, monkeypatch
):
    projector = visit(Q, {"seat": "the-lead"}, room=room)
    rooms, then = widgets.rooms(), "double_normalization"
    assert rooms.read(room).position.question == Q
    drawn = bar.bar

    def meanwhile(scenario):
        # The page has looked where the room is. Now the notes take it onward.
        rooms.move(room, "the-lead", then, then)
        return drawn(scenario)

    with monkeypatch.context() as patch:
        patch.setattr(bar, "bar", meanwhile)
        projector.run()
    assert rooms.read(room).position.question == then
    # The page hears that it has to be drawn again, and follows.
    (mounted,) = projector.sent("room_news")
    at = dict(parse_qsl(urlsplit(mounted["asked"]).query))["at"]
    now = news._state(rooms.read(room), Q, "the-lead", at)
    assert now["draw"] != mounted["draw"]
    assert projector.run().board["name"] == then


def test_the_page_after_the_class_is_a_link_that_outlives_the_room(led, visit, room):
    rooms = widgets.rooms()
    for name in "abc":
        rooms.join(room, name, Q)
        rooms.vote(room, name, Q, 0)
    rooms.ask_again(room, "the-lead", Q)
    for name, choice in (("a", 2), ("b", 0), ("c", 0)):
        rooms.vote(room, name, Q, choice)
    rooms.reveal(room, "the-lead", Q)
    # Of three votes none was right at first, and one in the end: less than half.
    (one,) = of_room(rooms.read(room))
    assert (one.before, one.votes, one.is_hard) == ((3, 0, 0), (2, 0, 1), True)
    link = next(c.value for c in led.run().app.code if "after=" in c.value)
    rooms.close(room, "the-lead")
    query = dict(parse_qsl(urlsplit(link).query))
    assert read(query["after"]) == (one,)
    page = visit("session", {"seat": "a-learner"}, after=query["after"])
    assert "Look at these again" in page.text and one.rule in page.text
    assert "<th>first vote</th><th>second vote</th>" in page.text
    assert one.rule in handout([one]) and "Look at these again" in handout([one])


@pytest.mark.parametrize(
    "text", ["", "nobody~1.2.3", f"{Q}~1.2", f"{Q}~a.b.c", f"{Q}~1.2.3~1", "*~*", "<b>"]
)
def test_a_link_of_a_class_that_makes_no_sense_is_an_empty_one(text):
    assert read(text) == ()


@pytest.mark.parametrize(
    "link, listens, reaches, says",
    [
        ("http://class.example/session", "", "http://class.example/session", ""),
        ("http://localhost:1/s?a=b", "", "http://192.0.2.7:1/s?a=b", "192.0.2.7"),
        ("http://127.0.0.1/s", "127.0.0.1", "http://127.0.0.1/s", "0.0.0.0"),
    ],
)
def test_a_link_of_this_machine_is_one_that_others_can_open_or_says_how(
    link, listens, reaches, says, monkeypatch
):
    monkeypatch.setattr(address, "own_address", lambda: "192.0.2.7")
    before = config.get_option("server.address")
    config.set_option("server.address", listens)
    try:
        found, warning = address.for_others(link)
    finally:
        config.set_option("server.address", before)
    assert found == reaches and says in warning and bool(warning) == bool(says)
