"""A solution or a reduction, played on the board step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gradebook.cases.state import State
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.redraw import redraw


@dataclass
class Play:
    """States to go through, each with a sentence on what was done.

    title  what is played
    at     how many steps stand on the board
    """

    title: str
    steps: Sequence[tuple[str, State]]
    at: int = 0

    @property
    def ended(self) -> bool:
        """Every step stands on the board."""
        return self.at >= len(self.steps)

    def shown(self, draft: Draft) -> bool:
        """The board still shows the last step: no edit was made since."""
        if not self.at:
            return True
        return draft.state.same_batch(self.steps[self.at - 1][1])


def start(draft: Draft, play: Play) -> None:
    """Begins to play: the first step stands on the board."""
    _plays()[draft.scenario.name] = play
    step(draft)


def step(draft: Draft) -> None:
    """Puts the next step on the board, as one edit that Undo takes back."""
    play = _plays().get(draft.scenario.name)
    if play is None or play.ended:
        return
    draft.become(play.steps[play.at][1])
    play.at += 1


def finish(draft: Draft) -> None:
    """Puts every step that is left on the board."""
    play = _plays().get(draft.scenario.name)
    while play is not None and not play.ended:
        step(draft)


def playing(draft: Draft) -> bool:
    """Something is played and the learner has not edited the batch since."""
    play = _plays().get(draft.scenario.name)
    return play is not None and play.shown(draft)


def player(draft: Draft) -> None:
    """What stands on the board, and the buttons for what comes next."""
    name = draft.scenario.name
    if not playing(draft):
        _plays().pop(name, None)
        return
    play = _plays()[name]
    lines = [f"**{words.plain(play.title)}**, step {play.at} of"]
    done = [words.plain(said) for said, _ in play.steps[: play.at]]
    st.markdown(f"{lines[0]} {len(play.steps)}: {done[-1]}")
    if play.ended:
        if len(done) > 1:
            with st.expander("All steps"):
                st.markdown("\n".join(f"1. {one}" for one in done))
        return
    with st.container(horizontal=True):
        st.button(
            "Next step",
            key=f"play-step-{name}",
            on_click=_redrawn,
            args=(step, draft),
        )
        st.button(
            "To the end",
            key=f"play-end-{name}",
            on_click=_redrawn,
            args=(finish, draft),
        )


def _redrawn(act, draft: Draft) -> None:
    act(draft)
    redraw()


def _plays() -> dict[str, Play]:
    """Case -> what is played on its board."""
    return st.session_state.setdefault("plays", {})
