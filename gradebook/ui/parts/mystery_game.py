"""A game of "Mystery trainer" in one session. Its link is the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.mystery import (
    NONE,
    edits,
    first_state,
    hidden,
    look,
    odd_rows,
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
    rows   by the number of a batch in the log, its wrong rows: the hint "rows"
    hints  the others that were taken
    wrong  how many wrong names were given
    over   the answer is shown; gave_up: without a name
    told   what the last name came to
    end    the batch of the finished game, with both engines
    """

    seed: str
    draft: Draft = field(init=False)
    log: list[State] = field(default_factory=lambda: [first_state()])
    rows: dict[int, list[int]] = field(default_factory=dict)
    hints: set[str] = field(default_factory=set)
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

    def note(self) -> int:
        """The number of the batch as it stands in the log. A new one was shown
        now, and costs its edits."""
        state = self.draft.state
        for number, batch in enumerate(self.log):
            if state.same_batch(batch):
                return number
        self.log.append(state)
        return len(self.log) - 1

    @property
    def cost(self) -> int:
        """The score so far, in edits. Less is better."""
        hints = sum(COSTS[hint] for hint in self.hints) + COSTS["rows"] * len(self.rows)
        return edits(self.log) + hints + WRONG * self.wrong

    def guess(self, stage: str, name: str) -> None:
        """The visitor names the stage and the bug. The right name ends the
        game."""
        if name == self.name:
            self.over = True
            return
        self.wrong += 1
        self.told = "Neither the stage nor the bug is right."
        if stage == stage_of(self.name):
            self.told = "The stage is right, the bug is not."

    def give_up(self) -> None:
        """The answer is shown without a name."""
        self.over = self.gave_up = True

    def take(self, hint: str) -> None:
        """A hint, unless it was taken already."""
        if hint == "rows":
            number = self.note()
            self.rows[number] = odd_rows(self.name, self.log[number])
        else:
            self.hints.add(hint)

    def struck(self) -> tuple[str, ...]:
        """The suspects that the hint `half` strikes out."""
        others = sorted(set(suspects()) - {self.name, NONE}, key=self._drawn)
        return tuple(others[: len(others) // 2]) if "half" in self.hints else ()

    def _drawn(self, name: str) -> str:
        text = f"{self.seed}\nhalf\n{name}"
        return hashlib.sha256(text.encode()).hexdigest()


def read(query: Mapping[str, str]) -> Game:
    """The game of a link, from its start."""
    return Game(seed_of(query))
