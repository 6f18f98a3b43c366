"""From Home's cards to the map, and from the map to a bug, in one session."""

from playwright.sync_api import expect

HOME = "The best answer was trained as a mistake."


def test_pictures_come_with_their_cards_and_the_map_leads_to_a_bug(read):
    home = read("", HOME)
    page = home.page
    card = page.locator(".gb-card").last
    expect(card).to_be_attached()
    picture = card.locator("img")
    width = "picture => picture.complete && picture.naturalWidth"
    assert not picture.evaluate(width)
    card.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 320)

    page.get_by_role("button", name="Uncover all").click()
    page.get_by_role("link", name="Open: Fan-out").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Fan-out")
    # The page knows what was uncovered: the session goes on.
    expect(page.locator("[class*='st-key-skip-']")).to_have_count(0)
    page.get_by_role("link", name="Home", exact=True).click()
    page.get_by_role("link", name="All bugs on one map").click()
    bug = page.locator("svg.gb-map.wide a[data-name=fan_out]")
    expect(bug).to_contain_text("✓")
    expect(page.locator("svg.gb-map.tall")).to_be_hidden()
    bug.click()
    expect(heading).to_have_text("Fan-out")
    expect(page.locator("[class*='st-key-skip-']")).to_have_count(0)
