"""How fast a page answers, in real Chromium, beside an empty Streamlit app.

    python tests/bench/page.py [turns] [case ...]     20 turns, every case
    cases: edits home cold join crowd drags hundred cost left

Every time is printed as a multiple of the empty app's in the same run: the
number of milliseconds belongs to the machine, the ratio to Gradebook.

edits    one learner on a whole page: a keystroke, a drag, a flag, a chip
home     a drag on Home: the time between frames, beside the page at rest
cold     a started server's first page; join: a new learner's page
crowd    30 learners who type every two seconds, beside one
drags    30 learners who drag at once
hundred  100 learners who type every five seconds
cost     what an edit costs the server, by part: bytes and CPU
left     what is left of learners who left, minutes later
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "browser"), str(ROOT)]

from crowds import cost, crowd, drags, hundred, left  # noqa: E402
from edits import one_learner  # noqa: E402
from frames import home_drag  # noqa: E402
from served import launched  # noqa: E402
from starts import starts  # noqa: E402

IN_A_BROWSER = {
    "edits": one_learner,
    "home": home_drag,
    "crowd": crowd,
    "drags": drags,
}
STARTS = {
    "cold": partial(starts, warm=False),
    "join": partial(starts, warm=True),
}
OTHERS = {"hundred": hundred, "cost": cost, "left": left}


def main() -> None:
    every = {*IN_A_BROWSER, *STARTS, *OTHERS}
    turns = int(next((a for a in sys.argv[1:] if a.isdecimal()), 20))
    cases = every.intersection(sys.argv[1:]) or every
    print("load", os.getloadavg(), "cores", os.cpu_count())
    print(f"{'':34}times the ruler")
    with sync_playwright() as playwright:
        for name in cases & set(IN_A_BROWSER):
            browser = launched(playwright)
            IN_A_BROWSER[name](browser, turns)
            browser.close()
        for name in cases & set(STARTS):
            STARTS[name](playwright)
    for name in cases & set(OTHERS):
        OTHERS[name]()


if __name__ == "__main__":
    main()
