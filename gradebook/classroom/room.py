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

from gradebook.classroom.codes import new_code
from gradebook.classroom.snapshot import GONE, LOOKED, Position, Room, snapshot
from gradebook.classroom.store import (
    Store,
    drafts,
    hashed,
    leads,
    new_token,
    reveals,
    rooms,
    seats,
    votes,
)
from gradebook.core.errors import GradebookError, refuse

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
LONGEST_NAME = 40
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
            rows = [row for query in queries for row in database.execute(query)]
        return max(rows, key=lambda row: row.since).code if rows else ""

    def heard(self, code: str, seat: str) -> bool:
        """The browser is in this room, as a learner or as a lead. Asking
        keeps the room, and the seat in it."""
        now = self._clock()
        with self._store.write() as database:
            here = (_seat(table, code, seat) for table in (seats, leads))
            if not any(database.execute(query).first() for query in here):
                return False
            # The room's row first, as in every change; but seldom: all wait for it.
            silent = (rooms.c.code == code, rooms.c.touched < now - GONE)
            database.execute(update(rooms).where(*silent).values(touched=now))
            heard = update(seats).where(*_of(seats, code, seat))
            database.execute(heard.values(heard=now))
            return True

    # The learners' side

    def join(self, code: str, seat: str, question: str = "") -> None:
        """Takes the seat, or says that it is still taken.

        question  the scenario that the learner sees; '' for none

        Raises GradebookError for a newcomer to a room that is full or locked.
        """
        now, token = self._clock(), hashed(_text("seat", seat))
        _text("question", question or "-")
        here = {"heard": now, "question": question}
        row = {"code": code, "seat": token, "since": now, "follows": True, **here}
        mine = update(seats).where(*_of(seats, code, seat)).values(here)
        with self._store.write() as database:
            if not database.execute(mine).rowcount:
                self._refuse_newcomers(database, code, now)
                database.execute(self._store.upsert(seats, row, *here))

    def leave(self, code: str, seat: str) -> None:
        """The seat is free. Its votes count on."""
        with self._changed(code) as database:
            database.execute(delete(seats).where(*_of(seats, code, seat)))

    def call(self, code: str, seat: str, name: str) -> None:
        """The learner's first name, where the lead asks for names; '' for
        none."""
        mine = update(seats).where(*_of(seats, code, seat))
        with self._changed(code) as database:
            asked = database.execute(_room(code)).one().names
            name = name.strip()[:LONGEST_NAME] if asked else ""
            database.execute(mine.values(name=name or None))

    def names(self, code: str, lead: str) -> list[str]:
        """The first names of the learners who gave one, for the lead."""
        query = select(seats.c.name).where(seats.c.code == code)
        with self._led(code, lead) as database:
            names = database.execute(query.where(seats.c.name.is_not(None)))
            return sorted(names.scalars(), key=str.casefold)

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
        this returns. A seat that LOOKED at the answer has no vote any more.

        Raises GradebookError after the reveal, for a seat that has not
        joined or has looked at the answer, and for an impossible choice.
        """
        if not LOOKED <= choice < MOST_CHOICES:
            raise refuse(f"a choice from 0 to {MOST_CHOICES - 1}", choice, "vote")
        row: dict[str, Any] = {"question": _text("question", question)}
        row |= {"code": code, "seat": hashed(seat), "choice": choice}
        this = (reveals.c.code == code, reveals.c.question == question)
        revealed = select(reveals).where(*this)
        with self._changed(code) as database:
            made = _choices(database, code, seat)
            expected = ""
            if database.execute(revealed).first():
                expected = "a vote before the reveal"
            elif not database.execute(_seat(seats, code, seat)).first():
                expected = "a seat that has joined"
            elif made.get(question) == LOOKED:
                expected = "a vote before a look at the answer"
            elif question not in made and len(made) >= MOST_QUESTIONS:
                expected = f"at most {MOST_QUESTIONS} questions"
            if expected:
                raise GradebookError(key="vote", expected=expected)
            database.execute(self._store.upsert(votes, row, "choice"))

    def choices(self, code: str, seat: str) -> dict[str, int]:
        """What the seat chose, by question; LOOKED where it has no vote."""
        with self._store.read() as database:
            return _choices(database, code, seat)

    def keep(self, code: str, seat: str, scenario: str, link: str) -> None:
        """Keeps what a learner or a lead made of a scenario, as the query of
        a link."""
        row = {"code": code, "seat": hashed(seat)}
        row |= {"link": _text("link", link, LONGEST_LINK)}
        row |= {"scenario": _text("scenario", scenario)}
        others = (*_of(drafts, code, seat), drafts.c.scenario != scenario)
        with self._changed(code) as database:
            if _count(database, drafts, *others) < MOST_DRAFTS:
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
        key = new_token()
        with self._store.write() as database:
            if _count(database, leads, leads.c.seat == token) >= MOST_OF_ONE:
                raise _too_many(f"at most {MOST_OF_ONE} open rooms of one lead")
            if _count(database, rooms) >= MOST_ROOMS:
                idle = rooms.c.touched < now - IDLE
                database.execute(delete(rooms).where(idle))
            if _count(database, rooms) >= MOST_ROOMS:
                raise _too_many(f"at most {MOST_ROOMS} rooms on a server")
            code = new_code()
            while database.execute(_room(code)).first():
                code = new_code()
            new = {"key": hashed(key), "opened": now, "touched": now}
            database.execute(rooms.insert().values(code=code, token=new_token(), **new))
            database.execute(leads.insert().values(code=code, seat=token, since=now))
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
        key = new_token()
        with self._led(code, lead) as database:
            room = update(rooms).where(rooms.c.code == code)
            database.execute(room.values(key=hashed(key)))
        return key

    def reveal(self, code: str, lead: str, question: str) -> None:
        """The question is answered: no vote changes any more."""
        row = {"code": code, "question": _text("question", question)}
        with self._led(code, lead) as database:
            database.execute(self._store.upsert(reveals, row))

    def hide(self, code: str, lead: str, question: str) -> None:
        """Takes the reveal back: votes may change again."""
        with self._led(code, lead) as database:
            this = (reveals.c.code == code, reveals.c.question == question)
            database.execute(delete(reveals).where(*this))

    def change(self, code: str, lead: str, **settings: Any) -> None:
        """Other values for `locked`, `most`, `names`, `ends` or `tab`. Names
        that nobody is asked for any more are forgotten."""
        most = settings.get("most")
        if most is not None and not 1 <= most <= MOST_SEATS:
            raise refuse(f"1 to {MOST_SEATS}", most, "learners")
        with self._led(code, lead) as database:
            database.execute(update(rooms).where(rooms.c.code == code).values(settings))
            if settings.get("names") is False:
                mine = update(seats).where(seats.c.code == code)
                database.execute(mine.values(name=None))

    def reset(self, code: str, lead: str) -> None:
        """The room as it was opened, for the next class: its code, its link
        and its lead stay."""
        with self._led(code, lead) as database:
            for table in (seats, votes, reveals, drafts):
                database.execute(delete(table).where(table.c.code == code))
            empty = dict.fromkeys(("page", "question", "link", "stage", "ends"))
            database.execute(update(rooms).where(rooms.c.code == code).values(empty))

    def move(self, code: str, lead: str, position: Position, tab: str = "") -> None:
        """The lead stands at `position`, in the browser's tab `tab`. The room
        follows one tab: what the lead does in another moves nobody.

        Raises GradebookError for a link of more than LONGEST_LINK
        characters.
        """
        _text("link", position.link or "-", LONGEST_LINK)
        known = self.read(code)
        if known is not None and known.tab not in (None, tab):
            return
        if known is not None and (known.position, known.tab or "") == (position, tab):
            return
        with self._led(code, lead) as database:
            room = update(rooms).where(rooms.c.code == code)
            database.execute(room.values(**vars(position), tab=tab or None))

    def sweep(self) -> None:
        """Deletes the rooms that showed no sign of life for KEPT seconds."""
        silent = rooms.c.touched < self._clock() - KEPT
        with self._store.write() as database:
            database.execute(delete(rooms).where(silent))

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

    def _refuse_newcomers(self, database: Connection, code: str, now: float) -> None:
        room = database.execute(_room(code).with_for_update()).first()
        if room is None:
            raise refuse("a room that is open", code, "room")
        if room.locked:
            raise GradebookError(key="room", expected="a room that is not locked")
        here = (seats.c.code == code, seats.c.heard >= now - GONE)
        most = MOST_SEATS if room.most is None else room.most
        if _count(database, seats, *here) >= most:
            raise _too_many(f"at most {most} learners")


def _room(code: str) -> Select[Any]:
    return select(rooms).where(rooms.c.code == code)


def _of(table: Table, code: str, seat: str) -> tuple[ColumnElement[bool], ...]:
    """The table's rows of one seat in one room."""
    return (table.c.code == code, table.c.seat == hashed(seat))


def _seat(table: Table, code: str, seat: str) -> Select[Any]:
    return select(table).where(*_of(table, code, seat))


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
