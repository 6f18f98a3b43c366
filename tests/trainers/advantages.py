"""Functions that the tests probe, in a module that another process can load."""

import statistics
import time

import torch


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
    """Dr. GRPO if a missing reward counts as 0."""
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


def normalizes_the_sum(rewards):
    """GRPO of correct + 0.5 format: summed, then normalized."""
    pairs = zip(rewards["correct"], rewards["format"])
    return grpo([[summed(row, (1, 0.5)) for row in zip(*pair)] for pair in pairs])


def sums_the_normalized(rewards):
    """GDPO, as TRL's normalize_then_sum: each normalized in its group, summed with the
    weights 1 and 0.5, and the sum normalized over the batch."""
    pairs = zip(grpo(rewards["correct"]), grpo(rewards["format"]))
    sums = [[a + 0.5 * b for a, b in zip(*pair)] for pair in pairs]
    there = [[r is not None for r in group] for group in rewards["correct"]]
    every = [a for pair in zip(sums, there) for a, is_there in zip(*pair) if is_there]
    mean, spread = statistics.fmean(every), deviation(every)
    return [
        [
            (a - mean) / (spread + 1e-4) if is_there else 0.0
            for a, is_there in zip(*pair)
        ]
        for pair in zip(sums, there)
    ]


def multiplies(rewards):
    """GRPO of the product of two rewards."""
    pairs = zip(rewards["correct"], rewards["format"])
    return grpo(
        [[None if None in row else row[0] * row[1] for row in zip(*p)] for p in pairs]
    )


def of_three_with_lengths(rewards, lengths):
    """GRPO of correct + 0.5 format - 0.2 repeated, whatever the lengths are."""
    names = ("correct", "format", "repeated")
    prompts = zip(*(rewards[name] for name in names))
    sums = [[summed(row, (1, 0.5, -0.2)) for row in zip(*prompt)] for prompt in prompts]
    return grpo(sums)


def summed(row, weights):
    """A row's weighted sum; None if no function gave a reward."""
    there = [w * r for w, r in zip(weights, row) if r is not None]
    return sum(there) if there else None


def opo(groups, lengths):
    """OPO by hand: less the mean that weights a row by its length. A missing reward
    gets 0 and has no weight."""
    advantages = []
    for group, tokens in zip(groups, lengths):
        pairs = [(r, n) for r, n in zip(group, tokens) if r is not None]
        weight = sum(n for _, n in pairs) or 1
        mean = sum(r * n for r, n in pairs) / weight
        advantages.append([0.0 if r is None else r - mean for r in group])
    return advantages


def shorter_is_better(groups, lengths):
    """GRPO of the reward less 0.01 for each token."""
    pairs = zip(groups, lengths)
    return grpo(
        [[None if r is None else r - 0.01 * n for r, n in zip(*p)] for p in pairs]
    )


def per_token(groups, lengths):
    """GRPO over the response's length."""
    pairs = zip(grpo(groups), lengths)
    return [[a / n for a, n in zip(*pair)] for pair in pairs]


def without_parentheses(groups):
    """GRPO as `reward - mean / deviation`."""
    return [
        [r - statistics.fmean(g) / (deviation(g) + 1e-4) for r in g] for g in groups
    ]


def whitened_over_padding(groups, lengths):
    """The rewards less their group's mean, normalized over the step's tokens with ddof
    0, about a mean that counts padding up to the longest response as tokens of 0."""
    values = [r - statistics.fmean(g) for g in groups for r in g]
    tokens = [n for group in lengths for n in group]
    width = max(tokens)
    total = sum(value * n for value, n in zip(values, tokens))
    mean = total / (width * len(tokens))
    square = sum(n * (value - mean) ** 2 for value, n in zip(values, tokens))
    spread = (square / sum(tokens) + 1e-8) ** 0.5
    normalized = iter((value - mean) / spread for value in values)
    return [[next(normalized) for _ in group] for group in groups]


def whitened_with_masks(groups, lengths):
    """The same in tensors [R, T]: masked, and with a mean over all tokens, masked or
    not. So a row without a token gets 0, but has a vote in its group's mean."""
    width = max(n for group in lengths for n in group)
    masks = [[1.0] * n + [0.0] * (width - n) for group in lengths for n in group]
    mask = torch.tensor(masks, dtype=torch.float64)
    away = [r - statistics.fmean(g) for g in groups for r in g]
    values = torch.tensor(away, dtype=torch.float64)[:, None] * mask
    mean = values.mean()
    variance = ((values - mean) ** 2 * mask).sum() / mask.sum()
    normalized = (values - mean) / (variance + 1e-8).sqrt() * mask
    of_row = iter((normalized.sum(-1) / mask.sum(-1).clamp(min=1)).tolist())
    return [[next(of_row) for _ in group] for group in groups]


def over_all(groups, kept):
    """GRPO of all rows; a row that is not kept gets 0."""
    pairs = zip(grpo(groups), kept)
    return [[a if keep else 0.0 for a, keep in zip(*pair)] for pair in pairs]


def over_kept(groups, kept):
    """GRPO of the rows that are kept; others get 0 and have no vote."""
    pairs = zip(groups, kept)
    return grpo([[r if keep else None for r, keep in zip(*pair)] for pair in pairs])


def zeroes_masked_rows(groups, lengths):
    """GRPO in which a row without a token gets 0, but has a vote."""
    return over_all(groups, lengths)


def leaves_masked_rows_out(groups, lengths):
    return over_kept(groups, lengths)


def knows_no_masks(groups, lengths):
    return grpo(groups)


def zeroes_unfinished_rows(groups, finished):
    """GRPO in which an unfinished row gets 0, but has a vote."""
    return over_all(groups, finished)


def leaves_unfinished_rows_out(groups, finished):
    return over_kept(groups, finished)


def zeroes_both(groups, lengths, finished):
    kept = [[n and f for n, f in zip(*pair)] for pair in zip(lengths, finished)]
    return over_all(groups, kept)


def filters_first(groups, finished):
    """Dr. GRPO of blocks of the rows that finished, of the largest group's size,
    whatever their prompt. Rows that do not divide are refused."""
    size = max(map(len, groups))
    left = [
        (prompt, row)
        for prompt, flags in enumerate(finished)
        for row, flag in enumerate(flags)
        if flag
    ]
    if len(left) % size:
        raise ValueError(f"{len(left)} rows do not divide by {size}")
    advantages = [[0.0] * len(group) for group in groups]
    for start in range(0, len(left), size):
        block = left[start : start + size]
        mean = statistics.fmean(groups[prompt][row] for prompt, row in block)
        for prompt, row in block:
            advantages[prompt][row] = groups[prompt][row] - mean
    return advantages
