"""The page of training runs: prediction, switches, link, result."""

import math
import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from gradebook.training.study import OPTIMIZERS, Run
from gradebook.training.train import trained
from gradebook.ui import keys
from gradebook.ui.parts.desk import Desk, query_of, read_link
from gradebook.ui.parts.predict import SKIPPED, Guess, Progress
from gradebook.ui.server import VISIT


def page(**query):
    at = AppTest.from_file(str(VISIT), default_timeout=60)
    for key, value in query.items():
        at.query_params[key] = value
    at.run()
    at._page_hash = calc_hash("consequences")
    at.run()
    assert not at.exception
    return at


def said(at):
    return "\n".join(
        str(one.value)
        for kind in ("markdown", "subheader", "warning", "title")
        for one in at.get(kind)
    )


def test_the_page_asks_first_and_shows_what_was_trained_in_advance():
    at = page()
    assert "Predict before you look" in said(at)
    assert not at.slider
    assert {b.label for b in at.button} == {
        "Better",
        "Worse",
        "No difference",
        "Skip, show me",
    }
    next(b for b in at.button if b.label == "Worse").click().run()
    assert not at.exception
    assert at.slider[0].value == pytest.approx(1.1)
    # CONSEQUENCES: .987 and .003 after 200 updates with 32 seeds.
    assert "You said worse. That is right." in said(at)
    assert re.search("success rate of the faulty run is 9[89] points lower", said(at))
    assert not at.query_params


def test_another_setting_is_another_run_and_the_address_says_so():
    at = page(bug="no_eos_outliers", value="1.1")
    next(b for b in at.button if b.label == "Skip, show me").click().run()
    at.slider[0].set_value(0.9).run()
    assert not at.exception
    written = [
        one.proto.json
        for one in at.get("bidi_component")
        if one.proto.component_name == "gradebook_address"
    ]
    assert any("value=0.9" in query for query in written)
    assert at.button[0].label == "Cancel"
    at.button[0].click().run()
    assert "Cancelled" in said(at)
    assert at.button[0].label == "Start"


def test_the_link_of_a_run_leads_to_that_run():
    run = Run("partial_groups", 2.5, "sgd", 32)
    assert read_link(query_of(run)) == (run, ())


@pytest.mark.parametrize(
    "query, run, found",
    [
        (
            {"bug": "partial_groups", "value": "1e9"},
            Run("partial_groups", 1.0),
            "a number from 0 to 20",
        ),
        (
            {"bug": "partial_groups", "value": "nan"},
            Run("partial_groups", 1.0),
            "a number",
        ),
        (
            {"bug": "partial_groups", "value": "1.3"},
            Run("partial_groups", 1.0),
            "in steps of 0.5",
        ),
        ({"bug": "x"}, Run("no_eos_outliers", 1.1), "'bug'"),
        (
            {"bug": "partial_groups", "seeds": "1000000"},
            Run("partial_groups", 1.0),
            "one of 8, 16, 32",
        ),
        (
            {"bug": "partial_groups", "optimizer": "<b>"},
            Run("partial_groups", 1.0),
            "one of adam",
        ),
        (
            {"bug": "partial_groups", "colour": "red"},
            Run("partial_groups", 1.0),
            "'colour'",
        ),
    ],
)
def test_a_link_with_bad_values_is_told_and_still_opens(query, run, found):
    got, problems = read_link(query)
    assert got == run
    assert len(problems) == 1 and found in problems[0]


def test_a_run_that_diverges_is_shown_as_that(monkeypatch):
    """With a learning rate of infinity no number is left."""
    endless = replace(OPTIMIZERS["sgd5"], rate=math.inf)
    monkeypatch.setitem(OPTIMIZERS, "sgd5", endless)
    run = Run("partial_groups", 1.0, "sgd5", 8)
    mine = Desk(run, guesses={run.bug: ("", run)})
    mine.results[run] = trained(run)
    at = AppTest.from_file(str(VISIT), default_timeout=60)
    at.session_state[keys.DESK.name] = mine
    at.run()
    at._page_hash = calc_hash("consequences")
    at.run()
    assert not at.exception
    assert "no number is left to compare" in said(at)
    assert "8 of 8 seeds diverged" in said(at)


def test_each_bug_s_page_links_to_its_training_runs():
    at = AppTest.from_file(str(VISIT), default_timeout=60)
    at.session_state["progress"] = Progress({"partial_groups": Guess(SKIPPED)})
    at._page_hash = calc_hash("partial_groups")
    at.run()
    at.button(key="more-matter").click().run()
    assert not at.exception
    assert "Does it matter?" in said(at)
