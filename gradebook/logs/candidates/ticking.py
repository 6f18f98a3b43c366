"""Ticks: a long search lets somebody else act between two candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CALLED: ContextVar[Callable[[], None] | None] = ContextVar(
    "called", default=None
)


@contextmanager
def ticking(call: Callable[[], None]) -> Iterator[None]:
    """Calls `call` often while a check runs inside, in the same thread. It
    ends the check by raising an exception."""
    token = _CALLED.set(call)
    try:
        yield
    finally:
        _CALLED.reset(token)


def tick() -> None:
    """Calls what `ticking` was given, if anything."""
    call = _CALLED.get()
    if call is not None:
        call()
