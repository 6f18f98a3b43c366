"""Connections on which nobody asks anything are closed.

uvicorn closes a connection a few seconds after an answer, but waits for ever for a
first request, or for the end of one's headers. So whoever opens connections and sends
nothing could take every file descriptor. What is counted here are the system's own
sockets and the requests that `security` has seen: nothing of uvicorn's inside.
"""

import asyncio
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from starlette.requests import HTTPConnection

SILENT = 20.0
"""Seconds that a connection may be open without a request."""
LOOK = 5.0
"""Seconds between two looks at the connections."""
Peer = tuple[str, int]


class Connections:
    """The requests that are under way, by who asks; since when the others are silent.

    Behind a proxy every connection is the proxy's, and uvicorn says who asked the
    proxy. The proxy has deadlines of its own, and its connections are left to it.
    """

    def __init__(self) -> None:
        self._asking: Counter[Peer] = Counter()
        self._silent: dict[Peer, float] = {}
        self._is_behind_a_proxy = False

    @contextmanager
    def asks(self, asked: HTTPConnection) -> Iterator[None]:
        """A request is under way."""
        peer = tuple(asked.scope.get("client") or ("", 0))
        # uvicorn knows no port of whom a proxy names that it trusts.
        if not peer[1] and "x-forwarded-for" in asked.headers:
            self._is_behind_a_proxy = True
        self._asking[peer] += 1
        try:
            yield
        finally:
            self._asking[peer] -= 1
            if not self._asking[peer]:
                del self._asking[peer]
            self._silent.pop(peer, None)

    def close_silent(self, port: int) -> int:
        """Closes the connections to this port that were silent for SILENT seconds; how
        many. It closes none if the system does not list a process's sockets."""
        if self._is_behind_a_proxy:
            return 0
        now, closed = time.monotonic(), 0
        silent: dict[Peer, float] = {}
        for connection in _connections(port):
            with closing(connection), suppress(OSError):
                peer = connection.getpeername()[:2]
                if self._asking[peer]:
                    continue
                silent[peer] = self._silent.get(peer, now)
                if now - silent[peer] >= SILENT:
                    connection.shutdown(socket.SHUT_RDWR)
                    closed += 1
        self._silent = silent
        return closed

    async def watch(self, port: int) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await asyncio.to_thread(self.close_silent, port)


CONNECTIONS = Connections()


def _connections(port: int) -> Iterator[socket.socket]:
    """This process's connections from others to its port, as copies."""
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    continue
                copy = socket.socket(fileno=os.dup(int(name)))
                if _is_from_outside(copy, port):
                    yield copy
                else:
                    copy.close()


def _is_from_outside(connection: socket.socket, port: int) -> bool:
    try:
        here, there = connection.getsockname(), connection.getpeername()
    except OSError:  # it listens, or is closed
        return False
    return len(here) > 1 and len(there) > 1 and here[1] == port
