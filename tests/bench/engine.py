"""How fast the engine is, as ratios measured in one run.

    python tests/bench/engine.py [rows]

The ruler is one `index_add_` of the rewards into their groups: the least
that any group statistic costs. Allocator settings are printed, since at a
million rows part of the time goes into fresh memory.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

import gradebook

GROUP = 8
ALLOCATOR = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "LD_PRELOAD")


def seconds(act: Callable[[], object], times: int = 9) -> float:
    """Median duration of `act`, after one warm-up."""
    act()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[times // 2]


def loop(rewards: list[float], prompts: list[int], eps: float) -> list[float]:
    """GRPO as a plain Python loop over groups of tensors, as trainers
    write it."""
    members: dict[int, list[int]] = {}
    for row, prompt in enumerate(prompts):
        members.setdefault(prompt, []).append(row)
    advantage = torch.zeros(len(rewards), dtype=torch.float64)
    scores = torch.tensor(rewards, dtype=torch.float64)
    for rows in members.values():
        group = torch.stack([scores[row] for row in rows])
        mean, std = group.mean(), group.std()
        for row in rows:
            advantage[row] = (scores[row] - mean) / (std + eps)
    return advantage.tolist()


def peak_bytes(act: Callable[[], object]) -> int:
    """How far `act` raises the peak of resident memory, in a fork."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        before = _resident()
        act()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(writer, str(peak - before).encode())
        os._exit(0)
    os.wait()
    return int(os.read(reader, 64))


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(rows: int = 1_000_000) -> None:
    generator = torch.Generator().manual_seed(0)
    reward = torch.randn(rows, dtype=torch.float64, generator=generator)
    prompt = torch.arange(rows) // GROUP
    grpo = gradebook.ESTIMATORS["grpo"]

    def make(prompts: object = prompt, **changes: object) -> gradebook.Batch:
        settings = replace(grpo, **changes)
        batch = gradebook.Batch(prompts, reward, settings=settings)
        batch.prompt_index
        return batch

    # Before any torch thread runs: memory is read in a fork.
    torch.set_num_threads(1)
    batch = make()
    peak = peak_bytes(lambda: gradebook.run(gradebook.CORRECT, batch))
    torch.set_num_threads(os.cpu_count() or 1)

    sums = torch.zeros(rows // GROUP + 1, dtype=torch.float64)
    ruler = seconds(lambda: sums.index_add_(0, prompt, reward), times=25)
    few = min(rows, 20_000)
    plain = seconds(
        lambda: loop(reward[:few].tolist(), prompt[:few].tolist(), 1e-6), 3
    ) * (rows / few)

    names = {k: os.environ[k] for k in ALLOCATOR if k in os.environ}
    print(f"{rows:,} rows in groups of {GROUP}, float64, T = 1")
    print(f"torch threads {torch.get_num_threads()}, allocator {names or 'default'}")
    print("\nwhole trace, as a multiple of one index_add_ over the rows")
    estimators = {
        "grpo": batch,
        "grpo_passk": make(**gradebook.ESTIMATORS["grpo_passk"]),
        "reinforce_plus_plus_baseline": make(
            **gradebook.ESTIMATORS["reinforce_plus_plus_baseline"]
        ),
        "rloo": make(**gradebook.ESTIMATORS["rloo"]),
        "opo": make(**gradebook.ESTIMATORS["opo"]),
        "gpg": make(**gradebook.ESTIMATORS["gpg"]),
    }
    for name, each in estimators.items():
        took = seconds(lambda: gradebook.run(gradebook.CORRECT, each))
        print(f"  {name:<30}{took / ruler:8.1f}", end="")
        print(f"   plain loop / trace {plain / took:8.0f}" * (name == "grpo"))
    for name in gradebook.BUGS:
        engine = gradebook.bug(name).engine
        took = seconds(lambda: gradebook.run(engine, batch))
        print(f"  {name + ' (replica)':<30}{took / ruler:8.1f}")

    words = [f"prompt-{i}" for i in prompt.tolist()]
    print("\nmaking the batch and factorizing its labels, in index_adds")
    print(f"  int64 labels{seconds(lambda: make(), 5) / ruler:26.1f}")
    print(f"  strings     {seconds(lambda: make(words), 3) / ruler:26.1f}")
    print(f"\npeak memory of the trace / reward tensor{peak / (8 * rows):10.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else 1_000_000)
