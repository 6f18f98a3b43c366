"""The batch's table in a browser.

Streamlit draws its grid on a canvas. Beside it, for screen readers, stands a
hidden table whose cells are named by place, glide-cell-<column>-<row>, and
say which one is selected. So a cell is read there, and reached by keys.
"""

import re

from playwright.sync_api import Locator, Page, expect


class Grid:
    """The editable table of the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frame = page.get_by_test_id("stDataFrameResizable").first
        self.canvas = self.frame.get_by_test_id("data-grid-canvas")
        expect(self.cell(0, 0)).to_be_attached()

    def cell(self, row: int, column: int) -> Locator:
        return self.canvas.locator(f"#glide-cell-{column}-{row}")

    def column(self, title: str) -> int:
        """Where the column with this title stands."""
        heads = self.canvas.get_by_role("columnheader", include_hidden=True)
        named = heads.filter(has_text=re.compile(f"^{re.escape(title)}$"))
        return int(named.get_attribute("aria-colindex")) - 1

    def at(self, row: int, title: str) -> Locator:
        """The cell of a row, for `expect(...).to_have_text`."""
        return self.cell(row, self.column(title))

    def select(self, row: int, title: str) -> None:
        """Moves the selection there: a click for the focus, then keys."""
        column = self.column(title)
        self._home()
        for _ in range(row):
            self.page.keyboard.press("ArrowDown")
        for _ in range(column):
            self.page.keyboard.press("ArrowRight")
        there = self.cell(row, column)
        expect(there).to_have_attribute("aria-selected", "true")

    def _home(self, tries: int = 3) -> None:
        """The selection into the first cell; once more where the page moved
        under the click."""
        self.frame.scroll_into_view_if_needed()
        # The canvas lies under a scroller, which a click on it waits for.
        self.frame.click(position={"x": 15, "y": 50})
        self.page.keyboard.press("Control+Home")
        first = expect(self.cell(0, 0))
        try:
            first.to_have_attribute("aria-selected", "true", timeout=3000)
        except AssertionError:
            if tries == 1:
                raise
            self._home(tries - 1)

    def write(self, row: int, title: str, text: str) -> None:
        """Opens the cell's editor, fills it, commits."""
        self.select(row, title)
        self.page.keyboard.press("Enter")
        editor = self.page.get_by_test_id("portal")
        box = editor.locator("input, textarea").first
        if not text:  # a field that has not its text yet cannot be emptied
            expect(box).not_to_have_value("")
        box.fill(text)
        expect(box).to_have_value(text)
        box.press("Enter")

    def type(self, row: int, title: str, text: str) -> None:
        """Types over the cell, key by key, as a person does."""
        self.select(row, title)
        self.page.keyboard.type(text, delay=60)
        self.page.keyboard.press("Enter")

    def clear(self, row: int, title: str) -> None:
        """Empties the cell with the Delete key."""
        self.select(row, title)
        self.page.keyboard.press("Delete")

    def toggle(self, row: int, title: str) -> None:
        """Flips a checkbox cell."""
        self.select(row, title)
        self.page.keyboard.press("Space")

    def paste(self, row: int, title: str, block: str) -> None:
        """Puts a copied block of cells there."""
        self.select(row, title)
        self.page.evaluate("t => navigator.clipboard.writeText(t)", block)
        self.page.keyboard.press("Control+v")
