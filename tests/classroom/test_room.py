"""A room counts votes once a seat, and what it acknowledged outlives the
server. `tests/cluster` runs the same against PostgreSQL."""

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from gradebook.classroom import room, store
from gradebook.classroom.away import AWAY
from gradebook.classroom.room import ALPHABET, MOST_CHOICES, Rooms
from gradebook.classroom.store import GONE, LOOKED, Position
from gradebook.core.errors import GradebookError

Q = "partial_groups"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def clock(monkeypatch):
    """A clock that shows the time that a test sets."""
    clock = SimpleNamespace(now=1e9)
    monkeypatch.setattr(time, "time", lambda: clock.now)
    return clock


@pytest.fixture
def url(tmp_path):
    shared = os.environ.get("GRADEBOOK_TEST_DATABASE")
    if not shared:
        return f"sqlite:///{tmp_path}/rooms.db"
    engine = create_engine(shared)
    store.Base.metadata.drop_all(engine)
    engine.dispose()
    return shared


@pytest.fixture
def rooms(url, clock):
    rooms = Rooms(url)
    yield rooms
    rooms.database.close()


@pytest.fixture
def led(rooms):
    """The code of a room with the learners a and b."""
    code = rooms.open("lead")
    for seat in "ab":
        rooms.join(code, seat, Q)
    yield code
    if rooms.read(code):
        rooms.close(code, "lead")


def refused(call, *args):
    with pytest.raises(GradebookError) as told:
        call(*args)
    return str(told.value)


def test_a_code_is_short_and_unambiguous(led):
    assert len(led) == 6 and set(led) <= set(ALPHABET)
    assert not set("0O1IL5S8B2ZU") & set(ALPHABET)


def test_the_server_knows_where_a_seat_is_and_whether_it_follows(rooms, led, clock):
    assert rooms.room_of("lead") == rooms.room_of("a") == led
    assert rooms.room_of("c") == ""
    clock.now += 1
    other = rooms.open("another lead")
    rooms.join(other, "a")
    assert rooms.room_of("a") == other
    rooms.change_seat(other, "a", heard=0)
    assert rooms.room_of("a") == led
    rooms.close(other, "another lead")
    rooms.change_seat(led, "a", follows=False)
    rooms.join(led, "a", Q)  # a reload
    assert not rooms.read(led).seat("a").follows and rooms.read(led).seat("b").follows


def test_who_has_the_newest_key_leads_too(rooms, led):
    assert "the lead's own link" in refused(rooms.take, led, "before there is one", "a")
    old, new = (rooms.new_key(led, "lead") for _ in range(2))
    for wrong in ("another", old):
        assert "the lead's own link" in refused(rooms.take, led, wrong, "a")
    assert not rooms.read(led).seat("a").leads
    rooms.join(led, "a")
    rooms.vote(led, "a", "q", 0)
    rooms.take(led, new, "a")
    assert rooms.read(led).seat("a").leads and rooms.read(led).seat("lead").leads
    assert not rooms.read(led).counts, "a lead has no vote"


def test_the_database_holds_no_key_and_no_token_of_a_browser(rooms, led, tmp_path):
    key = rooms.new_key(led, "lead")
    rooms.join(led, "a-token-of-a-seat")
    rooms.vote(led, "a-token-of-a-seat", Q, 1)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert led.encode() in kept or "GRADEBOOK_TEST_DATABASE" in os.environ
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
    rooms = Rooms("sqlite://")
    code = rooms.open("lead")
    sits, made = set("abc"), {}
    for seat in "abc":
        rooms.join(code, seat)
    for seat, question, act in acts:
        if act == "join":
            rooms.join(code, seat)
            sits.add(seat)
        elif act == "leave":
            rooms.change_seat(code, seat, heard=0)
            sits.discard(seat)
        elif seat in sits and made.get((seat, question)) != LOOKED:
            rooms.vote(code, seat, question, act)
            made[seat, question] = act
        else:
            refused(rooms.vote, code, seat, question, act)
    kept = rooms.read(code)
    for question in "qr":
        votes = Counter(c for (_, q), c in made.items() if q == question)
        votes.pop(LOOKED, None)
        assert kept.counts.get(question, {}) == dict(votes)
        assert kept.counts[question].total() == votes.total()
    assert not kept.counts["another"] and "another" not in kept.counts
    for seat in "abc":
        votes = {q: choice for (s, q), choice in made.items() if s == seat}
        assert kept.seat(seat).votes == votes
    rooms.database.close()


def test_no_vote_changes_after_the_reveal_until_it_is_taken_back(rooms, led):
    rooms.vote(led, "a", Q, 2)
    rooms.reveal(led, "lead", Q)
    assert rooms.read(led).revealed == [Q]
    for choice in (1, LOOKED):
        assert "revealed the answer" in refused(rooms.vote, led, "a", Q, choice)
    rooms.vote(led, "a", "other", 1)
    assert rooms.read(led).counts == {Q: {2: 1}, "other": {1: 1}}
    for question in ("other", Q):  # of which the lead revealed one already
        rooms.reveal(led, "lead", question)
    assert rooms.read(led).revealed == [Q, "other"]
    rooms.reveal(led, "lead", Q, False)
    rooms.vote(led, "a", Q, 1)
    assert rooms.read(led).counts[Q] == {1: 1}
    assert rooms.read(led).revealed == ["other"]
    for choice in (-2, MOST_CHOICES):  # no question has it
        assert "a choice from 0" in refused(rooms.vote, led, "a", Q, choice)


def test_the_lead_sees_how_many_are_at_the_question(rooms, led, clock):
    rooms.join(led, "b", "other")
    rooms.join(led, "c", Q)
    assert rooms.read(led).present == {Q: 2, "other": 1}
    clock.now += GONE - 1
    assert rooms.heard(led, "a") and rooms.heard(led, "lead")
    assert not rooms.heard(led, "a stranger")
    clock.now += 2
    assert rooms.read(led).present == {Q: 1}
    rooms.vote(led, "b", Q, 0)  # a phone that was silent is no other phone
    assert rooms.read(led).counts[Q].total() == 1


def test_only_the_lead_reveals_moves_changes_resets_and_closes(rooms, led):
    place = (Q, "partial_groups-tail", "s=partial_groups-tail", "group")
    acts = [
        (rooms.reveal, Q),
        (rooms.reveal, Q, False),
        (rooms.move, *place),
        (rooms.change,),
        (rooms.reset,),
        (rooms.close,),
    ]
    for act, *values in acts:
        assert "Only the lead" in refused(act, led, "a", *values)
    rooms.vote(led, "a", Q, 1)
    rooms.reveal(led, "lead", Q)
    rooms.move(led, "lead", *place)
    before = rooms.read(led)
    assert before.counts and before.present and before.position == Position(*place)
    rooms.reset(led, "lead")
    after = rooms.read(led)
    assert not (after.counts or after.present or after.position or after.revealed)
    assert after.token == before.token and after.seat("lead").leads
    rooms.close(led, "lead")
    assert rooms.read(led) is None and rooms.room_of("a") == ""
    assert "is closed" in refused(rooms.join, led, "a")


def test_seats_are_limited(rooms, led, clock):
    rooms.change(led, "lead", most=2)
    rooms.vote(led, "b", Q, 1)
    assert "at most 2 learners" in refused(rooms.join, led, "c")
    rooms.join(led, "a")
    clock.now += GONE + 1
    rooms.join(led, "c")  # the others are silent
    rooms.join(led, "b")  # and whoever sat here comes back
    assert rooms.read(led).counts[Q].total() == 1
    rooms.change(led, "lead", most=None, locked=True)
    rooms.join(led, "a")
    assert "is locked" in refused(rooms.join, led, "d")


def test_rooms_are_limited_and_a_room_in_use_is_not_closed_for_a_new_one(
    rooms, led, clock, monkeypatch
):
    monkeypatch.setattr(room, "MOST_ROOMS", 2)
    silent = rooms.open("d")
    clock.now += room.IDLE - 1
    assert rooms.heard(led, "lead")
    assert "At most 2 rooms" in refused(rooms.open, "e")
    clock.now += 2
    rooms.close(rooms.open("e"), "e")
    assert rooms.read(led) and not rooms.read(silent)


def test_a_room_is_deleted_a_day_after_its_last_sign_of_life(rooms, led, clock):
    clock.now += room.KEPT - 1
    rooms.heard(led, "a")
    clock.now += room.KEPT - 1
    rooms.sweep()
    assert rooms.read(led)
    clock.now += 2
    rooms.sweep()
    assert rooms.read(led) is None


def test_one_read_serves_all_and_own_writes_are_seen_at_once(rooms, led, url, clock):
    other, before = Rooms(url), rooms.read(led)
    other.vote(led, "a", Q, 1)
    assert rooms.read(led) is before
    rooms.vote(led, "b", Q, 0)
    assert rooms.read(led).counts == {Q: {0: 1, 1: 1}}
    clock.now += room.SHARED / 2
    other.vote(led, "a", Q, 0)
    other.database.close()
    clock.now += room.SHARED / 2
    assert rooms.read(led).counts == {Q: {0: 2}}


def test_a_room_is_read_as_a_whole_only_if_somebody_changed_it(rooms, led, url, clock):
    other, before = Rooms(url), rooms.read(led)
    clock.now += room.SHARED
    assert rooms.heard(led, "a") and rooms.read(led) is before
    assert before.present.total() == 2
    other.join(led, "c")
    clock.now += room.SHARED
    read = rooms.read(led)
    assert read is not before and read.present.total() == 3
    other.change_seat(led, "c", heard=0)
    other.database.close()
    clock.now += room.SHARED
    assert rooms.read(led).present.total() == 2
    # Who falls silent changes nothing, and is missed all the same.
    read = rooms.read(led)
    clock.now += room.WHOLE - room.SHARED
    assert rooms.read(led) is read
    clock.now += room.SHARED
    assert rooms.read(led) is not read


VOTER = """
import sys
from gradebook.classroom.room import Rooms
rooms = Rooms(sys.argv[1])
for n in range(100_000):
    rooms.vote(sys.argv[2], "a", f"q{n % 150}", n // 150 % 20)
    print(n, flush=True)
"""


def test_a_server_that_is_killed_loses_no_acknowledged_vote(rooms, led, url):
    run = [sys.executable, "-c", VOTER, url, led]
    with subprocess.Popen(run, stdout=subprocess.PIPE, cwd=ROOT, text=True) as server:
        said = [int(server.stdout.readline()) for _ in range(170)]
        server.kill()
        said += map(int, server.stdout.read().split())
    expected = {f"q{n % 150}": n // 150 % 20 for n in said}
    made = rooms.read(led).seat("a").votes
    # The last one may be written and not yet acknowledged.
    differ = {q for q in {*expected, *made} if expected.get(q) != made.get(q)}
    assert differ <= {f"q{(said[-1] + 1) % 150}"}


def test_thirty_threads_lose_no_vote(rooms):
    code = rooms.open("lead")

    def sit(seat, question):
        """One of a seat's tabs: its votes are in one row."""
        for n in range(10):
            rooms.vote(code, seat, question, n % 3)
            rooms.read(code)
        rooms.vote(code, seat, question, 1)

    seats = [str(n) for n in range(10)]
    for seat in seats:
        rooms.join(code, seat)
    with ThreadPoolExecutor(30) as threads:
        list(threads.map(sit, seats * 3, sorted("abc" * 10)))
    assert rooms.read(code).counts == dict.fromkeys("abc", {1: 10})
    assert rooms.read(code).present.total() == 10
    rooms.close(code, "lead")


def test_an_older_database_is_replaced_and_a_newer_one_is_refused(url, caplog):
    def becomes(version):
        engine = create_engine(url)
        with engine.begin() as database:
            database.execute(text(f"UPDATE gradebook_schema SET version = {version}"))
        engine.dispose()

    first = Rooms(url)
    code = first.open("lead")
    assert first.read(code)
    first.database.close()
    becomes(1)
    rooms = Rooms(url)
    assert rooms.read(code) is None
    rooms.close(rooms.open("lead"), "lead")
    rooms.database.close()
    becomes(store.VERSION + 1)
    newer = Rooms(url)
    assert refused(newer.open, "lead") == AWAY
    newer.database.close()
    assert f"found {store.VERSION + 1}" in caplog.text  # the server's own log


def test_a_question_is_asked_twice_and_both_votes_are_kept(rooms):
    code = rooms.open("lead")
    for name, choice in (("a", 0), ("b", 1)):
        rooms.join(code, name, "q")
        rooms.vote(code, name, "q", choice, 0.5 * choice)
    assert rooms.read(code).places("q") == [0.0, 0.5]
    rooms.ask_again(code, "lead", "q")
    room = rooms.read(code)
    assert not room.counts["q"] and room.counts_before["q"] == {0: 1, 1: 1}
    assert room.places("q") == [], "no guess counts without a vote"
    rooms.vote(code, "a", "q", 1)
    room = rooms.read(code)
    assert room.counts["q"] == {1: 1} and room.counts_before["q"] == {0: 1, 1: 1}
    with pytest.raises(GradebookError, match="second time"):
        rooms.ask_again(code, "lead", "q")
    with pytest.raises(GradebookError, match="Only the lead"):
        rooms.ask_again(code, "a", "q2")


def test_a_question_that_is_asked_again_is_covered_again(rooms):
    code = rooms.open("lead")
    for question in ("q", "other"):
        rooms.join(code, "a", question)
        rooms.vote(code, "a", question, 0)
        rooms.reveal(code, "lead", question)
    rooms.ask_again(code, "lead", "q")
    assert rooms.read(code).revealed == ["other"]
    rooms.vote(code, "a", "q", 1)


def test_a_move_from_where_the_room_no_longer_is_changes_nothing(rooms):
    code = rooms.open("lead")
    rooms.move(code, "lead", "page", "q")
    rooms.move(code, "lead", "page", "next", seen=("page", "q", ""))
    rooms.move(code, "lead", "page", "q", seen=("page", "q", ""))
    assert rooms.read(code).position.question == "next"


def test_after_the_timer_votes_of_its_question_are_refused(rooms):
    code = rooms.open("lead")
    rooms.move(code, "lead", "page", "q")
    rooms.join(code, "a", "q")
    rooms.change(code, "lead", ends=time.time() - 1)
    with pytest.raises(GradebookError, match="time for this question is up"):
        rooms.vote(code, "a", "q", 1)
    rooms.vote(code, "a", "another", 1)
    rooms.move(code, "lead", "page", "next")
    rooms.vote(code, "a", "next", 1)
    assert rooms.read(code).ends is None
