"""Does it matter?, as a person uses it: predict, watch, move, open."""

import re

import pytest
from playwright.sync_api import expect

TRAINED = 300_000
"""Milliseconds that a busy machine may take to train."""


@pytest.mark.long
def test_a_run_is_predicted_played_moved_and_opened(reader):
    page, server = reader.page, reader.server
    page.goto(f"{server.url}/consequences")
    expect(page.get_by_role("heading", level=1)).to_have_text("Does it matter?")
    said = page.locator(".st-key-training h3")

    # Predict: nothing is trained before the answer.
    expect(page.get_by_text("Predict before you look")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)
    page.get_by_role("button", name="Worse").click()

    # The report's setting was trained in advance: the result is in view.
    result = r"You said worse\. That is right\. .* is 9\d points lower"
    expect(said).to_have_text(re.compile(result))
    chart = page.locator(".st-key-curves .plot-container").first
    box = chart.bounding_box()
    assert box["y"] + box["height"] <= page.viewport_size["height"]

    # It plays from its start, and ends where it was.
    drawn = "el => el.querySelector('.scatterlayer path.js-line').getAttribute('d')"
    curves = page.locator(".st-key-curves")
    whole = curves.evaluate(drawn)
    curves.get_by_text("Play").click()
    for now in ("!==", "==="):
        shows = f"([curves, whole]) => ({drawn})(curves) {now} whole"
        page.wait_for_function(shows, arg=[curves.element_handle(), whole])

    # Another setting starts at once: below 1 the bug does no harm.
    slider = page.get_by_role("slider", name="Reward of an unfinished answer")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("value=0.8"))
    expect(said).to_contain_text("With 0.8 times", timeout=TRAINED)
    expect(page.locator(".st-key-dose .points path").nth(1)).to_be_visible()
    headline, link = said.text_content(), page.url

    # Open one update on the bug's page; the way back is a link.
    page.get_by_role("button", name="Open this batch").click()
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text("No-EOS outliers", timeout=TRAINED)
    expect(reader.board.whole.get_by_text("of a training run.")).to_be_visible()
    expect(reader.board.rows).to_have_count(64)
    page.get_by_role("link", name="Does it matter?").click()
    expect(said).to_have_text(headline)
    assert page.url == link
