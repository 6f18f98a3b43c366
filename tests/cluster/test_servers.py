"""Learners over three servers in one room, behind nginx, with PostgreSQL.

Runs if nginx and PostgreSQL are installed; `.ci/run` installs them, and a
skip there is a failure.
"""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from cluster.learner import Learner
from websockets.exceptions import WebSocketException

from gradebook.classroom.away import AWAY
from gradebook.classroom.room import Rooms

ROOT = Path(__file__).parents[2]
LEARNERS = int(os.environ.get("GRADEBOOK_LEARNERS", "60"))
PAGE, SEED = "bug_or_not", "CDFGHJ"
NAMES = ("one", "two", "three")
pytestmark = pytest.mark.long


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(ask, where):
    """Asks until it answers; a starting server does not say when it is ready."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            return ask(where).close()
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{where} does not answer")


def program(name):
    """The program of a Debian package. Without it the test is skipped."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), "/usr/sbin", "/usr/bin"]
    found = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@contextmanager
def running(*command, **options):
    process = subprocess.Popen([*map(str, command)], **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def new_postgresql(folder):
    """Makes a PostgreSQL's files. The command that runs it, which listens on this
    machine alone, how to start that, and its URL."""
    # Its programs refuse to run as root.
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, **user)
    data, port = folder / "data", free_port()
    init = [program("initdb"), "-D", data, "-A", "trust", "-U", "gradebook"]
    quiet = {"stdout": subprocess.DEVNULL, "cwd": folder, **user}
    subprocess.run(init, check=True, **quiet)
    options = ["-p", port, "-k", folder, "-h", "127.0.0.1"]
    postgres = [program("postgres"), "-D", data, *options]
    url = f"postgresql+psycopg://gradebook@127.0.0.1:{port}/postgres"
    return [*map(str, postgres)], quiet, url


def wait_for_postgresql(url):
    port = int(re.search(r":(\d+)/", url)[1])
    wait_for(socket.create_connection, ("127.0.0.1", port))


@contextmanager
def postgresql(folder):
    """A PostgreSQL of its own; its URL."""
    postgres, quiet, url = new_postgresql(folder)
    with (
        (folder / "log").open("w") as log,
        running(*postgres, stderr=log, **quiet),
    ):
        wait_for_postgresql(url)
        yield url


class Servers:
    """Three servers of one database; `one` and so on by name."""

    def __init__(self, url, folder):
        self.url, self.folder, self.processes = url, folder, {}
        self.ports = {name: free_port() for name in NAMES}

    def start(self, name):
        command = [sys.executable, "-m", "streamlit", "run", "app.py"]
        environment = {
            **os.environ,
            "GRADEBOOK_SERVER": name,
            "GRADEBOOK_DATABASE_URL": self.url,
            "STREAMLIT_SERVER_COOKIE_SECRET": "the same on each server",
            "STREAMLIT_SERVER_PORT": str(self.ports[name]),
            "STREAMLIT_SERVER_HEADLESS": "true",
        }
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log
            )

    def wait(self, name):
        wait_for(urlopen, f"http://127.0.0.1:{self.ports[name]}/_stcore/health")

    def end(self, name, how=signal.SIGKILL):
        self.processes[name].send_signal(how)
        self.processes[name].wait(60)


@pytest.fixture(scope="module")
def folder():
    """A folder that PostgreSQL's own user may enter: pytest's are root's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def url(folder):
    (folder / "database").mkdir()
    with postgresql(folder / "database") as url:
        yield url


@contextmanager
def cluster_of(folder, url):
    """Three servers of this database, and the address of the nginx before them."""
    servers, port = Servers(url, folder), free_port()
    settings = (ROOT / "tests/cluster/nginx.conf").read_text()
    for at, name in enumerate(NAMES):
        here = f"127.0.0.1:{servers.ports[name]}"
        settings = settings.replace(f"127.0.0.1:850{at + 1}", here)
    # The test sees which server answered.
    settings = settings.replace(
        "proxy_http_version", "add_header X-Upstream $upstream_addr; proxy_http_version"
    )
    (folder / "nginx.conf").write_text(settings.replace("8500", str(port)))
    with ExitStack() as stack:
        for name in NAMES:
            servers.start(name)
            stack.callback(servers.end, name)
        for name in NAMES:
            servers.wait(name)
        stack.enter_context(
            running(program("nginx"), "-p", folder, "-c", folder / "nginx.conf")
        )
        address = f"http://127.0.0.1:{port}"
        wait_for(urlopen, address)
        yield servers, address


@pytest.fixture(scope="module")
def cluster(folder, url):
    with cluster_of(folder, url) as cluster:
        yield cluster


def test_the_rooms_tests_pass_on_postgresql(url):
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run += ["tests/classroom/test_room.py", "-k", "not newer"]
    environment = {**os.environ, "GRADEBOOK_TEST_DATABASE": url}
    found = subprocess.run(run, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    assert found.returncode == 0, found.stdout.decode()


async def vote(learner, choice, acknowledged, back):
    """Votes. A learner whose server went comes back first, as a browser does. A server
    that is there writes the vote at once: no vote meets a database that is away."""
    said = ""
    for _ in range(60):
        try:
            if learner.socket is None:
                await learner.come()
                back[learner] = time.monotonic()
            await learner.press(f"quiz-{choice}")
            said = "\n".join(learner.texts)
            break
        except (OSError, EOFError, KeyError, WebSocketException):
            await learner.leave()
            await asyncio.sleep(0.2)
    assert AWAY not in said
    assert "You said **" in said, said
    acknowledged[learner] = choice


def test_a_browsers_requests_go_to_the_server_that_has_its_session(cluster):
    servers, address = cluster
    for name in NAMES:
        route = {"Cookie": f"gradebook_route={name}"}
        for _ in range(4):
            asked = Request(f"{address}/_stcore/health", headers=route)
            with urlopen(asked) as answer:
                assert answer.headers["X-Upstream"].endswith(str(servers.ports[name]))


def test_no_browser_makes_up_its_address(cluster):
    _, address = cluster

    async def guess(n):
        learner = Learner(address, "session", urlencode({"room": f"CCCCC{n}"}))
        learner.cookies["gradebook_route"] = "three"
        learner.headers["X-Forwarded-For"] = f"192.0.2.{n}"
        await learner.come()
        await learner.leave()
        return "\n".join(learner.texts)

    said = [asyncio.run(guess(n)) for n in range(7)]
    assert "No room with the code CCCCC0" in said[0]
    assert "Too many wrong codes" in said[-1]


def test_no_vote_and_no_room_is_lost_when_servers_go(cluster, url):
    servers, address = cluster
    rooms = Rooms(url)
    code = rooms.open("lead")
    rooms.move(code, "lead", PAGE, f"report-{SEED}-0", f"seed={SEED}")
    token = rooms.read(code).token
    query = urlencode({"room": f"{code}.{token}"})
    learners = [Learner(address, PAGE, query) for _ in range(LEARNERS)]
    acknowledged, back, seconds = {}, {}, []

    async def everybody(*choices):
        """Each learner's own votes, one after the other."""

        async def votes(n, learner):
            for choice in choices:
                await vote(learner, choice(n), acknowledged, back)

        await asyncio.gather(*(votes(*one) for one in enumerate(learners)))

    async def session():
        await everybody(lambda n: n % 2)
        assert {learner.cookies["gradebook_route"] for learner in learners} == {*NAMES}
        voting = asyncio.ensure_future(
            everybody(lambda n: (n + 1) % 2, lambda n: n % 2)
        )
        await asyncio.to_thread(servers.end, "one", signal.SIGTERM)
        servers.start("one")
        await asyncio.to_thread(servers.wait, "one")
        await voting
        back.clear()
        start = time.monotonic()
        voting = asyncio.ensure_future(everybody(lambda n: (n // 2) % 2))
        await asyncio.to_thread(servers.end, "two")
        await voting
        seconds.extend(sorted(at - start for at in back.values()))
        await asyncio.gather(*(learner.leave() for learner in learners))

    asyncio.run(session())
    expected = Counter(acknowledged.values())
    room = rooms.read(code)
    assert room.counts[f"report-{SEED}-0"] == expected
    assert expected.total() == LEARNERS and room.seat("lead").leads
    for learner, choice in acknowledged.items():
        votes = room.seat(learner.cookies["gradebook-seat"]).votes
        assert votes == {f"report-{SEED}-0": choice}
        assert learner.cookies["gradebook_route"] != "two"
    rooms.database.close()
    print(
        f"{len(seconds)} of {LEARNERS} learners lost their server: back after"
        f" {seconds[len(seconds) // 2]:.1f} s (p50), the last {seconds[-1]:.1f} s"
    )
