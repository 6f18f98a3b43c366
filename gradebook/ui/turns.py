"""How many pages the server draws at a time, and who waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

AT_A_TIME = 2
"""Pages. They share one interpreter: a hundred at once take longer than a hundred
one after the other, and the first of them is done last."""
PAUSES = (1, 2, 4, 8, 5)
"""Seconds after each of which a page that waits says so; after the last one it is
drawn whatever the others do."""


class Turns:
    """Who came first is drawn first, `at_a_time` together."""

    def __init__(self, at_a_time: int = AT_A_TIME) -> None:
        self._at_a_time = at_a_time
        self._line: list[Event] = []
        self._lock = Lock()

    @contextmanager
    def turn(self, waits: Callable[[int], object]) -> Iterator[None]:
        """Waits until this page may be drawn.

        waits  is told again and again how many pages come before it
        """
        mine = Event()
        with self._lock:
            self._line.append(mine)
            self._call()
        try:
            for pause in PAUSES:
                if mine.wait(pause):
                    break
                waits(self._line.index(mine) + 1 - self._at_a_time)
            yield
        finally:
            with self._lock:
                self._line.remove(mine)
                self._call()

    def _call(self) -> None:
        for one in self._line[: self._at_a_time]:
            one.set()


TURNS = Turns()
"""The pages of bugs. Others have no such crowds, and may wait for a check or a
training run."""
