"""Mystery trainer: one bug or none is hidden; edits bring it out.

Before the end nothing that is sent says which bug it is: the board gets the
trainer's advantages and the batch, and nothing of any other stage.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.analysis.mystery import NONE, stage_of, suspects
from gradebook.cases.record import bug
from gradebook.cases.scenario import PlainCase
from gradebook.core.formatting import counted
from gradebook.engine.pipeline import STAGES
from gradebook.ui import keys
from gradebook.ui.board.component import board
from gradebook.ui.board.view import no_cause, view
from gradebook.ui.parts import (
    controls,
    game_link,
    mystery_game,
    words,
)
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.heart import heart
from gradebook.ui.parts.mystery_game import COSTS, WRONG, Game
from gradebook.ui.parts.shell import bug_files
from gradebook.ui.parts.shortcuts import shortcuts
from gradebook.ui.parts.widget import button
from gradebook.ui.rooms.seat import carried

PAGE = "mystery"
TRAINER = "the trainer"
NO_STAGE = "none"
NO_BUG = "No bug: the trainer is correct"
SAID = "The trainer's advantages for this batch. You see nothing else of it."
HINTS = {
    "rows": "Which rows of this batch are wrong?",
    "half": "Strike out half of the bugs",
    "stage": "Name the stage",
}


def mystery() -> None:
    """The whole page."""
    st.title("Mystery trainer", anchor=False)
    game = game_link.game(PAGE, keys.MYSTERY, mystery_game.read)
    if game.over:
        return _over(game)
    st.markdown(
        "This trainer has one of the bugs, or none. Edit the batch and its"
        " settings, watch the advantages, and name the stage and the bug in"
        " as few edits as you can. Only bugs that advantages can show are"
        " hidden here."
    )
    main, side = st.columns([17, 8], gap="medium")
    with main:
        _board(game)
    _rest(game, main.container(), side.container())


# The trainer


@st.fragment(key="heart")
def _board(game: Game) -> None:
    """The board with the trainer's advantages."""
    board(game.draft, partial(data_of, game))


def data_of(game: Game) -> dict[str, Any]:
    """What the board is given to draw: the batch, the trainer's advantages,
    and nothing of any other stage."""
    draft = game.draft
    data = view(draft, kind="sign", covered=True, names=(TRAINER, ""))
    return data | {
        "causes": [no_cause(len(draft.table))],
        "baseline": "",
        "hollow": "",
        "summary": SAID,
        "unnamed": True,
    }


@st.fragment(key="rest")
def _rest(game: Game, main: DeltaGenerator, side: DeltaGenerator) -> None:
    """What a finished edit draws again: the settings below the board, the
    answers beside it."""
    with game.draft.lock:
        game.note()
    with main:
        controls.settings(game.draft, game.draft.scenario.controls, across=4)
    with side:
        _name(game)
        _hints(game)
    shortcuts(game.draft)
    game_link.depart({"seed": game.seed})


# The name


def _name(game: Game) -> None:
    """The score, and the visitor's name for stage and bug."""
    st.markdown(
        words.titled(
            "Name it",
            f"**{_edits(game)} so far.** A wrong name costs {WRONG} edits. A"
            " drag is one edit. Going back in the history is free.",
            level=3,
        )
    )
    left: dict[str, list[str]] = {}
    for name in set(suspects()) - set(game.struck()):
        left.setdefault(stage_of(name) or NO_STAGE, []).append(name)
    stage = st.pills(
        "Stage",
        [stage for stage in (*STAGES, NO_STAGE) if stage in left],
        format_func=lambda stage: "no stage" if stage == NO_STAGE else stage,
        key=f"mystery-stage-{game.seed}",
        wrap=True,
    )
    suspect = stage and st.pills(
        "Bug",
        sorted(left[stage]),
        format_func=_title,
        key=f"mystery-bug-{game.seed}-{stage}",
        wrap=True,
    )
    with st.container(horizontal=True):
        button(
            "Name it",
            "mystery-name",
            game.guess,
            "" if stage == NO_STAGE else stage,
            suspect,
            after=st.rerun,
            type="primary",
            disabled=suspect is None,
        )
        button("Give up", "mystery-over", game.give_up, after=st.rerun)
        button("Another trainer", "mystery-new", _new, after=st.rerun)
    if game.told:
        st.markdown(f"**{game.told}**")


def _edits(game: Game) -> str:
    return counted(game.cost, "edit")


def _title(name: str) -> str:
    return words.plain(bug(name).title) if name != NONE else NO_BUG


def _new() -> None:
    keys.MYSTERY.put(Game(game_link.new_seed()))


# Hints


def _hints(game: Game) -> None:
    st.markdown(words.titled("Hints", "A hint counts as edits.", level=3))
    with st.container(horizontal=True):
        for hint, label in HINTS.items():
            button(
                f"{label} ({COSTS[hint]} edits)",
                f"mystery-hint-{hint}",
                game.take,
                hint,
                disabled=hint in game.hints,
            )
    for number, rows in game.rows.items():
        batch = "the first batch" if not number else f"batch {number}"
        which = ", ".join(map(str, rows)) or "none"
        st.markdown(f"Rows of {batch} whose advantage is wrong: {which}.")
    struck = ", ".join(_title(name) for name in game.struck())
    if struck:
        st.markdown(f"It is none of these: {struck}.")
    if "stage" in game.hints:
        stage = stage_of(game.name)
        st.markdown(f"The stage is `{stage}`." if stage else "No stage is wrong.")


# The end


def _over(game: Game) -> None:
    """The answer, the score, and both engines on the batch."""
    name = game.name
    lead = "You gave up after" if game.gave_up else "You named it in"
    with st.container(border=True, key="verdict"):
        if name == NONE:
            said = "The trainer has no bug."
        else:
            one = bug(name)
            said = (
                f"**{words.plain(one.title)}**, in the stage `{one.stage}`:"
                f" {words.plain(one.phrase)}."
            )
        st.markdown(f"{lead} {_edits(game)}. {said}")
    with st.container(horizontal=True):
        if name != NONE:
            st.page_link(
                bug_files()[name],
                label=f"Open: {_title(name)}",
                query_params=carried(),
            )
        st.button("Another trainer", key="mystery-new", type="primary", on_click=_new)
    draft = _revealed(game)
    heart(draft, "sign", covered=name == NONE)
    _keys(draft)
    st.markdown("The same trainer for a colleague, from the start:")
    st.code(game_link.whole({"seed": game.seed}), language=None, wrap_lines=True)
    game_link.depart({"seed": game.seed})


@st.fragment(key="rest")
def _keys(draft: Draft) -> None:
    """Undo and redo by the keyboard, wherever the focus is."""
    shortcuts(draft)


def _revealed(game: Game) -> Draft:
    """The batch with both engines, in a draft of its own."""
    if game.end is None:
        now = game.draft.scenario
        case = PlainCase(
            name=f"mystery-{game.seed}",
            title="Mystery trainer",
            rows=now.rows,
            settings=now.settings,
            bugs=(game.name,) if game.name else (),
        )
        game.end = Draft(case.as_scenario())
        game.end.edit(table=game.draft.table, typed=game.draft.state.typed)
    return game.end
