"""A game of "Mystery trainer" in one session. Its link is the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.mystery import edits, look, odd_rows
from gradebook.cases.mystery import (
    NONE,
    first_state,
    hidden,
    stage_of,
    suspects,
)
from gradebook.cases.state import State
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.game_link import seed_of

COSTS = {"rows": 2, "half": 3, "stage": 4}
"""What a hint costs, in edits: which rows of the batch are wrong; half of
the other bugs; the stage."""
WRONG = 3
"""What a wrong name costs, in edits."""


@dataclass
class Trainer(Draft):
    """The batch on the board, with the hidden trainer as the one engine."""

    name: str = NONE

    @property
    def original(self) -> Comparison:
        """What the trainer gave for the batch as it came."""
        return look(self.name, self.origin)

    def compared(self) -> Comparison:
        """What it gives for the batch as it stands. Raises GradebookError,
        also where the trainer stops with an error."""
        return look(self.name, self.state)


@dataclass
class Game:
    """Where a visitor stands in a game.

    log    the batches that the trainer was asked about, in order
    hints  that were taken; rows3 is about the batch number 3 of the log
    wrong  how many wrong names were given
    over   the answer is shown; gave_up: without a name
    told   what the last name came to
    end    the batch of the finished game, with both engines
    """

    seed: str
    draft: Draft = field(init=False)
    log: list[State] = field(default_factory=lambda: [first_state()])
    hints: list[str] = field(default_factory=list)
    wrong: int = 0
    over: bool = False
    gave_up: bool = False
    told: str = ""
    end: Draft | None = None

    def __post_init__(self) -> None:
        self.draft = Trainer(first_state().scenario, name=self.name)

    @property
    def name(self) -> str:
        """The hidden bug, or NONE."""
        return hidden(self.seed)

    def note(self) -> None:
        """The batch as it stands was shown: a new one costs its edits."""
        state = self.draft.state
        if self.over:
            return
        if not any(state.same_batch(one) for one in self.log):
            self.log.append(state)

    @property
    def cost(self) -> int:
        """The score so far, in edits. Less is better."""
        hints = sum(COSTS[hint.rstrip("0123456789")] for hint in self.hints)
        return edits(self.log) + hints + WRONG * self.wrong

    def guess(self, stage: str, name: str) -> None:
        """The visitor names the stage and the bug. The right name ends the
        game."""
        if name == self.name:
            self.over, self.told = True, ""
            return
        self.wrong += 1
        right = stage == stage_of(self.name)
        self.told = (
            "The stage is right, the bug is not."
            if right
            else "Neither the stage nor the bug is right."
        )

    def give_up(self) -> None:
        """The answer is shown without a name."""
        self.over = self.gave_up = True

    def take(self, hint: str) -> None:
        """A hint, unless it was taken already."""
        if hint == "rows":
            hint = f"rows{self._place()}"
        if hint not in self.hints:
            self.hints.append(hint)

    def _place(self) -> int:
        """The number in the log of the batch as it stands."""
        state = self.draft.state
        places = [i for i, s in enumerate(self.log) if s.same_batch(state)]
        return places[0] if places else len(self.log) - 1

    def rows_told(self) -> list[tuple[int, list[int]]]:
        """The batches whose wrong rows were asked for, with those rows."""
        numbers = [int(h[4:]) for h in self.hints if h.startswith("rows")]
        return [
            (number, odd_rows(self.name, self.log[number]))
            for number in numbers
            if number < len(self.log)
        ]

    def struck(self) -> tuple[str, ...]:
        """The suspects that the hint `half` strikes out."""
        if "half" not in self.hints:
            return ()

        def drawn(name: str) -> str:
            text = f"{self.seed}\nhalf\n{name}"
            return hashlib.sha256(text.encode()).hexdigest()

        others = sorted(set(suspects()) - {self.name, NONE}, key=drawn)
        return tuple(others[: len(others) // 2])


def read(query: Mapping[str, str]) -> Game:
    """The game of a link, from its start."""
    return Game(seed_of(query))
