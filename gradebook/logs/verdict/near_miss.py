"""Near misses: which rows keep a log from fitting, where nothing fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.conventions import Convention, conventions
from gradebook.logs.candidates.fit import distance
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.trials import advantages
from gradebook.logs.candidates.wording import title
from gradebook.logs.read.sources import Source
from gradebook.logs.verdict.explore import logged_step
from gradebook.logs.verdict.verdict import Verdict

STEPS = 3
"""So many of the steps that nothing fits are looked at."""

CLOSE = 1e-4
"""A row fits when it is this close to its value, relative above 1."""


@dataclass(frozen=True)
class NearMiss:
    """What keeps a log from fitting.

    found  which rows miss which computation
    do     what that often means, and what to do
    """

    found: str
    do: str


@dataclass(frozen=True, eq=False)
class _Step:
    """One step beside the correct advantages under one convention.

    values  float64 [R] the correct advantages
    misses  bool [R] the logged advantage is another
    """

    log: LoggedSteps
    values: np.ndarray
    misses: np.ndarray

    @property
    def group(self) -> np.ndarray:
        """int64 [R] the number of the row's group."""
        return self.log.batch.prompt_index.numpy()

    @property
    def group_size(self) -> np.ndarray:
        """int64 [R] how many rows the row's group has."""
        return self.log.groups.size[self.group]

    @property
    def largest(self) -> float:
        """The largest size of a logged advantage."""
        return float(np.abs(self.log.advantage).max(initial=0))


def near_miss(
    paths: Iterable[str | Path | Source], verdict: Verdict
) -> NearMiss | None:
    """Which rows miss the nearest correct computation, over the first steps
    that nothing fits. None where nothing comes near, or all steps fit.

    Raises GradebookError where the log cannot be read again.
    """
    frame = verdict.frame
    if verdict.verdict != "none fits" or not len(frame):
        return None
    off = frame[frame["verdict"] == "none fits"]["step"]
    given = list(paths)
    logs = [logged_step(given, verdict, step) for step in off[:STEPS]]
    if not logs:
        return None
    known = []
    for convention in conventions():
        with suppress(GradebookError):
            steps = [_step(log, convention) for log in logs]
            known.append((title(convention.estimator), steps))
    if not known:
        return None
    named, steps = min(known, key=lambda one: _missing(one[1]))
    rows = sum(log.rows for log in logs)
    misses = _missing(steps)
    if 2 * misses <= rows:
        where, do = _which(steps)
        said = f"Near miss: {named} fits {rows - misses} of the {rows} rows"
        return NearMiss(f"{said} of the first steps that miss. {where}", do)
    altered = (_altered(named, steps) for named, steps in known)
    return next(filter(None, altered), None)


def _missing(steps: Sequence[_Step]) -> int:
    return sum(int(step.misses.sum()) for step in steps)


def _step(log: LoggedSteps, convention: Convention) -> _Step:
    values = advantages(log, Candidate("", convention))
    allowed = CLOSE * np.maximum(1, np.abs(values))
    return _Step(log, values, distance(values, log.advantage) > allowed)


Rows = Callable[[_Step], np.ndarray]

KINDS: tuple[tuple[Rows, str, str], ...] = (
    (
        lambda s: ~s.log.batch.eos.numpy(),
        "Only rows without EOS miss.",
        "The trainer treats unfinished rows in a way of its own: find where"
        " it masks them, or drops them from a mean.",
    ),
    (
        lambda s: s.log.batch.tokens.numpy() == 0,
        "Only rows whose response mask is empty miss.",
        "The trainer treats rejected rows in a way of its own: find where it"
        " drops them from a mean.",
    ),
    (
        lambda s: s.group_size == 1,
        "Only rows that are alone in their group miss.",
        "Find what the trainer gives a group of one row: 0, its reward, or"
        " something else.",
    ),
    (
        lambda s: s.group_size < s.group_size.max(),
        "Only rows of groups that are smaller than the others miss.",
        "Find how the trainer cuts a step into groups when rows are missing.",
    ),
    (
        lambda s: np.abs(s.values) > (1 + CLOSE) * s.largest,
        "Only the largest advantages miss: the log clips them.",
        "Find the clip in the trainer's configuration. If it is wanted, the"
        " other rows are as they should be.",
    ),
    (
        lambda s: np.logical_or.accumulate(s.misses),
        "Only the last rows of each step miss: a tail.",
        "A tail is often a last, smaller batch, or padding, that the trainer"
        " computes apart. Log it as a step of its own, or leave it out, and"
        " check again.",
    ),
    (
        lambda s: np.logical_or.accumulate(s.misses[::-1])[::-1],
        "Only the first rows of each step miss.",
        "They may belong to the step before. Look at how the trainer numbers"
        " its steps.",
    ),
    (
        lambda s: np.bincount(s.group, ~s.misses)[s.group] == 0,
        "Some groups miss as a whole, and the others fit.",
        "Open the step below: its groups stand worst first. Look for what"
        " these prompts have in common.",
    ),
)
"""Rows that may miss together, in a sentence, with what to do. The first
kind that holds in every step is named."""


def _which(steps: Sequence[_Step]) -> tuple[str, str]:
    for rows, said, do in KINDS:
        missing = [step for step in steps if step.misses.any()]
        if missing and all(_holds(rows, step) for step in missing):
            return said, do
    return (
        "The rows that miss have nothing in common that the columns show.",
        "Open the step below and look at its worst group.",
    )


def _holds(rows: Rows, step: _Step) -> bool:
    """All rows that miss are of this kind, and most of this kind miss."""
    found = rows(step)
    mixed = bool(found.any()) and not found.all()
    inside = not bool((step.misses & ~found).any())
    return mixed and inside and 2 * step.misses[found].sum() > found.sum()


def _altered(named: str, steps: Sequence[_Step]) -> NearMiss | None:
    """Every row misses, but by one factor, or one distance a step."""
    factors = [_factor(step) for step in steps]
    if all(f is not None for f in factors):
        least, most = min(factors), max(factors)  # type: ignore[type-var]
        if abs(most - least) > CLOSE * abs(most):  # type: ignore
            return NearMiss(
                f"Near miss: the log is {named} times a factor, and each"
                f" step has another one: {least:.4g} to {most:.4g}.",
                "A statistic of the whole step divides the advantages once"
                " more: look for a second normalization.",
            )
        if most == -1:
            return NearMiss(
                f"Near miss: the log is {named} with the opposite sign.",
                "Look for a cost where a reward is expected.",
            )
        return NearMiss(
            f"Near miss: the log is {named} times {most:.4g} on every row.",
            "Look for a coefficient on the advantage or the reward, or log"
            " the advantage before it is applied.",
        )
    if all(_shifted(step) for step in steps):
        return NearMiss(
            f"Near miss: the log is {named} plus one number a step.",
            "Something is subtracted once more: look for a KL penalty in"
            " the reward, or a second centring.",
        )
    return None


def _factor(step: _Step) -> float | None:
    """The one number that the correct advantages are multiplied with."""
    large = np.abs(step.values) > CLOSE
    if not large.any():
        return None
    factor = float(np.median(step.log.advantage[large] / step.values[large]))
    away = distance(step.values * factor, step.log.advantage)
    near = bool((away <= CLOSE * np.maximum(1, np.abs(factor))).all())
    if not near or abs(factor) < CLOSE:
        return None
    whole = round(factor)
    return float(whole) if abs(factor - whole) < CLOSE else factor


def _shifted(step: _Step) -> bool:
    """One number is added to all correct advantages of the step."""
    added = step.log.advantage - step.values
    return bool(np.isfinite(added).all() and np.ptp(added) <= CLOSE)
