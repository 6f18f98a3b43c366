"""A solution or a reduction, played on the board step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gradebook.cases.state import State
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import button


@dataclass(frozen=True)
class Play:
    """States to go through, each with a sentence on what was done.

    title  what is played
    """

    title: str
    steps: Sequence[tuple[str, State]]

    def at(self, draft: Draft) -> int:
        """How many steps stand on the board; 0 where it shows none of them,
        since the learner has edited the batch or took the steps back."""
        for number in range(len(self.steps), 0, -1):
            if draft.state.same_batch(self.steps[number - 1][1]):
                return number
        return 0


def start(draft: Draft, play: Play) -> None:
    """Begins to play: the first step stands on the board."""
    draft.play = play
    _go(draft, play, 0, 1)


def player(draft: Draft) -> None:
    """What stands on the board, and the buttons for what comes next."""
    name, play = draft.scenario.name, draft.play
    at = play.at(draft) if play else 0
    if play is None or not at:
        return
    last = len(play.steps)
    done = [words.plain(said) for said, _ in play.steps[:at]]
    st.markdown(f"**{words.plain(play.title)}**, step {at} of {last}: {done[-1]}")
    with st.container(horizontal=True):
        for label, key, to in (
            ("Next step", f"play-step-{name}", at + 1),
            ("To the end", f"play-end-{name}", last),
        ):
            button(label, key, _go, draft, play, at, to, disabled=at == last)
    if at > 1:
        with st.popover("The steps so far"):
            st.markdown("\n".join(f"1. {one}" for one in done))


def _go(draft: Draft, play: Play, at: int, to: int) -> None:
    """From one step to another. Each is an edit of its own, so that Undo
    goes back by one."""
    for _, state in play.steps[at:to]:
        draft.become(state)
