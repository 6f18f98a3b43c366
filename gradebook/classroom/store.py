"""Where rooms are kept: an SQL database, SQLite in the user's data folder
unless a URL names another; and a room at one moment, read as a whole.

One schema and one SQL serve SQLite and PostgreSQL. Tokens of browsers and
keys of leads are stored hashed, so that a copy of the database opens no room.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any

from platformdirs import user_data_path
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    select,
    text,
)

from gradebook.core.errors import GradebookError

VERSION = 3
"""Of the tables. Rooms last a day at most, so those of an earlier version are
dropped."""
ONE_AT_A_TIME = 0x67726164
"""PostgreSQL's lock for servers that start together."""

schema = MetaData()
versions = Table("gradebook_schema", schema, Column("version", Integer))
rooms = Table(
    "rooms",
    schema,
    Column("code", String(16), primary_key=True),
    Column("key", String(64)),
    Column("token", String(64), nullable=False),
    Column("touched", Float, nullable=False),
    Column("page", String(100)),
    Column("question", String(100)),
    Column("link", Text),
    Column("stage", String(100)),
    Column("revealed", JSON, nullable=False, default=list),
    Column("locked", Boolean, nullable=False, default=False),
    Column("most", Integer),
    Column("ends", Float),
)
seats = Table(
    "seats",
    schema,
    Column(
        "code",
        String(16),
        ForeignKey("rooms.code", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("seat", String(64), primary_key=True, index=True),
    Column("leads", Boolean, nullable=False, default=False),
    Column("heard", Float, nullable=False),  # 0 for a seat that was left
    Column("question", String(100), nullable=False, default=""),
    Column("follows", Boolean, nullable=False, default=True),
    Column("votes", JSON, nullable=False, default=dict),
)


ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""No two of these look alike, and they spell no words."""
LENGTH = 6
"""Characters of a room's code: 21 to the power of 6 is 86 million codes."""


def new_code(length: int = LENGTH) -> str:
    """A code that nobody can guess from another."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def normal(typed: str) -> str:
    """A code as people type it: any case, with spaces or hyphens."""
    return "".join(c for c in typed.upper() if c.isalnum())[:100]


def new_token() -> str:
    """A token or key of 128 bits."""
    return secrets.token_urlsafe(16)


def hashed(token: str) -> str:
    """What is stored of a token or key."""
    return hashlib.sha256(token.encode()).hexdigest()


class Store:
    """An open database, its tables made.

    url  '' for SQLite in the user's data folder

    Raises GradebookError for a database of a newer Gradebook.
    """

    def __init__(self, url: str = "") -> None:
        if not url:
            folder = user_data_path("gradebook", appauthor=False, ensure_exists=True)
            url = f"sqlite:///{folder / 'rooms.db'}"
        engine = create_engine(url, pool_size=16)
        self._reading: Engine = engine
        self._writing: Engine = engine
        self._turn: AbstractContextManager[Any] = nullcontext()
        if engine.dialect.name == "sqlite":
            # SQLite has one writer, and who finds it busy only tries again.
            self._turn = Lock()
            event.listen(engine, "connect", _set_up_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            self._writing = engine.execution_options(begin="IMMEDIATE")
        else:  # one read sees one state, as SQLite's do
            self._reading = engine.execution_options(isolation_level="REPEATABLE READ")
        with self.write() as database:
            _make_tables(database)

    def close(self) -> None:
        """Ends every connection."""
        self._writing.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with self._reading.connect() as database:
            yield database

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is kept when it ends without an error."""
        with self._turn, self._writing.begin() as database:
            yield database


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # _begin_sqlite begins
    for setting in ("journal_mode=WAL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes its place at once: two readers that both go on to write
    # could only fail.
    kind = connection.get_execution_options().get("begin", "")
    connection.exec_driver_sql(f"BEGIN {kind}")


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
    schema.create_all(database)
    database.execute(versions.insert().values(version=VERSION))


# A room at one moment


GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room."""
LOOKED = -1
"""The choice of a seat that looked at the answer: no vote."""


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


@dataclass(frozen=True)
class Room:
    """A room at one moment.

    leads     who leads it, hashed
    position  where the lead stands; None before the first case
    revealed  the questions whose answers the lead has revealed
    counts    how many seats made each choice, by question
    present   seats that were heard of in the last GONE seconds, by the
              question that they see
    token     of the link that joins without a typed code
    locked    newcomers stay outside
    most      seats that the lead allows; None for MOST_SEATS
    ends      when the lead's timer ends; None without one
    """

    code: str
    leads: frozenset[str]
    position: Position | None
    revealed: frozenset[str]
    counts: Mapping[str, Mapping[int, int]]
    present: Mapping[str, int]
    token: str
    locked: bool
    most: int | None
    ends: float | None

    @property
    def here(self) -> int:
        """All seats that are present."""
        return sum(self.present.values())

    def led_by(self, seat: str) -> bool:
        """This browser leads the room."""
        return hashed(seat) in self.leads

    def answers(self, question: str) -> int:
        """How many votes the question has."""
        return sum(self.counts.get(question, {}).values())


def snapshot(database: Connection, code: str, now: float) -> Room | None:
    """The room, None where it is not open."""
    room = database.execute(select(rooms).where(rooms.c.code == code)).first()
    if room is None:
        return None
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    present: Counter[str] = Counter()
    leads = set()
    for seat in database.execute(select(seats).where(seats.c.code == code)):
        if seat.leads:
            leads.add(seat.seat)
        elif seat.heard >= now - GONE:
            present[seat.question] += 1
        for question, choice in seat.votes.items():
            if choice != LOOKED:
                counts[question][choice] += 1
    position = None
    if room.page is not None:
        position = Position(room.page, room.question, room.link, room.stage)
    return Room(
        code=code,
        leads=frozenset(leads),
        position=position,
        revealed=frozenset(room.revealed),
        counts=dict(counts),
        present=present,
        token=room.token,
        locked=room.locked,
        most=room.most,
        ends=room.ends,
    )
