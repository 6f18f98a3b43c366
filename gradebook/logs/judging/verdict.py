"""Verdict: the finding on a whole log, with its evidence, in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pydantic_core import to_jsonable_python

from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging.decide import Judgement, no_steps
from gradebook.logs.judging.order import Order
from gradebook.logs.judging.sentences import ColumnNames, Statement
from gradebook.logs.read.rows import Log
from gradebook.logs.signal import Signal


@dataclass(frozen=True, eq=False)
class Verdict:
    """The finding on a log's advantages.

    statement     that, in sentences; `sentence` has them for a command line
    judgement     on the steps of the log; None if none could be judged
    residual      largest distance of a row from the named computation, and
                  `correct_residual` from the correct numbers
    step, row     where the correct numbers are first off, or None
    steps_fitted  steps that the named computation fits
    ties          what fits equally well -> why the log cannot tell
    near          the closest computation, if none fits
    left_over     the kind of what is left over there, a kind of `left_over`; or ""
    order         whether higher rewards have higher advantages; None if not asked
    unchecked     one line: the columns that would let more be checked
    broken        what was left out or is missing, the first hundred by place
    frame         one row per step: what `check` gives
    signal        what the rewards can still teach, if there are rows
    what_if       for a log without advantages: what `what_if` gives
    """

    statement: Statement
    verdict: str
    log: Log
    judgement: Judgement | None = None
    bug: str = ""
    asks: tuple[str, ...] = ()
    estimator: str = ""
    convention: str = ""
    residual: float = math.nan
    correct_residual: float = math.nan
    step: object = None
    row: int | None = None
    flips: int = 0
    steps_fitted: int = 0
    steps_judged: int = 0
    steps_read: int = 0
    ties: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    near: str = ""
    left_over: str = ""
    order: Order | None = None
    unchecked: str = ""
    columns: ColumnNames = field(default_factory=dict)
    files: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    broken: tuple[str, ...] = ()
    declared: Mapping[str, object] = field(default_factory=dict)
    frame: pd.DataFrame = field(default_factory=no_steps)
    signal: Signal | None = None
    what_if: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())

    @property
    def sentence(self) -> str:
        """The verdict as a command line and its reports say it."""
        return self.statement.words()

    @property
    def exit_code(self) -> int:
        """0 correct; 1 another computation than declared, or proved wrong; 2
        anything else, or only partly read."""
        if self.verdict in ("suspect", "other"):
            return 1
        log, run = self.log, self.log.recording
        lacks = run is not None and (run.problems or run.missing())
        partly = lacks or log.broken_cells or log.broken_files or log.emptied
        return 0 if self.verdict == "correct" and not partly else 2

    def to_json(self) -> str:
        """The whole verdict except its steps, as strict JSON."""
        log, run, j = self.log, self.log.recording, self.judgement
        left_out = ("statement", "log", "judgement", "frame", "signal", "what_if")
        facts = {k: v for k, v in vars(self).items() if k not in left_out}
        facts |= {
            "sentence": self.sentence,
            "exit_code": self.exit_code,
            "settings": j.settings if j else None,
            "group_size": j.suspect.group_size if j and j.suspect else None,
            "rows": log.rows,
            "broken_cells": log.broken_cells,
            "broken_files": log.broken_files,
            "empty_advantages": log.empty_advantages,
            "missing_ranks": run.missing() if run else {},
            "problems": run.problems if run else (),
            "unscored": log.unscored,
            "emptied": log.emptied,
            "signal": self.signal.to_dict() if self.signal else None,
            "curves": log.curves,
            "what_if": self.what_if.to_dict("records"),
        }
        plain = to_jsonable_python(
            facts,
            inf_nan_mode="null",
            fallback=lambda v: v.item() if isinstance(v, np.generic) else str(v),
        )
        return json.dumps(plain, indent=2, allow_nan=False)
