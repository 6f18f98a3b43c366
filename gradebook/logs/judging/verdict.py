"""Verdict: what a whole log's advantages are, with the evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.judging.sentences import Tie
from gradebook.logs.judging.suspects import Suspect
from gradebook.logs.logged_steps import LoggedSteps
from gradebook.logs.what_if import by_bug

BY_STEP = ("frame", "what_if", "steps", "correct", "suspects")
"""What JSON leaves out."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a log's advantages are.

    sentence          the verdict, then its condition or question
    verdict           correct, other, suspect, asks, cannot tell or none fits
    bug               the suspect, or the bug that is asked about, or ""
    asks              the bugs that these numbers would be under a condition
    estimator         the estimator's name; convention are its details
    settings          the engine's settings for pages that show a step
    group_size        rows per prompt where a stride is named
    residual          largest distance of a row from the named computation
    correct_residual  the same from the correct numbers
    step, row         where the correct numbers are first off, or None
    flips             rows whose sign differs from the correct advantage's
    steps_fitted      steps that the named computation fits
    steps_judged, steps_read, rows   how much there was
    ties, notes       what the log cannot tell, and what else to know
    incomplete        those of the notes that say what a recording lacks
    near              which rows miss, where nothing fits
    unchecked         one line: the columns that would let more be checked
    columns           what each of the log's columns was taken for
    broken            what was left out, the first hundred by place
    broken_cells, broken_files   how many cells, and files
    empty_advantages  rows with an empty advantage; their steps are not judged
    declared          settings that a person or a recorder named
    missing_ranks     step of a recording -> the ranks without a part of it;
                      such a step is not judged
    problems          what a recorder could not record
    frame             one row a step: what `check` gives
    what_if           for a log without advantages, where the engines would
                      differ: the columns of `what_if`
    steps, correct    the rows that were judged, and what is correct beside
                      them, float64 [R]
    suspects          the bugs that fit some step, as they were run
    """

    sentence: str
    verdict: str
    bug: str = ""
    asks: tuple[str, ...] = ()
    estimator: str = ""
    convention: str = ""
    settings: Settings = Settings(eps=1e-6)
    group_size: int | None = None
    residual: float = math.nan
    correct_residual: float = math.nan
    step: object = None
    row: int | None = None
    flips: int = 0
    steps_fitted: int = 0
    steps_judged: int = 0
    steps_read: int = 0
    rows: int = 0
    ties: tuple[Tie, ...] = ()
    notes: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    near: str = ""
    unchecked: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    broken: tuple[str, ...] = ()
    broken_cells: int = 0
    broken_files: int = 0
    empty_advantages: int = 0
    declared: Mapping[str, object] = field(default_factory=dict)
    missing_ranks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    what_if: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    steps: LoggedSteps | None = None
    correct: np.ndarray = field(default_factory=lambda: np.zeros(0))
    suspects: tuple[Suspect, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 correct; 1 another computation than declared, or proved wrong; 2
        anything else, or only partly read."""
        if self.verdict in ("suspect", "other"):
            return 1
        broken = self.broken_cells or self.broken_files
        partly = broken or self.missing_ranks or self.problems
        return 0 if self.verdict == "correct" and not partly else 2

    def to_json(self, indent: int | None = 2) -> str:
        """Everything but what is told by step, as strict JSON; of
        `what_if` the sums over the steps."""
        plain = {k: v for k, v in vars(self).items() if k not in BY_STEP}
        plain["what_if"] = by_bug(self.what_if).to_dict("records")
        plain["ties"] = [vars(tie) for tie in self.ties]
        plain["exit_code"] = self.exit_code
        text = json.dumps(_jsonable(plain), indent=indent, allow_nan=False)
        return text.encode("utf-8", errors="replace").decode("utf-8")


def _jsonable(value: Any) -> Any:
    """Numbers that JSON has not become text or null."""
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)
