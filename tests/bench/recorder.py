"""What recording a step costs, beside pandas writing the same columns.

    python tests/bench/recorder.py

Prints the ratio of Recorder.step, merging included, to
DataFrame.to_parquet of the same columns, in seconds of CPU in one run. The
aim is at most 0.5 with one advantage a row. Advantages by token are printed
beside it.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from gradebook.logs.recording.recorder import Recorder  # noqa: E402

STEPS = 200


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


def timed(call, *arguments, **columns):
    began = time.process_time()
    call(*arguments, **columns)
    return time.process_time() - began


def main():
    for rows in (64, 1024, 16384):
        given = columns(rows)
        tokens = torch.rand(rows, 64)
        mask = torch.ones(rows, 64, dtype=torch.bool)
        constant = tokens[:, :1].expand(-1, 64)
        took = {"pandas": [], "a row": [], "constant": [], "by token": []}
        with tempfile.TemporaryDirectory() as folder:
            there = Path(folder)
            recorders = {
                name: Recorder(there / name, strict=True) for name in took
            }
            for step in range(STEPS):
                frame = pd.DataFrame({"step": step, **given})
                path = there / f"{step}.parquet"
                took["pandas"].append(timed(frame.to_parquet, path))
                shapes = {"a row": {}}
                if step < 40:
                    base = {"mask": mask, "length": None}
                    shapes["constant"] = {"advantage": constant, **base}
                    shapes["by token"] = {"advantage": tokens, **base}
                for name, other in shapes.items():
                    call = recorders[name].step
                    took[name].append(timed(call, step, **given | other))
        base = statistics.mean(took["pandas"])
        for name in ("a row", "constant", "by token"):
            ratio = statistics.mean(took[name]) / base
            print(f"{rows:6} rows, advantages {name:9} {ratio:.2f}")


if __name__ == "__main__":
    main()
