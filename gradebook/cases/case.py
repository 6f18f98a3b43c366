"""The tables of a scenario file, with the types of their keys."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from gradebook.cases import schema
from gradebook.cases.schema import (
    Count,
    FilePart,
    Flag,
    Number,
    SettingName,
    Whole,
    between,
    one_of,
)
from gradebook.cases.table import LISTS, Table
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.core.settings import Settings


@dataclass(frozen=True)
class Edits(FilePart):
    """What a challenge lets the learner edit; nothing else may change.

    columns   columns whose cells may change; "any" means all
    rows      the only rows whose cells may change; without it every row
    settings  settings that may change; "any" means all
    most      how many edits there may be at most: cells that changed,
              settings that changed, rows added and removed; 0 for no limit
    add, remove, reorder  rows may be added, removed, put in another order
    """

    columns: tuple[Annotated[str, one_of("any", *COLUMNS)], ...] = ()
    rows: tuple[Count, ...] = ()
    settings: tuple[Annotated[str, one_of("any", *Settings().keys())], ...] = ()
    most: Count = 0
    add: Flag = False
    remove: Flag = False
    reorder: Flag = False


Lines = Literal["row", "token", "position"]
"""What a line of the board is."""
Dragged = Annotated[tuple[Annotated[str, one_of("reward", *LISTS)], ...], between(1)]
"""Columns that one handle of the board moves."""

OF_ENGINES = ("correct", "faulty", "correct size", "faulty size")
"""Advantages of a row in each engine, and without the sign."""
OF_TOKENS = ("correct push", "faulty push")
"""How strongly each engine pushes a token of a row; above 0 makes the token
likelier."""
OF_MOVES = ("correct shift", "faulty shift", "ratio")
"""How far they moved from the case as it came; the faulty one by the correct one."""
OF_ROWS = ("reward", "tokens", "eos", "kept_steps", "pieces")
"""A row's value in a column, a flag as 1 or 0; the rows of its rollout."""
OF_BATCH = ("rows", "correct trains", "loss ratio")
"""The number of rows, of rows that the correct engine trains, and the faulty
loss divided by the correct one."""

ChosenRows = Annotated[tuple[Count, ...], between(1)] | Literal["all", "best", "whole"]
"""Numbers of rows, or all, the best of each prompt, or those of prompts in
which every row counts."""


@dataclass(frozen=True, kw_only=True)
class Bounds(FilePart):
    """A number of one of the rows, or of `every` one, is at least `least`, at
    most `most`, or one of `among`. Rows without the number are left out. Of OF_TOKENS
    it is the number of the row's token `token`."""

    kind: Literal["bounds"]
    of: Annotated[str, one_of(*OF_ENGINES, *OF_TOKENS, *OF_MOVES, *OF_ROWS, *OF_BATCH)]
    rows: ChosenRows
    token: Count = 0
    every: Flag = False
    least: Number | None = None
    most: Number | None = None
    among: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if self.least is None and self.most is None and not self.among:
            raise refuse("a number as least, most or among", "none")


@dataclass(frozen=True, kw_only=True)
class Agree(FilePart):
    """Both engines give the same advantages, loss and gradient. With
    `within`, advantages at most that far apart are enough."""

    kind: Literal["agree"]
    within: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Differ(FilePart):
    """Some rows have another advantage, or gradient, in the faulty engine."""

    kind: Literal["differ"]
    of: Literal["advantage", "gradient"] = "advantage"
    rows: ChosenRows = "all"


@dataclass(frozen=True, kw_only=True)
class Equal(FilePart):
    """The values of a column are equal within each prompt, each rollout or
    the batch. With `equal = false`, they differ within one of them."""

    kind: Literal["equal"]
    column: Literal["reward", "tokens", "text"]
    within: Literal["prompt", "rollout", "batch"] = "prompt"
    rows: ChosenRows = "all"
    equal: Flag = True


@dataclass(frozen=True, kw_only=True)
class Crash(FilePart):
    """The faulty engine stops with an error; the correct one runs."""

    kind: Literal["crash"]


Condition = Annotated[
    Bounds | Agree | Differ | Equal | Crash, Field(discriminator="kind")
]


@dataclass(frozen=True, kw_only=True)
class Change(FilePart):
    """A step of a solution: a cell of a row and column has another value, or a setting
    has; a row is added at the end, with the last row's cells if it names none; a row is
    removed; or the rows are in another order, each by its number before."""

    row: Whole = -1
    column: Annotated[str, one_of(*COLUMNS)] | None = None
    setting: SettingName | None = None
    value: Any = None
    add_row: dict[str, Any] | None = None
    remove_row: Whole | None = None
    order: tuple[Count, ...] | None = None

    def __post_init__(self) -> None:
        kinds = ("column", "setting", "add_row", "remove_row", "order")
        named = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(named) != 1:
            expected = "one of " + ", ".join(kinds)
            raise GradebookError(expected=expected, found=" and ".join(named) or "none")

    def applied(self, table: Table, settings: Settings) -> tuple[Table, Settings]:
        """Both after the change. Raises GradebookError with its key."""
        rows = list(range(len(table)))
        if self.setting is not None:
            return table, replace(settings, **{self.setting: self.value})
        if self.column is not None:
            schema.check_index("row", self.row, len(rows), "rows")
            choice(self.column, table.columns, "column")
            return table.with_cells({(self.row, self.column): self.value}), settings
        if self.add_row is not None:
            for name in self.add_row:
                choice(name, table.columns, name)
            cells = {(len(rows), name): cell for name, cell in self.add_row.items()}
            return table.extended(len(rows) + 1).with_cells(cells), settings
        if self.remove_row is not None:
            schema.check_index("remove_row", self.remove_row, len(rows), "rows")
            rows.remove(self.remove_row)
        if self.order is not None:
            if sorted(self.order) != rows:
                raise refuse(f"each of 0 to {rows[-1]} once", self.order, "order")
            rows = list(self.order)
        return table.take(rows), settings


@dataclass(frozen=True)
class Challenge(FilePart):
    """Something to try on the batch.

    edits     what may be edited; without it anything
    solved    conditions that must all hold
    solution  changes that, in order, are one way to pass it
    insight   one sentence shown when it is solved
    """

    title: str
    goal: str
    solved: Annotated[tuple[Condition, ...], between(1)]
    solution: Annotated[tuple[Change, ...], between(1)]
    insight: str
    edits: Edits | None = None
    hint: str = ""


# What is known of a bug

Limit = Annotated[Number, Field(ge=-math.inf, allow_inf_nan=True)]
"""A number that may be infinite."""


@dataclass(frozen=True)
class Dispute(FilePart):
    """Two views of a report that is disputed, and the fix's own trap."""

    maintainer: str
    other_view: str
    trap: str


@dataclass(frozen=True)
class Affected(FilePart):
    """What switches the bug on, where to look for it, and what to do about it."""

    keys: Annotated[tuple[str, ...], between(1)]
    look: str
    workaround: str


@dataclass(frozen=True)
class Kin(FilePart):
    """A relative of the bug that has no page of its own."""

    title: str
    text: str
    sources: tuple[schema.Source, ...] = ()


@dataclass(frozen=True)
class Prediction(FilePart):
    """The question to ask before the faulty engine is shown.

    said     one sentence per choice, shown after the answer
    places   one number per choice: where it puts the guess on the advantage
             axis. Without it the question is no place on the axis.
    regions  [low, high] per choice: the first that holds a guess on the axis
             is its choice. Without it the nearest place is.
    """

    question: str
    choices: Annotated[tuple[str, ...], between(2, 4)]
    answer: Whole
    why: str
    said: tuple[str, ...]
    places: tuple[Number, ...] = ()
    regions: tuple[tuple[Limit, Limit], ...] = ()

    def __post_init__(self) -> None:
        schema.check_index("answer", self.answer, len(self.choices), "choices")
        for key in ("said", "places", "regions"):
            values = getattr(self, key)
            if (values or key == "said") and len(values) != len(self.choices):
                raise refuse(f"{len(self.choices)} values", len(values), key)


@dataclass(frozen=True)
class Reading(FilePart):
    """Three variants of one line of code, of which one is right: the trainer's pattern,
    written anew, so that it is found in unfamiliar code.

    code     the lines around it; "___" is its place
    answer   the right variant, an index
    trainer  the variant with the trainer's mistake, an index
    gives    the stage whose results the code computes from the case's batch, in a
             variable of that name; "" if it runs on numbers of its own
    said     one sentence per variant
    """

    question: str
    code: str
    lines: Annotated[tuple[str, ...], between(3, 3)]
    answer: Whole
    trainer: Whole
    said: Annotated[tuple[str, ...], between(3, 3)]
    gives: str = ""

    def __post_init__(self) -> None:
        schema.check_index("answer", self.answer, len(self.lines), "lines")
        schema.check_index("trainer", self.trainer, len(self.lines), "lines")
        if self.answer == self.trainer:
            raise refuse("another line than the answer", self.trainer, "trainer")
        if self.code.count(PLACE) != 1:
            raise refuse(f"{PLACE} once", self.code.count(PLACE), "code")

    def with_line(self, number: int) -> str:
        """The code with a variant in its place."""
        return self.code.replace(PLACE, self.lines[number])


PLACE = "___"
"""The placeholder of the line in question in a reading exercise."""


@dataclass(frozen=True)
class Telltale(FilePart):
    """The number that gives this bug away."""

    kind: Literal["sign", "scale", "influence", "gradient", "push"]
    text: str


@dataclass(frozen=True, kw_only=True)
class BugRecord(FilePart):
    """What the check of a log and the laws must know about a bug.

    columns          log columns that the check needs to try the bug; a tuple inside
                     means one of several
    without          how rows count if the log has none of the columns, for a bug that
                     the check tries then, too; "" for any other
    in_advantages    False: the bug leaves no trace in advantages
    couples_prompts  a row's faulty advantage may depend on the rows of other
                     prompts, whatever the settings are
    phrase, correct_phrase  what a verdict calls the two computations
    tells            what a log must hold for the bug to be tried
    would_tell       what a step must hold for the bug to show
    laws             names of laws in analysis/laws, the first to show first
    proof            what proves the bug in a log: numbers that no correct
                     computation gives, a column whose meaning is certain, or
                     what the trainer was asked for
    loses            the number that a float type cannot hold, if that is the bug
    guesses          setting -> values to try in the check; "strides" and
                     "prompts" are replaced by the group sizes and the prompts of a step
                     that the rows of a log suggest
    """

    columns: tuple[str | Annotated[tuple[str, ...], between(2)], ...]
    in_advantages: Flag
    couples_prompts: Flag
    phrase: str
    correct_phrase: str
    tells: str
    would_tell: str
    laws: Annotated[tuple[str, ...], between(1)]
    proof: Literal["structure", "column", "declaration"] = "declaration"
    without: str = ""
    loses: Literal["", "float32 mean", "float32 variance", "bfloat16 mean"] = ""
    guesses: Mapping[SettingName, Annotated[tuple[Any, ...], between(1)]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Expected(FilePart):
    """Numbers worked out by hand: an advantage for each row, NaN if it has none, the
    loss, and the push on each token."""

    correct: schema.Values | None = None
    faulty: schema.Values | None = None
    correct_loss: Number | None = None
    faulty_loss: Number | None = None
    correct_push: tuple[schema.Values, ...] | None = None
    faulty_push: tuple[schema.Values, ...] | None = None
