"""A reader's hands at the board."""

import time

from playwright.sync_api import expect

VALUES = """(board) => Object.fromEntries(["correct", "faulty"].map((name) => [
  name,
  Object.fromEntries(
    [...board.querySelectorAll(`.over .${name}[data-row]`)]
      .map((mark) => [mark.dataset.row, Number(mark.dataset.value)])),
]))"""

SHOWS = """(board, wanted) => Object.entries(wanted).every(
  ([name, rows]) => Object.entries(rows).every(([row, value]) => {
    const mark = board.querySelector(`.over .${name}[data-row="${row}"]`);
    return mark && Math.abs(Number(mark.dataset.value) - value) < 1e-3;
  }))"""


class Board:
    """The first board on a page: its cells, handles, chips and marks."""

    def __init__(self, page):
        self.page = page
        self.whole = page.locator(".board").first

    def cell(self, row, column="reward"):
        return self.whole.locator(f".row [data-column='{column}'][data-row='{row}']")

    def handle(self, row):
        return self.whole.locator(f".handle[data-row='{row}']")

    def number(self, row):
        return self.whole.get_by_role("button", name=f"row {row}", exact=True)

    def mask(self, row):
        return self.whole.locator(f".mask[data-row='{row}']")

    def button(self, name):
        return self.whole.get_by_role("button", name=name, exact=True)

    def tool(self, name):
        """Chooses an entry of the menu "Rows and files"."""
        menu = self.whole.locator(".menu")
        if menu.get_attribute("open") is None:
            menu.locator("summary").click()
        self.button(name).click()
        menu.locator("summary").press("Escape")

    def stage(self, name):
        return self.whole.locator(f".stage[data-stage='{name}']")

    @property
    def box(self):
        """The question, or the verdict."""
        return self.whole.locator(".box")

    @property
    def challenge(self):
        return self.whole.locator(".challenge")

    @property
    def rows(self):
        return self.whole.locator(".row")

    @property
    def summary(self):
        return self.whole.locator(".summary")

    def values(self):
        """Each engine's marks: {"correct": {"0": 0.548, ..}, ..}."""
        return self.whole.evaluate(VALUES)

    def shows(self, **wanted):
        """Waits until the marks are there: correct={row: value}, .."""
        until = time.monotonic() + 30
        while not self.whole.first.evaluate(SHOWS, wanted):
            assert time.monotonic() < until, (wanted, self.values())
            self.page.wait_for_timeout(50)

    def type(self, row, text, column="reward"):
        """Replaces a cell's text, key by key, and leaves it by Enter."""
        cell = self.cell(row, column)
        cell.click()
        cell.press("Control+a")
        self.page.keyboard.type(text)
        cell.press("Enter")
        number = column not in ("prompt", "rollout", "text")
        expect(cell).to_have_value(text.replace("-", "\u2212") if number else text)

    def centre(self, row):
        box = self.handle(row).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, row, pixels, steps=8, drop=True):
        """Drags a reward's handle by so many pixels."""
        self.handle(row).scroll_into_view_if_needed()
        x, y = self.centre(row)
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + pixels, y, steps=steps)
        if drop:
            mouse.up()
