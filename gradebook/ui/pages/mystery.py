"""Mystery trainer: one bug or none is hidden; edits bring it out.

Before the end nothing that is sent says which bug it is: the board gets the
trainer's advantages and the batch, and nothing of any other stage.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import compress
from typing import Any

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from gradebook.analysis.comparison import Comparison, same
from gradebook.bugs import BUGS, swap
from gradebook.cases.reports import draw
from gradebook.cases.scenario import FOLDER, PlainCase, bug
from gradebook.cases.schema import read_part
from gradebook.cases.state import State
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted
from gradebook.engine.pipeline import CORRECT, STAGES, run
from gradebook.ui import keys
from gradebook.ui.board.component import heart
from gradebook.ui.parts import address, controls, words
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.widget import shortcuts

NONE, NO_STAGE = "", "none"
"""The name of the trainer without a bug, and of its stage."""
DIGITS = 5
"""Significant digits of an advantage that are shown. More would tell the
number type in which the trainer computes."""
HINTS = {
    "rows": ("Which rows of this batch are wrong?", 2),
    "stage": ("Name the stage", 4),
}
"""hint -> its words, and its cost in edits."""
WRONG = 3
"""The cost of a wrong name, in edits."""
COVER: dict[str, Any] = {
    "summary": "The trainer's advantages for this batch. Everything else is hidden.",
    "names": ["the trainer", ""],
    "unnamed": True,
    "causes": [],
    "baseline": "",
    "hollow": "",
}
"""Leaves the board the batch and the trainer's advantages alone."""


def look(name: str, state: State) -> Comparison:
    """What the trainer with the bug `name` gives for the state, to DIGITS: the trainer
    beside itself. Raises GradebookError if no trainer, or not this one, can compute
    it."""
    batch = state.batch()
    trace = run(CORRECT, batch)
    try:
        trace = run(swap(name).engine, batch) if name else trace
    except GradebookError:
        clue = "The trainer stopped with an error on this batch. That is a clue, too."
        raise GradebookError(clue) from None
    values = [float(f"{x:.{DIGITS}g}") for x in trace.advantage.tolist()]
    rounded = replace(trace, advantage=torch.tensor(values, dtype=torch.float64))
    return Comparison(batch, rounded, rounded)


@cache
def first_case() -> PlainCase:
    return read_part(PlainCase, FOLDER / "games" / "mystery.toml", name="mystery")


@cache
def suspects() -> tuple[str, ...]:
    """What a game may hide: no bug, and every bug that advantages show."""
    return (NONE, *(name for name in BUGS if bug(name).in_advantages))


def hidden(seed: str) -> str:
    """The bug that the seed hides. Each suspect draws a number from the seed and the
    highest wins, so a bug that is added later changes few old games."""
    return max(suspects(), key=partial(draw, seed, "mystery"))


def stage_of(name: str) -> str:
    return bug(name).stage if name else NO_STAGE


@dataclass
class Game(PageDraft[PlainCase]):
    """The batch on the board, with the hidden trainer as the one engine.

    seed   its link
    name   the bug that it hides
    log    the batches that the trainer was asked about, in order
    hints  each hint that was taken -> its words and its cost
    wrong  how many wrong names were given
    over   how the game ended, in words; '' while it is played
    reply  what the last name came to
    """

    seed: str = ""
    name: str = NONE
    log: list[State] = field(default_factory=list)
    hints: dict[str, int] = field(default_factory=dict)
    wrong: int = 0
    over: str = ""
    reply: str = ""

    @property
    def original(self) -> Comparison:
        return look(self.name, self.origin)

    def compared(self) -> Comparison:
        return look(self.name, self.state)

    @cached_property
    def end(self) -> PageDraft[PlainCase]:
        """The batch of the finished game, with both engines."""
        bugs = (self.name,) if self.name else ()
        end = PageDraft(replace(first_case(), bugs=bugs))
        end.edit(table=self.state.table, settings=self.state.settings)
        return end

    def note(self) -> int:
        """The number of the batch in the log. A new one is an edit."""
        for number, batch in enumerate(self.log):
            if self.state.same_batch(batch):
                return number
        self.log.append(self.state)
        return len(self.log) - 1

    @property
    def score(self) -> str:
        edits = max(len(self.log) - 1, 0)
        return counted(edits + sum(self.hints.values()) + WRONG * self.wrong, "edit")

    def guess(self, stage: str | None, name: str | None) -> None:
        """The right name ends the game."""
        if name == self.name:
            self.over = "You named it in"
            return
        self.wrong += 1
        self.reply = "Neither the stage nor the bug is right."
        if stage == stage_of(self.name):
            self.reply = "The stage is right, the bug is not."

    def hint(self, hint: str) -> None:
        text = f"The stage is `{stage_of(self.name)}`."
        if hint == "rows":
            number, rows = self.note(), range(self.state.rows)
            batch = f"batch {number}" if number else "the first batch"
            try:
                correct = look(NONE, self.state).correct.advantage
            except GradebookError:
                self.hints[f"No trainer can compute {batch}."] = 0
                return
            wrong = [True] * len(rows)  # where it stops
            if not self.fault:
                wrong = (~same(self.comparison.correct.advantage, correct)).tolist()
            numbers = ", ".join(map(str, compress(rows, wrong))) or "none"
            text = f"Rows of {batch} whose advantage is wrong: {numbers}."
        self.hints[text] = HINTS[hint][1]


def read(query: Mapping[str, str]) -> Game:
    seed = address.seed_of(query)
    return Game(first_case(), seed=seed, name=hidden(seed))


def mystery() -> None:
    st.title("Mystery trainer", anchor=False)
    game = address.game(keys.MYSTERY, read)
    address.put(address.game_link(game.seed))
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
        heart(game, "sign", covered=True, **COVER)
    _rest(game, main.container(), side.container())


@st.fragment(key="rest")
def _rest(game: Game, main: DeltaGenerator, side: DeltaGenerator) -> None:
    """What a finished edit draws again: settings below the board, answers beside."""
    with game.lock:
        game.note()
    with main:
        controls.settings(game, game.scenario.controls, across=4)
    with side:
        _name(game)
        st.markdown(words.titled("Hints", "A hint counts as edits.", level=3))
        with st.container(horizontal=True):
            for hint, (label, cost) in HINTS.items():
                act = partial(game.hint, hint)
                _button(f"{label} ({cost} edits)", f"hint-{hint}", act)
        for text in game.hints:
            st.markdown(text)
    shortcuts(game)


def _name(game: Game) -> None:
    text = (
        f"**{game.score} so far.** A wrong name costs {WRONG} edits. A drag is one"
        " edit. Going back in the history is free."
    )
    st.markdown(words.titled("Name it", text, level=3))
    stages = set(map(stage_of, suspects()))
    stage = st.pills(
        "Stage",
        [stage for stage in (*STAGES, NO_STAGE) if stage in stages],
        key=f"mystery-stage-{game.seed}",
        wrap=True,
    )
    name = stage and st.pills(
        "Bug",
        [name for name in sorted(suspects()) if stage_of(name) == stage],
        format_func=_title,
        key=f"mystery-bug-{game.seed}-{stage}",
        wrap=True,
    )
    with st.container(horizontal=True):
        guess = partial(game.guess, stage, name)
        _button("Name it", "name", guess, type="primary", disabled=name is None)
        give_up = partial(setattr, game, "over", "You gave up after")
        _button("Give up", "over", give_up)
        _button("Another trainer", "new", keys.MYSTERY.drop)
    if game.reply:
        st.markdown(f"**{game.reply}**")


def _button(label: str, key: str, act: Callable[[], None], **options: Any) -> None:
    """A button whose act draws the whole page again."""
    if st.button(label, key=f"mystery-{key}", **options):
        act()
        st.rerun()


def _title(name: str) -> str:
    return words.plain(bug(name).title) if name else "No bug: the trainer is correct"


def _over(game: Game) -> None:
    name, answer = game.name, "The trainer has no bug."
    changes = {"summary": "The trainer's advantages for this batch are correct."}
    if name:
        phrase, changes = words.plain(bug(name).phrase), {}
        answer = f"**{_title(name)}**, in the stage `{stage_of(name)}`: {phrase}."
    with st.container(border=True, key="verdict"):
        st.markdown(f"{game.over} {game.score}. {answer}")
    with st.container(horizontal=True):
        if name:
            address.page_link(name, f"Open: {_title(name)}")
        _button("Another trainer", "new", keys.MYSTERY.drop, type="primary")
    heart(game.end, "sign", covered=not name, **changes)
    st.fragment(shortcuts, key="rest")(game.end)
    address.colleague("The same trainer", game.seed)
