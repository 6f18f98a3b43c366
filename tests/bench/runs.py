"""How long a training run takes in a warm worker process.

    python tests/bench/runs.py [BUG ...]

For each bug, at its slider's default, with 16 seeds and Adam: seconds to the
first frame (aim 0.3) and to the last (aim 2, on an idle core), and frames a
second (aim 10). The last frame is also printed as a multiple of a fixed piece
of torch's work, so that two machines can be compared.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch  # noqa: E402

from gradebook.analysis.consequences.study import (  # noqa: E402
    Run,
    studied,
    study,
)
from gradebook.ui.runs.pool import DONE, Job, Pool, Task  # noqa: E402

LOOK = 0.005
"""Seconds between two looks at a job."""


def ruler() -> float:
    """Seconds for a fixed amount of torch's work on one thread."""
    torch.set_num_threads(1)
    values = torch.arange(200_000, dtype=torch.float64)
    start = time.perf_counter()
    for _ in range(500):
        values.sin().sum()
    return time.perf_counter() - start


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


def main() -> None:
    names = sys.argv[1:] or list(studied())
    pool = Pool(1)
    timed(pool, Run(names[0], study(names[0]).slider.default, "adam", 8))
    own = ruler()
    print(f"{'':24}first frame   last   frames a second   over the ruler")
    for name in names:
        run = Run(name, study(name).slider.default, "adam", 16)
        first, last, count = timed(pool, run)
        print(
            f"{name:24}{first:9.2f} s{last:7.2f} s{count / last:14.0f}"
            f"{last / own:18.1f}",
            flush=True,
        )
    pool.close()


if __name__ == "__main__":
    main()
