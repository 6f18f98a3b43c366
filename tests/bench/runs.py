"""What a training run costs, and how fast its frames come.

    python tests/bench/runs.py [BUG ...]
    python tests/bench/runs.py beside

For each bug, at its slider's default, with 16 seeds and Adam:
* seconds of processor time for the whole run (aim 2, on an idle core), also
  as a multiple of a fixed piece of torch's work, so that two machines can be
  compared. Both are the shorter of two tries.
* seconds to the first frame of a warm worker process (aim 0.3), and frames a
  second (aim 10).

`beside` types into a bug's page, alone and beside six different runs that
others started in a second browser, and prints the ratio (aim 1.5).
"""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [
    str(ROOT / "tests" / "bench"),
    str(ROOT / "tests" / "browser"),
    str(ROOT),
]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from edits import keystrokes  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
from served import (  # noqa: E402
    BOARD,
    OPEN,
    answers,
    launched,
    opened,
    served,
)

from gradebook.analysis.consequences.study import (  # noqa: E402
    Run,
    studied,
    study,
)
from gradebook.analysis.consequences.training import frames  # noqa: E402
from gradebook.ui.runs.pool import DONE, Job, Pool, Task  # noqa: E402

LOOK = 0.005
"""Seconds between two looks at a job."""


def cost(work: Callable[[], object]) -> float:
    """Seconds of processor time, the shorter of two tries."""
    found = []
    for _ in range(2):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def ruler() -> None:
    """A fixed amount of torch's work."""
    values = torch.arange(200_000, dtype=torch.float64)
    for _ in range(500):
        values.sin().sum()


def timed(pool: Pool, run: Run) -> tuple[float, float, int]:
    """Seconds to the first frame and to the last, and how many came."""
    start = time.perf_counter()
    first = 0.0
    task = Task(run)
    while True:
        job: Job = pool.watch(task, "bench")
        if job.frames and not first:
            first = time.perf_counter() - start
        if job.state == DONE:
            return first, time.perf_counter() - start, len(job.frames)
        time.sleep(LOOK)


def beside(turns: int = 15, runs: int = 6) -> None:
    """A learner's keystrokes, alone and beside others' runs."""
    with sync_playwright() as playwright, served(ROOT / "app.py") as address:
        answers(address)
        page = opened(launched(playwright), f"{address}/{OPEN}", BOARD)
        alone = keystrokes(page, turns)
        others = launched(playwright)
        training = re.compile("Training|Waiting")
        for nth in range(runs):
            tab = others.new_page()
            run = f"bug=no_eos_outliers&value={nth / 10:g}&seeds=32"
            tab.goto(f"{address}/consequences?{run}")
            tab.get_by_role("button", name="Skip, show me").click()
            tab.locator(".st-key-training h3").wait_for()
        last = tab.locator(".st-key-training h3")
        places = [last.inner_text()]
        busy = keystrokes(page, turns)
        places.append(last.inner_text())
        print(f"the last run at first and at the end: {places}")
        if not training.match(places[-1]):
            print("the runs ended too early: not a measurement")
        for name, share in (("median", 50), ("95th percentile", 95)):
            before, after = (np.percentile(x, share) for x in (alone, busy))
            print(f"{name}: {after / before:.2f} times")


def main() -> None:
    if sys.argv[1:] == ["beside"]:
        beside()
        return
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(studied())
    pool = Pool(1)
    timed(pool, Run(names[0], study(names[0]).slider.default, "adam", 8))
    own = cost(ruler)
    print(f"{'':22}processor   over the ruler   first frame   frames/s")
    for name in names:
        run = Run(name, study(name).slider.default, "adam", 16)
        spent = cost(lambda: list(frames(run)))
        first, last, count = timed(pool, run)
        print(
            f"{name:22}{spent:7.2f} s{spent / own:17.1f}{first:12.2f} s"
            f"{count / last:11.0f}",
            flush=True,
        )
    pool.close()


if __name__ == "__main__":
    main()
