"""What another learner's edit takes beside an attack, as a multiple of a quiet one.

    python tests/bench/attacks.py [edits]       60 edits for each line

quiet        one learner edits, alone on the server: the ruler
connections  300 posts that stop before their end, 1,500 connections without a request
worker       the process for strangers' files reads one that keeps it busy
database     the rooms' database is locked, and 45 browsers wait for news

The learner is a Streamlit session without a browser, in no room. All share the
machine's cores, and what else runs on them is in the ratios, too: the load is printed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "browser"), str(ROOT)]

from crowds import session  # noqa: E402
from logs import hostile  # noqa: E402
from served import answers, line, served  # noqa: E402

from gradebook.classroom.room import Rooms  # noqa: E402
from gradebook.logs.worker import Checks  # noqa: E402

POSTS, CONNECTIONS, NEWS = 300, 1500, 45
PART = b"x" * 2**16
"""What a post sends of the megabyte that it announces."""


async def edits(address: str, count: int) -> np.ndarray:
    """Milliseconds from each edit to the board's answer."""
    async with session(address) as learner:
        await learner.open()
        await learner.edit(0, "1")
        return np.array([await learner.edit(0, str(n % 7)) for n in range(count)])


@contextmanager
def connections(address: str, _file: Path) -> Iterator[None]:
    host = urlsplit(address)
    head = (
        f"POST /board-edits/nobody HTTP/1.1\r\nHost: {host.netloc}\r\n"
        f"Content-Length: 1000000\r\n\r\n"
    )
    with ExitStack() as stack:
        for n in range(POSTS + CONNECTIONS):
            place = str(host.hostname), host.port or 80
            one = stack.enter_context(closing(socket.create_connection(place)))
            if n < POSTS:
                one.settimeout(1)
                with suppress(OSError):
                    one.sendall(head.encode() + PART)
        yield


@contextmanager
def worker(_address: str, _file: Path) -> Iterator[None]:
    checks = Checks()
    checks.ask([hostile.wrong_cells(10**6)], {})
    try:
        yield
    finally:
        checks.close()


@contextmanager
def database(address: str, file: Path) -> Iterator[None]:
    rooms = Rooms(f"sqlite:///{file}")
    code = rooms.open("the-lead")
    rooms.database.close()
    asked = urllib.request.Request(
        f"{address}/room-news/{code}?question=",
        headers={"Cookie": "gradebook-seat=the-lead"},
    )

    def ask() -> None:
        with suppress(OSError):
            urllib.request.urlopen(asked, timeout=60).close()

    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(NEWS):
            threading.Thread(target=ask, daemon=True).start()
        yield
        other.execute("ROLLBACK")


ATTACKS: tuple[Callable, ...] = (connections, worker, database)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print("load", os.getloadavg(), "cores", os.cpu_count())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rooms.db"
        os.environ["GRADEBOOK_DATABASE_URL"] = f"sqlite:///{file}"
        with served(ROOT / "app.py") as address:
            answers(address)
            asyncio.run(edits(address, 10))
            for attack in ATTACKS:
                quiet = asyncio.run(edits(address, count))
                with attack(address, file):
                    times = asyncio.run(edits(address, count))
                floor = float(np.median(quiet))
                line("quiet", quiet, floor, "the ruler: its p50")
                line(attack.__name__, times, floor, "aim p50 3")
    print("load", os.getloadavg())


if __name__ == "__main__":
    main()
