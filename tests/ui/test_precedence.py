"""Pictures first, and nobody waits for them for long."""

from types import SimpleNamespace

import pytest

from gradebook.ui.parts import precedence


@pytest.fixture
def clock(monkeypatch):
    """A clock that only sleep moves; what happens after each sleep."""
    found = SimpleNamespace(now=5.0, then=lambda: None)

    def sleep(seconds):
        found.now += seconds
        found.then()

    time = SimpleNamespace(monotonic=lambda: found.now, sleep=sleep)
    monkeypatch.setattr(precedence, "time", time)
    return found


def test_without_a_picture_nobody_waits(clock):
    precedence.give_way()
    with precedence.first():
        pass
    precedence.give_way()
    assert clock.now == 5


def test_a_page_waits_until_the_last_picture_is_worked_out(clock):
    one, two = precedence.first(), precedence.first()
    one.__enter__()
    two.__enter__()
    ends = iter([one, two])
    clock.then = lambda: next(ends).__exit__(None, None, None)
    precedence.give_way()
    assert clock.now == pytest.approx(5 + 2 * 0.002)


def test_a_picture_that_takes_long_is_not_waited_for(clock):
    with precedence.first():
        precedence.give_way()
    assert clock.now == pytest.approx(5 + precedence.LONGEST, abs=0.003)


def test_a_picture_that_fails_holds_nobody_up(clock):
    with pytest.raises(ValueError), precedence.first():
        raise ValueError
    precedence.give_way()
    assert clock.now == 5
