"""Explore: the timeline of a checked log, and one step's rows as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gradebook.cases.rows import MOST_ROWS, MOST_TOKENS
from gradebook.cases.table import Table
from gradebook.core.batch import Batch
from gradebook.core.differences import flips
from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.candidates.logged_steps import LoggedSteps, under
from gradebook.logs.candidates.reading import logged
from gradebook.logs.candidates.trl import read_as_trl
from gradebook.logs.judging.by_step import COLUMNS, COUNTS
from gradebook.logs.judging.fit import Ruler, distance
from gradebook.logs.judging.suspects import Suspect, cuts_by_place, fit, suspects, trace
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.judging.views import compute
from gradebook.logs.read.log import read_files
from gradebook.logs.read.sources import Source

TIMELINE = tuple(n for n in (*COLUMNS, *COUNTS) if n not in ("ties", "asks"))
"""The columns of a timeline."""

OFF = ("suspect", "other", "asks", "none fits")
"""Verdicts on steps that a person should look at."""

ROWS = 64
"""Rows that a page shows of a step, unless asked for more."""


@dataclass(frozen=True, eq=False)
class StepRows:
    """One step of a log as a bug page loads it.

    table     the rows
    settings  the convention that the log was named by
    bug       the bug that the step, or the log, is named by, or ""
    row       the row that is off most, in the table
    logged    float64 [rows] the advantages in the log, NaN for none
    correct   float64 [rows] the correct ones
    groups    the step's groups, worst first: prompt, rows, largest, flips
    note      what the table leaves out, or ""
    """

    table: Table
    settings: Settings
    bug: str
    row: int
    logged: np.ndarray
    correct: np.ndarray
    groups: pd.DataFrame
    note: str = ""

    def batch(self) -> Batch:
        """The rows as a batch."""
        return self.table.batch(self.settings)


def timeline(verdict: Verdict) -> pd.DataFrame:
    """One row a step, in the log's order: the columns of TIMELINE."""
    return verdict.frame[list(TIMELINE)]


def worst_steps(verdict: Verdict, most: int = 10) -> pd.DataFrame:
    """The steps that are furthest from the correct numbers, worst first;
    without advantages, those on which the engines would differ most."""
    frame = timeline(verdict)
    if len(verdict.what_if):
        return _would_differ(verdict, frame).head(most)
    off = frame[frame["verdict"].isin(OFF)]
    return off.sort_values(
        ["correct_residual", "flips"], ascending=False, kind="stable"
    ).head(most)


def _would_differ(verdict: Verdict, frame: pd.DataFrame) -> pd.DataFrame:
    """Steps by how much a replica would differ from the correct engine:
    the timeline, with that replica's figures. Most flips first."""
    would = verdict.what_if[verdict.what_if["rows_off"] > 0]
    worst = would.drop_duplicates("step").set_index("step")
    found = frame[frame["step"].isin(worst.index)].copy()
    own = worst.loc[found["step"]]
    for name in ("bug", "estimator", "row", "flips", "groups_affected"):
        found[name] = own[name].to_numpy()
    found["correct_residual"] = own["largest"].to_numpy()
    return found.sort_values(
        ["flips", "correct_residual"], ascending=False, kind="stable"
    )


def step_rows(
    paths: Iterable[str | Path | Source],
    verdict: Verdict,
    step: object,
    most: int = ROWS,
) -> StepRows:
    """One step's rows, read from the log again.

    Groups stand worst first, or in the log's order where strides count; at
    most `most` rows, in whole groups. Raises GradebookError where the step
    is not there.
    """
    steps = logged_step(paths, verdict, step)
    name = _bug_of(verdict, step)
    settings = _settings(steps, verdict, name)
    if verdict.reading is not None and "advantage" in steps.has:
        correct = compute(steps, verdict.reading).values
    else:
        correct = trace(steps, Suspect("", settings)).values
    other = steps.advantage
    if "advantage" not in steps.has:
        other = trace(steps, Suspect(name, settings)).values
    away = distance(correct, other)
    groups = _groups(steps, correct, other)
    order = _picked(steps, groups, name, settings, min(most, MOST_ROWS))
    table, note = _table(steps, order)
    left = steps.batch.rows - len(order)
    if left:
        note += (
            f" {left} of the step's {steps.batch.rows} rows are left out:"
            " what depends on the whole step is not as in the log."
        )
    return StepRows(
        table,
        settings,
        name,
        int(np.argmax(away[order])) if len(order) else 0,
        steps.advantage[order],
        correct[order],
        groups,
        note.strip(),
    )


def _settings(steps: LoggedSteps, verdict: Verdict, name: str) -> Settings:
    """The settings that the log was named by, with what the bug is guessed
    to have; of several, what comes nearest to the step's numbers."""
    own = verdict.engine_settings
    if not name:
        return own
    ruler = Ruler(steps)
    size = verdict.group_size
    tried = list(suspects(steps, (own,), (name,), size))
    if not tried:
        return own
    best = min(tried, key=lambda s: fit(ruler, s).residual.max())
    if not cuts_by_place(name):
        return best.settings
    stride = int(under(steps.batch, best.settings).group_size[0])
    return replace(best.settings, group_size=stride)


def logged_step(
    paths: Iterable[str | Path | Source], verdict: Verdict, step: object
) -> LoggedSteps:
    """One step's rows as they were judged. Raises GradebookError."""
    log = read_files(paths, verdict.columns)
    reading = None
    for table in log.tables():
        if reading is None:
            size = verdict.group_size if not log.columns.by_place else None
            weights = verdict.weights or None
            reading = read_as_trl(table, log.columns, weights, size)
        rows = (table["step"].astype(str) == str(step)).to_numpy()
        if rows.any():
            whole = logged(table, log.columns, reading)
            at = whole.labels.astype(str) == str(step)
            return whole.of_steps(at)
    raise GradebookError(
        key="step", expected="a step that was judged", found=shown(step, 30)
    )


def _bug_of(verdict: Verdict, step: object) -> str:
    """The bug that the step is named by, or else the log."""
    own = verdict.frame[verdict.frame["step"].astype(str) == str(step)]
    named = [one for one in own["bug"] if one]
    if not named and len(verdict.what_if):
        there = verdict.what_if["step"].astype(str) == str(step)
        would = verdict.what_if[there & (verdict.what_if["rows_off"] > 0)]
        named = would["bug"].tolist()
    return named[0] if named else verdict.bug


def _groups(steps: LoggedSteps, correct: np.ndarray, other: np.ndarray) -> pd.DataFrame:
    """The groups of one step, worst first, by how far `other`, the logged
    or the faulty advantages, is from the correct ones."""
    code = steps.batch.prompt_index.numpy()
    flip = flips(correct, other)
    largest = np.zeros(len(steps.groups.size))
    np.maximum.at(largest, code, distance(correct, other))
    found = pd.DataFrame(
        {
            "prompt": np.arange(len(largest)),
            "first": steps.groups.first,
            "rows": steps.groups.size,
            "largest": largest,
            "flips": np.bincount(code[flip], minlength=len(largest)),
        }
    )
    return found.sort_values(
        ["largest", "prompt"], ascending=[False, True]
    ).reset_index(drop=True)


def _picked(
    steps: LoggedSteps,
    groups: pd.DataFrame,
    name: str,
    settings: Settings,
    most: int,
) -> np.ndarray:
    """int64: the rows that are shown, in the order they are shown in."""
    code = steps.batch.prompt_index.numpy()
    if name and cuts_by_place(name):
        return _window(steps, groups, settings, most)
    taken: list[np.ndarray] = []
    count = 0
    for prompt in groups["prompt"]:
        rows = np.flatnonzero(code == prompt)
        if taken and count + len(rows) > most:
            break
        taken.append(rows[:most])
        count += len(rows)
    return np.concatenate(taken)


def _window(
    steps: LoggedSteps, groups: pd.DataFrame, settings: Settings, most: int
) -> np.ndarray:
    """Rows in the log's order around the worst group, from a place where a
    stride and a group both begin."""
    total = steps.batch.rows
    if total <= most:
        return np.arange(total)
    size = settings.group_size or int(groups["rows"].max())
    worst = int(groups["first"].iloc[0])
    bounds = np.append(np.sort(groups["first"].to_numpy()), total)
    starts = bounds[(bounds % size == 0) & (bounds <= worst)]
    start = int(starts.max(initial=0))
    ends = bounds[(bounds > start) & (bounds <= start + most)]
    end = int(ends.max(initial=start))
    if end <= worst:
        end = min(worst + int(groups["rows"].iloc[0]), start + MOST_ROWS)
    return np.arange(start, end)


def _table(steps: LoggedSteps, order: np.ndarray) -> tuple[Table, str]:
    """The rows as a table, and what it cannot hold."""
    b, note = steps.batch, ""
    columns: dict[str, list[Any]] = {
        "prompt": [f"p{code}" for code in b.prompt_index.numpy()[order]],
        "reward": b.reward.numpy()[order].tolist(),
    }
    if "eos" in steps.has:
        columns["eos"] = b.eos.numpy()[order].tolist()
    for name in ("steps", "kept_steps"):
        if name in steps.has:
            columns[name] = getattr(b, name).numpy()[order].tolist()
    if "length" in steps.has:
        lengths = b.tokens.numpy()[order]
        width = int(max(lengths.max(initial=1), 1))
        if width > MOST_TOKENS:
            note = (
                "Responses are longer than the table is wide: each stands as"
                " one token, or none where it was rejected."
            )
            lengths, width = np.minimum(lengths, 1), 1
        columns["mask"] = [[t < n for t in range(width)] for n in lengths.tolist()]
    rows: list[Mapping[str, Any]] = [
        dict(zip(columns, values)) for values in zip(*columns.values())
    ]
    return Table.of(rows), note
