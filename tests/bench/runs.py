"""What a training run costs, and how fast its frames come.

    python tests/bench/runs.py [BUG ...]
    python tests/bench/runs.py beside [RUNS ...]

For each bug, at its slider's default, with 16 seeds and Adam:
* seconds of processor time for the whole run (aim 2, on an idle core), also
  as a multiple of a fixed piece of torch's work, so that two machines can be
  compared. Both are the shorter of two tries.
* seconds to the first frame of a warm worker process (aim 0.3), and frames a
  second (aim 10).

`beside` types into a bug's page in Chromium, alone and beside 6 and 30
different runs that other sessions (without browsers, which would be clients
on the server's cores) started and watch, and prints the ratio (aim 1.5).
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    cpu_seconds,
    launched,
    opened,
    served,
    server_of,
)
from sessions import Watcher, watchers  # noqa: E402

from gradebook.training.study import (  # noqa: E402
    Run,
    studied,
    study,
)
from gradebook.training.train import frames  # noqa: E402
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


def different(count: int) -> list[str]:
    """The addresses of so many different runs."""
    found = []
    for nth in range(count):
        bug = list(studied())[nth % len(studied())]
        slider = study(bug).slider
        value = slider.nearest(slider.least + nth // 10 * slider.step)
        found.append(f"consequences?bug={bug}&value={value:g}&seeds=32")
    return found


def beside(counts: list[int], turns: int = 15) -> None:
    """A learner's keystrokes, alone and beside others' runs."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for count in counts:
            with served(ROOT / "app.py") as address:
                answers(address)
                page = opened(browser, f"{address}/{OPEN}", BOARD)
                alone = keystrokes(page, turns)
                with watched(address, different(count)) as crowd:
                    began, server = time.perf_counter(), server_of(address)
                    spent = cpu_seconds(server)
                    busy = keystrokes(page, turns)
                    took = time.perf_counter() - began
                    spent = cpu_seconds(server) - spent
                page.context.close()
            going = [w for w in crowd if w.beats]
            print(f"{count} runs, of which {len(going)} still go on at the end")
            print(f"  the server is busy {spent / took:.0%} of the time")
            for name, share in (("median", 50), ("95th percentile", 95)):
                before, after = (np.percentile(x, share) for x in (alone, busy))
                print(
                    f"  {name}: {after / before:.2f} times"
                    f" [{after:.0f} ms of {before:.0f}]",
                    flush=True,
                )


@contextmanager
def watched(address: str, paths: list[str]) -> Iterator[list[Watcher]]:
    """Sessions that watch these runs meanwhile; they are there at the end."""
    stop, ready = threading.Event(), threading.Event()
    found: list[Watcher] = []
    thread = threading.Thread(
        target=lambda: found.extend(asyncio.run(watchers(address, paths, stop, ready)))
    )
    thread.start()
    ready.wait()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def main() -> None:
    if sys.argv[1:2] == ["beside"]:
        beside([int(text) for text in sys.argv[2:]] or [6, 30])
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
