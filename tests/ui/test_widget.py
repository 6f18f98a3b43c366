"""Widgets keep what the learner chose, and give way to what came from
elsewhere."""

import pytest
import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from gradebook.ui.parts import widget


def script():
    import streamlit as st

    from gradebook.ui.parts.widget import showing

    kept = st.session_state.setdefault("kept", {"a": "1", "b": "2"})
    took = st.session_state.setdefault("took", [])

    def take(name):
        def then(value):
            took.append((name, value))
            kept[name] = value.upper()[:3]

        return then

    # A callback draws the fragments "heart" and "rest" again.
    @st.fragment(key="heart")
    def heart():
        st.text_input("a", **showing("a", kept["a"], take("a")))

    @st.fragment(key="rest")
    def rest():
        st.text_input("b", **showing("b", kept["b"], take("b")))

    heart()
    rest()


@pytest.fixture
def app():
    return AppTest.from_function(script, default_timeout=600).run()


def late(app, text):
    """The second field shows 9 by now; the one before it sends a text."""
    old = app.text_input[1].proto.id
    app.session_state["kept"]["b"] = "9"
    app.run()
    app._run(WidgetStates(widgets=[WidgetState(id=old, string_value=text)]))


def keys(app):
    return [field.key for field in app.text_input]


def test_typed_text_is_taken_once_and_keeps_its_widget(app):
    before = keys(app)
    assert [field.value for field in app.text_input] == ["1", "2"]
    app.text_input[0].set_value("7").run()
    # It would overwrite what the learner has typed since.
    assert [field.proto.set_value for field in app.text_input] == [False, False]
    app.run()
    assert app.session_state["took"] == [("a", "7")]
    assert keys(app) == before
    app.text_input[0].set_value("1").run()
    assert app.session_state["took"] == [("a", "7"), ("a", "1")]


def test_a_change_by_the_server_replaces_that_widget_alone(app):
    before = keys(app)
    app.session_state["kept"]["b"] = "9"
    app.run()
    after = keys(app)
    assert after[0] == before[0] and after[1] != before[1]
    # Of two answers that come at once a browser draws the second.
    assert [field.proto.default for field in app.run().text_input] == ["1", "9"]
    assert app.session_state["took"] == []


def test_a_value_that_is_mended_is_shown_as_mended(app):
    app.text_input[0].set_value("long").run()
    assert app.text_input[0].value == "LON"
    assert app.session_state["took"] == [("a", "long")]


@pytest.mark.parametrize(
    "before, sent, took, shown",
    [
        ("", "2", [], "9"),
        ("", "5", [("b", "5")], "5"),
        ("5", "5", [("b", "5")], "9"),  # taken already
    ],
)
def test_a_replaced_widgets_value_is_used_if_it_is_new(app, before, sent, took, shown):
    if before:
        app.text_input[1].set_value(before).run()
    late(app, sent)
    assert app.session_state["took"] == took
    assert app.text_input[1].value == shown


def test_no_key_comes_back_also_in_another_session(monkeypatch):
    """A browser that outlived its session sends what it showed there."""
    monkeypatch.setattr(st, "session_state", {})
    keys = [widget.showing("x", value, print)["key"] for value in (1, 2, 1, 2, 2)]
    monkeypatch.setattr(st, "session_state", {})
    keys.append(widget.showing("x", 2, print)["key"])
    assert len(set(keys)) == 5 and keys[3] == keys[4]
    first = widget.showing("mask", ["t1", "t2"], print)["key"]
    assert widget.showing("mask", ["t2", "t1"], print)["key"] == first
    assert widget.showing("mask", ["t1"], print)["key"] != first
