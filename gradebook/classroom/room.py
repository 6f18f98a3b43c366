"""Rooms: a lead asks, learners predict, the lead reveals.

Kept in memory and nowhere else, by code and by seats that are random
tokens: who sits there is never asked. Safe to use from many threads.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock

from gradebook.core.errors import GradebookError, shown

ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""No two of these look alike, and they spell no words."""
LENGTH = 4
MOST_ROOMS = 20
MOST_SEATS = 200
MOST_QUESTIONS = 100
MOST_CHOICES = 20
LONGEST_TEXT = 100
IDLE = 2 * 3600.0
"""Seconds after which a room that nobody touches is gone."""
LONGEST = 12 * 3600.0
"""Seconds after which a room is gone in any case."""
GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room."""


@dataclass(frozen=True)
class Position:
    """Where the lead is: the case, the selected row, the open stage."""

    bug: str
    scenario: str
    row: int
    stage: str = ""


@dataclass
class _Room:
    key: str
    opened: float
    touched: float
    seats: dict[str, float] = field(default_factory=dict)
    votes: dict[str, dict[str, int]] = field(default_factory=dict)
    revealed: set[str] = field(default_factory=set)
    position: Position | None = None


class Rooms:
    """All rooms of one server. A question goes by its scenario's name.

    Every method but `is_open` and `leads` raises GradebookError for a room
    that is not open.
    """

    def __init__(
        self,
        most_rooms: int = MOST_ROOMS,
        most_seats: int = MOST_SEATS,
        idle: float = IDLE,
        longest: float = LONGEST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most_rooms = most_rooms
        self.most_seats = most_seats
        self.idle = idle
        self.longest = longest
        self._clock = clock
        self._rooms: dict[str, _Room] = {}
        self._lock = RLock()

    def open(self) -> tuple[str, str]:
        """A new room's code and the key of its lead.

        Raises GradebookError when the server has as many as it takes.
        """
        with self._lock:
            self._sweep()
            if len(self._rooms) >= self.most_rooms:
                raise GradebookError(
                    key="room",
                    expected=f"at most {self.most_rooms} rooms on a server",
                    found="one more",
                )
            code = _code()
            while code in self._rooms:
                code = _code()
            key, now = secrets.token_urlsafe(12), self._clock()
            self._rooms[code] = _Room(key, now, now)
            return code, key

    def close(self, code: str, key: str) -> None:
        """The room is gone. Raises GradebookError for a wrong key."""
        with self._lock:
            self._led(code, key)
            del self._rooms[code]

    def is_open(self, code: str) -> bool:
        """There is such a room."""
        with self._lock:
            self._sweep()
            return code in self._rooms

    def leads(self, code: str, key: str) -> bool:
        """`key` is the key of the room's lead."""
        with self._lock:
            room = self._rooms.get(code)
            return room is not None and _same(room.key, key)

    # The learners' side

    def join(self, code: str, seat: str) -> None:
        """Takes the seat, or says that it is still there.

        Raises GradebookError when the room is full.
        """
        with self._lock:
            room = self._room(code)
            if seat not in room.seats:
                self._make_place(room)
            room.seats[_text("seat", seat)] = room.touched

    def leave(self, code: str, seat: str) -> None:
        """The seat is free, and its votes are gone."""
        with self._lock:
            _empty(self._room(code), seat)

    def seats(self, code: str) -> int:
        """Seats that were heard of in the last GONE seconds."""
        with self._lock:
            room = self._room(code)
            return sum(
                room.touched - heard <= GONE for heard in room.seats.values()
            )

    def vote(self, code: str, seat: str, question: str, choice: int) -> None:
        """The seat's choice, in place of an earlier one.

        Raises GradebookError after the reveal, for a seat that has not
        joined and for what no question has.
        """
        with self._lock:
            room = self._room(code)
            if question in room.revealed:
                raise GradebookError(
                    key="vote", expected="a vote before the reveal"
                )
            if seat not in room.seats:
                raise GradebookError(
                    key="vote", expected="a seat that has joined"
                )
            if not 0 <= choice < MOST_CHOICES:
                raise GradebookError(
                    key="vote",
                    expected=f"a choice from 0 to {MOST_CHOICES - 1}",
                    found=shown(choice),
                )
            self._votes(room, question)[seat] = choice

    def withdraw(self, code: str, seat: str, question: str) -> None:
        """The seat has no choice; after the reveal nothing changes."""
        with self._lock:
            room = self._room(code)
            if question not in room.revealed:
                room.votes.get(question, {}).pop(seat, None)

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
        """The lead stands at `position`. Raises GradebookError for a
        wrong key."""
        with self._lock:
            self._led(code, key).position = position

    def position(self, code: str) -> Position | None:
        """Where the lead stands; none before the first case."""
        with self._lock:
            return self._room(code).position

    # Inside the lock

    def _room(self, code: str) -> _Room:
        self._sweep()
        room = self._rooms.get(code)
        if room is None:
            raise GradebookError(
                key="room", expected="a room that is open", found=shown(code)
            )
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
            if idle > self.idle or age > self.longest:
                del self._rooms[code]

    def _make_place(self, room: _Room) -> None:
        """In a full room the seats that went silent are freed."""
        if len(room.seats) < self.most_seats:
            return
        for seat, heard in list(room.seats.items()):
            if room.touched - heard > GONE:
                _empty(room, seat)
        if len(room.seats) >= self.most_seats:
            raise GradebookError(
                key="room",
                expected=f"at most {self.most_seats} learners",
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
    for votes in room.votes.values():
        votes.pop(seat, None)


def _text(name: str, text: str) -> str:
    if not 0 < len(text) <= LONGEST_TEXT:
        raise GradebookError(
            key=name,
            expected=f"1 to {LONGEST_TEXT} characters",
            found=str(len(text)),
        )
    return text
