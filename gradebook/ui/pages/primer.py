"""The primer: four rewards on a board, live, to the advantage."""

from __future__ import annotations

from functools import cache

import streamlit as st

from gradebook.analysis.comparison import Comparison
from gradebook.cases.scenario import Scenario, load
from gradebook.core.formatting import plain, settled, signed
from gradebook.core.project import PACKAGE
from gradebook.ui.board.component import picture
from gradebook.ui.parts import drafts
from gradebook.ui.parts.tables import table
from gradebook.ui.rooms.bar import asks

PAGE = "primer"
SAID = "Rollouts of one prompt, their rewards and their advantages."
BATCH = PACKAGE / "ui" / "pages" / "primer.toml"


def primer() -> None:
    """The whole page."""
    st.title("What an advantage is", anchor=False)
    if not asks(PAGE):
        _four_rewards()


@st.fragment(key="primer")
def _four_rewards() -> None:
    """Four rollouts of one prompt; their rewards are the reader's."""
    lead = st.empty()
    left, right = st.columns([3, 2], gap="large")
    draft = drafts.of(_four())
    with left:
        picture(draft, "sign", covered=True, said=SAID)
    with draft.lock:
        both, wrong = draft.comparison, draft.faults
    lead.markdown(_lead(both))
    with right.container(key="stale-primer" if wrong else "primer-table"):
        if wrong:
            st.markdown("**Before: the last rewards that were numbers.**")
        _formulas(both)
    st.markdown(_lesson(both))


@cache
def _four() -> Scenario:
    """The primer's batch."""
    return load(BATCH)


def _lead(both: Comparison) -> str:
    """What an advantage is, with the one of the first rollout."""
    first = signed(settled(float(both.correct.advantage[0])))
    return (
        "The model answers one prompt four times. Each answer is a"
        " **rollout**, a **row** of the batch, and earns a **reward**. The"
        " four are a **group**. In GRPO, a rollout's **advantage** says how many"
        " standard deviations its reward is above or below the group's mean:"
        f" {first} for rollout 0. Training makes rollouts with a positive"
        " advantage more likely and those with a negative one less likely."
        " Drag a reward, or type another:"
    )


def _formulas(both: Comparison) -> None:
    """Each rollout's advantage, by its formula."""
    trace = both.correct
    numbers = zip(
        both.batch.reward.tolist(),
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


def _lesson(both: Comparison) -> str:
    if bool((both.batch.reward == both.batch.reward[0]).all()):
        return (
            "If all rewards are equal, no answer is better than another,"
            " and every advantage is 0."
        )
    return (
        "So the result depends on **which rows are one group**, on **which"
        " rows count** in its mean and deviation, and on **what is done"
        " afterwards**. Each bug breaks one of these steps, usually without a"
        " crash."
    )
