"""Engines and batches whose influence is tested."""

import torch

import gradebook

CORRECT = gradebook.CORRECT
ENGINES = {"correct": CORRECT} | {
    name: gradebook.bug(name).engine for name in gradebook.BUGS
}
ESTIMATORS = gradebook.ESTIMATORS
DIVISIBLE = ((4, 15), (3, 10), (2, 2))
"""Group sizes and seeds of `drawn` that every engine takes: in each step
the rows with a say divide by the group size."""


def shipped(name):
    return gradebook.load(name).batch(), ENGINES[name.partition("-")[0]]


def drawn(settings, seed=0, logp=False, rows=14):
    """Prompts of mixed sizes in two steps, some rows rejected, some without
    EOS, one without a transition left."""
    g = torch.Generator().manual_seed(seed)

    def whole(low, high, *shape):
        return torch.randint(low, high, shape, generator=g)

    mask = whole(0, 2, rows, 3).bool()
    mask[2] = False
    mask[[0, 5, 8, 13]] = True
    steps = whole(1, 6, rows)
    kept = torch.minimum(steps, whole(1, 6, rows))
    kept[4] = 0
    token = torch.rand((2, rows, 3), generator=g, dtype=torch.float64)
    rollout = list(range(rows))
    if logp and seed % 3 == 1:  # rows 0 and 1 are one rollout, and so are 8 to 10
        rollout[1], rollout[9], rollout[10] = 0, 8, 8
    return gradebook.Batch(
        prompt=[0, 0, 0, 0, 1, 1, 2, 1, 3, 3, 3, 3, 0, 0][:rows],
        reward=whole(-3, 4, rows).double(),
        mask=mask,
        eos=whole(0, 4, rows) > 0,
        step=[0] * 8 + [1] * (rows - 8),
        steps=steps,
        kept_steps=kept,
        logp=-token[0] if logp else None,
        ref_logp=-token[1] if logp else None,
        rollout=rollout,
        rank=whole(0, 2, rows),
        scored=(whole(0, 10, rows) > 0) if logp else None,
        settings=settings,
    )
