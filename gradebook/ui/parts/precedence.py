"""Pictures first: while one learner's edit is drawn, others' pages wait.

A server has one interpreter for all of its learners. What stands below the
first screen may come a moment later; a picture that was asked for may not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 0.1
"""Seconds that one part of a page waits for others' pictures at most."""

_lock = threading.Lock()
_drawn = 0


@contextmanager
def first() -> Iterator[None]:
    """While a picture is worked out that somebody waits for."""
    global _drawn
    with _lock:
        _drawn += 1
    try:
        yield
    finally:
        with _lock:
            _drawn -= 1


def give_way() -> None:
    """Until no picture is worked out, as long as that does not take long."""
    until = time.monotonic() + LONGEST
    while _drawn and time.monotonic() < until:
        time.sleep(0.002)
