"""The registry of session-state keys."""

from pathlib import Path

import streamlit as st

import gradebook.ui
from gradebook.ui import keys

UI = Path(gradebook.ui.__file__).parent


def registered():
    return [one for one in vars(keys).values() if isinstance(one, keys.Key)]


def test_no_two_keys_share_a_name():
    names = [one.name for one in registered()]
    assert len(names) > 10 and len(set(names)) == len(names)


def test_a_value_is_made_once_and_dropped_to_a_new_one(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    made = keys.DRAFTS.get()
    assert keys.DRAFTS.get() is made == {}
    made["a"] = "draft"
    keys.DRAFTS.drop()
    assert keys.DRAFTS.get() == {}
    keys.ROOM.put("ABCD")
    assert keys.ROOM.get() == "ABCD"


def test_a_widget_shows_what_it_is_given(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    assert keys.widget("box") is None
    keys.show("box", 3)
    assert keys.widget("box") == 3


def test_the_session_state_is_used_through_the_registry_alone():
    others = {
        str(path.relative_to(UI))
        for path in UI.rglob("*.py")
        if "session_state" in path.read_text("utf-8")
    }
    assert others == {"keys.py"}
