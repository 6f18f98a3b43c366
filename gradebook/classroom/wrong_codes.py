"""Wrong codes of rooms: whoever types many of them has to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import RLock

LONGEST_WAIT = 60.0
"""Seconds that a client waits at most after a wrong code."""
FORGOTTEN = 600.0
"""Seconds after which a client's wrong codes are forgotten."""


class WrongCodes:
    """Slows down whoever types one wrong code after another.

    The first `free` wrong codes of a client cost nothing. From then on each
    one doubles the wait before the next try, up to LONGEST_WAIT seconds. A
    client that stays away for FORGOTTEN seconds starts anew.
    """

    def __init__(
        self, free: int = 5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.free = free
        self._clock = clock
        self._wrong: dict[str, tuple[int, float]] = {}
        self._lock = RLock()

    def wait(self, client: str) -> float:
        """Seconds until the client may try a code; 0 for now."""
        with self._lock:
            count, last = self._wrong.get(client, (0, 0.0))
            if count <= self.free:
                return 0.0
            pause = min(2.0 ** (count - self.free), LONGEST_WAIT)
            return max(0.0, last + pause - self._clock())

    def note(self, client: str) -> None:
        """The client typed a wrong code."""
        with self._lock:
            now = self._clock()
            for name, (_, last) in list(self._wrong.items()):
                if now - last > FORGOTTEN:
                    del self._wrong[name]
            count = self._wrong.get(client, (0, 0.0))[0]
            self._wrong[client] = (count + 1, now)
