"""How fast the influence maps are, as ratios measured in one run.

    python tests/bench/influence.py [rows ...]

The ruler is what the maps replace: both engines once for every changed
row. The aim is 18 times faster at 32 rows.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

import gradebook
from gradebook.analysis.influence import (
    influence,
    influences,
    kl_influence,
    replacements,
)
from tests.bench.engine import seconds

GROUP = 4
TOKENS = 8


def drawn(rows: int, logp: bool = False) -> gradebook.Batch:
    """Groups of four, the last one short, so that the replica differs."""
    g = torch.Generator().manual_seed(0)
    token = -torch.rand((2, rows, TOKENS), generator=g, dtype=torch.float64)
    return gradebook.Batch(
        prompt=(torch.arange(rows) + 1) // GROUP,
        reward=torch.randn(rows, generator=g, dtype=torch.float64),
        mask=torch.ones((rows, TOKENS), dtype=torch.bool),
        logp=token[0] if logp else None,
        ref_logp=token[1] if logp else None,
        settings=gradebook.Settings(beta=0.04 if logp else 0.0),
    )


def one_by_one(engines: tuple[gradebook.Engine, ...], batch: gradebook.Batch) -> None:
    """Every engine, once for every changed row."""
    values = replacements(batch)
    for j in range(batch.rows):
        reward = batch.reward.clone()
        reward[j] = values[j]
        changed = replace(batch, reward=reward)
        for engine in engines:
            gradebook.run(engine, changed)


def main(sizes: list[int]) -> None:
    torch.set_num_threads(1)  # threads that share busy cores wait idly
    print(f"torch threads {torch.get_num_threads()}; one run a row / one pass")
    print(f"{'rows':>6}{'both maps':>12}{'and leaks':>12}{'gradients':>12}")
    for rows in sizes:
        ratios = []
        for bug in ("partial_groups", "zero_std_kl"):
            batch = drawn(rows, logp=bug == "zero_std_kl")
            engines = (gradebook.CORRECT, gradebook.bug(bug).engine)
            slow = seconds(lambda: one_by_one(engines, batch), 3)
            if batch.logp is not None:
                fast = seconds(lambda: [kl_influence(e, batch) for e in engines])
                ratios.append(slow / fast)
                continue
            fast = seconds(lambda: [influence(e, batch) for e in engines])
            whole = seconds(lambda: influences(engines[1], batch).totals)
            ratios += [slow / fast, slow / whole]
        print(f"{rows:>6}" + "".join(f"{ratio:>12.1f}" for ratio in ratios))


if __name__ == "__main__":
    main([int(a) for a in sys.argv[1:]] or [12, 32, 128])
