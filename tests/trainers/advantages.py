"""Functions that the tests probe, in a module that another process can load, and
a file of a release that was never made."""

import statistics
import time


def grpo(groups):
    """By hand: (r - mean) / (std with ddof 1 + 1e-4); alone and missing get 0."""
    found = []
    for group in groups:
        known = [r for r in group if r is not None]
        mean = statistics.fmean(known) if known else 0.0
        std = statistics.stdev(known) if len(known) > 1 else 0.0
        found.append([0.0 if r is None else (r - mean) / (std + 1e-4) for r in group])
    return found


def maxrl(groups):
    return [
        [(r - statistics.fmean(g)) / statistics.fmean(g) for r in g] for g in groups
    ]


def by_fours(groups):
    """Dr. GRPO with fixed strides of the largest group's size; a tail keeps
    its reward."""
    flat = [r for group in groups for r in group]
    size = max(map(len, groups))
    out = []
    for at, r in enumerate(flat):
        stride = flat[at // size * size : at // size * size + size]
        mean = statistics.fmean(stride) if len(stride) == size else 0.0
        out.append(r - mean)
    values = iter(out)
    return [[next(values) for _ in group] for group in groups]


def missing_is_zero(groups):
    """Dr. GRPO where a missing reward counts as 0."""
    known = [[r or 0.0 for r in group] for group in groups]
    return [[r - statistics.fmean(g) for r in g] for g in known]


def sleeps(groups):
    time.sleep(60)


def ends(groups):
    import os

    os._exit(3)


def forks(groups):
    import os

    os.fork()
    return grpo(groups)


def prints(groups):
    print("so many groups:", len(groups))
    return grpo(groups)


def gives_a_function(groups):
    return lambda: groups


COSMOS_RL = """
import numpy as np
import not_installed_anywhere
class GRPO:
    def compute_advantage(self, rewards):
        rewards = np.array(rewards).astype(np.float32)
        if self.unbiased:
            return (rewards - rewards.mean()).tolist()
        return ((rewards - rewards.mean()) / (rewards.std() + 1e-6)).tolist()
"""
