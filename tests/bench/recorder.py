"""What recording a step costs, beside pandas writing the same columns.

    python tests/bench/recorder.py

Prints the ratio of Recorder.step to DataFrame.to_parquet of the same columns,
in seconds of CPU in one run. The aim is at most 0.5 with one advantage per row.
Advantages by token, of which the mean is written, are printed beside it.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from gradebook.logs.recorder import Recorder  # noqa: E402

BLOCKS, STEPS = 8, 32
"""Steps are timed in blocks, since Arrow's own threads finish later."""


def columns(rows):
    chance = np.random.default_rng(0)
    reward = chance.random(rows)
    return {
        "prompt": np.arange(rows) // 8,
        "reward": reward,
        "advantage": reward - 0.5,
        "eos": chance.random(rows) < 0.9,
        "length": chance.integers(1, 1000, rows),
    }


def timed(call, steps, columns):
    began = time.process_time()
    for step in steps:
        call(step, columns)
    return time.process_time() - began


def main():
    for rows in (64, 1024, 16384):
        given = columns(rows)
        tokens = torch.rand(rows, 64)
        mask = torch.ones(rows, 64, dtype=torch.bool)
        base = {"mask": mask, "length": None}
        one = tokens[:, :1].expand(-1, 64)
        shapes = {
            "pandas": given,
            "a row": given,
            "constant": given | base | {"advantage": one},
            "by token": given | base | {"advantage": tokens},
        }
        took = dict.fromkeys(shapes, 0.0)
        with tempfile.TemporaryDirectory() as folder:
            there = Path(folder)

            def pandas(step, columns, there=there):
                frame = pd.DataFrame({"step": step, **columns})
                frame.to_parquet(there / f"{step}.parquet")

            calls = {"pandas": pandas}
            for name in shapes:
                if name not in calls:
                    recorder = Recorder(there / name, strict=True)
                    calls[name] = lambda step, columns, to=recorder: to.step(
                        step, **columns
                    )
            for block in range(BLOCKS):
                steps = range(block * STEPS, (block + 1) * STEPS)
                for name, call in calls.items():
                    took[name] += timed(call, steps, shapes[name])
        for name in ("a row", "constant", "by token"):
            ratio = took[name] / took["pandas"]
            print(f"{rows:6} rows, advantages {name:9} {ratio:.2f}")


if __name__ == "__main__":
    main()
