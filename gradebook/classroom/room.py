"""Rooms: a lead asks, learners predict, the lead reveals.

Rooms live in a database (`store`), so they survive their server, and several
servers share them. A browser goes by its seat, a random token. Methods are thread-safe.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update

from gradebook.classroom.store import (
    GONE,
    LOOKED,
    Position,
    Room,
    Store,
    hashed,
    new_code,
    new_token,
    rooms,
    seats,
    snapshot,
)
from gradebook.core.errors import GradebookError, refuse

MOST_ROOMS = 1000
MOST_OF_ONE = 3
"""Rooms that one browser may have open."""
MOST_SEATS = 500
MOST_QUESTIONS = 200
MOST_CHOICES = 20
LONGEST_LINK = 65_536
KEPT = 23 * 3600.0
"""Seconds that a room is kept after its last sign of life. Each server deletes
silent rooms once an hour, so none is kept for more than a day."""
IDLE = 2 * 3600.0
"""Seconds after which a silent room makes place on a full server."""
SHARED = 0.25
"""Seconds for which one read of a room serves all who ask for it."""


class Rooms:
    """The rooms of one database. A question goes by its scenario's name.

    What a lead does takes the lead's own seat. Methods raise GradebookError
    for a room that is not open, and for a lead's act by anybody else.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, tuple[float, Room]] = {}
        self._wrote: Counter[str] = Counter()

    # Everybody

    def read(self, code: str) -> Room | None:
        """The room as it stands, None where it is not open. It may be SHARED
        seconds old; apart from who is there, it is never older than what this
        server wrote."""
        now, wrote = self._clock(), self._wrote[code]
        since, room = self._known.get(code, (now - SHARED, None))
        if not 0 <= now - since < SHARED:
            with self._store.read() as database:
                room = snapshot(database, code, now)
            if room is None:
                self._known.pop(code, None)
            elif wrote == self._wrote[code]:
                self._known[code] = now, room
        return room

    def room(self, code: str) -> Room:
        """The room as it stands, as `read` has it."""
        room = self.read(code)
        if room is None:
            raise refuse("a room that is open", code, "room")
        return room

    def room_of(self, seat: str) -> str:
        """The room that this browser leads or has joined, the last one of
        several, unless it left; '' for none."""
        taken = select(seats.c.code).where(seats.c.seat == hashed(seat))
        last = taken.where(seats.c.heard > 0).order_by(seats.c.heard.desc())
        with self._store.read() as database:
            return database.execute(last).scalar() or ""

    def heard(self, code: str, seat: str) -> bool:
        """The browser is in this room, as a learner or as a lead. Asking
        keeps the room, and the seat in it."""
        now = self._clock()
        mine = (seats.c.code == code, seats.c.seat == hashed(seat), seats.c.heard > 0)
        silent = (rooms.c.code == code, rooms.c.touched < now - GONE)
        with self._store.write() as database:
            if not _count(database, seats.c.seat, *mine):
                return False
            # The room's row first, as in every change; but seldom: all wait for it.
            database.execute(update(rooms).where(*silent).values(touched=now))
            heard = update(seats).where(*mine).values(heard=now)
            return bool(database.execute(heard).rowcount)

    # The learners' side

    def join(self, code: str, seat: str, question: str = "") -> None:
        """Takes the seat, or says that it is still taken.

        question  the scenario that the learner sees; '' for none

        Raises GradebookError for a newcomer to a room that is full or locked.
        """
        now = self._clock()
        here = {"heard": now, "question": question}
        with self._store.write() as database:
            row = _seat(database, code, seat)
            if row is None or not row.heard:
                _refuse_newcomers(database, code, now)
            if not _change_seat(database, code, seat, **here):
                _add_seat(database, code, seat, **here)

    def leave(self, code: str, seat: str) -> None:
        """The seat is free. Its votes count on."""
        with self._changed(code) as database:
            _change_seat(database, code, seat, heard=0)

    def follows(self, code: str, seat: str) -> bool:
        """The learner follows the lead; so it begins."""
        with self._store.read() as database:
            row = _seat(database, code, seat)
        return row is None or row.follows

    def follow(self, code: str, seat: str, on: bool) -> None:
        """The learner follows the lead from now on, or does not."""
        with self._store.write() as database:
            _change_seat(database, code, seat, follows=on)

    def vote(self, code: str, seat: str, question: str, choice: int) -> None:
        """The seat's choice. It replaces an earlier one, and is written when
        this returns. A seat that LOOKED at the answer has no vote any more.

        Raises GradebookError after the reveal, for a seat that has not
        joined or has looked at the answer, and for an impossible choice.
        """
        if not LOOKED <= choice < MOST_CHOICES:
            raise refuse(f"a choice from 0 to {MOST_CHOICES - 1}", choice, "vote")
        with self._changed(code) as database:
            row = _seat(database, code, seat)
            made = row.votes if row else {}
            expected = ""
            if question in _revealed(database, code):
                expected = "a vote before the reveal"
            elif row is None or not row.heard:
                expected = "a seat that has joined"
            elif made.get(question) == LOOKED:
                expected = "a vote before a look at the answer"
            elif question not in made and len(made) >= MOST_QUESTIONS:
                expected = f"at most {MOST_QUESTIONS} questions"
            if expected:
                raise GradebookError(key="vote", expected=expected)
            _change_seat(database, code, seat, votes={**made, question: choice})

    def choices(self, code: str, seat: str) -> dict[str, int]:
        """What the seat chose, by question; LOOKED where it has no vote."""
        with self._store.read() as database:
            row = _seat(database, code, seat)
        return row.votes if row else {}

    # The lead's side

    def open(self, lead: str) -> str:
        """Opens a room for the browser `lead`: its code.

        Raises GradebookError when `lead` has MOST_OF_ONE rooms open, and
        when the database is full of rooms that somebody uses.
        """
        now, led = self._clock(), (seats.c.seat == hashed(lead), seats.c.leads)
        with self._store.write() as database:
            if _count(database, seats.c.code, *led) >= MOST_OF_ONE:
                raise _too_many(f"at most {MOST_OF_ONE} open rooms of one lead")
            if _count(database, rooms.c.code) >= MOST_ROOMS:
                idle = rooms.c.touched < now - IDLE
                database.execute(delete(rooms).where(idle))
            if _count(database, rooms.c.code) >= MOST_ROOMS:
                raise _too_many(f"at most {MOST_ROOMS} rooms on a server")
            code = new_code()
            while _count(database, rooms.c.code, rooms.c.code == code):
                code = new_code()
            room = {"code": code, "token": new_token(), "touched": now}
            database.execute(rooms.insert().values(room))
            _add_seat(database, code, lead, leads=True, heard=now)
        return code

    def close(self, code: str, lead: str) -> None:
        """The room is gone, with all that was kept of it."""
        with self._led(code, lead) as database:
            database.execute(delete(rooms).where(rooms.c.code == code))

    def take(self, code: str, key: str, lead: str) -> None:
        """The browser `lead` leads, too. Raises GradebookError for a wrong
        key."""
        right = (rooms.c.code == code, rooms.c.key == hashed(key))
        leads = {"leads": True, "heard": self._clock()}
        with self._changed(code) as database:
            if not _count(database, rooms.c.code, *right):
                raise GradebookError(key="room", expected="its lead's key")
            if not _change_seat(database, code, lead, **leads):
                _add_seat(database, code, lead, **leads)

    def new_key(self, code: str, lead: str) -> str:
        """A key with which another browser leads. The one before opens nothing
        any more."""
        key = new_token()
        self.change(code, lead, key=hashed(key))
        return key

    def reveal(self, code: str, lead: str, question: str) -> None:
        """The question is answered: no vote changes any more."""
        with self._led(code, lead) as database:
            revealed = _revealed(database, code) | {question}
            _change_room(database, code, revealed=sorted(revealed))

    def hide(self, code: str, lead: str, question: str) -> None:
        """Takes the reveal back: votes may change again."""
        with self._led(code, lead) as database:
            revealed = _revealed(database, code) - {question}
            _change_room(database, code, revealed=sorted(revealed))

    def change(self, code: str, lead: str, **values: Any) -> None:
        """Other values in the room's row, such as `locked`, `most` and `ends`."""
        with self._led(code, lead) as database:
            _change_room(database, code, **values)

    def reset(self, code: str, lead: str) -> None:
        """The room as it was opened, for the next class: its code, its link
        and its lead stay."""
        empty = dict.fromkeys(("page", "question", "link", "stage", "ends"))
        with self._led(code, lead) as database:
            learners = (seats.c.code == code, ~seats.c.leads)
            database.execute(delete(seats).where(*learners))
            _change_room(database, code, revealed=[], **empty)

    def move(self, code: str, lead: str, position: Position) -> None:
        """The lead stands at `position`.

        Raises GradebookError for a link of more than LONGEST_LINK
        characters.
        """
        if len(position.link) > LONGEST_LINK:
            raise refuse(f"at most {LONGEST_LINK} characters", "more", "link")
        if self.room(code).position != position:
            self.change(code, lead, **vars(position))

    def sweep(self) -> None:
        """Deletes the rooms that showed no sign of life for KEPT seconds."""
        silent = rooms.c.touched < self._clock() - KEPT
        with self._store.write() as database:
            database.execute(delete(rooms).where(silent))

    # Inside

    @contextmanager
    def _changed(self, code: str) -> Iterator[Connection]:
        """A transaction that changes the room. The update of the room's row locks
        it until the end, so changes of one room come one after the other: what is
        read in it, such as a seat's votes, stands until it is written."""
        with self._store.write() as database:
            if not _change_room(database, code, touched=self._clock()):
                raise refuse("a room that is open", code, "room")
            yield database
        self._wrote[code] += 1
        self._known.pop(code, None)

    @contextmanager
    def _led(self, code: str, lead: str) -> Iterator[Connection]:
        with self._changed(code) as database:
            row = _seat(database, code, lead)
            if row is None or not row.leads:
                raise GradebookError(key="room", expected="its lead's key")
            yield database


def _refuse_newcomers(database: Connection, code: str, now: float) -> None:
    """Raises GradebookError where the room is closed, locked or full."""
    query = select(rooms).where(rooms.c.code == code).with_for_update()
    room = database.execute(query).first()
    if room is None:
        raise refuse("a room that is open", code, "room")
    if room.locked:
        raise GradebookError(key="room", expected="a room that is not locked")
    here = (seats.c.code == code, ~seats.c.leads, seats.c.heard >= now - GONE)
    most = MOST_SEATS if room.most is None else room.most
    if _count(database, seats.c.seat, *here) >= most:
        raise _too_many(f"at most {most} learners")


def _seat(database: Connection, code: str, seat: str) -> Row[Any] | None:
    """The row of this browser in the room."""
    mine = (seats.c.code == code, seats.c.seat == hashed(seat))
    return database.execute(select(seats).where(*mine)).first()


def _add_seat(database: Connection, code: str, seat: str, **values: Any) -> None:
    row = {"code": code, "seat": hashed(seat), **values}
    database.execute(seats.insert().values(row))


def _change_seat(database: Connection, code: str, seat: str, **values: Any) -> int:
    """How many rows there were to change, one or none."""
    mine = (seats.c.code == code, seats.c.seat == hashed(seat))
    return database.execute(update(seats).where(*mine).values(values)).rowcount


def _change_room(database: Connection, code: str, **values: Any) -> int:
    room = update(rooms).where(rooms.c.code == code)
    return database.execute(room.values(values)).rowcount


def _revealed(database: Connection, code: str) -> set[str]:
    query = select(rooms.c.revealed).where(rooms.c.code == code)
    return set(database.execute(query).scalar_one())


def _count(
    database: Connection, column: ColumnElement[str], *where: ColumnElement[bool]
) -> int:
    query = select(func.count(column)).where(*where)
    return int(database.execute(query).scalar_one())


def _too_many(expected: str) -> GradebookError:
    return GradebookError(key="room", expected=expected, found="one more")
