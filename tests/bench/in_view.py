"""Is the argument in view at the moment of the answer, on every bug's page?

    PYTHONPATH=. python tests/bench/in_view.py http://127.0.0.1:8501 [1280x640 1024x700 ..]

Opens each page in a fresh session, answers its question with the first choice, and
looks before anything is scrolled: the question, the row in question and, after the
answer, both numbers and the mark of the faulty engine are inside the window, and not
below the sheet at its lower end. 640x400 is a window of 1280x800 at 200 % zoom. A head
over the page is not measured. Prints each page on which they are not, and how many are
right. The app has to run; pages are opened one after another in one browser.
"""

import shutil
import sys

from playwright.sync_api import Browser, Page, expect, sync_playwright

from gradebook.bugs import BUGS

SIZES = ("1280x640", "1024x700", "640x400")
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


def looked(page: Page, address: str) -> dict[str, str]:
    """The parts that are out of view before and after the answer."""
    page.goto(address)
    page.locator(".box .show").wait_for(timeout=120_000)
    found = {f"{k} before": v for k, v in page.evaluate(OUT, False).items()}
    page.locator(".box .choice").first.click()
    page.locator(".box .show").click()
    expect(page.locator(".box .figures")).to_be_visible(timeout=120_000)
    board = page.locator(".board[data-stage]")
    expect(board).to_have_count(0, timeout=120_000)
    return found | {f"{k} after": v for k, v in page.evaluate(OUT, True).items()}


def at(browser: Browser, url: str, size: str) -> None:
    width, height = map(int, size.split("x"))
    right = 0
    for bug in BUGS:
        window = {"width": width, "height": height}
        context = browser.new_context(viewport=window, reduced_motion="reduce")
        found = looked(context.new_page(), f"{url}/{bug}")
        context.close()
        right += not found
        if found:
            print(f"{size} {bug}: {found}", flush=True)
    print(f"{size}: {right} of {len(BUGS)} pages have it all in view", flush=True)


def main(url: str, *sizes: str) -> None:
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        for size in sizes or SIZES:
            at(browser, url.rstrip("/"), size)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
