"""The page of training runs: prediction, switches, link, result."""

import math
import re

import pytest

from gradebook.training.study import OPTIMIZERS, Run
from gradebook.training.train import trained
from gradebook.ui.parts.desk import DESK, Desk, query_of, read_link
from gradebook.ui.parts.drafts import SKIPPED

PAGE = "consequences"


def test_the_page_asks_first_and_shows_what_was_trained_in_advance(visit):
    page = visit(PAGE)
    assert "Predict before you look" in page.text
    assert not page.app.slider
    page.click("training-1")
    assert page.app.slider[0].value == pytest.approx(1.1)
    # CONSEQUENCES: .987 and .003 after 200 updates with 32 seeds.
    assert "You said worse. That is right." in page.text
    assert re.search("success rate of the faulty run is 9[89] points lower", page.text)


def test_another_setting_is_another_run_and_the_address_says_so(visit):
    page = visit(PAGE, bug="no_eos_outliers", value="1.1")
    page.click("training-skip").app.slider[0].set_value(0.8)
    page.run()
    assert page.app.query_params["value"] == "0.8"
    page.widget("training-cancel").click()
    assert "Cancelled" in page.run().text
    assert page.widget("training-start")


def test_the_link_of_a_run_leads_to_that_run():
    run = Run("partial_groups", 2.5, "sgd", 32)
    assert read_link(query_of(run)) == (run, "")


@pytest.mark.parametrize(
    "key, text, expected",
    [
        ("value", "1e9", "a number from 0 to 20"),
        ("value", "1.3", "in steps of 0.5"),
        ("seeds", "1000000", "one of 8, 16, 32"),
        ("optimizer", "<b>", "one of adam"),
        ("bug", "x", "'bug'"),
    ],
)
def test_a_link_with_bad_values_is_told_and_still_opens(key, text, expected):
    run, problem = read_link({"bug": "partial_groups", key: text})
    first = Run("no_eos_outliers", 1.1)
    assert run == (first if key == "bug" else Run("partial_groups", 1.0))
    assert expected in problem


def test_a_run_that_diverges_is_shown_as_that(monkeypatch, visit):
    title, optimizer, _ = OPTIMIZERS["sgd5"]
    monkeypatch.setitem(OPTIMIZERS, "sgd5", (title, optimizer, math.inf))
    run = Run("partial_groups", 1.0, "sgd5", 8)
    mine = Desk(run, guesses={run.bug: (SKIPPED, run)}, results={run: trained(run)})
    page = visit(PAGE, {DESK.name: mine})
    assert "no number is left to compare" in page.text
    assert "8 of 8 seeds diverged" in "".join(w.value for w in page.app.warning)


def test_each_bug_s_page_links_to_its_training_runs(visit):
    links = visit("partial_groups").app.get("page_link")
    (query,) = (
        x.proto.query_string for x in links if x.proto.label == "Does it matter?"
    )
    assert "bug=partial_groups" in query
