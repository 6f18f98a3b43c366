"""No WCAG violation on any page, in light and in dark (axe-core)."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import gradebook

WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OPEN = [f"{bug}?v=1&s={bug}&open=1" for bug in gradebook.BUGS]
PAGES = ["", "partial_groups", *OPEN, "check", "sandbox", "session"]


@pytest.fixture(scope="module", params=["light", "dark"])
def scheme(request, chromium):
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900},
        color_scheme=request.param,
        reduced_motion="reduce",
    )
    yield context
    context.close()


def violations(page):
    found = Axe().run(page, options={"runOnly": WCAG}).response
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:120]}"
        for v in found["violations"]
    ]


@pytest.mark.parametrize("path", PAGES)
def test_no_page_violates_wcag(scheme, server, path):
    page = scheme.new_page()
    page.goto(f"{server.url}/{path}")
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=60_000)
    idle = "[data-testid='stApp'][data-test-script-state='notRunning']"
    page.locator(idle).wait_for(timeout=20_000)
    page.wait_for_timeout(800)  # pictures fade in
    found = violations(page)
    page.close()
    assert found == []


def test_neither_a_bad_cell_nor_an_open_box_violates_wcag(scheme, server):
    """What is stale is pale, and still to be read."""
    page = scheme.new_page()
    page.goto(f"{server.url}/{OPEN[0]}")
    reward = page.get_by_label("Reward", exact=True)
    expect(reward).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="The covered link").click()
    expect(page.get_by_text("covered", exact=False).first).to_be_visible()
    page.wait_for_timeout(800)
    boxed = violations(page)
    page.keyboard.press("Escape")
    reward.fill("x")
    reward.press("Enter")
    expect(page.get_by_text("expected a number, found 'x'")).to_be_visible()
    page.wait_for_timeout(1500)
    found = violations(page)
    page.close()
    assert boxed == [] and found == []


def test_a_violation_would_be_found(scheme, server):
    page = scheme.new_page()
    page.goto(server.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=60_000)
    page.evaluate("document.body.append(document.createElement('img'))")
    assert any("image-alt" in v for v in violations(page))
    page.close()
