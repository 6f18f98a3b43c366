"""A class led from end to end: a lead with a projector and notes on a phone, and three
learners, one of them on a phone."""

import re

import pytest
from conftest import Reader
from playwright.sync_api import expect


def button(reader, key):
    return reader.page.locator(f'[class*="st-key-{key}"] button').first


def vote(reader, choice):
    reader.page.locator(".box .choice").nth(choice).click()
    reader.page.locator(".box .show").click()
    expect(reader.keyed("room-bar")).to_contain_text("You said")


def is_above_the_sheet(page):
    """On a phone, below the room's bar, the row in question is not covered."""
    row, sheet = page.locator(".row.asked"), page.locator(".box")
    expect(row).to_be_in_viewport(ratio=1)
    asked = row.bounding_box()
    return asked["y"] + asked["height"] <= sheet.bounding_box()["y"]


def test_what_a_room_says_moves_no_row_under_the_sheet_of_a_phone(elsewhere, server):
    lead, learner = Reader(elsewhere(), server), Reader(elsewhere(390, 844), server)
    lead.page.goto(f"{server.url}/session")
    button(lead, "room-open").click()
    code = lead.page.locator(".gb-code").inner_text().strip()
    learner.page.goto(f"{server.url}/partial_groups?room={code}")
    expect(lead.page.get_by_text("1 learner here")).to_be_visible()
    expect(learner.keyed("room-bar")).to_contain_text("0 answers")
    expect(learner.page.locator(".box .show")).to_be_visible()
    assert is_above_the_sheet(learner.page)
    lead.page.get_by_role("link", name="Presenter view").first.click()
    lead.settled()
    button(lead, "room-timer-60").click()
    expect(learner.page.get_by_role("timer")).to_be_visible()
    assert is_above_the_sheet(learner.page)  # the bar has one more line
    for reader in (lead, learner):
        assert reader.complaints() == []


SAID_EARLY = """
const Sizes = ResizeObserver;
window.ResizeObserver = class extends Sizes {
  constructor(act) { super((...all) => setTimeout(() => act(...all), 200)); }
};
setInterval(() => dispatchEvent(new CustomEvent("gradebook-away")), 20);
"""
"""What a room says of its server comes before a board knows its width."""


def test_a_room_that_speaks_before_the_board_is_drawn_breaks_nothing(elsewhere, server):
    learner = Reader(elsewhere(), server)
    learner.page.add_init_script(SAID_EARLY)
    learner.page.goto(f"{server.url}/partial_groups")
    expect(learner.page.locator(".box .show")).to_be_visible(timeout=60_000)
    assert learner.complaints() == []


@pytest.mark.long
def test_a_class_is_asked_discusses_is_asked_again_and_takes_a_page_home(
    elsewhere, server
):
    lead, one, two, three = (
        Reader(elsewhere(width), server) for width in (1280, 1280, 390, 1280)
    )
    lead.page.goto(f"{server.url}/session")
    button(lead, "room-open").click()
    code = lead.page.locator(".gb-code").inner_text().strip()
    # The plan has every question, and no answer until the lead asks for them.
    plan = lead.page.locator("body")
    expect(plan).to_contain_text("Ask:")
    expect(plan).not_to_contain_text("The truth:")
    link = lead.keyed("room-panel").locator("code").first.inner_text()
    # Enter in the field joins.
    one.page.goto(f"{server.url}/session")
    field = one.page.get_by_label("Code", exact=True)
    field.fill(code.lower())
    field.press("Enter")
    for learner in (two, three):
        learner.page.goto(link)
    expect(lead.page.get_by_text("3 learners here")).to_be_visible()
    lead.page.get_by_role("link", name="Presenter view").first.click()
    lead.settled()
    for learner in (one, two, three):
        expect(learner.page.locator(".box .show")).to_be_attached()
        skip = learner.page.locator(".box").get_by_role("button", name="Skip")
        expect(skip).to_have_text("Skip: no vote, show me")
    # Letters on the projector are larger than at a desk.
    size = "(e) => parseFloat(getComputedStyle(e).fontSize)"
    cell = ".row .cell"
    projected, at_desk = (
        reader.page.locator(cell).first.evaluate(size) for reader in (lead, one)
    )
    assert projected >= 1.2 * at_desk

    for learner, choice in ((one, 0), (two, 0), (three, 2)):
        vote(learner, choice)
    expect(lead.keyed("room-bar")).to_contain_text("3 answers")
    button(lead, "room-timer-60").click()
    expect(one.page.get_by_role("timer")).to_have_text(re.compile("0:[0-9]+ left|1:00"))
    button(lead, "room-again").click()
    for learner, choice in ((one, 2), (two, 0), (three, 2)):
        expect(learner.keyed("room-bar")).to_contain_text("vote once more")
        vote(learner, choice)
    expect(lead.keyed("room-bar")).to_contain_text("3 answers")
    lead.settled()
    lead.page.keyboard.press("Space")  # though a button was clicked last
    for reader in (lead, one, two, three):
        expect(reader.page.locator(".box .figures")).to_be_visible()
    for reader in (lead, one):
        bar = reader.keyed("room-bar")
        expect(bar).to_contain_text("Right: 1 of 3, then 2 of 3.")
        expect(reader.page.locator(".crowd")).to_have_attribute("d", re.compile("M"))
    expect(lead.page.locator(".box")).not_to_contain_text("You said")
    assert is_above_the_sheet(two.page)
    main = two.page.get_by_test_id("stMain")
    assert main.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    button(lead, "plan-next").click()
    expect(lead.keyed("room-bar")).to_contain_text("Step 3 of")
    expect(lead.page.locator("button:focus")).to_have_count(0)

    # The phone with the notes reveals, and takes the class onward.
    notes = Reader(elsewhere(390, 844), server)
    desk = Reader(lead.page.context, server)
    desk.page.goto(f"{server.url}/session")
    desk.page.get_by_text("Your notes on another device").click()
    button(desk, "room-key").click()
    own = desk.keyed("room-panel").locator("code", has_text="lead=")
    notes.page.goto(own.inner_text())
    desk.page.close()
    expect(notes.keyed("room-notes")).to_contain_text("The truth:")
    button(notes, "room-reveal").click()
    for reader in (lead, one, two, three):
        expect(reader.page.locator(".box .figures")).to_be_visible()
    button(notes, "notes-next").click()
    expect(lead.keyed("room-bar")).to_contain_text("Step 4 of")
    for learner in (one, two, three):
        expect(learner.page.locator(".box .show")).to_be_attached()

    lead.page.goto(f"{server.url}/session")
    lead.page.get_by_text("Results", exact=True).click()
    after = lead.page.locator("code", has_text="after=").first
    three.page.goto(after.inner_text())
    expect(three.page.get_by_text("After the class")).to_be_visible()
    expect(three.page.locator("body")).to_contain_text("The rule.")
    for reader in (lead, notes, one, two, three):
        assert reader.complaints() == []
