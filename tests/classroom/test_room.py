"""A room counts votes once a seat, and what it acknowledged outlives the
server. `tests/cluster` runs the same against PostgreSQL."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from gradebook.classroom import room, store
from gradebook.classroom.codes import ALPHABET, Slowdown, normal
from gradebook.classroom.room import MOST_CHOICES, Rooms
from gradebook.classroom.snapshot import GONE, LOOKED, Position
from gradebook.classroom.store import Store
from gradebook.core.errors import GradebookError

Q = "partial_groups"
ROOT = Path(__file__).parents[2]


class Clock:
    now = 1e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def url(tmp_path):
    shared = os.environ.get("GRADEBOOK_TEST_DATABASE")
    if not shared:
        return f"sqlite:///{tmp_path}/rooms.db"
    engine = create_engine(shared)
    store.schema.drop_all(engine)
    engine.dispose()
    return shared


@pytest.fixture
def another(url, clock):
    """Opens the database once more, as another server does."""
    stores = []

    def opened(clock=clock):
        stores.append(Store(url))
        return Rooms(stores[-1], clock)

    yield opened
    for one in stores:
        one.close()


@pytest.fixture
def rooms(another):
    return another()


@pytest.fixture
def led(rooms):
    """A room with the learners a and b, and its lead's key."""
    code, key = rooms.open("lead")
    for seat in "ab":
        rooms.join(code, seat, Q)
    yield code, key
    if rooms.read(code):
        rooms.close(code, "lead")


def refused(call, *args):
    with pytest.raises(GradebookError) as told:
        call(*args)
    return str(told.value)


def test_a_code_is_short_and_unambiguous(led):
    code, _ = led
    assert len(code) == 6 and set(code) <= set(ALPHABET)
    assert not set("0O1IL5S8B2ZUV") - set("V") & set(ALPHABET)
    assert normal(f" {code[:2].lower()}-{code[2:].lower()} ") == code


def test_the_server_knows_who_leads_and_where_a_seat_is(rooms, led, clock):
    code, key = led
    assert rooms.read(code).led_by("lead") and not rooms.read(code).led_by("a")
    assert rooms.room_of("lead") == rooms.room_of("a") == code
    assert rooms.room_of("c") == ""
    clock.now += 1
    other, _ = rooms.open("another lead")
    rooms.join(other, "a")
    assert rooms.room_of("a") == other
    rooms.leave(other, "a")
    assert rooms.room_of("a") == code
    rooms.close(other, "another lead")
    assert "its lead's key" in refused(rooms.take, code, "another", "a")
    rooms.take(code, key, "a")
    assert rooms.read(code).led_by("a") and rooms.read(code).led_by("lead")


def test_a_new_key_ends_the_one_before(rooms, led):
    code, key = led
    new = rooms.new_key(code, "lead")
    assert "its lead's key" in refused(rooms.take, code, key, "c")
    rooms.take(code, new, "c")
    assert rooms.read(code).led_by("c")


def test_the_database_holds_no_key_and_no_token(rooms, led, tmp_path):
    code, key = led
    rooms.vote(code, "a", Q, 1)
    rooms.join(code, "a-token-of-a-seat")
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert code.encode() in kept or "GRADEBOOK_TEST_DATABASE" in os.environ
    assert key.encode() not in kept and b"a-token-of-a-seat" not in kept


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["q", "r"]),
            st.sampled_from([0, 1, 2, LOOKED, "leave", "join"]),
        ),
        max_size=25,
    )
)
def test_votes_are_counted_as_by_hand(acts):
    """The last choice of each seat counts, unless it looked. Leaving a room
    takes no vote along."""
    rooms = Rooms(Store("sqlite://"))
    code, _ = rooms.open("lead")
    sits, made = set("abc"), {}
    for seat in "abc":
        rooms.join(code, seat)
    for seat, question, act in acts:
        if act == "join":
            rooms.join(code, seat)
            sits.add(seat)
        elif act == "leave":
            rooms.leave(code, seat)
            sits.discard(seat)
        elif seat in sits and made.get((seat, question)) != LOOKED:
            rooms.vote(code, seat, question, act)
            made[seat, question] = act
        else:
            refused(rooms.vote, code, seat, question, act)
    for question in "qr":
        expected = Counter(c for (_, q), c in made.items() if q == question)
        expected.pop(LOOKED, None)
        assert rooms.read(code).counts.get(question, {}) == dict(expected)
        assert rooms.read(code).answers(question) == sum(expected.values())
    for seat in "abc":
        own = {q: choice for (s, q), choice in made.items() if s == seat}
        assert rooms.choices(code, seat) == own


def test_no_vote_changes_after_the_reveal(rooms, led):
    code, _ = led
    rooms.vote(code, "a", Q, 2)
    rooms.reveal(code, "lead", Q)
    assert rooms.read(code).revealed == {Q}
    assert "before the reveal" in refused(rooms.vote, code, "a", Q, 1)
    refused(rooms.vote, code, "a", Q, LOOKED)
    assert rooms.read(code).counts == {Q: {2: 1}}
    rooms.vote(code, "a", "other", 1)
    assert rooms.read(code).counts == {Q: {2: 1}, "other": {1: 1}}


def test_the_lead_sees_how_many_are_at_the_question(rooms, led, clock):
    code, _ = led
    rooms.join(code, "b", "other")
    rooms.join(code, "c", Q)
    assert (rooms.read(code).present, rooms.read(code).here) == ({Q: 2, "other": 1}, 3)
    clock.now += GONE - 1
    assert rooms.heard(code, "a") and rooms.heard(code, "lead")
    assert not rooms.heard(code, "a stranger")
    clock.now += 2
    assert rooms.read(code).present == {Q: 1}
    rooms.vote(code, "b", Q, 0)  # a phone that was silent is no other phone
    assert rooms.read(code).answers(Q) == 1


def test_only_the_lead_reveals_moves_and_closes(rooms, led):
    code, _ = led
    place = Position(Q, "partial_groups-tail", "s=partial_groups-tail", "group")
    for act in (
        lambda who: rooms.reveal(code, who, Q),
        lambda who: rooms.move(code, who, place),
        lambda who: rooms.new_key(code, who),
        lambda who: rooms.close(code, who),
    ):
        assert "lead's key" in refused(act, "a")
    assert rooms.read(code).position is None and not rooms.read(code).revealed
    rooms.move(code, "lead", place)
    assert rooms.read(code).position == place
    rooms.close(code, "lead")
    assert rooms.read(code) is None and rooms.room_of("a") == ""
    assert "a room that is open" in refused(rooms.join, code, "a")


def test_following_and_drafts_are_kept_for_each_seat(rooms, led):
    code, _ = led
    assert rooms.follows(code, "a") and rooms.kept(code, "a", Q) == ""
    rooms.follow(code, "a", False)
    rooms.keep(code, "a", Q, "s=x")
    rooms.keep(code, "a", Q, "s=y")
    rooms.join(code, "a", Q)  # a reload
    assert not rooms.follows(code, "a") and rooms.follows(code, "b")
    assert rooms.kept(code, "a", Q) == "s=y" and rooms.kept(code, "b", Q) == ""


def test_a_seat_keeps_so_many_drafts_and_each_as_it_was_last(rooms, led, monkeypatch):
    monkeypatch.setattr("gradebook.classroom.room.MOST_DRAFTS", 2)
    code, _ = led
    for scenario, link in (("x", "1"), ("y", "2"), ("z", "3"), ("y", "4")):
        rooms.keep(code, "a", scenario, link)
    kept = {scenario: rooms.kept(code, "a", scenario) for scenario in "xyz"}
    assert kept == {"x": "1", "y": "4", "z": ""}


@pytest.mark.parametrize("choice", [-2, MOST_CHOICES])
def test_what_no_question_has_is_no_vote(rooms, led, choice):
    assert "a choice from 0" in refused(rooms.vote, led[0], "a", Q, choice)


def test_rooms_seats_and_texts_are_limited(rooms, led, clock, monkeypatch):
    code, _ = led
    monkeypatch.setattr(room, "MOST_SEATS", 2)
    rooms.vote(code, "b", Q, 1)
    assert "at most 2 learners" in refused(rooms.join, code, "c")
    rooms.join(code, "a")
    clock.now += GONE + 1
    rooms.join(code, "c")  # the others are silent
    rooms.join(code, "b")  # and whoever sat here comes back
    assert rooms.read(code).answers(Q) == 1
    for n in range(room.MOST_QUESTIONS):
        rooms.vote(code, "a", f"q{n}", 0)
    assert "questions" in refused(rooms.vote, code, "a", "one more", 0)
    rooms.vote(code, "a", "q0", 1)
    assert "100 characters" in refused(rooms.join, code, "x" * 101)
    others = [rooms.open("lead")[0] for _ in range(2)]
    assert "3 open rooms of one lead" in refused(rooms.open, "lead")
    for other in others:
        rooms.close(other, "lead")


def test_a_used_room_is_never_closed_for_another(rooms, led, clock, monkeypatch):
    monkeypatch.setattr(room, "MOST_ROOMS", 2)
    silent, _ = rooms.open("d")
    clock.now += room.IDLE - 1
    assert rooms.heard(led[0], "lead")
    assert "at most 2 rooms" in refused(rooms.open, "e")
    clock.now += 2
    rooms.close(rooms.open("e")[0], "e")
    assert rooms.read(led[0]) and not rooms.read(silent)


def test_a_room_is_deleted_a_day_after_its_last_sign_of_life(rooms, led, clock):
    code, _ = led
    clock.now += room.KEPT - 1
    rooms.heard(code, "a")
    clock.now += room.KEPT - 1
    rooms.sweep()
    assert rooms.read(code)
    clock.now += 2
    rooms.sweep()
    assert rooms.read(code) is None


def test_one_read_serves_all_and_own_writes_are_seen_at_once(
    rooms, led, another, clock
):
    code, _ = led
    other = another()
    before = rooms.read(code)
    other.vote(code, "a", Q, 1)
    assert rooms.read(code) is before
    rooms.vote(code, "b", Q, 0)
    assert rooms.read(code).counts == {Q: {0: 1, 1: 1}}
    assert rooms.read(code).version > before.version
    other.vote(code, "a", Q, 0)
    clock.now += room.SHARED
    assert rooms.read(code).counts == {Q: {0: 2}}


VOTER = """
import sys
from gradebook.classroom.room import Rooms
from gradebook.classroom.store import Store
rooms = Rooms(Store(sys.argv[1]))
for n in range(100_000):
    rooms.vote(sys.argv[2], "a", f"q{n % 150}", n // 150 % 20)
    print(n, flush=True)
"""


def test_a_server_that_is_killed_loses_no_acknowledged_vote(rooms, led, url):
    code, _ = led
    run = [sys.executable, "-c", VOTER, url, code]
    with subprocess.Popen(run, stdout=subprocess.PIPE, cwd=ROOT, text=True) as server:
        said = [int(server.stdout.readline()) for _ in range(170)]
        server.kill()
        said += map(int, server.stdout.read().split())
    expected = {f"q{n % 150}": n // 150 % 20 for n in said}
    made = rooms.choices(code, "a")
    # The last one may be written and not yet acknowledged.
    differ = {q for q in {*expected, *made} if expected.get(q) != made.get(q)}
    assert differ <= {f"q{(said[-1] + 1) % 150}"}


def test_thirty_threads_lose_no_vote(another):
    rooms = another(time.time)
    code, _ = rooms.open("lead")

    def sit(seat):
        rooms.join(code, seat)
        for n in range(10):
            rooms.vote(code, seat, Q, n % 3)
            rooms.read(code)
        rooms.vote(code, seat, Q, 1)

    threads = [threading.Thread(target=sit, args=(f"s{n}",)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rooms.read(code).counts == {Q: {1: 30}} and rooms.read(code).here == 30
    rooms.close(code, "lead")


VERSION_1 = """
CREATE TABLE gradebook_schema (version INTEGER);
INSERT INTO gradebook_schema VALUES (1);
CREATE TABLE rooms (code VARCHAR(16) PRIMARY KEY, key VARCHAR(64) NOT NULL,
 opened FLOAT NOT NULL, touched FLOAT NOT NULL, version BIGINT NOT NULL,
 page VARCHAR(100), question VARCHAR(100), link TEXT, stage VARCHAR(100));
CREATE TABLE leads (code VARCHAR(16), seat VARCHAR(64), since FLOAT NOT NULL,
 PRIMARY KEY (code, seat));
CREATE TABLE seats (code VARCHAR(16), seat VARCHAR(64), since FLOAT NOT NULL,
 heard FLOAT NOT NULL, question VARCHAR(100) NOT NULL, follows BOOLEAN NOT NULL,
 PRIMARY KEY (code, seat));
CREATE TABLE votes (code VARCHAR(16), question VARCHAR(100), seat VARCHAR(64),
 choice INTEGER NOT NULL, PRIMARY KEY (code, question, seat));
CREATE TABLE reveals (code VARCHAR(16), question VARCHAR(100),
 PRIMARY KEY (code, question));
CREATE TABLE drafts (code VARCHAR(16), seat VARCHAR(64), scenario VARCHAR(100),
 link TEXT NOT NULL, PRIMARY KEY (code, seat, scenario));
INSERT INTO rooms VALUES ('CCCCCC', 'x', 1e9, 1e9, 7, NULL, NULL, NULL, NULL);
INSERT INTO votes VALUES ('CCCCCC', 'q', 'y', 2);
"""


def test_a_database_of_the_first_version_keeps_its_votes(url, another):
    """It is brought up to date once, and again changes nothing."""
    engine = create_engine(url)
    with engine.begin() as database:
        for statement in filter(str.strip, VERSION_1.split(";")):
            database.execute(text(statement))
    engine.dispose()
    for _ in range(2):
        rooms = another()
        room = rooms.room("CCCCCC")
        assert room.counts == {"q": {2: 1}} and len(room.token) >= 22
        assert (room.locked, room.most, room.names, room.tab) == (
            False,
            None,
            False,
            None,
        )
        rooms.join("CCCCCC", "a")
        code, _ = rooms.open("lead")
        rooms.change(code, "lead", locked=True, ends=5.0)
        assert rooms.room(code).locked
        rooms.close(code, "lead")


def test_the_leads_settings_hold(rooms, led):
    code, _ = led
    rooms.call(code, "a", "Eve")  # nobody asked
    assert rooms.names(code, "lead") == []
    rooms.change(code, "lead", names=True, most=2)
    rooms.call(code, "a", " eve ")
    rooms.call(code, "b", "")
    assert rooms.names(code, "lead") == ["eve"]
    rooms.call(code, "b", "Bob")
    assert rooms.names(code, "lead") == ["Bob", "eve"]
    rooms.call(code, "b", "Zoe")
    assert rooms.names(code, "lead") == ["eve", "Zoe"]
    assert "at most 2 learners" in refused(rooms.join, code, "c")
    rooms.change(code, "lead", names=False, most=None, locked=True)
    rooms.join(code, "a", Q)
    assert "not locked" in refused(rooms.join, code, "c")
    rooms.change(code, "lead", names=True)
    assert rooms.names(code, "lead") == []
    assert "lead's key" in refused(rooms.names, code, "a")
    assert "1 to" in refused(lambda: rooms.change(code, "lead", most=0))


def test_a_reveal_is_taken_back_and_a_class_is_reset(rooms, led):
    code, key = led
    rooms.vote(code, "a", Q, 1)
    rooms.reveal(code, "lead", Q)
    rooms.hide(code, "lead", Q)
    rooms.vote(code, "a", Q, 2)
    rooms.move(code, "lead", Position(Q, Q))
    before = rooms.room(code)
    assert before.counts == {Q: {2: 1}} and not before.revealed
    for act in (rooms.hide, lambda c, s, _: rooms.reset(c, s)):
        assert "lead's key" in refused(act, code, "a", Q)
    rooms.reset(code, "lead")
    after = rooms.room(code)
    assert not (after.counts or after.present or after.position)
    assert after.token == before.token and after.led_by("lead")


def test_a_room_follows_one_tab_of_its_lead(rooms, led):
    code, _ = led
    one, two = Position(Q, Q), Position(Q, "other")
    rooms.move(code, "lead", one, "tab 1")
    rooms.move(code, "lead", two, "tab 2")
    assert rooms.room(code).position == one
    rooms.change(code, "lead", tab="tab 2")
    rooms.move(code, "lead", two, "tab 2")
    assert rooms.room(code).position == two


def test_a_newer_database_is_refused(rooms, url):
    newer = len(store.MIGRATIONS) + 2
    with create_engine(url).begin() as database:
        database.execute(text(f"UPDATE gradebook_schema SET version = {newer}"))
    assert f"found {newer}" in refused(Store, url)


def test_whoever_does_too_much_is_slowed_down(clock):
    wrong = Slowdown(free=2, clock=clock)
    for _ in range(2):
        wrong.note("one")
        assert wrong.wait("one") == 0
    wrong.note("one")
    assert wrong.wait("one") == 2 and wrong.wait("another") == 0
    wrong.note("one")
    assert wrong.wait("one") == 4
    for _ in range(20):
        wrong.note("one")
    assert wrong.wait("one") == 60
    clock.now += 601
    wrong.note("another")
    assert wrong.wait("one") == 0
