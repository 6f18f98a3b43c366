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
    return AppTest.from_function(script, default_timeout=60).run()


def late(app, text):
    """The second field shows 9 by now; the one before it sends a text."""
    old = app.text_input[1].proto.id
    app.session_state["kept"]["b"] = "9"
    app.run()
    app._run(WidgetStates(widgets=[WidgetState(id=old, string_value=text)]))


def keys(app):
    return [field.key for field in app.text_input]


def test_a_widget_shows_the_value_from_the_first_run(app):
    assert [field.value for field in app.text_input] == ["1", "2"]


def test_what_was_typed_is_taken_once_and_keeps_its_widget(app):
    before = keys(app)
    app.text_input[0].set_value("7").run().run()
    assert app.session_state["took"] == [("a", "7")]
    assert keys(app) == before


def test_what_was_typed_is_not_sent_back(app):
    """It would overwrite what the learner has typed since."""
    app.text_input[0].set_value("7").run()
    assert [f.proto.set_value for f in app.text_input] == [False, False]


def test_a_new_widget_says_its_value_in_every_answer(app):
    """Of two answers that come at once a browser draws the second."""
    app.session_state["kept"]["b"] = "9"
    app.run()
    assert [f.proto.default for f in app.run().text_input] == ["1", "9"]


def test_a_change_from_elsewhere_makes_a_new_widget_of_that_one_alone(app):
    before = keys(app)
    app.session_state["kept"]["b"] = "9"
    app.run()
    after = keys(app)
    assert after[0] == before[0] and after[1] != before[1]
    assert [field.value for field in app.text_input] == ["1", "9"]
    assert app.session_state["took"] == []


def test_a_value_that_is_mended_is_shown_as_mended(app):
    app.text_input[0].set_value("long").run()
    assert app.text_input[0].value == "LON"
    assert app.session_state["took"] == [("a", "long")]


def test_a_value_under_an_old_key_is_no_edit(app):
    late(app, "2")
    assert app.session_state["took"] == []
    assert app.text_input[1].value == "9"


def test_what_was_typed_into_a_widget_that_made_way_is_not_lost(app):
    late(app, "5")
    assert app.session_state["took"] == [("b", "5")]
    assert app.text_input[1].value == "5"


def test_what_was_taken_from_a_widget_that_made_way_is_not_taken_again(app):
    app.text_input[1].set_value("5").run()
    late(app, "5")
    assert app.session_state["took"] == [("b", "5")]
    assert app.text_input[1].value == "9"


def test_typing_the_first_value_again_is_an_edit_too(app):
    app.text_input[0].set_value("7").run()
    app.text_input[0].set_value("1").run()
    assert app.session_state["took"] == [("a", "7"), ("a", "1")]


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})


def test_no_key_comes_back(session):
    seen = [widget.place("x", value) for value in (1, 2, 1, 2, 2)]
    assert len(set(seen)) == 4 and seen[3] == seen[4]


def test_a_widget_that_made_way_keeps_nothing(session):
    old = widget.place("x", 1)
    new = widget.place("x", 2)
    widget.kept(old, "x", 3)
    assert widget.place("x", 2) == new


def test_another_session_has_other_keys(session, monkeypatch):
    """A browser that outlived its session sends what it showed there."""
    before = widget.place("x", 1)
    monkeypatch.setattr(st, "session_state", {})
    assert widget.place("x", 2) != before


def test_a_choice_of_several_has_no_order(session):
    first = widget.place("mask", ["t1", "t2"])
    widget.kept(first, "mask", ["t3", "t1"])
    assert widget.place("mask", ["t1", "t3"]) == first
    assert widget.place("mask", ["t1"]) != first
