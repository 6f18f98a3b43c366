"""The sandbox's address is its whole state."""

import pytest
from playwright.sync_api import expect

FRESH = {
    "viewport": {"width": 1280, "height": 800},
    "reduced_motion": "reduce",
}


def bug(reader, name):
    """The pill of a bug."""
    pills = reader.page.get_by_role("toolbar", name="Bugs in the faulty")
    return pills.get_by_role("button", name=name)


def chosen(reader, name, pressed=True):
    expect(bug(reader, name)).to_have_attribute("aria-pressed", str(pressed).lower())


@pytest.mark.long
def test_a_link_restores_everything_in_a_fresh_browser(read, chromium):
    reader = read("sandbox", "Sandbox")
    reader.page.get_by_role("combobox", name="Start from").click()
    reader.page.get_by_role("option", name="Partial groups").first.click()
    reader.board.shows(correct={10: 1}, faulty={10: -0.47973})
    reader.board.type(11, "0")
    # 0 1 2 0 under partial groups: mean 0.75, deviation 0.957427.
    reader.board.shows(faulty={10: 1.30557})
    bug(reader, "Double normalization").click()
    chosen(reader, "Double normalization")
    reader.page.wait_for_url("**bugs=**")
    reader.board.handle(9).focus()
    expect(reader.board.number(9)).to_have_attribute("aria-current", "true")
    shown = reader.board.values()["faulty"]["9"]
    reader.page.wait_for_url("**row=9**")
    address = reader.page.url.split("/")[-1]
    elsewhere = chromium.new_context(**FRESH)
    other = read(address, "Sandbox", context=elsewhere)
    chosen(other, "Double normalization")
    chosen(other, "Partial groups")
    chosen(other, "Zero-std KL", pressed=False)
    expect(other.board.number(9)).to_have_attribute("aria-current", "true")
    expect(other.board.cell(11)).to_have_value("0")
    other.board.shows(faulty={9: shown})
    assert other.page.url == reader.page.url


@pytest.mark.long
def test_one_bug_is_taken_home_and_a_second_is_taken_back(read):
    """One bug makes a test file, two do not. Undo takes the choice of the second
    back."""
    reader = read("sandbox", "Sandbox")
    button = reader.page.get_by_role("button", name="pytest file")
    with reader.page.expect_download() as waiting:
        button.click()
    assert "def test_" in waiting.value.path().read_text("utf-8")
    chosen(reader, "Double normalization")
    bug(reader, "Rejected rows").click()
    chosen(reader, "Rejected rows")
    said = "hold exactly one bug; 2 are chosen"
    expect(reader.page.get_by_text(said)).to_be_visible()
    expect(button).to_have_count(0)
    reader.page.wait_for_url("**bugs=**")
    reader.board.button("Undo").click()
    chosen(reader, "Rejected rows", pressed=False)
    reader.board.button("Redo").click()
    chosen(reader, "Rejected rows")
