"""Predict, then reveal: what the learner has guessed, uncovered and solved.

An answer uncovers its case everywhere in the session, and so does skipping.
The browser keeps it all in a cookie, and the server outside a room nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.ui.keys import Key
from gradebook.ui.parts import words

SKIPPED = -1
COOKIE = "gradebook"
LONGEST = 3800
"""Bytes of the cookie at most; browsers take 4096."""


class Guess(NamedTuple):
    """A choice or SKIPPED, and where it was put on the axis."""

    choice: int
    place: float | None = None


@dataclass
class Progress:
    """What one visitor has done so far.

    guesses  case -> the guess that uncovered it
    solved   case -> the numbers of its solved challenges
    shown    case -> the numbers of those whose solution was shown
    hidden   cases that a room keeps covered
    """

    guesses: dict[str, Guess] = field(default_factory=dict)
    solved: dict[str, set[int]] = field(default_factory=dict)
    shown: dict[str, set[int]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)

    def covered(self, case: str) -> bool:
        return case in self.hidden or case not in self.guesses

    def answer(self, case: str, choice: int, place: float | None = None) -> None:
        """The learner's choice, or SKIPPED, which takes no guess back."""
        self.hidden.discard(case)
        if choice != SKIPPED or case not in self.guesses:
            self.guesses[case] = Guess(choice, place)

    def uncovered(self) -> list[str]:
        return [bug for bug in BUGS if not self.covered(bug)]

    def text(self) -> str:
        """The progress as a cookie, reports first. What is too long is left out."""
        entries = []
        for case in sorted(self.guesses, key=lambda case: case not in BUGS):
            choice, place = self.guesses[case]
            where = "" if place is None else f"{place:.4g}"
            solved, shown = (
                "".join(map(str, sorted(numbers.get(case, ()))))
                for numbers in (self.solved, self.shown)
            )
            entries.append(f"{case}:{choice}:{where}:{solved}:{shown}")
        while len("|".join(entries)) > LONGEST:
            entries.pop()
        return "|".join(entries)

    @classmethod
    def read(cls, text: str) -> Progress:
        """The progress in a cookie; what cannot be read is left out."""
        progress = cls()
        for entry in text.split("|"):
            try:
                case, choice, place, solved, shown = entry.split(":")
                guess = Guess(int(choice), float(place) if place else None)
                numbers = set(map(int, solved)), set(map(int, shown))
            except ValueError:
                continue
            if guess.choice >= SKIPPED and math.isfinite(guess.place or 0):
                progress.guesses[case] = guess
                progress.solved[case], progress.shown[case] = numbers
        return progress


PROGRESS: Key[Progress] = Key(
    "progress", lambda: Progress.read(st.context.cookies.get(COOKIE, ""))
)
"""The session's progress; at its first run, the browser's cookie."""


def progress() -> Progress:
    return PROGRESS.get()


def covered(case: str) -> bool:
    """The learner has neither answered the case's question nor skipped it."""
    return progress().covered(case)


def start_over() -> None:
    PROGRESS.put(Progress())


def choices(
    offered: Mapping[str, str], pick: Callable[[int], None], skip: str = ""
) -> None:
    """A question's choices as a line of buttons.

    offered  the buttons' keys, each with its text
    pick     called with the number of the choice
    skip     the key of a button that calls it with SKIPPED; '' for none
    """
    with st.container(horizontal=True, key="choices"):
        for choice, (key, text) in enumerate(offered.items()):
            st.button(words.plain(text), key=key, on_click=pick, args=(choice,))
        if skip:
            label, args = "Skip, show me", (SKIPPED,)
            st.button(label, key=skip, on_click=pick, args=args, type="tertiary")
