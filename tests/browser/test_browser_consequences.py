"""Does it matter?, as a person uses it: predict, read, move, train, open."""

import re

import pytest
from playwright.sync_api import expect

TRAINED = 300_000
"""Milliseconds that a busy machine may take to train."""


def test_the_slider_shows_other_words_without_a_request(reader):
    page, server = reader.page, reader.server
    page.goto(f"{server.url}/consequences")
    expect(page.get_by_role("heading", level=1)).to_have_text("Does it matter?")

    # Predict: nothing is shown before the answer.
    expect(page.get_by_text("Predict before you look")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)
    page.get_by_role("button", name="Worse").click()
    policies = page.locator(".policies")
    headline = policies.get_by_role("heading", level=3)
    result = r"You said worse\. That is right\. .* is 7\d points lower"
    expect(headline.first).to_have_text(re.compile(result))
    chart = policies.get_by_role("img")
    box = chart.bounding_box()
    assert box["y"] + box["height"] <= page.viewport_size["height"]

    # Both policies say the same before the first update, and not after the last.
    knob = policies.get_by_role("slider")
    expect(knob).to_have_attribute("aria-valuetext", "200 updates")
    last = policies.locator(".verdict").all_text_contents()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    knob.focus()
    page.keyboard.press("Home")
    expect(headline.last).to_have_text("What both policies say after 0 updates")
    said = policies.locator("q").all_text_contents()
    assert said[::2] == said[1::2]
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(knob).to_have_attribute("aria-valuetext", "200 updates")
    said = policies.locator("q").all_text_contents()
    assert len(said) == 6 and said[::2] != said[1::2]
    assert policies.locator(".verdict").all_text_contents() == last
    assert last[3].endswith("does not end")
    policies.get_by_role("button", name="Three other prompts").click()
    expect(policies.locator("header code").first).to_have_text("92+27=")
    assert asked == []

    # Another dose: below 1 the bug helps, and the link says which.
    page.get_by_text("0.9", exact=True).click()
    expect(headline.first).to_contain_text("points higher")
    expect(page).to_have_url(re.compile("dose=0.9"))


@pytest.mark.long
def test_a_transformer_trains_while_one_watches_and_is_cancelled(reader):
    page, server = reader.page, reader.server
    page.goto(f"{server.url}/consequences?v=1&bug=no_eos_outliers")
    page.get_by_role("button", name="Skip, show me").click()
    page.get_by_role("button", name="Train it now").click()
    headline = page.locator(".policies h3").first
    for updates in (0, 5):
        growing = f"Training: {updates} of 50 updates."
        expect(headline).to_have_text(growing, timeout=TRAINED)
    page.get_by_role("button", name="Cancel").click()
    expect(headline).to_contain_text("after 200 updates", timeout=TRAINED)


@pytest.mark.long
def test_tables_are_played_moved_and_opened(reader):
    page, server = reader.page, reader.server
    page.goto(f"{server.url}/consequences?v=1&bug=no_eos_outliers&value=1.1")
    page.get_by_role("button", name="Skip, show me").click()
    said = page.locator(".st-key-training h3")
    expect(said).to_have_text(re.compile(r" is 9\d points lower"))

    # It plays from its start, and ends where it was.
    drawn = "el => el.querySelector('.scatterlayer path.js-line').getAttribute('d')"
    curves = page.locator(".st-key-curves")
    expect(curves.locator(".scatterlayer path.js-line").first).to_be_attached()
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
