"""The tables of rooms, in an SQL database.

One schema and one SQL serve SQLite and PostgreSQL. Tokens of browsers are
stored hashed, so that a copy of the database leads no room.
"""

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sql
from platformdirs import user_data_path
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    attribute_keyed_dict,
    mapped_column,
    relationship,
)

from gradebook.core.errors import refuse

VERSION = 4
"""Of the tables. Rooms last a day at most, so those of an earlier version are
dropped."""
ONE_AT_A_TIME = 0x67726164
"""PostgreSQL's lock for servers that start together."""
MOST_SEATS = 500
GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room."""
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
    in_json = (dict[str, int], dict[str, str], list[str])
    type_annotation_map = dict.fromkeys(in_json, sql.JSON)


versions = sql.Table(
    "gradebook_schema", Base.metadata, sql.Column("version", sql.Integer)
)


class Seat(Base):
    """A browser in a room, by its token's hash.

    heard  when it last asked for the room; 0 for a seat that was left
    votes  by question, its choice, or LOOKED
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
        return Position(**self.place) if self.place else None

    @cached_property
    def counts(self) -> Mapping[str, Counter[int]]:
        """How many seats made each choice, by question."""
        counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for seat in self.seats.values():
            for question, choice in seat.votes.items():
                if choice != LOOKED:
                    counts[question][choice] += 1
        return counts

    @cached_property
    def present(self) -> Counter[str]:
        """The learners that were heard of in the last GONE seconds, by the question
        that they see."""
        since = time.time() - GONE
        seats = [s for s in self.seats.values() if not s.leads and s.heard >= since]
        return Counter(seat.question for seat in seats)

    def seat(self, token: str) -> Seat:
        """The browser's seat; NOBODY where it has none."""
        return self.seats.get(hashed(token), NOBODY)


NOBODY = Seat(leads=False, heard=0.0, question="", follows=True, votes={})
"""The seat of whoever is not in the room."""


# The database


def opened(url: str = "") -> sql.Engine:
    """The database, its tables made.

    url  '' for SQLite in the user's data folder

    Raises GradebookError for a database of a newer Gradebook.
    """
    if not url:
        folder = user_data_path("gradebook", appauthor=False, ensure_exists=True)
        url = f"sqlite:///{folder / 'rooms.db'}"
    if url.startswith("sqlite"):
        # SQLite has one writer, and who finds it busy only tries again. Here they
        # wait for the one connection, however long the queue is.
        queue: dict[str, Any] = {"poolclass": sql.QueuePool, "pool_timeout": None}
        engine = sql.create_engine(url, pool_size=1, max_overflow=0, **queue)
        sql.event.listen(engine, "connect", _set_up_sqlite)
        # Whoever will write takes its place at once: two readers that both go on to
        # write could only fail.
        sql.event.listen(
            engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE")
        )
    else:
        engine = sql.create_engine(url, pool_size=16)
    with engine.begin() as database:
        _make_tables(database)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the listener begins
    for setting in ("journal_mode=WAL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {setting}")


def _make_tables(database: sql.Connection) -> None:
    if database.dialect.name == "postgresql":
        lock = sql.text("SELECT pg_advisory_xact_lock(:key)")
        database.execute(lock, {"key": ONE_AT_A_TIME})
    if sql.inspect(database).has_table(versions.name):
        version = database.execute(sql.select(versions.c.version)).scalar_one()
        if version > VERSION:
            raise refuse(f"version {VERSION}", version, "database")
        if version == VERSION:
            return
        for table in ("drafts", "votes", "reveals", "leads", "seats", "rooms"):
            database.execute(sql.text(f"DROP TABLE IF EXISTS {table}"))
        versions.drop(database)
    Base.metadata.create_all(database)
    database.execute(versions.insert().values(version=VERSION))
