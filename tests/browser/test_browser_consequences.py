"""Does it matter?, as a person uses it: predict, watch, move, stop, open."""

import csv
import re
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

CURVES = """() => {
  const paths = document.querySelectorAll('.st-key-training svg path');
  window.drawn = window.drawn || new Set();
  if (paths.length) window.drawn.add(paths[0].getAttribute('d'));
  return window.drawn.size >= 4;
}"""
"""Four different curves were drawn, one after the other."""

TRAINED = 300_000
"""Milliseconds that a busy machine may take to train."""


@pytest.mark.long
def test_a_run_is_predicted_watched_moved_stopped_and_opened(reader):
    page, server = reader.page, reader.server
    page.goto(f"{server.url}/consequences")
    expect(page.get_by_role("heading", level=1)).to_have_text("Does it matter?")
    said = page.locator(".st-key-training h3")

    # Predict: nothing is trained before the answer.
    expect(page.get_by_text("Predict before you look")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)
    page.get_by_role("button", name="Worse").click()

    # Watch it grow, until the result stands there with its interval.
    page.wait_for_function(CURVES, timeout=TRAINED)
    expect(said).to_have_text(
        re.compile(
            r"You said worse, and that is right\. With 1\.1 times .*"
            r" solves 9\d points less after 200 updates"
            r" \(95 % interval \d+ to \d+\)\."
        ),
        timeout=TRAINED,
    )

    # The whole run is kept, to its last update.
    expect(page.get_by_text("After 200 updates the correct run")).to_be_visible()

    # The picture and the curves as files.
    with page.expect_download() as got:
        page.get_by_role("button", name="Picture (SVG)").click()
    picture = ElementTree.parse(got.value.path()).getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    written = "".join(picture.itertext())
    assert "No-EOS outliers" in written and "chance of success" in written
    with page.expect_download() as got:
        page.get_by_role("button", name="Curves (CSV)").click()
    with open(got.value.path()) as file:
        curves = list(csv.DictReader(file))
    assert len(curves) == 41 * 2 * 16  # a frame each 5 updates, 16 seeds
    last = [float(c["value"]) for c in curves if c["update"] == "200"]
    summary = page.get_by_text("After 200 updates the correct run")
    expect(summary).to_contain_text(
        f"the correct run is at {sum(last[:16]) / 16:.3f} and the faulty run"
        f" at {sum(last[16:]) / 16:.3f}"
    )

    # Another setting starts at once: below 1 the bug does no harm.
    slider = page.get_by_role("slider", name="Reward of an unfinished answer")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("value=0.9"))
    expect(said).to_contain_text("With 0.9 times", timeout=TRAINED)
    expect(page.locator(".st-key-dose svg circle")).to_have_count(2)

    # Stop a longer run on its way.
    page.get_by_role("radio", name="32").click()
    training = re.compile(r"Training: [1-9]\d+ of")
    expect(said).to_have_text(training, timeout=TRAINED)
    page.get_by_role("button", name="Stop").click()
    expect(said).to_have_text(re.compile(r"Stopped after \d+ of 200 updates\."))
    stopped = said.text_content()
    expect(page).to_have_url(re.compile("seeds=32"))
    link = page.url

    # Open one step on the bug's page; the way back is a link.
    page.get_by_role("button", name="Open this batch").click()
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text("No-EOS outliers")
    expect(page.get_by_text("of a training run was opened")).to_be_visible()
    expect(reader.board.rows).to_have_count(64)
    page.get_by_role("link", name="Back to the curves").click()
    expect(said).to_have_text(stopped)
    assert page.url == link

    # A link with absurd values is told so, and the page opens all the same.
    page.goto(f"{server.url}/consequences?value=1e9&optimizer=lion")
    told = page.get_by_text("Parts of this link could not be read")
    expect(told).to_contain_text("a number from 0 to 2, but is '1e9'")
    expect(told).to_contain_text("one of adam, sgd, sgd5, but is 'lion'")
    expect(page.get_by_text("Predict before you look")).to_be_visible()
