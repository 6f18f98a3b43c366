"""Pages are drawn a few at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Semaphore, local

PAGES_AT_A_TIME = 2
PAGES = Semaphore(PAGES_AT_A_TIME)
"""Pages that are drawn at a time. They share one interpreter: a hundred at once take
longer than one after the other, and the first of them is done last. An edit's answer
would wait for each of them."""
PATIENCE = 20.0
"""Seconds after which a page is drawn whatever the others do."""
HELD = local()
"""Whether this thread has a turn: what is drawn in a page's turn takes no other."""


@contextmanager
def turn() -> Iterator[None]:
    """Waits until a bug's page, or what an edit draws of it, may be drawn. Other pages
    have no such crowds, and may wait for a check or a training run."""
    if getattr(HELD, "has_turn", False):
        yield
        return
    came = PAGES.acquire(timeout=PATIENCE)
    HELD.has_turn = True
    try:
        yield
    finally:
        HELD.has_turn = False
        if came:
            PAGES.release()
