"""The one-minute primer: four rewards, live, to the advantage."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.columns import number
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import plain, settled, signed
from gradebook.engine.pipeline import CORRECT, run
from gradebook.ui.parts import words
from gradebook.ui.parts.tables import table

REWARDS = ("1", "0", "0", "1")


def primer() -> None:
    """Four rollouts of one prompt; their rewards are the reader's."""
    st.header("In one minute: what an advantage is")
    left, right = st.columns(2)
    with left:
        line = st.empty()
        rewards = _typed()
    first = list(map(float, REWARDS))
    good = st.session_state.setdefault("primer-good", first)
    if rewards is not None:
        st.session_state["primer-good"] = good = rewards
    else:
        right = right.container(key="stale-primer")
    with right:
        if rewards is None:
            st.markdown("**Stale: the last four numbers.**")
        _computed(good, line)
    st.markdown(_lesson(good))


def _typed() -> list[float] | None:
    """The reader's four rewards; None, with a message, for a bad one. They
    outlive a visit to another page, as their widgets do not."""
    kept = st.session_state.setdefault("primer-typed", list(REWARDS))
    for r, part in enumerate(st.columns(4)):
        key = f"primer-{r}"
        st.session_state.setdefault(key, kept[r])
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
        "A prompt is answered four times. Each answer, a **rollout**, earns a"
        " **reward**; its **advantage** is how far the reward lies from the"
        f" group's mean, in standard deviations: {first} for rollout 0. Type"
        " other rewards:"
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
            "Equal rewards say nothing about which answer is better: every"
            " advantage is 0."
        )
    return (
        "The numbers hang on **who is in the group**, on **who may vote** in"
        " its mean, and on **normalizing once**. Four of the five bugs break"
        " one of these; the fifth asks what stays in the loss where every"
        " advantage is 0. The loss looks healthy in all of them."
    )
