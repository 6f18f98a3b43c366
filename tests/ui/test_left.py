"""A learner who left: when the session is closed."""

from types import SimpleNamespace

import pytest

from gradebook.ui import left


@pytest.fixture
def server(monkeypatch):
    """A server with the learners `active`, a clock `now`, and who was
    `closed`. Its loop calls nothing later."""
    server = SimpleNamespace(active=set(), closed=[], now=0.0)
    server.is_active_session = lambda one: one in server.active
    server.close_session = server.closed.append
    monkeypatch.setattr(left, "_there", {})
    monkeypatch.setattr(left, "get_instance", lambda: server)
    monkeypatch.setattr(left.time, "monotonic", lambda: server.now)
    return server


def arrives(server, monkeypatch, name):
    run = SimpleNamespace(session_id=name)
    monkeypatch.setattr(left, "get_script_run_ctx", lambda: run)
    server.active.add(name)
    left.here()


def looks(server, until):
    """The server looks as often as it does, up to this time."""
    loop = SimpleNamespace(call_later=lambda *_: None)
    while server.now < until:
        server.now += left.LOOK
        left.watch(loop)


def test_who_is_there_stays_and_who_left_is_closed_once(server, monkeypatch):
    arrives(server, monkeypatch, "anna")
    arrives(server, monkeypatch, "ben")
    looks(server, until=1000)
    assert server.closed == []
    server.active.remove("anna")
    looks(server, until=1080)
    assert server.closed == []
    looks(server, until=1120)  # before Streamlit's own two minutes
    assert server.closed == ["anna"]
    looks(server, until=2000)
    assert server.closed == ["anna"]


def test_who_comes_back_in_time_is_not_closed(server, monkeypatch):
    arrives(server, monkeypatch, "anna")
    server.active.remove("anna")
    looks(server, until=80)
    server.active.add("anna")
    looks(server, until=500)
    assert server.closed == []


def test_the_server_looks_again_and_again(server):
    called = []

    def later(seconds, what, *given):
        called.append(seconds)
        if len(called) < 3:
            what(*given)

    left.watch(SimpleNamespace(call_later=later))
    assert called == [left.LOOK] * 3
