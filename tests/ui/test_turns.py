"""Pages are drawn a few at a time, and who waits is told how many come first."""

from threading import Event, Thread

import pytest

from gradebook.ui import server


def test_who_came_first_is_drawn_first_and_who_waits_is_told(monkeypatch):
    monkeypatch.setattr(server, "PAUSES", (0.01, *[30] * 9))
    line, drawn = server.Turns(at_a_time=2), []
    told = {name: Event() for name in ("third", "fourth")}
    before = {}

    def learn(name):
        def waits(count):
            before.setdefault(name, count)
            told[name].set()

        with line.turn(waits):
            drawn.append(name)

    threads = [Thread(target=learn, args=(name,)) for name in told]
    with line.turn(pytest.fail):
        with line.turn(pytest.fail):
            for name, thread in zip(told, threads):
                thread.start()
                assert told[name].wait(30)
            assert before == {"third": 1, "fourth": 2} and not drawn
        for thread in threads:
            thread.join(30)
    assert drawn == ["third", "fourth"]


def test_a_page_that_fails_lets_the_next_one_in(monkeypatch):
    monkeypatch.setattr(server, "PAUSES", (30,))
    line = server.Turns(at_a_time=1)
    with pytest.raises(ZeroDivisionError), line.turn(pytest.fail):
        raise ZeroDivisionError
    with line.turn(pytest.fail):
        pass


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(server, "PAUSES", (0.01,) * 3)
    line, told = server.Turns(at_a_time=1), []
    with line.turn(pytest.fail), line.turn(told.append):
        assert told == [1, 1, 1]
