"""The lesson as a person takes it: predict, edit, go back, take home."""

import re

import pytest
from conftest import Reader
from playwright.sync_api import expect

import gradebook

BUG = "partial_groups"


@pytest.fixture
def visitor(desktop, server):
    """A session of its own at an address; nothing may have gone wrong."""
    readers = []

    def arrive(path):
        reader = Reader(desktop, server)
        readers.append(reader)
        reader.page.goto(f"{server.url}/{path}")
        heading = reader.page.get_by_role("heading", level=1)
        expect(heading).to_have_text("Partial groups", timeout=60_000)
        reader.settled()
        return reader

    yield arrive
    for reader in readers:
        reader.page.close()
        assert reader.complaints() == []


MARKS = """() => (document.querySelector(
  '.st-key-picture-partial_groups .js-plotly-plot')?._fullData ?? [])
  .map((t) => t.name)"""


def names_of_marks(reader):
    reader.page.wait_for_function(f"() => ({MARKS})().length")
    return set(reader.page.evaluate(MARKS))


def reward(reader):
    return reader.keyed(f"reward-{BUG}").get_by_role("textbox")


def test_the_faulty_side_is_covered_until_the_answer(visitor):
    reader = visitor(BUG)
    assert "faulty" not in names_of_marks(reader)
    expect(reader.page.get_by_text("Predict before you look")).to_be_visible()
    expect(reader.page.get_by_text("The rule:")).to_have_count(0)
    reader.page.get_by_role("button", name="Positive").click()
    # TRUTH: row 10 is -0.480 faulty, +1.000 correct.
    reader.marks(BUG, correct={10: 1.0}, faulty={10: -0.480})
    told = reader.page.get_by_text("You said Positive. The answer: Negative.")
    expect(told).to_be_visible()
    expect(reader.page.get_by_text("The rule:")).to_be_visible()
    # A link to the open page is not asked again; the covered one is.
    assert "open=1" in reader.page.url
    again = visitor(reader.page.url.split("/")[-1])
    again.marks(BUG, faulty={10: -0.480})


def test_back_undoes_an_edit_and_a_link_restores_it(visitor):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1")
    reader.keyed(f"row-{BUG}").get_by_role("spinbutton").fill("11")
    reader.page.keyboard.press("Enter")
    expect(reward(reader)).to_have_value("100")
    reader.fill(f"reward-{BUG}", "0")
    # Row 11 at 0: rows 8 to 11 are 0 1 2 0, mean 0.75, std 0.957427.
    reader.marks(BUG, faulty={10: 1.3055})
    reader.settled()
    edited = reader.page.url
    reader.page.go_back()
    expect(reward(reader)).to_have_value("100")
    reader.marks(BUG, faulty={10: -0.480})
    reader.page.go_forward()
    reader.marks(BUG, faulty={10: 1.3055})
    other = visitor(edited.split("/")[-1])
    other.marks(BUG, faulty={10: 1.3055})
    expect(reward(other)).to_have_value("0")


def test_a_damaged_link_is_named_and_the_page_stands(visitor):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1&nonsense=7")
    expect(reader.page.get_by_text("'nonsense'")).to_be_visible()
    reader.marks(BUG, correct={10: 1.0})


def test_the_keyboard_undoes_and_redoes_outside_a_field(visitor):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1")
    reader.fill(f"reward-{BUG}", "5")
    expect(reader.keyed(f"undo-{BUG}").get_by_role("button")).to_be_enabled()
    reader.page.get_by_role("heading", level=1).click()
    reader.page.keyboard.press("Control+z")
    expect(reward(reader)).to_have_value("2")
    reader.page.keyboard.press("Control+Shift+z")
    expect(reward(reader)).to_have_value("5")
    # In a text field the keys stay the field's own.
    reward(reader).click()
    reader.page.keyboard.press("Control+z")
    redo = reader.keyed(f"redo-{BUG}").get_by_role("button")
    expect(redo).to_be_disabled()


def test_the_keyboard_undoes_where_a_choice_or_the_history_has_the_focus(
    visitor,
):
    """Neither a select box with its list closed nor the slider is text."""
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1")
    keys = reader.page.keyboard
    scale = reader.keyed(f"set-scale-{BUG}").get_by_role("combobox")
    expect(scale).to_have_value("group_std")
    reader.settled()
    for _ in range(20):  # a page that is still being drawn closes the list
        if scale.get_attribute("aria-expanded") == "true":
            break
        scale.press("ArrowDown")
        reader.page.wait_for_timeout(200)
    reader.page.get_by_role("option", name="none", exact=True).click()
    expect(scale).to_have_value("none")
    reader.settled()
    expect(scale).to_be_focused()
    keys.press("Control+z")
    expect(scale).to_have_value("group_std")
    for text in ("5", "6"):
        reader.fill(f"reward-{BUG}", text)
        expect(reward(reader)).to_have_value(text)
        reader.settled()
    reader.page.get_by_role("slider").first.focus()
    keys.press("Control+z")
    expect(reward(reader)).to_have_value("5")


def test_a_challenge_is_solved_by_an_edit_and_shrinking_can_be_undone(
    visitor,
):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1&row=11")
    expect(reader.page.get_by_text("✓ solved")).to_have_count(0)
    reader.fill(f"reward-{BUG}", "0")
    solved = reader.page.get_by_text("✓ The batch above solves it.")
    expect(solved.first).to_be_visible()
    reader.keyed(f"reset-{BUG}").get_by_role("button").click()
    expect(reward(reader)).not_to_have_value("0")
    shrink = reader.page.get_by_role("button", name="Shrink the batch")
    shrink.click()
    last = reader.keyed(f"row-{BUG}").locator("input")
    expect(last).to_have_attribute("max", "3", timeout=20_000)
    reader.keyed(f"undo-{BUG}").get_by_role("button").click()
    expect(last).to_have_attribute("max", "11")


def test_a_hint_opens_by_the_keyboard_and_stays_open_over_an_edit(visitor):
    hint = gradebook.load(BUG).challenges[0].hint
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1&row=11")
    told = reader.page.get_by_text(hint)
    expect(told).to_be_hidden()
    reader.page.locator("summary", has_text="Hint").first.press("Enter")
    expect(told).to_be_visible()
    reader.fill(f"reward-{BUG}", "50")
    missing = reader.page.get_by_text(re.compile("^Not yet:"))
    expect(missing.first).to_be_visible()
    expect(told).to_be_visible()


@pytest.mark.parametrize(
    "label, name, holds",
    [
        ("pytest file", f"test_{BUG}.py", "def test_"),
        ("CSV", f"{BUG}.csv", "advantage"),
        ("Scenario file", f"{BUG}-mine.toml", f'bug = "{BUG}"'),
    ],
)
def test_files_are_taken_home(visitor, label, name, holds):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1")
    button = reader.page.get_by_role("button", name=label, exact=True)
    with reader.page.expect_download() as waiting:
        button.click()
    assert waiting.value.suggested_filename == name
    assert holds in waiting.value.path().read_text("utf-8")


def test_a_cell_of_the_map_says_who_moved_whom(visitor):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1")
    # TRUTH: setting row 11's reward to 0 moves row 10 by 1.79.
    table = reader.page.locator("table", has_text="moved by")
    expect(table).to_contain_text("−1.785", timeout=60_000)
    culprit = reader.keyed(f"culprit-{BUG}").get_by_role("spinbutton")
    expect(culprit).to_have_value("11")
    culprit.fill("0")
    culprit.press("Enter")
    expect(table).not_to_contain_text("−1.785")


CELL = """([row, column]) => {
  const map = document.querySelector(
    '.st-key-map-partial_groups .js-plotly-plot');
  if (!map?._fullLayout) return null;
  map.scrollIntoView({block: 'center'});
  const { xaxis2, yaxis } = map._fullLayout;
  const box = map.getBoundingClientRect();
  return [box.x + xaxis2._offset + xaxis2.l2p(column + 0.35),
          box.y + yaxis._offset + yaxis.l2p(row + 0.3)];
}"""


def test_a_click_anywhere_in_a_cell_of_the_map_chooses_it(visitor):
    reader = visitor(f"{BUG}?v=1&s={BUG}&open=1")
    place = reader.page.wait_for_function(CELL, arg=[8, 11]).json_value()
    reader.page.mouse.click(*place)
    for field, row in (("victim", "8"), ("culprit", "11"), ("row", "8")):
        box = reader.keyed(f"{field}-{BUG}").get_by_role("spinbutton")
        expect(box).to_have_value(row)


def test_home_uncovers_every_card_at_once(read):
    reader = read()
    page = reader.page
    cards = page.get_by_text(re.compile("^Not opened yet"))
    expect(cards).to_have_count(len(gradebook.BUGS))
    page.get_by_role("button", name="Uncover all").click()
    expect(cards).to_have_count(0)
