"""Is the argument in view at the moment of the answer, on every bug's page?

    python tests/bench/in_view.py http://127.0.0.1:8501 [room] [1280x640 1024x700 ..]

Opens each page in a fresh session, answers its question with the first choice, and
looks before anything is scrolled: the question, the row in question and, after the
answer, both numbers and the mark of the faulty engine are inside the window, and not
below the sheet at its lower end. 640x400 is a window of 1280x800 at 200 % zoom. A head
over the page is not measured. With `room` a lead takes a room from page to page, and
the window is that of a learner who follows and votes; the answer is the lead's reveal.
Prints each page on which they are not, and how many are
right. The app has to run; pages are opened one after another in one browser.
"""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from gradebook.bugs import BUGS

SIZES = ("1280x640", "1024x700", "640x400")
SIZES_IN_A_ROOM = ("390x844", "1280x640")
# The parts by name, and by how many pixels each is out of the window or under the box.
OUT = """(answered) => {
  const host = [...document.querySelectorAll("*")].find(
    (e) => e.shadowRoot?.querySelector(".box"));
  const root = host.shadowRoot, box = root.querySelector(".box");
  const parts = { row: root.querySelector(".row.asked") };
  if (answered) {
    parts.numbers = box.querySelector(".figures");
    const marks = [...root.querySelectorAll("path.faulty[data-value]")];
    const y = parts.row?.getBoundingClientRect();
    const inRow = (e) => {
      const r = e.getBoundingClientRect(), middle = r.y + r.height / 2;
      return r.width && y && middle >= y.top && middle <= y.bottom;
    };
    parts.mark = marks.find(inRow) ?? null;
  } else parts.question = box.querySelector(".question") ?? box;
  const sheet = getComputedStyle(box).position === "fixed";
  const low = sheet ? box.getBoundingClientRect().top : innerHeight;
  const over = {};
  for (const [name, part] of Object.entries(parts)) {
    if (!part) { over[name] = "none"; continue; }
    const { top, bottom } = part.getBoundingClientRect();
    const end = box.contains(part) ? innerHeight : low;
    const out = Math.round(Math.max(-top, bottom - end));
    if (out > 0) over[name] = `${out} px`;
  }
  return over;
}"""


def looked(page: Page, lead: Page | None = None) -> dict[str, str]:
    """The parts that are out of view before and after the answer, or the reveal."""
    page.locator(".box .show").wait_for(timeout=120_000)
    found = {f"{k} before": v for k, v in page.evaluate(OUT, False).items()}
    page.locator(".box .choice").first.click()
    page.locator(".box .show").click()
    if lead:
        expect(page.locator(".st-key-room-bar")).to_contain_text("You said")
        lead.locator(".st-key-room-reveal button").click()
    expect(page.locator(".box .figures")).to_be_visible(timeout=120_000)
    board = page.locator(".board[data-stage]")
    expect(board).to_have_count(0, timeout=120_000)
    return found | {f"{k} after": v for k, v in page.evaluate(OUT, True).items()}


def alone(browser: Browser, url: str, bug: str, **window: Any) -> dict[str, str]:
    context = browser.new_context(**window)
    page = context.new_page()
    page.goto(f"{url}/{bug}")
    found = looked(page)
    context.close()
    return found


def in_a_room(
    browser: Browser, url: str, **window: Any
) -> Callable[[str], dict[str, str]]:
    """Opens a room that a learner joins. What the learner sees when the lead goes to a
    bug's page and reveals."""
    lead, learner = (browser.new_context(**size).new_page() for size in ({}, window))
    lead.goto(f"{url}/session")
    lead.locator(".st-key-room-open button").click(timeout=120_000)
    code = lead.locator(".gb-code").inner_text().strip()
    learner.goto(f"{url}/{BUGS[0]}?room={code}")
    expect(lead.get_by_text("1 learner here")).to_be_visible(timeout=120_000)

    def seen(bug: str) -> dict[str, str]:
        lead.goto(f"{url}/{bug}")
        expect(learner).to_have_url(re.compile(rf"/{bug}(\?|$)"), timeout=120_000)
        return looked(learner, lead)

    return seen


def at(browser: Browser, url: str, size: str, room: bool) -> None:
    width, height = map(int, size.split("x"))
    viewport = {"width": width, "height": height}
    window = {"viewport": viewport, "reduced_motion": "reduce"}
    see = in_a_room(browser, url, **window) if room else None
    right = 0
    for bug in BUGS:
        found = see(bug) if see else alone(browser, url, bug, **window)
        right += not found
        if found:
            print(f"{size} {bug}: {found}", flush=True)
    where = "in a room" if room else "alone"
    pages = f"{right} of {len(BUGS)} pages"
    print(f"{size} {where}: {pages} have it all in view", flush=True)


def main(url: str, *sizes: str) -> None:
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        room = "room" in sizes
        named = [size for size in sizes if size != "room"]
        for size in named or (SIZES_IN_A_ROOM if room else SIZES):
            at(browser, url.rstrip("/"), size, room)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
