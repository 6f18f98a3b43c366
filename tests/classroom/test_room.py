"""A room counts votes once a seat, reveals once, and forgets."""

import threading

import pytest

from gradebook.classroom import room
from gradebook.classroom.room import (
    ALPHABET,
    GONE,
    MOST_CHOICES,
    MOST_QUESTIONS,
    Position,
    Rooms,
    normal,
)
from gradebook.classroom.wrong_codes import WrongCodes
from gradebook.core.errors import GradebookError

Q = "partial_groups"


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rooms(clock, monkeypatch):
    for limit, value in (
        ("MOST_ROOMS", 3),
        ("MOST_SEATS", 4),
        ("IDLE", 100.0),
        ("LONGEST", 1000.0),
    ):
        monkeypatch.setattr(room, limit, value)
    return Rooms(clock)


def refused(call, *args):
    with pytest.raises(GradebookError) as told:
        call(*args)
    return str(told.value)


def test_a_code_is_short_and_unambiguous(rooms):
    code, _ = rooms.open("lead")
    assert len(code) == 6 and set(code) <= set(ALPHABET)
    assert not set("0O1IL5S8B2ZUV") - set("V") & set(ALPHABET)
    assert normal(f" {code[:2].lower()}-{code[2:].lower()} ") == code


def test_the_server_knows_who_leads_and_where_a_seat_is(rooms):
    code, key = rooms.open("lead")
    assert rooms.key(code, "lead") == key and rooms.room_of("lead") == code
    assert rooms.key(code, "a") == rooms.room_of("a") == ""
    rooms.join(code, "a")
    assert rooms.room_of("a") == code and not rooms.key(code, "a")
    assert "its lead's key" in refused(rooms.take, code, "another", "a")
    rooms.take(code, key, "a")
    assert rooms.key(code, "a") == rooms.key(code, "lead") == key
    rooms.leave(code, "a")
    assert rooms.room_of("a") == ""
    rooms.close(code, key)
    assert rooms.room_of("lead") == rooms.key(code, "lead") == ""


def test_a_vote_may_change_until_the_reveal(rooms):
    code, key = rooms.open("lead")
    for seat in ("a", "b"):
        rooms.join(code, seat)
    rooms.vote(code, "a", Q, 0)
    rooms.vote(code, "b", Q, 2)
    rooms.vote(code, "a", Q, 2)
    assert rooms.counts(code, Q) == {2: 2}
    assert rooms.choice(code, "a", Q) == 2
    rooms.reveal(code, key, Q)
    assert rooms.revealed(code, Q) and not rooms.revealed(code, "other")
    assert "before the reveal" in refused(rooms.vote, code, "a", Q, 1)
    rooms.look(code, "a", Q)
    assert rooms.counts(code, Q) == {2: 2}
    assert not rooms.looked(code, "a", Q)
    rooms.vote(code, "a", "other", 1)
    assert rooms.counts(code, "other") == {1: 1}


def test_whoever_looks_first_has_no_vote(rooms):
    code, _ = rooms.open("lead")
    for seat in ("a", "b"):
        rooms.join(code, seat)
        rooms.vote(code, seat, Q, 1)
    rooms.look(code, "a", Q)
    assert rooms.counts(code, Q) == {1: 1}
    assert "before a look" in refused(rooms.vote, code, "a", Q, 0)
    rooms.join(code, "a")  # a reload does not bring the vote back
    assert rooms.looked(code, "a", Q) and not rooms.looked(code, "b", Q)
    rooms.vote(code, "a", "other", 0)


def test_a_vote_leaves_with_its_seat(rooms):
    code, _ = rooms.open("lead")
    for seat in ("a", "b"):
        rooms.join(code, seat)
        rooms.vote(code, seat, Q, 1)
    rooms.leave(code, "b")
    assert rooms.counts(code, Q) == {1: 1} and rooms.seats(code) == 1


def test_the_lead_sees_how_many_are_at_the_question(rooms, clock):
    code, _ = rooms.open("lead")
    rooms.join(code, "a", Q)
    rooms.join(code, "b", "other")
    rooms.join(code, "c", Q)
    assert (rooms.seats_at(code, Q), rooms.seats(code)) == (2, 3)
    rooms.join(code, "a", "other")
    assert rooms.seats_at(code, Q) == 1
    clock.now += GONE + 1
    rooms.join(code, "b", Q)
    assert (rooms.seats_at(code, Q), rooms.seats(code)) == (1, 1)


def test_one_browser_cannot_take_all_rooms(clock):
    rooms = Rooms(clock)
    for _ in range(3):
        rooms.open("greedy")
    assert "3 open rooms of one lead" in refused(rooms.open, "greedy")
    rooms.open("honest")


def test_a_full_server_closes_the_room_that_was_silent_longest(rooms, clock):
    codes = []
    for lead in "abc":
        codes.append(rooms.open(lead)[0])
        clock.now += 1
    assert "at most 3 rooms" in refused(rooms.open, "d")
    clock.now += GONE - 2
    rooms.join(codes[0], "learner")
    clock.now += 2
    new, _ = rooms.open("d")
    assert not rooms.is_open(codes[1])
    assert rooms.is_open(codes[0]) and rooms.is_open(new)


def test_wrong_codes_slow_a_client_down(clock):
    wrong = WrongCodes(free=2, clock=clock)
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


def test_only_the_lead_reveals_moves_and_closes(rooms):
    code, key = rooms.open("lead")
    place = Position(Q, "partial_groups-tail", "s=partial_groups-tail", "group")
    for act in (
        lambda k: rooms.reveal(code, k, Q),
        lambda k: rooms.move(code, k, place),
        lambda k: rooms.close(code, k),
    ):
        assert "lead's key" in refused(act, "wrong")
    assert rooms.position(code) is None and not rooms.revealed(code, Q)
    rooms.move(code, key, place)
    assert rooms.position(code) == place
    rooms.close(code, key)
    assert not rooms.is_open(code)
    assert "a room that is open" in refused(rooms.counts, code, Q)


@pytest.mark.parametrize("choice", [-1, MOST_CHOICES])
def test_what_no_question_has_is_no_vote(rooms, choice):
    code, _ = rooms.open("lead")
    rooms.join(code, "a")
    assert "a choice from 0" in refused(rooms.vote, code, "a", Q, choice)
    assert rooms.counts(code, Q) == {}


def test_who_has_not_joined_has_no_vote(rooms):
    code, _ = rooms.open("lead")
    assert "joined" in refused(rooms.vote, code, "a", Q, 0)


def test_rooms_and_seats_and_texts_are_limited(rooms):
    code, _ = rooms.open("lead")
    for seat in "abcd":
        rooms.join(code, seat)
    assert "at most 4 learners" in refused(rooms.join, code, "e")
    rooms.join(code, "a")
    rooms.open("lead 2"), rooms.open("lead 3")
    assert "at most 3 rooms" in refused(rooms.open, "lead 4")
    for n in range(MOST_QUESTIONS):
        rooms.vote(code, "a", f"q{n}", 0)
    assert "questions" in refused(rooms.vote, code, "a", "one more", 0)
    rooms.vote(code, "a", "q0", 1)
    rooms.leave(code, "d")
    assert "100 characters" in refused(rooms.join, code, "x" * 101)


def test_silent_seats_make_place_in_a_full_room(rooms, clock):
    code, _ = rooms.open("lead")
    for seat in "abcd":
        rooms.join(code, seat)
    rooms.vote(code, "a", Q, 0)
    clock.now += GONE + 1
    rooms.join(code, "b")
    assert rooms.seats(code) == 1
    rooms.join(code, "e")
    assert rooms.seats(code) == 2 and rooms.counts(code, Q) == {}


def test_an_idle_room_is_gone(rooms, clock):
    code, _ = rooms.open("lead")
    clock.now += 99
    rooms.join(code, "a")
    clock.now += 99
    assert rooms.is_open(code)
    clock.now += 2
    assert not rooms.is_open(code)
    assert "room that is open" in refused(rooms.join, code, "a")


def test_no_room_outlives_its_longest_time(rooms, clock):
    code, _ = rooms.open("lead")
    for _ in range(11):
        assert rooms.is_open(code)
        rooms.join(code, "a")
        clock.now += 91
    assert not rooms.is_open(code)


def test_an_expired_room_makes_place_for_another(rooms, clock):
    for _ in range(3):
        rooms.open("lead")
    clock.now += 101
    rooms.open("lead")


def test_thirty_threads_lose_no_vote():
    rooms = Rooms()
    code, key = rooms.open("lead")

    def sit(seat):
        rooms.join(code, seat)
        for n in range(200):
            rooms.vote(code, seat, Q, n % 3)
            rooms.counts(code, Q)
        rooms.vote(code, seat, Q, 1)

    threads = [threading.Thread(target=sit, args=(f"s{n}",)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rooms.counts(code, Q) == {1: 30} and rooms.seats(code) == 30
    rooms.reveal(code, key, Q)


def test_asking_keeps_a_seat_in_the_room(clock):
    rooms = Rooms(clock)
    code, _ = rooms.open("lead")
    for seat in ("asks", "is silent"):
        rooms.join(code, seat)
    clock.now += 40
    rooms.heard(code, "asks")
    clock.now += 40
    rooms.heard(code, "asks")
    assert rooms.seats(code) == 1
