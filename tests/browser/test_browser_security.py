"""Every page in Chromium, without a violation of the content security policy."""

import pytest
from conftest import Reader
from playwright.sync_api import expect

import gradebook
from gradebook.ui.parts.address import page_files

NOTE = """
const kept = () => JSON.parse(sessionStorage.getItem('violations') ?? '[]');
addEventListener('securitypolicyviolation', (e) => {
  const told = `${e.effectiveDirective} ${e.blockedURI} on ${location.pathname}`;
  sessionStorage.setItem('violations', JSON.stringify([...kept(), told]));
});
"""
KEPT = "JSON.parse(sessionStorage.getItem('violations') ?? '[]')"


@pytest.mark.long
def test_no_page_violates_the_policy(elsewhere, server):
    """A bug's page is open, with all its folded parts; the training runs with
    their curves; the session with a room."""
    context = elsewhere()
    context.add_init_script(NOTE)
    reader = Reader(context, server)
    page = reader.page

    def press(name):
        page.get_by_role("button", name=name, exact=True).click()
        reader.settled()

    for name in page_files():
        link = f"{name}?v=1&s={name}&open=1" if name in gradebook.BUGS else name
        page.goto(f"{server.url}/{link if name != 'home' else ''}")
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_be_visible(timeout=60_000)
        reader.settled()
        if name == "partial_groups":
            for part in ("Am I affected?", "Take it home", "Go deeper"):
                press(part)
        if name == "consequences":
            press("Skip, show me")
            expect(page.get_by_role("img", name="held-out prompts")).to_be_visible()
            page.get_by_text("The quick laboratory: tables, any dose").click()
            reader.settled()
            expect(page.locator(".js-plotly-plot").first).to_be_visible()
        if name == "session":
            press("Open a room")
            expect(page.get_by_alt_text("QR code")).to_be_visible()
            press("Close the room and delete its votes")
    assert page.evaluate(KEPT) == []
    # A page that did violate it would have been found.
    page.evaluate("fetch('https://example.invalid/').catch(() => 0)")
    told = page.wait_for_function(f"({KEPT})[0]").json_value()
    assert told.startswith("connect-src https://example.invalid/ on /")
