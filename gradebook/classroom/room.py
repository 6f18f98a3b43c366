"""Rooms: a lead asks, learners predict, the lead reveals.

A room is kept in the server's memory and nowhere else. A seat is a random
token; nobody is asked for a name. Every method is safe to call from many
threads.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock

from gradebook.core.errors import GradebookError, refuse

ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""No two of these look alike, and they spell no words."""
LENGTH = 6
"""Characters of a code: 21 to the power of 6 is 86 million codes."""
MOST_ROOMS = 20
MOST_OF_ONE = 3
"""Rooms that one browser may have open."""
MOST_SEATS = 200
MOST_QUESTIONS = 100
MOST_CHOICES = 20
LONGEST_TEXT = 100
LONGEST_LINK = 65_536
IDLE = 2 * 3600.0
"""Seconds after which a room that nobody touches is gone."""
LONGEST = 12 * 3600.0
"""Seconds after which a room is gone in any case."""
GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room."""


@dataclass(frozen=True)
class Position:
    """Where the lead is.

    page      the page's name in its address
    question  the scenario that stands there
    link      the lead's state as the query of a link, edits and selected
              row included
    stage     the stage that is open
    """

    page: str
    question: str
    link: str = ""
    stage: str = ""


@dataclass
class _Seat:
    heard: float
    question: str


@dataclass
class _Room:
    key: str
    leads: set[str]
    opened: float
    touched: float
    seats: dict[str, _Seat] = field(default_factory=dict)
    looked: set[tuple[str, str]] = field(default_factory=set)
    votes: dict[str, dict[str, int]] = field(default_factory=dict)
    revealed: set[str] = field(default_factory=set)
    position: Position | None = None


class Rooms:
    """All rooms of one server. A question goes by its scenario's name.

    A browser goes by its seat. Every method with a code but `is_open`,
    `key` and `heard` raises GradebookError for a room that is not open.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rooms: dict[str, _Room] = {}
        self._last: dict[str, str] = {}
        self._lock = RLock()

    def open(self, lead: str) -> tuple[str, str]:
        """Opens a room for the browser `lead`: its code and its lead's key.

        Where the server is full, a room closes in which nobody was active
        for GONE seconds. Raises GradebookError when `lead` has MOST_OF_ONE
        rooms open, and when every room of a full server is active.
        """
        with self._lock:
            self._sweep()
            own = sum(lead in room.leads for room in self._rooms.values())
            if own >= MOST_OF_ONE:
                raise GradebookError(
                    key="room",
                    expected=f"at most {MOST_OF_ONE} open rooms of one lead",
                    found="one more",
                )
            if len(self._rooms) >= MOST_ROOMS:
                self._close_a_silent_room()
            code = _code()
            while code in self._rooms:
                code = _code()
            key, now = secrets.token_urlsafe(12), self._clock()
            self._rooms[code] = _Room(key, {_text("lead", lead)}, now, now)
            self._last[lead] = code
            return code, key

    def close(self, code: str, key: str) -> None:
        """The room is gone. Raises GradebookError for a wrong key."""
        with self._lock:
            self._led(code, key)
            self._drop(code)

    def is_open(self, code: str) -> bool:
        """There is such a room."""
        with self._lock:
            self._sweep()
            return code in self._rooms

    def take(self, code: str, key: str, lead: str) -> None:
        """The browser `lead` leads, too. Raises GradebookError for a wrong
        key."""
        with self._lock:
            self._led(code, key).leads.add(_text("lead", lead))
            self._last[lead] = code

    def key(self, code: str, seat: str) -> str:
        """The lead's key, for a browser that leads this room; else ''."""
        with self._lock:
            room = self._rooms.get(code)
            return room.key if room and seat in room.leads else ""

    def room_of(self, seat: str) -> str:
        """The room that this browser leads or has joined, the last one of
        several, unless it left; '' for none."""
        with self._lock:
            self._sweep()
            return self._last.get(seat, "")

    # The learners' side

    def join(self, code: str, seat: str, question: str = "") -> None:
        """Takes the seat, or says that it is still taken.

        question  the scenario that the learner sees; '' for none

        Raises GradebookError when the room is full.
        """
        with self._lock:
            room = self._room(code)
            if seat not in room.seats:
                self._make_place(room)
            _text("question", question or "-")
            room.seats[_text("seat", seat)] = _Seat(room.touched, question)
            self._last[seat] = code

    def leave(self, code: str, seat: str) -> None:
        """The seat is free, and its votes are gone."""
        with self._lock:
            self._last.pop(seat, None)
            _empty(self._room(code), seat)

    def seats(self, code: str) -> int:
        """Seats that were heard of in the last GONE seconds."""
        with self._lock:
            return len(_present(self._room(code)))

    def seats_at(self, code: str, question: str) -> int:
        """Those of `seats` that see the question."""
        with self._lock:
            present = _present(self._room(code))
            return sum(seat.question == question for seat in present)

    def vote(self, code: str, seat: str, question: str, choice: int) -> None:
        """The seat's choice. It replaces an earlier one.

        Raises GradebookError after the reveal, for a seat that has not
        joined or has looked at the answer, and for an impossible choice.
        """
        with self._lock:
            room = self._room(code)
            if question in room.revealed:
                raise GradebookError(key="vote", expected="a vote before the reveal")
            if seat not in room.seats:
                raise GradebookError(key="vote", expected="a seat that has joined")
            if (seat, question) in room.looked:
                raise GradebookError(
                    key="vote", expected="a vote before a look at the answer"
                )
            if not 0 <= choice < MOST_CHOICES:
                raise refuse(f"a choice from 0 to {MOST_CHOICES - 1}", choice, "vote")
            self._votes(room, question)[seat] = choice

    def look(self, code: str, seat: str, question: str) -> None:
        """The seat looks at the answer: it has no vote on this question any
        more. After the reveal nothing changes."""
        with self._lock:
            room = self._room(code)
            if question not in room.revealed:
                self._votes(room, question).pop(seat, None)
                if seat in room.seats:
                    room.looked.add((seat, question))

    def looked(self, code: str, seat: str, question: str) -> bool:
        """The seat looked at the answer before the reveal."""
        with self._lock:
            return (seat, question) in self._room(code).looked

    def choice(self, code: str, seat: str, question: str) -> int | None:
        """What the seat chose, if anything."""
        with self._lock:
            return self._room(code).votes.get(question, {}).get(seat)

    def counts(self, code: str, question: str) -> dict[int, int]:
        """How many seats made each choice."""
        with self._lock:
            votes = self._room(code).votes.get(question, {})
            return dict(sorted(Counter(votes.values()).items()))

    # The lead's side

    def reveal(self, code: str, key: str, question: str) -> None:
        """The question is answered: no vote changes any more.

        Raises GradebookError for a wrong key.
        """
        with self._lock:
            room = self._led(code, key)
            self._votes(room, question)
            room.revealed.add(question)

    def revealed(self, code: str, question: str) -> bool:
        """The lead has revealed the question's answer."""
        with self._lock:
            return question in self._room(code).revealed

    def move(self, code: str, key: str, position: Position) -> None:
        """The lead stands at `position`.

        Raises GradebookError for a wrong key, and for a link of more than
        LONGEST_LINK characters.
        """
        with self._lock:
            room = self._led(code, key)
            _text("link", position.link or "-", LONGEST_LINK)
            room.position = position

    def position(self, code: str) -> Position | None:
        """Where the lead stands; none before the first case."""
        with self._lock:
            return self._room(code).position

    def heard(self, code: str, seat: str = "") -> bool:
        """There is such a room. Asking keeps it open, and the seat in it."""
        with self._lock:
            self._sweep()
            room = self._rooms.get(code)
            if room is None:
                return False
            room.touched = self._clock()
            if seat in room.seats:
                room.seats[seat].heard = room.touched
            return True

    # Inside the lock

    def _room(self, code: str) -> _Room:
        self._sweep()
        room = self._rooms.get(code)
        if room is None:
            raise refuse("a room that is open", code, "room")
        room.touched = self._clock()
        return room

    def _led(self, code: str, key: str) -> _Room:
        room = self._room(code)
        if not _same(room.key, key):
            raise GradebookError(key="room", expected="its lead's key")
        return room

    def _sweep(self) -> None:
        now = self._clock()
        for code, room in list(self._rooms.items()):
            idle, age = now - room.touched, now - room.opened
            if idle > IDLE or age > LONGEST:
                self._drop(code)

    def _close_a_silent_room(self) -> None:
        """Closes the room that was silent longest."""
        code = min(self._rooms, key=lambda c: self._rooms[c].touched)
        if self._clock() - self._rooms[code].touched <= GONE:
            raise GradebookError(
                key="room",
                expected=f"at most {MOST_ROOMS} rooms on a server",
                found="one more",
            )
        self._drop(code)

    def _drop(self, code: str) -> None:
        del self._rooms[code]
        self._last = {s: c for s, c in self._last.items() if c != code}

    def _make_place(self, room: _Room) -> None:
        """Frees the seats of a full room that went silent."""
        if len(room.seats) < MOST_SEATS:
            return
        for name, seat in list(room.seats.items()):
            if room.touched - seat.heard > GONE:
                _empty(room, name)
        if len(room.seats) >= MOST_SEATS:
            raise GradebookError(
                key="room",
                expected=f"at most {MOST_SEATS} learners",
                found="one more",
            )

    def _votes(self, room: _Room, question: str) -> dict[str, int]:
        full = len(room.votes) >= MOST_QUESTIONS
        if full and question not in room.votes:
            raise GradebookError(
                key="vote", expected=f"at most {MOST_QUESTIONS} questions"
            )
        return room.votes.setdefault(_text("question", question), {})


def normal(typed: str) -> str:
    """A code as people type it: any case, with spaces or hyphens."""
    kept = "".join(c for c in typed.upper() if c.isalnum())
    return kept[:LONGEST_TEXT]


def _code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def _same(key: str, other: str) -> bool:
    return hmac.compare_digest(key.encode(), other.encode())


def _empty(room: _Room, seat: str) -> None:
    room.seats.pop(seat, None)
    room.looked = {one for one in room.looked if one[0] != seat}
    for votes in room.votes.values():
        votes.pop(seat, None)


def _present(room: _Room) -> list[_Seat]:
    return [s for s in room.seats.values() if room.touched - s.heard <= GONE]


def _text(name: str, text: str, most: int = LONGEST_TEXT) -> str:
    if not 0 < len(text) <= most:
        raise refuse(f"1 to {most} characters", len(text), name)
    return text
