"""A day in the life of a class: twenty learners vote while the rooms' database is
locked, stopped, hung, full and restored in turn, on SQLite and on PostgreSQL.

Nobody reloads: each keeps the session with which it came, and asks for the news as the
page's own program does. After each fault the votes in the database are compared with
those that were acknowledged.
"""

import asyncio
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from cluster.learner import Follower
from cluster.test_servers import (
    PAGE,
    ROOT,
    SEED,
    free_port,
    new_postgresql,
    program,
    wait_for,
    wait_for_postgresql,
)
from sqlalchemy import create_engine, text

from gradebook.cases.reports import CHOICES
from gradebook.classroom.away import AWAY
from gradebook.classroom.room import Rooms

LEARNERS = 20
QUESTION = f"report-{SEED}-0"
pytestmark = pytest.mark.long


@contextmanager
def app(url, log):
    """The app on a free port with this database: its address, and its process."""
    port = free_port()
    options = f"--server.port={port}", "--server.address=127.0.0.1"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    given = {"cwd": ROOT, "env": os.environ | {"GRADEBOOK_DATABASE_URL": url}}
    with log.open("w") as said:
        process = subprocess.Popen(
            [*command, "--server.headless=true"], stdout=said, stderr=said, **given
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(urlopen, f"{address}/_stcore/health")
        yield address, process
    finally:
        process.kill()
        process.wait()


@contextmanager
def no_room_to_write(*processes, **user):
    """No file of these processes grows any more, as on a full disk."""

    def at_most(size):
        for process in processes:  # some end by themselves
            limit = [program("prlimit"), "--pid", str(process), f"--fsize={size}:"]
            subprocess.run(limit, check=False, stderr=subprocess.DEVNULL, **user)

    at_most(1)
    yield
    at_most("unlimited")


class Sqlite:
    """A database in a file, and what can happen to it."""

    def __init__(self, folder):
        self.file = folder / "rooms.db"
        self.url = f"sqlite:///{self.file}"
        self.faults = {"locked": self.locked, "full": self.full}

    @contextmanager
    def locked(self, _):
        with closing(sqlite3.connect(self.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")

    def full(self, server):
        return no_room_to_write(server)

    def close(self):
        pass


class Postgresql:
    """A PostgreSQL of its own, and what can happen to it."""

    def __init__(self, folder):
        self.folder = folder
        self.command, self.options, self.url = new_postgresql(folder)
        names = "locked", "stopped", "hung", "full"
        self.faults = {name: getattr(self, name) for name in names}
        self.start()

    def start(self):
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(self.command, stderr=log, **self.options)
        wait_for_postgresql(self.url)

    def stop(self):
        """Ends it as a crash would."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)

    @property
    def processes(self):
        """Its main process, and those that it has started."""
        main = self.process.pid
        children = Path(f"/proc/{main}/task/{main}/children").read_text()
        return [main, *map(int, children.split())]

    @contextmanager
    def locked(self, _):
        engine = create_engine(self.url)
        with engine.connect() as other:
            other.execute(text("LOCK TABLE rooms, seats IN ACCESS EXCLUSIVE MODE"))
            yield
        engine.dispose()

    @contextmanager
    def stopped(self, _):
        self.stop()
        yield
        self.start()

    @contextmanager
    def hung(self, _):
        stopped = self.processes
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        yield
        for process in stopped:
            os.kill(process, signal.SIGCONT)

    @contextmanager
    def full(self, _):
        """It cannot write its log, and ends by itself."""
        user = {k: v for k, v in self.options.items() if k in ("user", "group")}
        with no_room_to_write(*self.processes, **user):
            yield
        self.stop()
        self.start()

    def close(self):
        self.stop()


@pytest.fixture(params=[Sqlite, Postgresql])
def database(request):
    # PostgreSQL's own user may enter it: pytest's folders are root's.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "of").mkdir(mode=0o755)
        database = request.param(Path(folder) / "of")
        yield database
        database.close()


class Day:
    """The learners, and what of their votes was acknowledged."""

    def __init__(self, address, query):
        self.learners = [Follower(address, PAGE, query) for _ in range(LEARNERS)]
        self.acknowledged = {}
        self.turn = itertools.count()

    async def vote(self, learner, choice):
        """One press. Whether it was acknowledged."""
        await learner.press(f"quiz-{choice}")
        said = "\n".join(learner.texts)
        done = f"You said **{CHOICES[choice]}**" in said and AWAY not in said
        if done:
            self.acknowledged[learner] = choice
        return done

    async def try_once(self):
        """Everybody votes once, whatever comes of it."""
        by = next(self.turn)
        can = [one for one in self.learners if "quiz-0" in one.buttons]
        done = await asyncio.gather(
            *(self.vote(one, (n + by) % 2) for n, one in enumerate(can))
        )
        return sum(done)

    async def vote_until_done(self):
        by = next(self.turn)

        async def until(n, learner):
            while not (
                "quiz-0" in learner.buttons and await self.vote(learner, (n + by) % 2)
            ):
                await learner.hear()

        await asyncio.gather(*(until(*one) for one in enumerate(self.learners)))

    def compare(self, rooms, code):
        room = rooms.read(code)
        votes = {
            learner: room.seat(learner.cookies["gradebook-seat"]).votes.get(QUESTION)
            for learner in self.learners
        }
        assert votes == self.acknowledged
        assert room.counts[QUESTION].total() == LEARNERS


def test_no_failure_of_the_database_loses_an_acknowledged_vote(database, tmp_path):
    log = tmp_path / "server.log"
    rooms = Rooms(database.url)
    code = rooms.open("lead")
    rooms.move(code, "lead", PAGE, QUESTION, f"seed={SEED}")
    query = urlencode({"room": f"{code}.{rooms.read(code).token}"})
    rooms.database.close()

    async def day(address, server):
        day = Day(address, query)
        await asyncio.gather(*(learner.come() for learner in day.learners))
        await day.vote_until_done()
        for name, fault in database.faults.items():
            with fault(server.pid):
                refused = LEARNERS - await day.try_once()
                # The pages say so, and go on.
                assert refused == LEARNERS, name
                assert await day.try_once() == 0, name
            await day.vote_until_done()
            checked = Rooms(database.url)
            day.compare(checked, code)
            checked.database.close()
            print(f"{name}: {LEARNERS} votes are those that were acknowledged")
        assert all(learner.came == 1 for learner in day.learners), "somebody reloaded"
        await asyncio.gather(*(learner.leave() for learner in day.learners))

    with app(database.url, log) as (address, server):
        asyncio.run(day(address, server))
    assert "Traceback" not in log.read_text()
    assert "The rooms' database is away" in log.read_text()
