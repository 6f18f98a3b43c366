"""Drawn batches and settings, for whatever must hold of any of them."""

from dataclasses import replace

import torch
from hypothesis import strategies as st

from gradebook import ESTIMATORS, Settings
from gradebook.core.settings import CHOICES

TOKENS = 3
OF_TOKENS = ("credit", "clock", "ratio", "surrogate", "off_policy", "kl_estimator")
"""Choices of `token_settings` alone."""

# Quarters add and subtract without rounding, so that a flat group is flat.
rewards = st.integers(-20, 20).map(lambda n: n / 4)
any_settings = st.one_of(
    st.sampled_from(list(ESTIMATORS.values())),
    st.builds(
        Settings,
        **{n: st.sampled_from(CHOICES[n]) for n in CHOICES if n not in OF_TOKENS},
        eps=st.sampled_from([1e-6, 1e-4, 0.5]),
        group_size=st.sampled_from([None, 1, 2, 3]),
        prompts_per_step=st.sampled_from([None, 1, 2]),
        micro_batch=st.sampled_from([None, 1, 2]),
        min_group_size=st.sampled_from([1, 1, 2, 3]),
        mask_no_eos=st.booleans(),
        whiten_tokens=st.sampled_from([False, False, True]),
        max_tokens=st.sampled_from([None, 8]),
        reward_bias=st.sampled_from([0, -0.5]),
        reward_scaling=st.sampled_from([1, 2]),
        reward_clip=st.sampled_from([None, None, 6]),
        beta=st.sampled_from([0, 0.1]),
        accumulation=st.sampled_from([1, 2]),
    ),
)

limits = st.sampled_from([0.0, 0.2, 0.5])
"""How far from 1 a ratio may be."""
of_tokens = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.sampled_from(CHOICES[name]) for name in OF_TOKENS},
        "overlong_limit": st.integers(1, TOKENS + 1),
        "overlong_buffer": st.integers(1, 2),
        "overlong_penalty": st.sampled_from([0.0, 0.5, 1.0]),
        "filter_flat": st.booleans(),
        "gamma": st.sampled_from([0.0, 0.5, 0.9]),
        "lam": st.sampled_from([0.0, 0.5, 0.9]),
        "kl_in_reward": st.sampled_from([0.0, 0.1]),
        "clip_low": limits,
        "clip_high": limits,
        "dual_clip": st.sampled_from([1.5, 3.0]),
        "off_policy_low": st.sampled_from([0.0, 0.5, 0.9]),
        "off_policy_cap": st.sampled_from([1.0, 1.5, 4.0]),
        "kl_score": st.booleans(),
    },
)
token_settings = st.builds(
    lambda s, chosen: replace(s, **chosen), any_settings, of_tokens
)
"""Settings of every chapter; the rows need `columns(by_token=True)`."""


@st.composite
def columns(draw, least=1, most=9, by_token=False):
    """The rows of a batch, by column; row 0 has its tokens and its EOS. `by_token`:
    also an anchor, a sampler, a critic, generations and lengths with tool text."""
    count = draw(st.integers(least, most))

    def each(cell, n=count):
        return draw(st.lists(cell, min_size=n, max_size=n))

    prompt, step = each(st.integers(0, 2)), each(st.sampled_from([0, 0, 0, 1]))
    # All rows are rollouts of their own, or some are cut. Pieces of one
    # rollout share its reward.
    whole = draw(st.booleans())
    rollout = list(range(count)) if whole else each(st.integers(0, 3))
    reward = {}
    for key, value in zip(zip(step, prompt, rollout), each(rewards)):
        reward.setdefault(key, value)
    rejected = each(st.sampled_from([False, False, False, True]))
    mask = [each(st.booleans(), TOKENS) for _ in range(count)]
    mask = [[0] * TOKENS if out else [1, *m[1:]] for out, m in zip(rejected, mask)]
    mask[0] = [1] * TOKENS
    steps = each(st.integers(1, 4))

    def a_token(least, most):
        numbers = each(st.integers(least, most).map(lambda n: n / 4), count * TOKENS)
        return torch.tensor(numbers, dtype=torch.float64).reshape(count, TOKENS)

    logp = a_token(-8, -1)
    gap = a_token(-4, 4)
    others = {}
    if by_token:
        others = {
            "old_logp": logp + a_token(-4, 4),
            "behaviour_logp": logp + a_token(-4, 4),
            "value": a_token(-4, 4),
            "generation": each(st.integers(0, 1)),
            "extent": each(st.integers(0, TOKENS)),
        }
        # The anchor, the critic and the rest may also be absent.
        kept = draw(st.sets(st.sampled_from(["old_logp", "value", "extent"])))
        absent = {"old_logp", "value", "extent"} - kept
        others = {n: cells for n, cells in others.items() if n not in absent}
    return {
        "prompt": prompt,
        "reward": [reward[key] for key in zip(step, prompt, rollout)],
        "rollout": rollout,
        "scored": [True, *each(st.sampled_from([True, True, False]))][:count],
        "rank": each(st.integers(0, 1)),
        "text": each(st.integers(0, 1)),
        "mask": mask,
        "eos": [True, *each(st.sampled_from([True, True, False]))][:count],
        "steps": steps,
        "kept_steps": [min(n, k) for n, k in zip(steps, each(st.integers(0, 4)))],
        "step": step,
        "logp": logp,
        "ref_logp": logp + gap,
        **others,
    }


def taken(rows, order):
    """The rows with these numbers, in this order."""
    return {
        name: values[order]
        if isinstance(values, torch.Tensor)
        else [values[i] for i in order]
        for name, values in rows.items()
    }
