"""Verdict: what a whole log's advantages are, with the evidence, in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic_core import to_jsonable_python

from gradebook.cases.scenario import bug
from gradebook.core.formatting import counted, short
from gradebook.core.lazy_pandas import pd
from gradebook.core.vocabulary import NAMED
from gradebook.logs.judging import suspects
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import REJECTS, ROLES
from gradebook.logs.judging.fit import REWARDS, SCORES, WRITTEN, distance
from gradebook.logs.judging.judge import OFF, Judgement, no_steps
from gradebook.logs.judging.search import quiet, search
from gradebook.logs.judging.suspects import Suspect
from gradebook.logs.read.log import Log

Columns = Mapping[str, str]  # role -> the log's own name of a column


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a log's advantages are.

    judgement     on the steps of the log; None where none could be judged
    residual      largest distance of a row from the named computation, and
                  `correct_residual` from the correct numbers
    step, row     where the correct numbers are first off, or None
    steps_fitted  steps that the named computation fits
    ties          what fits equally well -> why the log cannot tell
    near          what comes nearest, where nothing fits
    unchecked     one line: the columns that would let more be checked
    broken        what was left out or is missing, the first hundred by place
    frame         one row per step: what `check` gives
    what_if       for a log without advantages: what `what_if` gives
    """

    sentence: str
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
    unchecked: str = ""
    columns: Columns = field(default_factory=dict)
    files: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    broken: tuple[str, ...] = ()
    declared: Mapping[str, object] = field(default_factory=dict)
    frame: pd.DataFrame = field(default_factory=no_steps)
    what_if: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())

    @property
    def exit_code(self) -> int:
        """0 correct; 1 another computation than declared, or proved wrong; 2
        anything else, or only partly read."""
        if self.verdict in ("suspect", "other"):
            return 1
        log, run = self.log, self.log.recording
        lacks = run is not None and (run.problems or run.missing())
        partly = lacks or log.broken_cells or log.broken_files
        return 0 if self.verdict == "correct" and not partly else 2

    def to_json(self) -> str:
        """Everything but what is told by step, as strict JSON."""
        log, run, j = self.log, self.log.recording, self.judgement
        of_step = ("log", "judgement", "frame", "what_if")
        facts = {k: v for k, v in vars(self).items() if k not in of_step}
        facts |= {
            "exit_code": self.exit_code,
            "settings": j.settings if j else None,
            "group_size": j.suspect.group_size if j and j.suspect else None,
            "rows": log.rows,
            "broken_cells": log.broken_cells,
            "broken_files": log.broken_files,
            "empty_advantages": log.empty_advantages,
            "missing_ranks": run.missing() if run else {},
            "problems": run.problems if run else (),
            "what_if": self.what_if.to_dict("records"),
        }
        plain = to_jsonable_python(
            facts,
            inf_nan_mode="null",
            fallback=lambda v: v.item() if isinstance(v, np.generic) else str(v),
        )
        return json.dumps(plain, indent=2, allow_nan=False)


SAYS = {
    "mask": "marks the tokens of a response",
    "length": "counts the tokens of a response",
    "rejected length": "is 0 where a rollout was rejected",
    "eos": "says that a rollout ended with EOS",
    "truncated": "says that a rollout was cut off",
    "finish_reason": "says how a rollout ended",
    "accepted": "says which rollouts were accepted",
    "rejected": "says which rollouts were rejected",
    "scored": "says which rollouts were scored",
    "rollout": "says which rows are pieces of one rollout",
    "text": "is the text of the prompt that a row was generated from",
    "rank": "is the process that a row was trained on",
    "steps": "counts the transitions of an episode",
    "prompt": "says which rows belong together",
}
"""What a column of a role has to mean for a computation that rests on it."""

SENTENCES = {
    "no advantages": "Cannot tell: this log has no advantages. Log them beside the"
    " rewards, and check again.",
    "no steps": "Cannot tell: no step of this log could be judged.",
    "broken steps": "Cannot tell: no step of this log could be judged. Rows that cannot"
    " be read are left out, and with them the other rows of their steps or prompts;"
    " `--column NAME=` leaves out a column that need not be there.",
    "all zero": "Cannot tell: all advantages are 0, although rewards vary within a"
    " prompt. {then}",
    "weights": "Cannot tell: the log does not determine the weights of its reward"
    " functions. Give them with --weights.",
    "rounding": "Cannot tell: {title} is within what rounding of the rewards can do,"
    " and so may others be. Log rewards with more digits.",
    "nothing varies": "Cannot tell: nothing varies. In every prompt the rewards are"
    " equal and the advantages are 0. Check steps on which rewards differ.",
    "raw reward": "The advantages are the rewards themselves. {then}",
    "none fits": "None of the known computations fits. Check the columns, the weights"
    " of the rewards, the group size, and what was declared, if anything.",
}
"""What stands behind a judgement -> the sentence."""


def sentence_of(j: Judgement, declared: Mapping[str, object], columns: Columns) -> str:
    """The verdict, then its condition or question."""
    asked = ", ".join(f"{k}={v}" for k, v in declared.items())
    title = j.computations[0].title if j.computations else ""
    then = _condition(j.asks)
    if j.verdict == "correct":
        trusted = j.candidates.declaration.trusted
        guessed = [c for c in j.computations[0].columns if c not in trusted]
        rests = "".join(f" This holds if {_means(c, columns)}." for c in guessed)
        if j.candidates.declaration.decides:
            return f"{_matches(j)}, as declared: {asked}.{rests}"
        then = _condition(j.asks, title)
        then = then or "If you configured something else, declare it."
        return f"{_matches(j)}.{rests} {then}"
    if j.verdict == "other":
        named = [j.suspect] if j.suspect else j.asks[:3]
        then = f" With what you declared, this is {_titles(named)}." if named else ""
        return f"{_matches(j)}; you declared {asked}.{then}"
    if j.suspect is not None:
        return _suspect(j, j.suspect, columns)
    if j.change is not None:
        before, step = j.candidates.steps.labels[j.change - 1 : j.change + 1]
        then = f" If not, this is {_titles(j.asks[:2])}." if j.asks else ""
        return (
            f"The advantages match {title} up to step {before} and"
            f" {j.computations[1].title} from step {step} on. Was it reconfigured at"
            f" step {step}?{then}"
        )
    otherwise = "Check that the column holds what was trained."
    if j.why == "raw reward":
        otherwise = "If you configured that, declare estimator=none."
    return SENTENCES[j.why].format(title=title, then=then or otherwise)


def _matches(j: Judgement) -> str:
    """The bug, or the first computation and those that give the same numbers."""
    if j.suspect is not None:
        return f"The advantages match {j.suspect.record.phrase}"
    first, ruler = j.computations[0], j.candidates.ruler
    sentence = f"The advantages match {first.title}"
    if details := first.details + _other_details(j.computations):
        sentence += f" ({details})"
    usual = [
        c.title
        for c in j.computations
        if (c.baseline, c.scale, "") in NAMED and c.over in ("", "tokens")
    ]
    titles = [t for t in dict.fromkeys(usual) if t != first.title][:3]
    if titles:
        sentence += f", or {' or '.join(titles)}, which gives the same numbers here"
    rounding = {
        SCORES: "float32 rounding",
        WRITTEN: f"rounding ({ruler.advantage.words})",
        REWARDS: f"the rewards' rounding ({ruler.reward.words})",
    }
    return sentence + (f", within {rounding[j.level]}" if j.level in rounding else "")


def _other_details(computations: Sequence[Computation]) -> str:
    """That another ddof or eps of the first computation fits too, or ""."""
    first = computations[0]
    same = [c for c in computations if c.title == first.title]
    same = [c for c in same if c.eps_at == first.eps_at]
    several = [n for n in ("ddof", "eps") if len({getattr(c, n) for c in same}) > 1]
    return f"; other {' and '.join(several)} fit too" if several else ""


def _titles(bugs: Sequence[Suspect]) -> str:
    return " or ".join(s.record.title for s in bugs)


def _condition(asks: Sequence[Suspect], named: str = "") -> str:
    """ "If you asked for GRPO, this is Whole batch." """
    titles = [(Computation.of(s.settings).title, s.record.title) for s in asks[:3]]
    parts = [f"asked for {t}, this is {b}" for t, b in titles if t != named]
    return f"If you {'; if you '.join(parts)}." if parts else ""


def _means(column: str, columns: Columns, counting: bool = False) -> str:
    """ "`response_length` counts the tokens of a response"; `counting`, which rows
    count."""
    role, named = named_as(column, columns, counting)
    meaning = "rejected length" if counting and role == "length" else role
    says = SAYS.get(meaning, "means what its name says")
    decides = ", and is to decide which rows count" if counting else ""
    return f"`{named}` {says}{decides}"


def named_as(column: str, columns: Columns, counting: bool) -> tuple[str, str]:
    """The role of a log that a column was made of, and the log's name for it."""
    roles = [r for r in ROLES.get(column, ()) if counting or r not in REJECTS]
    role = next((r for r in roles if r in columns), column)
    return role, columns.get(role, role)


def _suspect(j: Judgement, s: Suspect, columns: Columns) -> str:
    record, frame = s.record, j.frame
    column = suspects.telling_columns(record)[0]
    counting = record.stage in suspects.HOW_ROWS_COUNT
    means = _means(column, columns, counting)
    if j.verdict == "asks" and (counting or record.proof == "column"):
        confirm = "--column {}={}".format(*named_as(column, columns, counting))
        confirm += f" --declared counts={column}" if counting else ""
        return (
            f"If {means}, these advantages match {record.title}. Confirm with"
            f" `{confirm}`."
        )
    inside = [record.title, Computation.of(s.settings).title]
    inside += [f"group size {s.group_size}"] if s.group_size else []
    first = f"{_matches(j)} ({', '.join(inside)})"
    off = frame[frame["verdict"].isin(OFF)]
    if len(off):
        largest = off["correct_residual"].replace(np.inf, np.nan).max()
        worst = off.iloc[0]
        correct = int(frame["verdict"].eq("correct").sum())
        others = counted(correct, "other")
        also = f" and the correct computation on {others}" if correct else ""
        first += (
            f" on {len(off):,} of {counted(len(frame), 'step')}{also}. The correct"
            f" advantages differ by up to {short(float(largest), 4)}; the first of"
            f" these steps is {worst['step']}, where row {worst['row']} differs most"
        )
    if j.verdict == "suspect":
        return f"{first}. This holds if {means}."
    more = f" (or {_titles(j.asks[1:3])})" if len(j.asks) > 1 else ""
    then = "declare what was, with --declared"
    if j.candidates.declaration.decides:
        then = "more steps, or more digits, would show it"
    asked = f"Is it what was configured? If not, this is {record.title}{more}"
    return f"{first}. {asked}: {then}."


def ties_of(j: Judgement) -> dict[str, str]:
    """What fits equally well: its name -> what it is, and why the log cannot tell."""
    same = "It gives the same numbers on every step of this log."
    ties = {
        b.name: f"{b.title}: {same} Only {b.would_tell} can tell them apart."
        for b in map(bug, j.ties)
    }
    computations = j.computations if j.change is None else ()
    ties |= {c.estimator: f"{c.title}: {same}" for c in computations}
    ties.pop(j.estimator, None)
    return ties


def near_miss(j: Judgement) -> str:
    """What comes nearest where nothing fits, or ""."""
    if j.verdict != "none fits":
        return ""
    steps, ruler = j.candidates.steps, j.candidates.ruler
    turned = replace(steps, advantage=-steps.advantage)
    others = search(replace(ruler, steps=turned), j.candidates.declaration)
    if opposite := others.fitting(~quiet(turned), WRITTEN):
        return (
            f"Near miss: {opposite[0].title} fits with the opposite sign. Check the"
            " sign of the loss, or of the column."
        )
    nearest, share = j.candidates.nearest or (None, 0)
    if nearest is None or share <= 0.02:
        return ""
    values = suspects.compute(steps, nearest).values
    misses = distance(values, steps.advantage) > 10 * (ruler.base + ruler.written)
    fitting = f"{(~misses).sum():,} of the {steps.rows:,} rows"
    near = f"Near miss: {nearest.title} fits {fitting}."
    fits_again = 1 + np.flatnonzero(misses[:-1] & ~misses[1:])
    ends_alone = np.isin(fits_again, steps.starts).all()
    if misses.any() and ends_alone and not misses[steps.starts].any():
        near += (
            " Only the last rows of each step miss. A tail is often a smaller batch, or"
            " padding: log it as a step of its own, or leave it out."
        )
    return near
