"""How much a revealed page is: its height, and its controls."""

import pytest
from playwright.sync_api import expect

import gradebook

HEIGHT = "document.querySelector('.stMain').scrollHeight"
# What is in sight and takes a press or a key, outside the board's rows and
# Streamlit's header.
CONTROLS = """() => {
  const found = [];
  const within = (root) => root.querySelectorAll("*").forEach((e) => {
    if (e.shadowRoot) within(e.shadowRoot);
    const acts = "button, a[href], input, select, textarea, summary, [role=slider]";
    if (e.matches(acts) && e.checkVisibility({ visibilityProperty: true })
        && !e.closest(".rows, [data-testid=stHeader], [data-testid=stSidebar]"))
      found.push(e.innerText || e.getAttribute("aria-label") || e.className);
  });
  within(document);
  return found;
}"""


@pytest.mark.long
@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_a_revealed_page_is_short(chromium, server, bug):
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(f"{server.url}/{bug}")
    page.locator(".choice").first.click(timeout=60_000)
    page.get_by_role("button", name="Show what it does").click()
    expect(page.locator(".st-key-the-end")).to_be_visible(timeout=60_000)
    expect(page.locator(".gb-listing")).to_have_count(2)
    expect(page.locator(".gb-formula").first).to_be_visible()
    expect(page.locator(".board[data-stage]")).to_have_count(0)
    assert page.evaluate(HEIGHT) <= 1700
    controls = page.evaluate(CONTROLS)
    assert len(controls) <= 40, controls
    context.close()
