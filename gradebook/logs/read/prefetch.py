"""Ahead: the next part of a log is read while this one is judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


class _End:
    """What stands for the item after the last one."""


WAITING = 2
"""So many parts wait to be used, at most."""


@contextmanager
def prefetched(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """The same items, made in a thread while those before them are used.
    What making one raises is raised where it would be used; when the block
    ends, no more than the one under way is made."""
    with ThreadPoolExecutor(1, "gradebook-reader") as reader:

        def made() -> Iterator[Item]:
            def ask() -> Future[Item | _End]:
                return reader.submit(_next, items)

            coming = deque(ask() for _ in range(WAITING))
            while not isinstance(item := coming.popleft().result(), _End):
                coming.append(ask())
                yield item

        try:
            yield made()
        finally:
            reader.shutdown(cancel_futures=True)


def _next(items: Iterator[Item]) -> Item | _End:
    return next(items, _End())
