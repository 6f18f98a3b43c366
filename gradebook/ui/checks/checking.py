"""A log that the session checks, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradebook.cases.columns import number, whole
from gradebook.core.errors import GradebookError
from gradebook.logs.read.sources import Source
from gradebook.logs.verdict.explore import StepRows, step_rows
from gradebook.logs.verdict.near_miss import NearMiss
from gradebook.logs.verdict.verdict import Verdict


@dataclass(eq=False)
class Checking:
    """One log, from the moment it is chosen.

    files      the log
    title      what the page calls it
    options    arguments of `check_log`
    verdict    what was found, None until the check ends
    near       which rows miss, where nothing fits
    error      why there is no verdict, in words
    cancelled  the check was stopped by hand
    rows       the steps that were opened, by label
    """

    files: Sequence[Source]
    title: str
    options: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    near: NearMiss | None = None
    error: str = ""
    cancelled: bool = False
    rows: dict[object, StepRows] = field(default_factory=dict)

    @property
    def waiting(self) -> bool:
        """The log is still to be checked."""
        return self.verdict is None and not self.error and not self.cancelled

    def step(self, label: object) -> StepRows:
        """A step's rows, read once. Raises GradebookError."""
        assert self.verdict is not None
        if label not in self.rows:
            self.rows[label] = step_rows(self.files, self.verdict, label)
        return self.rows[label]


def options_of(typed: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `check_log` from the fields as typed: columns, one
    "name = your column" a line; weights, numbers between commas; size, a
    whole number; declared, "name=value" between commas.

    Raises GradebookError for what cannot be read.
    """
    weights, size = typed.get("weights", ""), typed.get("size", "")
    declared = typed.get("declared", "").split(",")
    return {
        "columns": _pairs("columns", typed.get("columns", "").splitlines()),
        "weights": [number(w) for w in weights.split(",")] if weights.strip() else None,
        "group_size": whole(size) if size.strip() else None,
        "declared": _pairs("asked for", declared),
    }


def _pairs(key: str, parts: Sequence[str]) -> dict[str, str] | None:
    found = {}
    for part in filter(str.strip, parts):
        name, mark, theirs = (text.strip() for text in part.partition("="))
        if not name or not mark or not theirs:
            raise GradebookError(key=key, expected="name = value", found=part.strip())
        found[name] = theirs
    return found or None
