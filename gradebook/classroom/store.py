"""Where rooms are kept: an SQL database, SQLite in the user's data folder
unless a URL names another.

One schema and one SQL serve SQLite and PostgreSQL. Tokens of browsers are
stored hashed, so that a copy of the database leads no room.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from platformdirs import user_data_path
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    ForeignKey,
    Integer,
    Table,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    attribute_keyed_dict,
    mapped_column,
    relationship,
)

from gradebook.core.errors import GradebookError

VERSION = 4
"""Of the tables. Rooms last a day at most, so those of an earlier version are
dropped."""
ONE_AT_A_TIME = 0x67726164
"""PostgreSQL's lock for servers that start together."""
GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room."""
LOOKED = -1
"""The choice of a seat that looked at the answer: no vote."""
ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""No two of these look alike, and they spell no words."""
LENGTH = 6
"""Characters of a room's code: 21 to the power of 6 is 86 million codes."""


def new_code(length: int = LENGTH) -> str:
    """A code that nobody can guess from another."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def hashed(token: str) -> str:
    """What is stored of a browser's token."""
    return hashlib.sha256(token.encode()).hexdigest()


# The tables. A Room with its seats, read as a whole, is the room at one moment


@dataclass(frozen=True)
class Position:
    """Where the lead is: the page's name in its address, the scenario there, the
    lead's state as the query of a link, and the stage that is open."""

    page: str
    question: str
    link: str = ""
    stage: str = ""

    @property
    def heading(self) -> tuple[str, str, str]:
        """Where followers are taken."""
        return self.page, self.question, self.stage


class Base(DeclarativeBase):
    """The tables of rooms."""

    type_annotation_map = {dict[str, int]: JSON, dict[str, str]: JSON, list[str]: JSON}


versions = Table("gradebook_schema", Base.metadata, Column("version", Integer))


class Seat(Base):
    """A browser in a room, by its token's hash.

    heard  when it last asked for the room; 0 for a seat that was left
    votes  by question, its choice, or LOOKED
    """

    __tablename__ = "seats"
    code: Mapped[str] = mapped_column(
        ForeignKey("rooms.code", ondelete="CASCADE"), primary_key=True
    )
    seat: Mapped[str] = mapped_column(primary_key=True, index=True)
    leads: Mapped[bool] = mapped_column(default=False)
    heard: Mapped[float]
    question: Mapped[str] = mapped_column(default="")
    follows: Mapped[bool] = mapped_column(default=True)
    votes: Mapped[dict[str, int]] = mapped_column(default=dict)


class Room(Base):
    """A room.

    token     of the link that joins without a typed code
    key       hash of the key in the lead's own link; None before it was made
    touched   when it last gave a sign of life
    place     the lead's Position; None before the first case
    revealed  the questions whose answers the lead has revealed, in that order
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
    revealed: Mapped[list[str]] = mapped_column(default=list)
    locked: Mapped[bool] = mapped_column(default=False)
    most: Mapped[int | None]
    ends: Mapped[float | None]
    seats: Mapped[dict[str, Seat]] = relationship(
        viewonly=True, collection_class=attribute_keyed_dict("seat")
    )

    @property
    def position(self) -> Position | None:
        """Where the lead stands."""
        return Position(**self.place) if self.place else None

    @cached_property
    def counts(self) -> Mapping[str, Mapping[int, int]]:
        """How many seats made each choice, by question."""
        counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for seat in self.seats.values():
            for question, choice in seat.votes.items():
                if choice != LOOKED:
                    counts[question][choice] += 1
        return dict(counts)

    @cached_property
    def present(self) -> Mapping[str, int]:
        """The learners that were heard of in the last GONE seconds, by the question
        that they see."""
        since = time.time() - GONE
        seats = [s for s in self.seats.values() if not s.leads and s.heard >= since]
        return Counter(seat.question for seat in seats)

    @property
    def here(self) -> int:
        """All learners that are present."""
        return sum(self.present.values())

    def seat(self, seat: str) -> Seat | None:
        """This browser's seat."""
        return self.seats.get(hashed(seat))

    def led_by(self, seat: str) -> bool:
        """This browser leads the room."""
        mine = self.seat(seat)
        return mine is not None and mine.leads

    def votes(self, seat: str) -> dict[str, int]:
        """What the browser chose, by question; LOOKED where it has no vote."""
        mine = self.seat(seat)
        return mine.votes if mine else {}

    def follows(self, seat: str) -> bool:
        """The browser follows the lead; so it begins."""
        mine = self.seat(seat)
        return mine is None or mine.follows

    def answers(self, question: str) -> int:
        """How many votes the question has."""
        return sum(self.counts.get(question, {}).values())


# The database


class Store:
    """An open database, its tables made.

    url  '' for SQLite in the user's data folder

    Raises GradebookError for a database of a newer Gradebook.
    """

    def __init__(self, url: str = "") -> None:
        if not url:
            folder = user_data_path("gradebook", appauthor=False, ensure_exists=True)
            url = f"sqlite:///{folder / 'rooms.db'}"
        self.engine = create_engine(url, pool_size=16)
        self._turn: AbstractContextManager[Any] = nullcontext()
        if self.engine.dialect.name == "sqlite":
            # SQLite has one writer, and who finds it busy only tries again.
            self._turn = Lock()
            event.listen(self.engine, "connect", _set_up_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        with self.begin() as database:
            _make_tables(database.connection())

    def close(self) -> None:
        """Ends every connection."""
        self.engine.dispose()

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction, which is kept when it ends without an error."""
        with (
            self._turn,
            Session(self.engine, expire_on_commit=False) as database,
            database.begin(),
        ):
            yield database


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # _begin_sqlite begins
    for setting in ("journal_mode=WAL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    # Whoever will write takes its place at once: two readers that both go on to
    # write could only fail.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _make_tables(database: Connection) -> None:
    if database.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(:key)")
        database.execute(lock, {"key": ONE_AT_A_TIME})
    if inspect(database).has_table(versions.name):
        version = database.execute(select(versions.c.version)).scalar_one()
        if version > VERSION:
            expected = f"version {VERSION}"
            raise GradebookError(key="database", expected=expected, found=str(version))
        if version == VERSION:
            return
        for table in ("drafts", "votes", "reveals", "leads", "seats", "rooms"):
            database.execute(text(f"DROP TABLE IF EXISTS {table}"))
        versions.drop(database)
    Base.metadata.create_all(database)
    database.execute(versions.insert().values(version=VERSION))
