"""The one-minute primer: four rewards, live, to the advantage."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.columns import number
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import plain, settled, signed
from gradebook.engine.pipeline import CORRECT, run
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.parts.tables import table


def primer() -> None:
    """Four rollouts of one prompt; their rewards are the reader's."""
    st.markdown(words.titled("In one minute: what an advantage is"))
    left, right = st.columns(2)
    with left:
        line = st.empty()
        rewards = _typed()
    if rewards is not None:
        keys.PRIMER_GOOD.put(rewards)
    else:
        right = right.container(key="stale-primer")
    with right:
        if rewards is None:
            st.markdown("**Before: the last four numbers.**")
        _computed(keys.PRIMER_GOOD.get(), line)
    st.markdown(_lesson(keys.PRIMER_GOOD.get()))


def _typed() -> list[float] | None:
    """The reader's four rewards; None, with a message, for a bad one. They
    outlive a visit to another page, as their widgets do not."""
    kept = keys.PRIMER.get()
    for r, part in enumerate(st.columns(4)):
        key = f"primer-{r}"
        keys.begin(key, kept[r])
        kept[r] = part.text_input(f"Reward of rollout {r}", key=key)
    rewards = []
    for r, text in enumerate(kept):
        try:
            rewards.append(number(text))
        except GradebookError as error:
            st.error(words.plain(f"Rollout {r}: {error}"))
            return None
    return rewards


def _computed(rewards: list[float], line: DeltaGenerator) -> None:
    """Each rollout's advantage, by its formula; the first one in `line`."""
    trace = run(CORRECT, Batch([0] * 4, rewards))
    mean, scale = float(trace.baseline[0]), float(trace.scale[0])
    first = signed(settled(float(trace.advantage[0])))
    line.markdown(
        "The model answers one prompt four times. Each answer is a"
        " **rollout**, a **row** of the batch, and earns a **reward**. The"
        " four are a **group**. A rollout's **advantage** says how far its"
        " reward lies from the group's mean, in standard deviations:"
        f" {first} for rollout 0. Training makes rollouts with a positive"
        " advantage more likely and those with a negative one less likely."
        " Type other rewards:"
    )
    body = [
        [
            str(r),
            f"({plain(reward)} − {_less(mean)}) / {plain(scale)}",
            signed(settled(float(trace.advantage[r]))),
            _pushed(float(trace.advantage[r])),
        ]
        for r, reward in enumerate(rewards)
    ]
    table(
        ["rollout", "(reward − mean) / deviation", "advantage", "pushed"],
        body,
        numbers=(1, 2),
    )


def _less(mean: float) -> str:
    return f"({plain(mean)})" if mean < 0 else plain(mean)


def _pushed(advantage: float) -> str:
    if settled(advantage) == 0:
        return "neither way"
    return "up" if advantage > 0 else "down"


def _lesson(rewards: list[float]) -> str:
    if max(rewards) == min(rewards):
        return (
            "Where all rewards are equal, no answer is better than another,"
            " and every advantage is 0."
        )
    return (
        "So the result depends on **which rows are one group**, on **which"
        " rows count** in its mean and deviation, and on **what is done"
        " afterwards**. The bugs below each break one of these steps, and the"
        " training loss looks healthy all the while."
    )
