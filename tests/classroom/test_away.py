"""Whatever is wrong with the rooms' database is one error, and it comes back by
itself."""

import os
import sqlite3
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from gradebook.classroom import store
from gradebook.classroom.away import AWAY, Away
from gradebook.classroom.room import Rooms

Q = "partial_groups"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    monkeypatch.setattr(store, "AGAIN", 0.02)


def back(rooms):
    """Waits until the database is used again."""
    until = time.monotonic() + 60
    while rooms.database.is_away:
        assert time.monotonic() < until
        threading.Event().wait(0.02)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rooms.db"


@pytest.fixture
def rooms(file):
    rooms = Rooms(f"sqlite:///{file}")
    yield rooms
    rooms.database.close()


def made(file, then):
    """A database with a room, in which a statement was then executed."""
    rooms = Rooms(f"sqlite:///{file}")
    rooms.open("lead")
    rooms.database.close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(then)


def newer(file):
    made(file, "UPDATE gradebook_schema SET version = 99")


def without_version(file):
    made(file, "DELETE FROM gradebook_schema")


def corrupt(file):
    file.write_bytes(b"no database " * 1000)


WRONG = {
    "a newer version": newer,
    "a missing version": without_version,
    "a corrupt file": corrupt,
    "a folder in its place": lambda file: file.mkdir(),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_database_that_cannot_be_used_is_away_and_its_log_says_why(
    wrong, file, rooms, caplog
):
    WRONG[wrong](file)
    for act in (
        lambda: rooms.open("lead"),
        lambda: rooms.read("CCCCCC"),
        lambda: rooms.vote("CCCCCC", "a", Q, 1),
        lambda: rooms.heard("CCCCCC", "a"),
        lambda: rooms.sweep(),
    ):
        with pytest.raises(Away) as raised:
            act()
        assert str(raised.value) == AWAY
    assert "database is away: " in caplog.text
    if file.is_dir():
        file.rmdir()
    for part in file.parent.glob("rooms.db*"):
        part.unlink()
    back(rooms)
    assert rooms.read(rooms.open("lead"))


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////dev/null/rooms.db",
        "no address",
        "postgresql+psycopg://127.0.0.1:1/x",
    ],
)
def test_a_database_that_cannot_be_reached_is_away(url):
    rooms = Rooms(url)
    with pytest.raises(Away):
        rooms.open("lead")
    rooms.database.close()


def test_a_folder_that_cannot_be_made_is_away(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null/x")
    rooms = Rooms()
    with pytest.raises(Away):
        rooms.open("lead")
    rooms.database.close()


def test_a_locked_database_stops_one_vote_and_later_ones_do_not_wait(file, rooms):
    code = rooms.open("lead")
    rooms.join(code, "a", Q)
    rooms.vote(code, "a", Q, 1)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Away):
            rooms.vote(code, "a", Q, 2)
        with pytest.raises(Away):
            rooms.vote(code, "a", Q, 3)
        other.execute("ROLLBACK")
    back(rooms)
    assert rooms.read(code).counts[Q] == {1: 1}
    rooms.vote(code, "a", Q, 0)
    assert rooms.read(code).counts[Q] == {0: 1}


def test_who_waits_for_the_connection_of_a_locked_database_is_not_held_up(file, rooms):
    """One after the other would wait for the lock: forty of them for minutes."""
    rooms.open("lead")
    begun, away = [], []

    def counts(_, __, statement, *___):
        if threading.get_ident() in asking and statement.startswith("BEGIN"):
            begun.append(statement)

    def asks():
        asking.add(threading.get_ident())
        with pytest.raises(Away):
            rooms.heard("CCCCCC", "a")
        away.append(1)

    asking = set()
    event.listen(rooms.database.engine, "before_cursor_execute", counts)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        threads = [threading.Thread(target=asks) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(away) == 40 and len(begun) < 10


def test_closing_leaves_no_connection_to_a_try_that_is_under_way(file, rooms):
    rooms.open("lead")
    engine, connected = rooms.database.engine, set()
    event.listen(engine, "connect", lambda made, _: connected.add(id(made)))
    event.listen(engine, "close", lambda closed, _: connected.discard(id(closed)))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Away):
            rooms.open("another")
        until = time.monotonic() + 60
        while not connected:
            assert time.monotonic() < until
            threading.Event().wait(0.001)
        rooms.database.close()
        assert not connected
        other.execute("ROLLBACK")


def test_a_full_disk_stops_votes_and_keeps_what_was_written(file, rooms):
    code = rooms.open("lead")
    rooms.join(code, "a", Q)
    rooms.vote(code, "a", Q, 1)
    full = threading.Event()

    def grows(connection, _):
        most = 1 if full.is_set() else 2**30
        connection.execute(f"PRAGMA max_page_count={most}")

    event.listen(rooms.database.engine, "connect", grows)
    full.set()
    rooms.database.engine.dispose()
    with pytest.raises(Away):
        for n in range(1000):
            rooms.join(code, f"learner {n}", Q)
    full.clear()
    back(rooms)
    assert rooms.read(code).counts[Q] == {1: 1}
    rooms.join(code, "b", Q)


@contextmanager
def read_only(folder):
    """Nothing can be written in the folder. Root, whom no permission stops, is another
    user meanwhile."""
    from pwd import getpwnam

    user = os.geteuid()
    folder.chmod(0o555)
    os.seteuid(user or getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs users as Unix has them")
def test_a_read_only_folder_stops_votes_and_keeps_what_was_written(caplog):
    # Another user may enter it: pytest's folders are their owner's.
    with tempfile.TemporaryDirectory() as made:
        url = f"sqlite:///{made}/rooms.db"
        before, rooms = Rooms(url), Rooms(url)
        code = before.open("lead")
        before.join(code, "a", Q)
        before.vote(code, "a", Q, 1)
        before.database.close()
        Path(made).chmod(0o755)
        with read_only(Path(made)):
            for act in (
                lambda: rooms.vote(code, "a", Q, 2),
                lambda: rooms.read(code),
                lambda: rooms.open("another"),
            ):
                with pytest.raises(Away) as raised:
                    act()
                assert str(raised.value) == AWAY
        assert "database is away: " in caplog.text
        back(rooms)
        assert rooms.read(code).counts[Q] == {1: 1}
        rooms.vote(code, "a", Q, 0)
        assert rooms.read(code).counts[Q] == {0: 1}
        rooms.database.close()
