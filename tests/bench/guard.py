"""What the guard costs, beside a plain run of the engine.

    python tests/bench/guard.py

Prints ratios of CPU time in one run, on 1,024 rows with masks of 64 tokens:
a healthy step (aim at most 4 plain runs), and the naming of each bug whose
numbers differ there (aim at most 60).
"""

import statistics
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
import gradebook  # noqa: E402

ROWS = 1024
GRPO = {"estimator": "grpo"}


def cpu(call, times):
    """Median seconds of CPU, after one call that is not measured."""
    call()
    took = []
    for _ in range(times):
        began = time.process_time()
        call()
        took.append(time.process_time() - began)
    return statistics.median(took)


def main():
    torch.set_num_threads(1)
    chance = np.random.default_rng(0)
    rows = {
        "prompt": np.arange(ROWS) // 8,
        "reward": chance.random(ROWS),
        "mask": torch.arange(64) < torch.randint(1, 64, (ROWS, 1)),
    }
    batch = gradebook.Batch(**rows, settings=gradebook.ESTIMATORS["grpo"])
    right = gradebook.run(gradebook.CORRECT, batch).advantage.float()
    plain = cpu(lambda: gradebook.run(gradebook.CORRECT, batch), 100)
    guard = gradebook.Guard(declared=GRPO, action="raise")
    healthy = cpu(lambda: guard.step(0, **rows, advantage=right), 100)
    print(f"healthy step {healthy / plain:6.1f} plain runs")
    for name in gradebook.BUGS:
        engine = gradebook.bug(name).engine
        try:
            wrong = gradebook.run(engine, batch).advantage.float()
        except gradebook.GradebookError:
            continue

        def named(wrong=wrong, before=True):
            one = gradebook.Guard(declared=GRPO, action=lambda found: None)
            if before:
                one.step(0, **rows, advantage=right)
            one.step(1, **rows, advantage=wrong)
            return one.finding

        found = named()
        if found is not None:
            later = (cpu(named, 5) - healthy) / plain
            first = cpu(partial(named, before=False), 5) / plain
            print(
                f"{name:20} {later:6.1f} plain runs, {first:6.1f} at the first"
                f" step, named {found.bug}"
            )


if __name__ == "__main__":
    main()
