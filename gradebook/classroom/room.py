"""Rooms: a lead asks, learners predict, the lead reveals.

Rooms live in a database (`store`), so they survive their server, and several
servers share them. A browser goes by its seat, a random token. Methods are thread-safe.
"""

import math
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session, selectinload

from gradebook.classroom import store
from gradebook.classroom.store import (
    GONE,
    LOOKED,
    Database,
    Position,
    Room,
    Seat,
    hashed,
)
from gradebook.core.errors import GradebookError, refuse

ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""The characters of a room's code. No two look alike, and they spell no words."""
LENGTH = 6
"""Characters of a room's code: 21 to the power of 6 is 86 million codes."""
MOST_ROOMS = 1000
"""It bounds the database: rooms are open to whoever finds the page."""
MOST_CHOICES = 20
"""It bounds what a forged vote may write. A case's question has at most 4 choices."""
KEPT = 23 * 3600.0
"""Seconds that a silent room is kept. Each server deletes such rooms every ten
minutes, so none is kept for more than a day."""
IDLE = 2 * 3600.0
"""Seconds after which a silent room may be deleted from a full server. A class that has
a break leaves its browsers open, so its room is not silent."""
SHARED = 0.25
"""Seconds for which one look at a room serves all who ask for it: as long as `news`
waits between two looks."""
WHOLE = 5.0
"""Seconds after which a room is read again though nobody changed it, since seats were
heard of meanwhile. A twelfth of `store.GONE`, so the number of learners who are here is
hardly older than it has to be."""
READERS = 64
"""Locks of which each room has one: whoever waits for a room's read shares it. Two
rooms seldom share one: there are more locks than connections to the database, of which
a read takes one."""


class Rooms:
    """The rooms of the database at a URL. What a lead does takes the lead's own seat.

    Methods raise GradebookError, in a learner's words, for a room that is not open and
    for a lead's act by anybody else; Away for a database that cannot be used.
    """

    def __init__(self, url: str = "") -> None:
        self.database = Database(url)
        self._begin = self.database.begin
        # When each room was looked at, when it was read, and the room.
        self._known: dict[str, tuple[float, float, Room]] = {}
        self._wrote: Counter[str] = Counter()
        self._reading = [Lock() for _ in range(READERS)]

    # Everybody

    def read(self, code: str) -> Room | None:
        """The current room; None if it is not open. It may be SHARED
        seconds old; apart from when seats were heard of, it is never older than
        what this server wrote. It is the same object until somebody changed the room,
        or WHOLE seconds have passed.

        A class asks at one moment, and a room of 300 seats is long to read. So one
        reads it, and the others wait for that; and it is read only if a look at its
        row says that it was changed."""
        if room := self._fresh(code):
            return room
        with self._reading[hash(code) % READERS]:
            if room := self._fresh(code):
                return room
            now, wrote = time.time(), self._wrote[code]
            with self._begin() as database:
                seats = selectinload(Room.seats)
                read, room = self._unchanged(database, code, now) or (
                    now,
                    database.get(Room, code, options=[seats]),
                )
            if room is None:
                self._known.pop(code, None)
            elif wrote == self._wrote[code]:
                self._known[code] = now, read, room
        return room

    def known(self, code: str) -> Room | None:
        """The room as this server read it last; None if it did not. Asks no database,
        so that an edit never waits for one."""
        return self._known.get(code, (0.0, 0.0, None))[-1]

    def _unchanged(
        self, database: Session, code: str, now: float
    ) -> tuple[float, Room] | None:
        """When the room was read last, and the room, if both still serve."""
        _, read, room = self._known.get(code, (0.0, -math.inf, None))
        if room is None or not 0 <= now - read < WHOLE:
            return None
        touched = database.scalar(select(Room.touched).where(Room.code == code))
        return (read, room) if touched == room.touched else None

    def _fresh(self, code: str) -> Room | None:
        looked, _, room = self._known.get(code, (-math.inf, 0.0, None))
        return room if 0 <= time.time() - looked < SHARED else None

    def room_of(self, seat: str) -> str:
        """The room that this browser leads or has joined, the last one of
        several, unless it left; '' for none."""
        rooms = select(Seat.code).where(Seat.seat == hashed(seat), Seat.heard > 0)
        with self._begin() as database:
            return database.scalar(rooms.order_by(Seat.heard.desc())) or ""

    def heard(self, code: str, seat: str) -> bool:
        """The browser is in this room, as a learner or as a lead. Asking
        keeps the room, and the seat in it."""
        now = time.time()
        mine = (Seat.code == code, Seat.seat == hashed(seat), Seat.heard > 0)
        silent = (Room.code == code, Room.touched < now - GONE)
        here = select(Seat).where(*mine).exists()
        with self._begin() as database:
            # The room's row first, as in every change; but seldom: all wait for it.
            database.execute(update(Room).where(*silent, here).values(touched=now))
            heard = update(Seat).where(*mine).values(heard=now)
            return bool(database.scalar(heard.returning(Seat.seat)))

    # The learners' side

    def join(self, code: str, seat: str, question: str = "") -> None:
        """The browser takes its seat, or still has it, and sees the question.

        Raises GradebookError for a newcomer to a room that is full or locked.
        """
        now = time.time()
        learners = (Seat.code == code, ~Seat.leads, Seat.heard >= now - GONE)
        with self._begin() as database:
            room = _locked(database, code)
            if not _seat(database, code, seat).heard:
                _require(not room.locked, "The room is locked: nobody new can join.")
                most = store.MOST_SEATS if room.most is None else room.most
                is_free = _count(database, Seat, *learners) < most
                full = f"The room is full: it takes at most {most} learners."
                _require(is_free, full)
            row = Seat(code=code, seat=hashed(seat), heard=now, question=question)
            database.merge(row)

    def change_seat(self, code: str, seat: str, **values: Any) -> None:
        """Other values in the seat's row: `follows`, or 0 as `heard` for a seat that
        is left, whose votes count on."""
        mine = (Seat.code == code, Seat.seat == hashed(seat))
        with self._changed(code) as (database, _):
            database.execute(update(Seat).where(*mine).values(values))

    def vote(
        self,
        code: str,
        seat: str,
        question: str,
        choice: int,
        place: float | None = None,
    ) -> None:
        """The seat's choice, and where it was put on the axis. It replaces an earlier
        one, and is written when this returns. A seat that LOOKED at the answer has no
        vote any more.

        Raises GradebookError after the reveal and after the timer, for a seat that has
        not joined or has looked at the answer, and for an impossible choice.
        """
        if not LOOKED <= choice < MOST_CHOICES:
            raise refuse(f"a choice from 0 to {MOST_CHOICES - 1}", choice, "vote")
        with self._changed(code) as (database, room):
            mine = _seat(database, code, seat)
            looked = mine.votes.get(question) == LOOKED
            is_early = question not in room.revealed
            late = "The lead has revealed the answer: votes count up to then."
            _require(is_early, late)
            over = "The time for this question is up: votes count up to then."
            _require(choice == LOOKED or not room.is_over(question), over)
            _require(mine.heard > 0, "You have left this room. Join it to vote.")
            _require(not looked, "You looked at the answer, so you have no vote here.")
            mine.votes = {**mine.votes, question: choice}
            places = {name: at for name, at in mine.places.items() if name != question}
            mine.places = places | ({} if place is None else {question: place})

    # The lead's side

    def open(self, lead: str) -> str:
        """Opens a room for the browser `lead`: its code.

        Raises GradebookError when the database is full of rooms that somebody uses.
        """
        now, code = time.time(), ""
        with self._begin() as database:
            if _count(database, Room) >= MOST_ROOMS:
                database.execute(delete(Room).where(Room.touched < now - IDLE))
            is_free = _count(database, Room) < MOST_ROOMS
            full = f"At most {MOST_ROOMS} rooms are open at a time. Try again later."
            _require(is_free, full)
            while not code or database.get(Room, code) is not None:
                code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
            database.add(Room(code=code, token=secrets.token_urlsafe(16), touched=now))
            database.flush()
            database.add(Seat(code=code, seat=hashed(lead), leads=True, heard=now))
        return code

    def new_key(self, code: str, lead: str) -> str:
        """A key with which another browser leads, too. It replaces the one before."""
        key = secrets.token_urlsafe(16)
        self.change(code, lead, key=hashed(key))
        return key

    def take(self, code: str, key: str, seat: str) -> None:
        """The browser leads, too. Raises GradebookError for a wrong key."""
        with self._changed(code) as (database, room):
            is_lead = room.key == hashed(key)
            _require(is_lead, "This key is not the one in the lead's own link.")
            columns = {"code": code, "seat": hashed(seat), "heard": time.time()}
            database.merge(Seat(**columns, leads=True, votes={}))

    def close(self, code: str, lead: str) -> None:
        """Deletes the room with everything that was kept of it."""
        with self._led(code, lead) as (database, room):
            database.delete(room)

    def reveal(self, code: str, lead: str, question: str, on: bool = True) -> None:
        """Reveals the answer: no vote changes any more. With `on` False the
        reveal is taken back."""
        with self._led(code, lead) as (_, room):
            others = [name for name in room.revealed if name != question]
            if not on:
                room.revealed = others
            elif question not in room.revealed:
                room.revealed = [*others, question]

    def ask_again(self, code: str, lead: str, question: str) -> None:
        """Asks the question a second time, after the class has discussed it. The first
        votes are kept beside the new ones, and the timer is off."""
        with self._led(code, lead) as (database, room):
            is_first = question not in room.again
            _require(is_first, "This question was asked a second time already.")
            seats = database.scalars(select(Seat).where(Seat.code == code))
            voted = [s for s in seats if s.votes.get(question, LOOKED) != LOOKED]
            _require(bool(voted), "Nobody has voted yet. Ask again after a first vote.")
            room.again, room.ends = [*room.again, question], None
            room.revealed = [name for name in room.revealed if name != question]
            for seat in voted:
                seat.before = {**seat.before, question: seat.votes[question]}
                others = {q: c for q, c in seat.votes.items() if q != question}
                seat.votes = others

    def change(self, code: str, lead: str, **values: Any) -> None:
        """Changes values of the room, such as `locked`, `most` and `ends`."""
        with self._led(code, lead) as (_, room):
            for name, value in values.items():
                setattr(room, name, value)

    def reset(self, code: str, lead: str) -> None:
        """The room as it was opened, for the next class: its code, its link
        and its lead stay."""
        with self._led(code, lead) as (database, room):
            database.execute(delete(Seat).where(Seat.code == code, ~Seat.leads))
            room.revealed, room.again, room.reached = [], [], {}
            room.place, room.ends = None, None

    def move(self, code: str, lead: str, *place: str, seen: Sequence[str] = ()) -> None:
        """Moves the lead to `place`: the fields of a Position, in their order; but not
        if the room is no longer at the page and the question that were `seen`. A timer
        that has ended was the last question's."""
        here = Position(*place)
        with self._led(code, lead) as (_, room):
            before = room.position
            if before and seen and before.heading[:2] != tuple(seen[:2]):
                return
            if before and before.question != here.question and room.ends:
                room.ends = room.ends if time.time() < room.ends else None
            if here.question not in room.reached:
                room.reached = {**room.reached, here.question: time.time()}
            room.place = vars(here)

    def sweep(self) -> None:
        """Deletes the rooms that nobody used for KEPT seconds."""
        silent = time.time() - KEPT
        with self._begin() as database:
            database.execute(delete(Room).where(Room.touched < silent))
        for code, (*_, room) in [*self._known.items()]:
            if room.touched < silent:
                self._known.pop(code, None)

    # Inside

    @contextmanager
    def _changed(self, code: str) -> Iterator[tuple[Session, Room]]:
        """A transaction that changes the room, which is read anew after it."""
        with self._begin() as database:
            yield database, _locked(database, code)
        self._wrote[code] += 1
        if room := self.known(code):
            self._known[code] = -math.inf, -math.inf, room

    @contextmanager
    def _led(self, code: str, lead: str) -> Iterator[tuple[Session, Room]]:
        with self._changed(code) as (database, room):
            leads = _seat(database, code, lead).leads
            _require(leads, "Only the lead of the room can do that.")
            yield database, room


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise GradebookError(otherwise)


def _locked(database: Session, code: str) -> Room:
    """The room, its row locked until the transaction's end. So changes of one room come
    one after the other: what one of them reads, such as a seat's votes, is still true
    when it writes."""
    room = database.get(Room, code, with_for_update=True)
    if room is None:
        raise GradebookError(f"Room {code} is closed.")
    room.touched = time.time()
    return room


def _seat(database: Session, code: str, seat: str) -> Seat:
    return database.get(Seat, (code, hashed(seat))) or store.NOBODY


def _count(database: Session, table: type[Room] | type[Seat], *where: Any) -> int:
    query = select(func.count()).select_from(table).where(*where)
    return int(database.scalar(query) or 0)
