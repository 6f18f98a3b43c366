"""How long a lead's edit takes to reach its followers.

`PYTHONPATH=. python tests/bench/followers.py 10 30` opens a room with one
lead and so many learners, each a tab of one Chromium, and prints the median
and the greatest time from the drop of a reward to the follower's picture.
All of them share the machine with the server, so the browser's own work is
part of the time.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from board import Board
from conftest import BROWSER, FLAGS, Server
from playwright.sync_api import sync_playwright

CASE = "partial_groups?v=1&s=partial_groups&open=1"


def run(browser, url, followers, edits=5):
    """Seconds from a lead's drop to each follower's cell."""
    lead = browser.new_context().new_page()
    lead.goto(f"{url}/session")
    lead.locator(".st-key-room-open button").click()
    code = lead.locator(".gb-code").inner_text().strip()
    lead.goto(f"{url}/{CASE}&room={code}")
    lead.locator(".st-key-room-reveal button").click()
    board = Board(lead)
    board.handle(11).wait_for()
    pages = []
    for _ in range(followers):
        page = browser.new_context().new_page()
        page.goto(f"{url}/{CASE}&room={code}")
        Board(page).handle(11).wait_for(timeout=120_000)
        pages.append(page)
    found = []
    for edit in range(edits):
        value = str(edit + 2)
        cell = board.cell(11)
        cell.fill(value)
        begin = time.time()
        cell.press("Enter")
        waiting = list(pages)
        while waiting and time.time() < begin + 20:
            for page in list(waiting):
                if Board(page).cell(11).input_value() == value:
                    found.append(time.time() - begin)
                    waiting.remove(page)
        found += [20.0] * len(waiting)
    for page in [lead, *pages]:
        page.context.close()
    return found


def main(counts):
    server = Server(Path(tempfile.mkdtemp())).wait()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=BROWSER, args=FLAGS
            )
            for count in counts:
                found = sorted(run(browser, server.url, count))
                middle = statistics.median(found)
                print(
                    f"{count} followers: median {middle:.2f} s,"
                    f" 95 % {found[int(0.95 * len(found))]:.2f} s,"
                    f" greatest {found[-1]:.2f} s"
                )
    finally:
        server.stop()


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [10])
