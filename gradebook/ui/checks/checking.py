"""A log that the session checks, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from gradebook.cases.columns import number, whole
from gradebook.cases.record import bug
from gradebook.core.errors import GradebookError
from gradebook.core.settings import CHOICES, ESTIMATORS
from gradebook.logs.explore import StepRows, step_rows
from gradebook.logs.judging.proof import HOW_ROWS_COUNT, main_column
from gradebook.logs.judging.sentences import named_as
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.read.sources import Source
from gradebook.trainers.releases import measured

CONFIGURED: Mapping[str, str] = {
    "I don't know": "",
    "GRPO": "grpo",
    "Dr. GRPO": "dr_grpo",
    "RLOO": "rloo",
    "GRPO over the batch's deviation": "grpo_batch_std",
    "REINFORCE++": "reinforce_plus_plus",
    "REINFORCE++ baseline": "reinforce_plus_plus_baseline",
    "A batch z-score": "batch_zscore",
    "OPO": "opo",
    "GPG": "gpg",
    "Pass@k": "grpo_passk",
    "The raw reward": "none",
}
"""Estimators that a person may have configured, and their names."""


@cache
def answers() -> Mapping[str, Mapping[str, Any]]:
    """What a person may say of a run -> what it declares: an estimator, or a
    function of a trainer's release, the newest first, as it was measured."""
    found: dict[str, Mapping[str, Any]] = {
        title: {"estimator": name} if name else {} for title, name in CONFIGURED.items()
    }
    for line in reversed(measured()):
        if not line["baseline"] or line["scale"] not in CHOICES["scale"]:
            continue
        title = f"{line['trainer']} {line['version']}, {line['setting']}"
        settings = {
            name: line[name]
            for name in ("baseline", "scale", "ddof", "eps")
            if line[name] != ""
        }
        if "then" not in line["computes"]:
            settings["whiten_tokens"] = False
        if line["setting"] in ESTIMATORS:  # also what no group of rewards shows
            settings = {"estimator": line["setting"]}
        found.setdefault(title, settings)
    return found


@dataclass(eq=False)
class Checking:
    """One log, from the moment it is chosen.

    files      the log
    title      what the page calls it
    options    arguments of `check_log`
    verdict    what was found, None until the check ends
    error      why there is no verdict, in words
    cancelled  the check was stopped by hand
    rows       the steps that were opened, by label
    """

    files: Sequence[Source]
    title: str
    options: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
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
        "declared": {
            **answers().get(typed.get("estimator", ""), {}),
            **(_pairs("asked for", declared) or {}),
        }
        or None,
    }


def confirmation(verdict: Verdict) -> tuple[str, str, str] | None:
    """What would confirm the bug that is asked about: the column's role, its
    name in the log, and what is to be declared; None where no column decides."""
    if verdict.verdict != "asks" or not verdict.bug:
        return None
    record = bug(verdict.bug)
    counting = record.stage in HOW_ROWS_COUNT
    if not counting and record.proof != "column":
        return None
    column = main_column(record)
    role, named = named_as(column, verdict.columns, counting)
    return role, named, f"counts={column}" if counting else ""


ON_PAGE = {
    ": declare what was, with --declared.": ": answer the question beside the log.",
    "Give them with --weights.": "Give them in the settings below.",
    "declare it.": "answer the question beside the log.",
}
"""The command line's words, and the page's."""


def on_page(sentence: str) -> str:
    """A sentence of the check without the command line's options."""
    sentence, _, _ = sentence.partition(" Confirm with `--")
    for theirs, own in ON_PAGE.items():
        sentence = sentence.replace(theirs, own)
    return sentence


def _pairs(key: str, parts: Sequence[str]) -> dict[str, str] | None:
    found = {}
    for part in filter(str.strip, parts):
        name, mark, theirs = (text.strip() for text in part.partition("="))
        if not name or not mark or not (theirs or key == "columns"):
            raise GradebookError(key=key, expected="name = value", found=part.strip())
        found[name] = theirs
    return found or None
