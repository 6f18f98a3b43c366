"""Check your run, in a browser, with real files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

JUDGED = 120_000
"""Milliseconds that a verdict may take on a busy machine."""
REAL = Path(__file__).parents[1] / "logs" / "trl-group"


@pytest.fixture
def visitor(reader):
    reader.page.goto(f"{reader.server.url}/check")
    heading = reader.page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Check your run", timeout=60_000)
    reader.settled()
    return reader


def drop(reader, *files):
    upload = reader.page.locator("input[type=file]")
    upload.set_input_files(list(map(str, files)))


def test_a_dropped_log_is_judged_and_its_step_opens_on_the_bugs_page(visitor):
    page, card = visitor.page, visitor.keyed("check-verdict")
    drop(visitor, *sorted(REAL.glob("*.parquet")))
    expect(card).to_contain_text("match GRPO (ddof 1, eps 0.0001)", timeout=JUDGED)
    expect(card).to_be_in_viewport(ratio=1)
    visitor.settled()
    page.get_by_text("The trainer's settings, and names of columns").click()
    weights = page.get_by_label("Weights of the reward functions, between commas")
    weights.fill("1, 0.5")
    weights.press("Enter")
    expect(card).to_contain_text("match GRPO (ddof 1, eps 0.0001).", timeout=JUDGED)
    expect(card).to_contain_text("If you configured that", timeout=JUDGED)
    visitor.settled()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Verdict as JSON").click()
    assert waiting.value.suggested_filename == "gradebook-verdict.json"
    told = json.loads(waiting.value.path().read_text("utf-8"))
    assert told["verdict"] == "correct"
    assert told["weights"] == pytest.approx([1.0, 0.5], abs=1e-3)

    with page.expect_download() as waiting:
        page.get_by_role("button", name="Report as HTML").click()
    assert waiting.value.suggested_filename == "gradebook-report.html"

    # The question is answered by typing a part of the name.
    question = page.get_by_role("combobox", name="Which estimator")
    for name, verdict in (("RLOO", "Not what was declared"), ("GRPO", "Correct")):
        question.click()
        question.press_sequentially(name)
        page.get_by_role("option", name=name, exact=True).click()
        expect(card).to_contain_text(verdict, timeout=JUDGED)
        visitor.settled()

    weights.fill("")
    weights.press("Enter")
    page.get_by_role("button", name="A faulty run: lost rollouts").click()
    expect(card).to_contain_text("Suspect: Partial groups", timeout=JUDGED)
    visitor.settled()
    marks = visitor.keyed("check-timeline").locator(".scatterlayer .point")
    expect(marks).to_have_count(12)
    # The step's picture fits a phone.
    page.set_viewport_size({"width": 390, "height": 844})
    fits = "(e) => e.scrollWidth <= e.clientWidth"
    assert page.locator(".gb-step").evaluate(fits)
    page.set_viewport_size({"width": 1280, "height": 800})
    # The button far down the page, for the step that was open before.
    visitor.keyed("check-open").get_by_role("button").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Partial groups", timeout=60_000)
    visitor.settled()
    expect(heading).to_be_in_viewport()
    expect(visitor.board.rows).to_have_count(16)
    notes = visitor.board.whole.get_by_text("These rows are step 1 of")
    expect(notes).to_be_visible()
    # The board's header is pinned below the box, and the box below the app's header.
    page.set_viewport_size({"width": 1280, "height": 400})
    visitor.board.rows.last.scroll_into_view_if_needed()
    top = visitor.board.whole.locator(".head").bounding_box()["y"]
    below = visitor.board.whole.locator(".box").bounding_box()
    assert abs(top - below["y"] - below["height"]) < 2
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_check_is_cancelled(visitor, tmp_path):
    # A correct log takes as long as it has steps: each of them is recomputed.
    groups = np.random.default_rng(0).integers(0, 2, size=(160_000, 8))
    gap = groups - groups.mean(1, keepdims=True)
    long = pd.DataFrame(
        {
            "step": np.arange(groups.size) // 64,
            "prompt": np.arange(groups.size) // 8,
            "reward": groups.ravel().astype(float),
            "advantage": (gap / (groups.std(1, ddof=1, keepdims=True) + 1e-4)).ravel(),
        }
    )
    long.to_parquet(tmp_path / "long.parquet")
    drop(visitor, tmp_path / "long.parquet")
    visitor.keyed("check-cancel").get_by_role("button").click()
    page = visitor.page
    said = page.get_by_text("The check was cancelled")
    expect(said).to_be_visible(timeout=60_000)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    expect(page.get_by_role("button", name="Check again")).to_be_visible()


def test_of_a_picture_the_page_says_that_it_is_no_table(visitor, tmp_path):
    (tmp_path / "curve.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    drop(visitor, tmp_path / "curve.png")
    said = "curve.png: expected a .parquet, .csv, .tsv or .jsonl file, found a picture"
    expect(visitor.page.get_by_text(said)).to_be_visible(timeout=JUDGED)
