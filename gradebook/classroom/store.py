"""Where rooms are kept: an SQL database, SQLite in the user's data folder
unless a URL names another.

One schema and one SQL serve SQLite and PostgreSQL. Tokens of browsers and
keys of leads are stored hashed, so that a copy of the database opens no room.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

from platformdirs import user_data_path
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Executable,
    Float,
    ForeignKey,
    Index,
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
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from gradebook.core.errors import GradebookError

schema = MetaData()


def _of_a_room() -> Column[str]:
    """The room's code; the row goes with its room."""
    room = ForeignKey("rooms.code", ondelete="CASCADE")
    return Column("code", String(16), room, primary_key=True)


def _token(**options: Any) -> Column[str]:
    return Column("seat", String(64), **options)


versions = Table("gradebook_schema", schema, Column("version", Integer))
rooms = Table(
    "rooms",
    schema,
    Column("code", String(16), primary_key=True),
    Column("key", String(64), nullable=False),
    Column("opened", Float, nullable=False),
    Column("touched", Float, nullable=False),
    Column("version", BigInteger, nullable=False, default=0),
    Column("page", String(100)),
    Column("question", String(100)),
    Column("link", Text),
    Column("stage", String(100)),
    # Since version 2:
    Column("token", String(64), nullable=False),
    Column("locked", Boolean, nullable=False, default=False),
    Column("most", Integer),
    Column("names", Boolean, nullable=False, default=False),
    Column("ends", Float),
    Column("tab", String(100)),
)
leads = Table(
    "leads",
    schema,
    _of_a_room(),
    _token(primary_key=True),
    Column("since", Float, nullable=False),
)
seats = Table(
    "seats",
    schema,
    _of_a_room(),
    _token(primary_key=True),
    Column("since", Float, nullable=False),
    Column("heard", Float, nullable=False),
    Column("question", String(100), nullable=False),
    Column("follows", Boolean, nullable=False, default=True),
    Column("name", String(100)),  # since version 2
)
votes = Table(
    "votes",
    schema,
    _of_a_room(),
    Column("question", String(100), primary_key=True),
    _token(primary_key=True),
    Column("choice", Integer, nullable=False),
)
reveals = Table(
    "reveals",
    schema,
    _of_a_room(),
    Column("question", String(100), primary_key=True),
)
drafts = Table(
    "drafts",
    schema,
    _of_a_room(),
    _token(primary_key=True),
    Column("scenario", String(100), primary_key=True),
    Column("link", Text, nullable=False),
)
Index("seats_by_token", seats.c.seat)
Index("leads_by_token", leads.c.seat)
Index("votes_by_seat", votes.c.code, votes.c.seat)


def _to_version_2(database: Connection) -> None:
    """Links with a token, a lock, a limit, first names, a timer, one leading tab."""
    for column in (
        "rooms ADD token VARCHAR(64) DEFAULT '' NOT NULL",
        "rooms ADD locked BOOLEAN DEFAULT FALSE NOT NULL",
        "rooms ADD most INTEGER",
        "rooms ADD names BOOLEAN DEFAULT FALSE NOT NULL",
        "rooms ADD ends FLOAT",
        "rooms ADD tab VARCHAR(100)",
        "seats ADD name VARCHAR(100)",
    ):
        database.execute(text(f"ALTER TABLE {column}"))
    for code in database.execute(select(rooms.c.code)).scalars().all():
        room = update(rooms).where(rooms.c.code == code)
        database.execute(room.values(token=new_token()))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_to_version_2,)
"""What turns a database of each earlier version, from 1 on, into the next."""
ONE_AT_A_TIME = 0x67726164
"""PostgreSQL's lock for servers that start together."""


def new_token() -> str:
    """A token or key of 128 bits."""
    return secrets.token_urlsafe(16)


def hashed(token: str) -> str:
    """What is stored of a token or key."""
    return hashlib.sha256(token.encode()).hexdigest()


class Store:
    """An open database, its schema up to date.

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
        self._insert: Callable[[Table], Any] = postgresql.insert
        self._turn: AbstractContextManager[Any] = nullcontext()
        if engine.dialect.name == "sqlite":
            # SQLite has one writer, and who finds it busy only tries again.
            self._turn = Lock()
            event.listen(engine, "connect", _set_up_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            self._writing = engine.execution_options(begin="IMMEDIATE")
            self._insert = sqlite.insert
        else:  # one read sees one state, as SQLite's do
            self._reading = engine.execution_options(isolation_level="REPEATABLE READ")
        with self.write() as database:
            _bring_up_to_date(database)

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

    def upsert(self, table: Table, row: dict[str, Any], *changes: str) -> Executable:
        """Writes the row; where it is there already, only its `changes`."""
        insert = self._insert(table).values(row)
        keys = table.primary_key.columns
        if not changes:
            return insert.on_conflict_do_nothing(index_elements=keys)
        new = {name: row[name] for name in changes}
        return insert.on_conflict_do_update(index_elements=keys, set_=new)


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # _begin_sqlite begins
    for setting in ("journal_mode=WAL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes its place at once: two readers that both go on to write
    # could only fail.
    kind = connection.get_execution_options().get("begin", "")
    connection.exec_driver_sql(f"BEGIN {kind}")


def _bring_up_to_date(database: Connection) -> None:
    if database.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(:key)")
        database.execute(lock, {"key": ONE_AT_A_TIME})
    newest = len(MIGRATIONS) + 1
    if not inspect(database).has_table(versions.name):
        schema.create_all(database)
        database.execute(versions.insert().values(version=newest))
        return
    version = database.execute(select(versions.c.version)).scalar_one()
    if version > newest:
        raise GradebookError(
            key="database", expected=f"version {newest}", found=str(version)
        )
    for migrate in MIGRATIONS[version - 1 :]:
        migrate(database)
    database.execute(update(versions).values(version=newest))
