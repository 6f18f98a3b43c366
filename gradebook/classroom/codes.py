"""Codes that people read out and type, of rooms and of games; and the wait of
whoever does too much: wrong codes, new rooms."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from threading import RLock

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


LONGEST_WAIT = 60.0
"""Seconds that a client waits at most."""
FORGOTTEN = 600.0
"""Seconds after which a client starts anew."""


class Slowdown:
    """Counts what each client does, and slows it down.

    The first `free` times cost nothing. From then on each one doubles the wait
    before the next, up to LONGEST_WAIT seconds. A client that stays away for
    FORGOTTEN seconds starts anew.
    """

    def __init__(
        self, free: int = 5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.free = free
        self._clock = clock
        self._done: dict[str, tuple[int, float]] = {}
        self._lock = RLock()

    def wait(self, client: str) -> float:
        """Seconds until the client may go on; 0 for now."""
        with self._lock:
            count, last = self._done.get(client, (0, 0.0))
            if count <= self.free:
                return 0.0
            pause = min(2.0 ** (count - self.free), LONGEST_WAIT)
            return max(0.0, last + pause - self._clock())

    def note(self, client: str) -> None:
        """The client did it once more."""
        with self._lock:
            now = self._clock()
            for name, (_, last) in list(self._done.items()):
                if now - last > FORGOTTEN:
                    del self._done[name]
            count = self._done.get(client, (0, 0.0))[0]
            self._done[client] = (count + 1, now)
