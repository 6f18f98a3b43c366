"""The whole lesson by keyboard: predict, edit, undo, take home."""

import pytest
from conftest import Reader
from playwright.sync_api import expect

BUG = "partial_groups"
FOCUS = """() => {
  const at = document.activeElement;
  const keyed = at.closest('[class*="st-key-"]');
  const key = keyed && [...keyed.classList].find((c) => /^st-key-/.test(c));
  const drawn = at.closest('[data-testid="stDataFrameResizable"]') || at;
  const { outlineStyle, boxShadow } = getComputedStyle(drawn);
  const ring = outlineStyle !== 'none' || boxShadow !== 'none';
  const text = at.getAttribute('aria-label') || at.innerText || '';
  return { tag: at.tagName, key: key || '', text: text.trim(), ring };
}"""


@pytest.fixture
def typist(desktop, server):
    """Somebody without a mouse, at a page opened fresh."""
    reader = Reader(desktop, server)
    reader.page.goto(f"{server.url}/{BUG}")
    heading = reader.page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Partial groups", timeout=60_000)
    reader.settled()
    yield reader
    reader.page.close()
    assert reader.complaints() == []


def press(reader, *keys):
    for key in keys:
        reader.page.keyboard.press(key)
        reader.page.wait_for_timeout(30)


def focus(reader):
    """What has the focus: its tag, key of Streamlit, text, and whether it
    shows."""
    return reader.page.evaluate(FOCUS)


def tab_to(reader, fits, back=False, most=90):
    """Tabs until what has the focus fits."""
    for _ in range(most):
        press(reader, "Shift+Tab" if back else "Tab")
        here = focus(reader)
        if fits(here):
            assert here["ring"], f"{here} does not show its focus"
            return here
    raise AssertionError("not reached by Tab")


def stands(reader, key):
    """The focus comes to what has this key."""
    inside = f"[class*='{key}'] :focus"
    expect(reader.page.locator(inside)).to_have_count(1)


def cell(reader, row, column):
    return reader.page.locator(f"#glide-cell-{column}-{row}")


def test_the_lesson_needs_no_mouse(typist):
    page = typist.page
    # The answer; one Tab too far, and back.
    tab_to(typist, lambda at: at["text"] == "Zero")
    tab_to(typist, lambda at: at["text"] == "Positive", back=True)
    press(typist, "Enter")
    expect(page.get_by_text("You said Positive")).to_be_visible()
    typist.settled()
    stands(typist, f"st-key-case-{BUG}")
    # The reward of row 11, in the table.
    reward = typist.grid.column("reward")
    tab_to(typist, lambda at: at["tag"] == "CANVAS")
    press(typist, "ArrowDown", "Control+Home")
    press(typist, *["ArrowDown"] * 11, *["ArrowRight"] * reward)
    there = cell(typist, 11, reward)
    expect(there).to_have_attribute("aria-selected", "true")
    page.keyboard.type("0", delay=60)
    press(typist, "Enter")
    typist.marks(BUG, faulty={10: 1.30557})
    typist.settled()
    # Undone where the focus stands, which stays in the table.
    press(typist, "Control+z")
    typist.marks(BUG, faulty={10: -0.47973})
    expect(there).to_have_text("100")
    typist.settled()
    stands(typist, "st-key-grid-")
    # Home with the test, by Space.
    tab_to(typist, lambda at: at["text"] == "pytest file")
    with page.expect_download() as waiting:
        press(typist, "Space")
    assert "def test_" in waiting.value.path().read_text("utf-8")


def test_the_stages_and_the_maps_table_need_no_mouse(typist):
    page = typist.page
    tab_to(typist, lambda at: at["text"] == "Skip, show me")
    press(typist, "Space")
    expect(page.get_by_role("heading", name="The line")).to_be_attached()
    typist.settled()
    stages = f"st-key-stage-{BUG}"
    tab_to(typist, lambda at: at["key"].startswith(stages))
    press(typist, "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")
    press(typist, "Enter")
    expect(page.get_by_role("heading", name="baseline")).to_be_visible()
    typist.settled()
    tab_to(
        typist,
        lambda at: (
            "map's numbers" in at["text"]
            or (at["key"] == f"st-key-numbers-map-{BUG}")
        ),
    )
    press(typist, "Space")
    faulty = page.get_by_role("region", name="faulty: row moved")
    expect(faulty.get_by_role("rowheader", name="10 C")).to_be_visible()
