"""Functions that the tests probe, in a module that another process can load."""

import statistics
import time


def grpo(groups):
    """By hand: (r - mean) / (std with ddof 1 + 1e-4); alone and missing get 0."""
    advantages = []
    for group in groups:
        there = [r for r in group if r is not None]
        mean = statistics.fmean(there) if there else 0.0
        std = statistics.stdev(there) if len(there) > 1 else 0.0
        row = [0.0 if r is None else (r - mean) / (std + 1e-4) for r in group]
        advantages.append(row)
    return advantages


def maxrl(groups):
    return [
        [(r - statistics.fmean(g)) / statistics.fmean(g) for r in g] for g in groups
    ]


def by_fours(groups):
    """Dr. GRPO with fixed strides of the largest group's size; a tail keeps
    its reward."""
    flat = [r for group in groups for r in group]
    size = max(map(len, groups))
    strides = [flat[start : start + size] for start in range(0, len(flat), size)]
    means = [statistics.fmean(s) if len(s) == size else 0.0 for s in strides]
    values = iter(r - means[row // size] for row, r in enumerate(flat))
    return [[next(values) for _ in group] for group in groups]


def missing_is_zero(groups):
    """Dr. GRPO where a missing reward counts as 0."""
    rewards = [[r or 0.0 for r in group] for group in groups]
    return [[r - statistics.fmean(g) for r in g] for g in rewards]


def sleeps(groups):
    time.sleep(60)


def ends(groups):
    import os

    os._exit(3)


def forks_and_prints(groups):
    import os

    os.fork()
    print("so many groups:", len(groups))
    return grpo(groups)


def gives_a_function(groups):
    return lambda: groups


def floored(groups):
    """GRPO over a deviation of at least 0.05."""
    return [
        [(r - statistics.fmean(g)) / max(deviation(g), 0.05) for r in g] for g in groups
    ]


def own_eps(groups):
    """GRPO with an eps of 0.003."""
    return [
        [(r - statistics.fmean(g)) / (deviation(g) + 0.003) for r in g] for g in groups
    ]


def own_eps_inside(groups):
    """GRPO with an eps of 0.003 inside the root."""
    return [
        [(r - statistics.fmean(g)) / (deviation(g) ** 2 + 0.003) ** 0.5 for r in g]
        for g in groups
    ]


def clamped(groups):
    """GRPO within a bound of 1."""
    return [
        [
            max(-1.0, min(1.0, (r - statistics.fmean(g)) / (deviation(g) + 1e-6)))
            for r in g
        ]
        for g in groups
    ]


def deviation(group):
    return statistics.stdev(group) if len(group) > 1 else 0.0


def turned(groups):
    """GRPO with a sign that slipped."""
    return [
        [(statistics.fmean(g) - r) / (deviation(g) + 1e-6) for r in g] for g in groups
    ]


def less_the_first(groups):
    return [[r - g[0] for r in g] for g in groups]


def spreads_nan(groups):
    """Dr. GRPO in which a missing reward is NaN, and so is its group's mean."""
    rewards = [[float("nan") if r is None else r for r in g] for g in groups]
    return [[r - sum(g) / len(g) for r in g] for g in rewards]


def rloo_normalized(groups):
    """TRL's RLOO with normalize_advantages: less the mean of the others, then over the
    batch. A missing reward counts as 0."""
    rewards = [[r or 0.0 for r in g] for g in groups]
    apart = [
        [(r - statistics.fmean(g)) * len(g) / max(len(g) - 1, 1) for r in g]
        for g in rewards
    ]
    every = [a for g in apart for a in g]
    mean, spread = statistics.fmean(every), deviation(every)
    return [[(a - mean) / (spread + 1e-4) for a in g] for g in apart]
