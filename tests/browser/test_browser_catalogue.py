"""From Home's map to a bug and back, in one session and in the next."""

from playwright.sync_api import expect

HOME = "One unfinished answer can turn three right ones into mistakes."


def test_home_leads_to_a_bug_and_remembers_it(read):
    page = read("", HOME).page
    tile = page.locator(".gb-index a[data-name=fan_out]")
    expect(tile).to_have_class("covered")
    page.get_by_role("searchbox").fill("slime")
    expect(page.locator(".gb-index a[data-name=zero_std_kl]")).to_be_hidden()
    tile.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fan-out")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator(".st-key-the-end")).to_be_visible()
    page.reload()  # another session of the same browser
    expect(page.locator(".st-key-the-end")).to_be_visible(timeout=60_000)
    page.get_by_role("link", name="Home", exact=True).click()
    expect(tile).to_have_class("open")
    page.get_by_role("button", name="Start over").click()
    expect(tile).to_have_class("covered")


def test_a_drag_on_home_asks_the_server_for_nothing(read):
    page = read("", HOME).page
    hand = page.get_by_role("slider", name="Reward of row 3")
    expect(hand).to_have_attribute("aria-valuenow", "1.1")
    expect(page.locator(".result-head").last).to_contain_text("0.003")
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    hand.press("ArrowLeft")
    hand.press("ArrowLeft")
    expect(hand).to_have_attribute("aria-valuenow", "0.9")
    expect(page.locator(".result-head").last).to_contain_text("0.996")
    expect(page.locator(".result-head").first).to_contain_text("pushes them up")
    assert sent == []
