"""The tables of rooms, in an SQL database.

One schema and one SQL serve SQLite and PostgreSQL. Tokens of browsers are
stored hashed, so that a copy of the database leads no room.
"""

import hashlib
import logging
import math
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sql
from platformdirs import user_data_path
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    attribute_keyed_dict,
    mapped_column,
    relationship,
    sessionmaker,
)

from gradebook.classroom.away import Away

VERSION = 5
"""Of the tables. Rooms last a day at most, so those of an earlier version are
dropped."""
ONE_AT_A_TIME = 0x67726164
"""PostgreSQL's lock for servers that start together."""
MOST_SEATS = 500
"""Learners of a room: the largest class of `tests/bench/classroom.py`."""
GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room. A browser asks at
least every 20 s (`news.WAIT`), so one that loses two requests still counts."""
LOOKED = -1
"""The choice of a seat that looked at the answer: no vote. The pages say SKIPPED."""


def hashed(token: str) -> str:
    """What is stored of a browser's token."""
    return hashlib.sha256(token.encode()).hexdigest()


# The tables. A Room with its seats, read as a whole, is the room at one moment


@dataclass(frozen=True)
class Position:
    """Where the lead is: the page's name, the question there, the lead's state as the
    query of a link, and the stage that is open."""

    page: str
    question: str
    link: str = ""
    stage: str = ""

    @property
    def heading(self) -> tuple[str, str, str]:
        """Where followers are taken."""
        return self.page, self.question, self.stage


class Base(DeclarativeBase):
    in_json = (dict[str, int], dict[str, float], dict[str, str], list[str])
    type_annotation_map = dict.fromkeys(in_json, sql.JSON)


versions = sql.Table(
    "gradebook_schema", Base.metadata, sql.Column("version", sql.Integer)
)


class Seat(Base):
    """A browser in a room, by its token's hash.

    heard   when it last asked for the room; 0 for a seat that was left
    votes   by question, its choice, or LOOKED
    before  by question that was asked again, the choice of the first vote
    places  by question, where on the axis the last guess was put
    """

    __tablename__ = "seats"
    code: Mapped[str] = mapped_column(
        sql.ForeignKey("rooms.code", ondelete="CASCADE"), primary_key=True
    )
    seat: Mapped[str] = mapped_column(primary_key=True, index=True)
    leads: Mapped[bool] = mapped_column(default=False)
    heard: Mapped[float]
    question: Mapped[str] = mapped_column(default="")
    follows: Mapped[bool] = mapped_column(default=True)
    votes: Mapped[dict[str, int]] = mapped_column(default=dict)
    before: Mapped[dict[str, int]] = mapped_column(default=dict)
    places: Mapped[dict[str, float]] = mapped_column(default=dict)


class Room(Base):
    """A room.

    token     of the link that joins without a typed code
    key       hash of the key in the lead's own link; None before it was made
    touched   when it last gave a sign of life
    place     the lead's Position; None before the first case
    reached   when the lead first came to each question, in that order
    revealed  the questions whose answers the lead has revealed, in that order
    again     the questions that were asked a second time
    locked    newcomers stay outside
    most      seats that the lead allows; None for MOST_SEATS
    ends      when the lead's timer ends; None without one
    """

    __tablename__ = "rooms"
    code: Mapped[str] = mapped_column(primary_key=True)
    token: Mapped[str]
    key: Mapped[str | None]
    touched: Mapped[float]
    place: Mapped[dict[str, str] | None]
    reached: Mapped[dict[str, float]] = mapped_column(default=dict)
    revealed: Mapped[list[str]] = mapped_column(default=list)
    again: Mapped[list[str]] = mapped_column(default=list)
    locked: Mapped[bool] = mapped_column(default=False)
    most: Mapped[int | None]
    ends: Mapped[float | None]
    seats: Mapped[dict[str, Seat]] = relationship(
        viewonly=True, collection_class=attribute_keyed_dict("seat")
    )

    @property
    def position(self) -> Position | None:
        return Position(**self.place) if self.place else None

    @cached_property
    def counts(self) -> "Counts":
        """How many seats made each choice, by question."""
        return _counted(seat.votes for seat in self.seats.values())

    @cached_property
    def counts_before(self) -> "Counts":
        """The same of the first votes on questions that were asked again."""
        return _counted(seat.before for seat in self.seats.values())

    def places(self, question: str) -> list[float]:
        """Where the guesses that count were put on the axis, from left to right."""
        return sorted(
            seat.places[question]
            for seat in self.seats.values()
            if question in seat.places and seat.votes.get(question, LOOKED) != LOOKED
        )

    def is_over(self, question: str) -> bool:
        """The lead's timer has ended at this question."""
        at = self.place["question"] if self.place else ""
        return at == question and self.ends is not None and time.time() >= self.ends

    @cached_property
    def present(self) -> Counter[str]:
        """The learners that were heard of in the last GONE seconds, by the question
        that they see."""
        since = time.time() - GONE
        seats = [s for s in self.seats.values() if not s.leads and s.heard >= since]
        return Counter(seat.question for seat in seats)

    def seat(self, token: str) -> Seat:
        """The browser's seat; NOBODY if it has none."""
        return self.seats.get(hashed(token), NOBODY)


NOBODY = Seat(
    leads=False,
    heard=0.0,
    question="",
    follows=True,
    votes={},
    before={},
    places={},
)
"""The seat of whoever is not in the room."""


class Counts(dict[str, Counter[int]]):
    """By question, how many seats made each choice. Reading changes nothing: many read
    one room."""

    def __missing__(self, question: str) -> Counter[int]:
        return Counter()


def _counted(votes: Iterable[Mapping[str, int]]) -> Counts:
    counts = Counts()
    for of_seat in votes:
        for question, choice in of_seat.items():
            if choice != LOOKED:
                counts.setdefault(question, Counter())[choice] += 1
    return counts


# The database


PATIENCE = 5
"""Seconds that a database has to connect, to end some transaction of this server, and
to give SQLite's lock. One that needs longer is away. A
page waits that long at most, and people leave a page that does nothing for longer."""
QUEUE = 4 * PATIENCE
"""Seconds to wait for a connection, and for a lock or an answer of a database that
answers others meanwhile: longer than PATIENCE, since the votes of a class are written
one after the other."""
AGAIN = 1.0
"""Seconds until a database that is away is tried again: one connection a second is no
load for one that recovers."""
CONNECTIONS, MORE_CONNECTIONS = 16, 10
"""Connections of PostgreSQL that a server keeps, and takes besides under load. By
default PostgreSQL allows 100 (max_connections): three servers take 78."""
LOG = logging.getLogger(__name__)


class UnusableDatabase(Exception):
    """Why a database that answers cannot be used."""


FAILURES = (sql.exc.SQLAlchemyError, OSError, ImportError, UnusableDatabase)
"""What is raised for a database, for its folder, and without PostgreSQL's driver."""


class Database:
    """The rooms' database: whatever goes wrong with it is Away.

    After a failure nothing is asked of it, so that nobody waits for it a second time. A
    thread of its own tries once a second whether a write works again.

    url  '' for SQLite in the user's data folder
    """

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._lock, self._opening = threading.Lock(), threading.Lock()
        self._engine: sql.Engine | None = None
        self._is_open = self.is_away = False
        self._ended, self._trying = threading.Event(), 0
        self._retry: threading.Thread | None = None
        # Transactions that are under way, and when each began; when the last one that
        # succeeded ended; raw connections.
        self._begun: dict[object, float] = {}
        self._answered = 0.0
        self._raw: set[Any] = set()

    @property
    def engine(self) -> sql.Engine:
        if self._engine is None:
            engine = self._engine = _engine(self._url)
            sql.event.listen(engine, "checkout", self._given)
            sql.event.listen(engine, "do_connect", self._given)
            if engine.dialect.name == "postgresql":
                sql.event.listen(engine, "connect", lambda c, _: self._raw.add(c))
                sql.event.listen(engine, "close", lambda c, _: self._raw.discard(c))
                threading.Thread(target=self._watch, daemon=True).start()
        return self._engine

    def _given(self, *_: object) -> None:
        """Wakes a thread that waited for a connection which another thread has lost."""
        if self.is_away and threading.get_ident() != self._trying:
            raise UnusableDatabase

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction, which is written when this ends. Raises Away."""
        if self.is_away:
            raise Away
        try:
            with self._timed():
                self._open()
                begun = sessionmaker(self.engine, expire_on_commit=False).begin()
                with begun as session:
                    yield session
                self._answered = time.monotonic()
        except FAILURES as error:
            self._lost(error)
            raise Away from None

    def close(self) -> None:
        """Ends the threads and the connections."""
        self._ended.set()
        if self._retry is not None:
            # A connection that the thread holds would not be closed with the others.
            self._retry.join(2 * PATIENCE)
        if self._engine is not None:
            self._engine.dispose()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        key = object()
        self._begun[key] = time.monotonic()
        try:
            yield
        finally:
            del self._begun[key]

    def _open(self) -> None:
        """Makes the tables, once. If it fails, it fails for every thread that waits for
        it."""
        if self._is_open:
            return
        with self._opening:
            if self.is_away:
                raise Away
            try:
                if not self._is_open:
                    with self.engine.begin() as connection:
                        _make_tables(connection)
            except FAILURES as error:
                self._lost(error)
                raise
            self._is_open = True

    def _lost(self, error: Exception) -> None:
        with self._lock:
            if self.is_away:
                return
            self.is_away, self._is_open = True, False
        LOG.warning("The rooms' database is away: %s", getattr(error, "orig", error))
        retry = threading.Thread(target=self._try_again, daemon=True)
        retry.start()
        self._retry = retry

    def _try_again(self) -> None:
        self._trying = threading.get_ident()
        while not self._ended.wait(AGAIN):
            with suppress(*FAILURES), self._timed():
                self._forget_connections()
                with self.engine.begin() as connection:
                    _make_tables(connection)
                    # A full disk can be read, and a locked one, too.
                    connection.execute(versions.update().values(version=VERSION))
                self._is_open, self.is_away = True, False
                LOG.warning("The rooms' database is back.")
                return

    def _forget_connections(self) -> None:
        """Closes the connections, which may be to a database that is gone."""
        if self.engine.dialect.name == "postgresql":
            self.engine.dispose()
            return
        # SQLite's one connection is taken in turn. To dispose of the pool could take it
        # from a thread that was just given it, and that thread would wait for ever.
        with self.engine.connect() as connection:
            connection.invalidate()

    def _watch(self) -> None:
        """Cuts the connections of a database that hangs: its kernel still takes what
        is sent, so that no timeout of the connection comes true. One that answers
        others does not hang: who waits for it waits in a queue."""
        while not self._ended.wait(AGAIN / 2):
            begun = min([*self._begun.values()], default=math.inf)
            if time.monotonic() - max(begun, self._answered) > PATIENCE:
                # Away first: who is cut off must not connect again, and wait again.
                self._lost(UnusableDatabase(f"no answer for {PATIENCE} s"))
                for connection in [*self._raw]:
                    with suppress(Exception):  # as varied as what hangs
                        cut = socket.socket(fileno=os.dup(connection.fileno()))
                        cut.shutdown(socket.SHUT_RDWR)
                        cut.close()


def _engine(url: str) -> sql.Engine:
    """Raises what can be wrong with an address and a folder."""
    if not url:
        folder = user_data_path("gradebook", appauthor=False, ensure_exists=True)
        url = f"sqlite:///{folder / 'rooms.db'}"
    if url.startswith("sqlite"):
        # SQLite has one writer, and a second one can only try again. Here threads wait
        # for the one connection instead.
        queue: dict[str, Any] = {"poolclass": sql.QueuePool, "pool_timeout": QUEUE}
        engine = sql.create_engine(url, pool_size=1, max_overflow=0, **queue)
        sql.event.listen(engine, "connect", _set_up_sqlite)
        # A transaction that will write locks at once: of two readers that both go on to
        # write, one would have to fail.
        sql.event.listen(
            engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE")
        )
        return engine
    # In ms. A transaction that idles for longer than any wait of it is one of a server
    # that stopped: its locks are free again after a minute.
    thousandths = 1000 * QUEUE
    return sql.create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=MORE_CONNECTIONS,
        pool_timeout=QUEUE,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": PATIENCE,
            "tcp_user_timeout": 1000 * PATIENCE,
            "options": f"-c statement_timeout={thousandths}"
            f" -c lock_timeout={thousandths}"
            f" -c idle_in_transaction_session_timeout={3 * thousandths}",
        },
    )


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the listener begins
    wait = f"busy_timeout={1000 * PATIENCE}"
    for setting in (wait, "journal_mode=WAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")


def _make_tables(database: sql.Connection) -> None:
    """Raises UnusableDatabase for the tables of a newer Gradebook."""
    if database.dialect.name == "postgresql":
        lock = sql.text("SELECT pg_advisory_xact_lock(:key)")
        database.execute(lock, {"key": ONE_AT_A_TIME})
    if sql.inspect(database).has_table(versions.name):
        version = database.execute(sql.select(versions.c.version)).scalar_one()
        if version > VERSION:
            raise UnusableDatabase(
                f"expected tables of version {VERSION}, found {version}"
            )
        if version == VERSION:
            return
        for table in ("drafts", "votes", "reveals", "leads", "seats", "rooms"):
            database.execute(sql.text(f"DROP TABLE IF EXISTS {table}"))
        versions.drop(database)
    Base.metadata.create_all(database)
    database.execute(versions.insert().values(version=VERSION))
