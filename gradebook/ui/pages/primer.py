"""The primer: four rewards on a board, live, to the advantage."""

import streamlit as st

from gradebook.cases.scenario import PlainCase
from gradebook.cases.table import Table
from gradebook.core.formatting import plain, settled, signed
from gradebook.core.settings import Settings
from gradebook.ui.board.component import below, picture
from gradebook.ui.parts import drafts
from gradebook.ui.parts.widget import table
from gradebook.ui.rooms.bar import asks

FOUR = PlainCase(
    name="primer",
    title="Four answers to one prompt",
    rows=Table.of([{"prompt": "A", "reward": reward} for reward in (1, 0, 0, 1)]),
    settings=Settings(),
)
ALL_EQUAL = (
    "If all rewards are equal, no answer is better than another,"
    " and every advantage is 0."
)
LESSON = (
    "So the result depends on **which rows are one group**, on **which"
    " rows count** in its mean and deviation, and on **what is done"
    " afterwards**. Each bug breaks one of these steps, usually without a"
    " crash."
)


def primer() -> None:
    st.title("What an advantage is", anchor=False)
    if not asks("primer"):
        four_rewards()


@st.fragment(key="primer")
def four_rewards() -> None:
    lead = st.empty()
    left, right = st.columns([3, 2], gap="large")
    draft = drafts.of(FOUR)
    with left:
        summary = "Rollouts of one prompt, their rewards and their advantages."
        picture(draft, "sign", covered=True, summary=summary)
    with draft.lock:
        both, wrong = draft.comparison, draft.fault
    first = signed(settled(float(both.correct.advantage[0])))
    lead.markdown(
        "The model answers one prompt four times. Each answer is a"
        " **rollout**, a **row** of the batch, and earns a **reward**. The"
        " four are a **group**. In GRPO, a rollout's **advantage** says how many"
        " standard deviations its reward is above or below the group's mean:"
        f" {first} for rollout 0. Training makes rollouts with a positive"
        " advantage more likely and those with a negative one less likely."
        " Drag a reward, or type another:"
    )
    with right, below(draft, "primer-table"):
        if wrong:
            st.markdown(
                "**These numbers belong to the last rewards that could be read.**"
            )
        trace, body = both.correct, []
        columns = (both.batch.reward, trace.baseline, trace.scale, trace.advantage)
        numbers = zip(*(column.tolist() for column in columns))
        for row, (reward, mean, scale, advantage) in enumerate(numbers):
            less = f"({plain(mean)})" if mean < 0 else plain(mean)
            formula = f"({plain(reward)} − {less}) / {plain(scale)}"
            value = settled(advantage)
            pushed = "up" if value > 0 else "down" if value < 0 else "not pushed"
            body.append([str(row), formula, signed(value), pushed])
        head = ["rollout", "(reward − mean) / deviation", "advantage", "pushed"]
        table(head, body, numbers=(1, 2))
    equal = bool((both.batch.reward == both.batch.reward[0]).all())
    st.markdown(ALL_EQUAL if equal else LESSON)
