"""Rooms: a lead asks, learners predict, the lead reveals.

Rooms live in a database (`store`), so they survive their server, and several
servers share them. A browser goes by its seat, a random token; nobody is
asked for a name. Every method is safe to call from many threads.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    delete,
    func,
    select,
    update,
)

from gradebook.classroom.snapshot import GONE, LOOKED, Position, Room, snapshot
from gradebook.classroom.store import (
    Store,
    drafts,
    hashed,
    leads,
    reveals,
    rooms,
    seats,
    votes,
)
from gradebook.core.errors import GradebookError, refuse

ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""No two of these look alike, and they spell no words."""
LENGTH = 6
"""Characters of a code: 21 to the power of 6 is 86 million codes."""
MOST_ROOMS = 1000
MOST_OF_ONE = 3
"""Rooms that one browser may have open."""
MOST_SEATS = 500
MOST_QUESTIONS = 200
MOST_CHOICES = 20
MOST_DRAFTS = 40
"""Drafts that are kept for one seat."""
LONGEST_TEXT = 100
LONGEST_LINK = 65_536
KEPT = 24 * 3600.0
"""Seconds that a room is kept after its last sign of life."""
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
        seconds old, but is never older than what this server wrote."""
        now, wrote = self._clock(), self._wrote[code]
        at, known = self._known.get(code, (now - SHARED, None))
        if not 0 <= now - at < SHARED:
            with self._store.read() as database:
                known = snapshot(database, code, now)
            if known is None:
                self._known.pop(code, None)
            elif wrote == self._wrote[code]:
                self._known[code] = now, known
        return known

    def room(self, code: str) -> Room:
        """The room as it stands, as `read` has it."""
        known = self.read(code)
        if known is None:
            raise refuse("a room that is open", code, "room")
        return known

    def room_of(self, seat: str) -> str:
        """The room that this browser leads or has joined, the last one of
        several, unless it left; '' for none."""
        queries = [
            select(table.c.code, table.c.since).where(table.c.seat == hashed(seat))
            for table in (seats, leads)
        ]
        with self._store.read() as database:
            found = [row for query in queries for row in database.execute(query)]
        return max(found, key=lambda row: row.since).code if found else ""

    def heard(self, code: str, seat: str) -> bool:
        """The browser is in this room, as a learner or as a lead. Asking
        keeps the room, and the seat in it."""
        now = self._clock()
        with self._store.write() as database:
            heard = update(seats).where(*_of(seats, code, seat)).values(heard=now)
            sits = database.execute(heard).rowcount
            if not (sits or database.execute(_seat(leads, code, seat)).first()):
                return False
            alive = update(rooms).where(rooms.c.code == code).values(touched=now)
            return bool(database.execute(alive).rowcount)

    # The learners' side

    def join(self, code: str, seat: str, question: str = "") -> None:
        """Takes the seat, or says that it is still taken.

        question  the scenario that the learner sees; '' for none

        Raises GradebookError when the room is full.
        """
        now, token = self._clock(), hashed(_text("seat", seat))
        _text("question", question or "-")
        row: dict[str, Any] = {"code": code, "seat": token, "since": now, "heard": now}
        row |= {"question": question, "follows": True}
        with self._changed(code) as database:
            if not database.execute(_seat(seats, code, seat)).first():
                self._refuse_if_full(database, code, now)
            database.execute(self._store.upsert(seats, row, "heard", "question"))

    def leave(self, code: str, seat: str) -> None:
        """The seat is free. Its votes count on."""
        with self._changed(code) as database:
            database.execute(delete(seats).where(*_of(seats, code, seat)))

    def follows(self, code: str, seat: str) -> bool:
        """The learner follows the lead; so it begins."""
        query = select(seats.c.follows).where(*_of(seats, code, seat))
        with self._store.read() as database:
            return database.execute(query).scalar_one_or_none() is not False

    def follow(self, code: str, seat: str, on: bool) -> None:
        """The learner follows the lead from now on, or does not."""
        mine = update(seats).where(*_of(seats, code, seat))
        with self._store.write() as database:
            database.execute(mine.values(follows=on))

    def vote(self, code: str, seat: str, question: str, choice: int) -> None:
        """The seat's choice. It replaces an earlier one, and is written when
        this returns.

        Raises GradebookError after the reveal, for a seat that has not
        joined or has looked at the answer, and for an impossible choice.
        """
        if not 0 <= choice < MOST_CHOICES:
            raise refuse(f"a choice from 0 to {MOST_CHOICES - 1}", choice, "vote")
        with self._changed(code) as database:
            if database.execute(_reveal(code, question)).first():
                raise GradebookError(key="vote", expected="a vote before the reveal")
            if not database.execute(_seat(seats, code, seat)).first():
                raise GradebookError(key="vote", expected="a seat that has joined")
            made = _choices(database, code, seat)
            if made.get(question) == LOOKED:
                expected = "a vote before a look at the answer"
                raise GradebookError(key="vote", expected=expected)
            self._write_choice(database, made, code, seat, question, choice)

    def look(self, code: str, seat: str, question: str) -> None:
        """The seat looks at the answer: it has no vote on this question any
        more. After the reveal nothing changes."""
        with self._changed(code) as database:
            sits = database.execute(_seat(seats, code, seat)).first()
            if sits and not database.execute(_reveal(code, question)).first():
                made = _choices(database, code, seat)
                self._write_choice(database, made, code, seat, question, LOOKED)

    def choices(self, code: str, seat: str) -> dict[str, int]:
        """What the seat chose, by question; LOOKED where it has no vote."""
        with self._store.read() as database:
            return _choices(database, code, seat)

    def keep(self, code: str, seat: str, scenario: str, link: str) -> None:
        """Keeps what a learner or a lead made of a scenario, as the query of
        a link; '' keeps nothing."""
        _text("link", link or "-", LONGEST_LINK)
        row = {"code": code, "seat": hashed(seat), "link": link}
        row |= {"scenario": _text("scenario", scenario)}
        mine = _of(drafts, code, seat)
        with self._changed(code) as database:
            if not link:
                this = drafts.c.scenario == scenario
                database.execute(delete(drafts).where(*mine, this))
            elif _count(database, drafts, *mine) < MOST_DRAFTS:
                database.execute(self._store.upsert(drafts, row, "link"))

    def kept(self, code: str, seat: str, scenario: str) -> str:
        """What is kept of the scenario, '' for nothing."""
        mine = (*_of(drafts, code, seat), drafts.c.scenario == scenario)
        query = select(drafts.c.link).where(*mine)
        with self._store.read() as database:
            return database.execute(query).scalar_one_or_none() or ""

    # The lead's side

    def open(self, lead: str) -> tuple[str, str]:
        """Opens a room for the browser `lead`: its code and its lead's key.

        Raises GradebookError when `lead` has MOST_OF_ONE rooms open, and
        when the database is full of rooms that somebody uses.
        """
        token, now = hashed(_text("lead", lead)), self._clock()
        key = _new_key()
        with self._store.write() as database:
            database.execute(delete(rooms).where(rooms.c.touched < now - KEPT))
            if _count(database, leads, leads.c.seat == token) >= MOST_OF_ONE:
                raise _too_many(f"at most {MOST_OF_ONE} open rooms of one lead")
            if _count(database, rooms) >= MOST_ROOMS:
                idle = rooms.c.touched < now - IDLE
                database.execute(delete(rooms).where(idle))
            if _count(database, rooms) >= MOST_ROOMS:
                raise _too_many(f"at most {MOST_ROOMS} rooms on a server")
            code = _code()
            while database.execute(_room(code)).first():
                code = _code()
            row = {"code": code, "key": hashed(key), "opened": now, "touched": now}
            database.execute(rooms.insert().values(row))
            row = {"code": code, "seat": token, "since": now}
            database.execute(leads.insert().values(row))
        return code, key

    def close(self, code: str, lead: str) -> None:
        """The room is gone, with all that was kept of it."""
        with self._led(code, lead) as database:
            database.execute(delete(rooms).where(rooms.c.code == code))

    def take(self, code: str, key: str, lead: str) -> None:
        """The browser `lead` leads, too. Raises GradebookError for a wrong
        key."""
        token, now = hashed(_text("lead", lead)), self._clock()
        row = {"code": code, "seat": token, "since": now}
        right = (rooms.c.code == code, rooms.c.key == hashed(key))
        with self._changed(code) as database:
            if not database.execute(select(rooms.c.code).where(*right)).first():
                raise GradebookError(key="room", expected="its lead's key")
            database.execute(self._store.upsert(leads, row, "since"))

    def new_key(self, code: str, lead: str) -> str:
        """Another key for the lead. The one before opens nothing any more."""
        key = _new_key()
        with self._led(code, lead) as database:
            room = update(rooms).where(rooms.c.code == code)
            database.execute(room.values(key=hashed(key)))
        return key

    def reveal(self, code: str, lead: str, question: str) -> None:
        """The question is answered: no vote changes any more."""
        row = {"code": code, "question": _text("question", question)}
        with self._led(code, lead) as database:
            database.execute(self._store.upsert(reveals, row))

    def move(self, code: str, lead: str, position: Position) -> None:
        """The lead stands at `position`.

        Raises GradebookError for a link of more than LONGEST_LINK
        characters.
        """
        _text("link", position.link or "-", LONGEST_LINK)
        known = self.read(code)
        if known is not None and known.position == position:
            return
        with self._led(code, lead) as database:
            room = update(rooms).where(rooms.c.code == code)
            database.execute(room.values(vars(position)))

    # Inside

    @contextmanager
    def _changed(self, code: str) -> Iterator[Connection]:
        """A transaction that changes the room. The room's row is taken
        first, so that changes of one room come one after the other."""
        with self._store.write() as database:
            new = {"version": rooms.c.version + 1, "touched": self._clock()}
            room = update(rooms).where(rooms.c.code == code).values(new)
            if not database.execute(room).rowcount:
                raise refuse("a room that is open", code, "room")
            yield database
        self._wrote[code] += 1
        self._known.pop(code, None)

    @contextmanager
    def _led(self, code: str, lead: str) -> Iterator[Connection]:
        with self._changed(code) as database:
            if not database.execute(_seat(leads, code, lead)).first():
                raise GradebookError(key="room", expected="its lead's key")
            yield database

    def _refuse_if_full(self, database: Connection, code: str, now: float) -> None:
        here = (seats.c.code == code, seats.c.heard >= now - GONE)
        if _count(database, seats, *here) >= MOST_SEATS:
            raise _too_many(f"at most {MOST_SEATS} learners")

    def _write_choice(
        self,
        database: Connection,
        made: Mapping[str, int],
        code: str,
        seat: str,
        question: str,
        choice: int,
    ) -> None:
        if question not in made and len(made) >= MOST_QUESTIONS:
            expected = f"at most {MOST_QUESTIONS} questions"
            raise GradebookError(key="vote", expected=expected)
        row: dict[str, Any] = {"question": _text("question", question)}
        row |= {"code": code, "seat": hashed(seat), "choice": choice}
        database.execute(self._store.upsert(votes, row, "choice"))


def normal(typed: str) -> str:
    """A code as people type it: any case, with spaces or hyphens."""
    kept = "".join(c for c in typed.upper() if c.isalnum())
    return kept[:LONGEST_TEXT]


def _code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def _new_key() -> str:
    return secrets.token_urlsafe(16)


def _room(code: str) -> Select[Any]:
    return select(rooms).where(rooms.c.code == code)


def _of(table: Table, code: str, seat: str) -> tuple[ColumnElement[bool], ...]:
    """The table's rows of one seat in one room."""
    return (table.c.code == code, table.c.seat == hashed(seat))


def _seat(table: Table, code: str, seat: str) -> Select[Any]:
    return select(table).where(*_of(table, code, seat))


def _reveal(code: str, question: str) -> Select[Any]:
    return select(reveals).where(reveals.c.code == code, reveals.c.question == question)


def _choices(database: Connection, code: str, seat: str) -> dict[str, int]:
    query = select(votes.c.question, votes.c.choice).where(*_of(votes, code, seat))
    return dict(database.execute(query).all())


def _count(database: Connection, table: Table, *where: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(table).where(*where)
    return int(database.execute(query).scalar_one())


def _too_many(expected: str) -> GradebookError:
    return GradebookError(key="room", expected=expected, found="one more")


def _text(name: str, text: str, most: int = LONGEST_TEXT) -> str:
    if not 0 < len(text) <= most:
        raise refuse(f"1 to {most} characters", len(text), name)
    return text
