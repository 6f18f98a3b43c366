"""How many pages the server draws at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from gradebook.bugs import BUGS

AT_A_TIME = 2
"""Pages of bugs. They share one interpreter: a hundred at once take longer than
a hundred one after the other, and the first of them is done last."""
PATIENCE = 20.0
"""Seconds after which a page is drawn whatever the others do."""
_turns = BoundedSemaphore(AT_A_TIME)


@contextmanager
def turn(page: str) -> Iterator[None]:
    """Waits until this page may be drawn. Other pages than bugs' have no such
    crowds, and may wait for a check or a training run."""
    taken = page in BUGS and _turns.acquire(timeout=PATIENCE)
    try:
        yield
    finally:
        if taken:
            _turns.release()
