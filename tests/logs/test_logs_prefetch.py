"""Parts that are made in a thread, a few ahead."""

import threading

import pytest

from gradebook.logs.read.prefetch import WAITING, prefetched


def test_the_same_items_in_the_same_order():
    with prefetched(iter([3, None, 1])) as items:
        assert list(items) == [3, None, 1]


def test_they_are_made_in_another_thread():
    def made():
        yield threading.current_thread()

    with prefetched(made()) as items:
        assert next(items) is not threading.current_thread()


def test_an_error_comes_where_the_item_would():
    def made():
        yield 1
        raise ValueError("broken part")

    with prefetched(made()) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="broken part"):
            next(items)


def test_no_more_than_a_few_are_made_before_they_are_used():
    made, used = [], threading.Event()

    def numbers():
        for n in range(100):
            made.append(n)
            if n > WAITING:
                used.wait(5)
            yield n

    with prefetched(numbers()) as items:
        next(items)
        assert len(made) <= WAITING + 2
        used.set()
    assert len(made) <= WAITING + 2
    assert not any(
        t.name.startswith("gradebook-reader") for t in threading.enumerate()
    )
