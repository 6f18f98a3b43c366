"""The one-minute primer: four rewards on a board, live, to the advantage."""

from __future__ import annotations

from functools import cache

import streamlit as st

from gradebook.analysis.comparison import Comparison
from gradebook.cases.scenario import Scenario, load
from gradebook.core.formatting import plain, settled, signed
from gradebook.core.project import PACKAGE
from gradebook.ui.parts import drafts, words
from gradebook.ui.parts.heart import picture
from gradebook.ui.parts.tables import table

SAID = "Rollouts of one prompt, their rewards and their advantages."
BATCH = PACKAGE / "ui" / "pages" / "primer.toml"


@st.fragment(key="primer")
def primer() -> None:
    """Four rollouts of one prompt; their rewards are the reader's."""
    st.markdown(words.titled("In one minute: what an advantage is"))
    told = st.empty()
    left, right = st.columns([3, 2], gap="large")
    draft = drafts.of(_four())
    with left:
        picture(draft, "sign", covered=True, said=SAID)
    with draft.lock:
        found, wrong = draft.comparison, draft.faults
    told.markdown(_told(found))
    with right.container(key="stale-primer" if wrong else "primer-table"):
        if wrong:
            st.markdown("**Before: the last rewards that were numbers.**")
        _formulas(found)
    st.markdown(_lesson(found))


@cache
def _four() -> Scenario:
    """The primer's batch."""
    return load(BATCH)


def _told(found: Comparison) -> str:
    """What an advantage is, with the one of the first rollout."""
    first = signed(settled(float(found.correct.advantage[0])))
    return (
        "The model answers one prompt four times. Each answer is a"
        " **rollout**, a **row** of the batch, and earns a **reward**. The"
        " four are a **group**. A rollout's **advantage** says how far its"
        " reward lies from the group's mean, in standard deviations:"
        f" {first} for rollout 0. Training makes rollouts with a positive"
        " advantage more likely and those with a negative one less likely."
        " Drag a reward, or type another:"
    )


def _formulas(found: Comparison) -> None:
    """Each rollout's advantage, by its formula."""
    trace = found.correct
    numbers = zip(
        found.batch.reward.tolist(),
        trace.baseline.tolist(),
        trace.scale.tolist(),
        trace.advantage.tolist(),
    )
    body = [
        [
            str(r),
            f"({plain(reward)} − {_less(mean)}) / {plain(scale)}",
            signed(settled(advantage)),
            _pushed(advantage),
        ]
        for r, (reward, mean, scale, advantage) in enumerate(numbers)
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


def _lesson(found: Comparison) -> str:
    if bool((found.batch.reward == found.batch.reward[0]).all()):
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
