"""Explore: the steps of a checked log, one of them as rows of a table, the smallest
failing one as a test to keep, and what each engine would compute."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from gradebook.cases.scenario import Scenario, bug, load
from gradebook.cases.state import State, start
from gradebook.cases.table import MOST_ROWS, Table
from gradebook.core.errors import refuse
from gradebook.core.formatting import DUST, counted, flips, pair
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import ESTIMATORS, Settings
from gradebook.logs.judging import numbers, suspects
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.decide import OFF
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import Ruler, distance
from gradebook.logs.judging.numbers import compute
from gradebook.logs.judging.suspects import Suspect
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.logged_steps import LoggedSteps
from gradebook.output.pytest_file import pytest_file

ROWS = 64
"""Rows that a page shows of a step, unless asked for more: eight prompts of eight, what
a person can read through. A table holds more (`table.MOST_ROWS`)."""

MOST_TOKENS = 64
"""Of a row that is opened as a batch. A log has lengths, not tokens, so all tokens of a
row are alike, and a wider table would show nothing more."""


@dataclass(frozen=True, eq=False)
class StepRows:
    """One step of a log as a bug's page loads it. The settings and the bug are those by
    which the step, or else the log, is named. `row` is the row that is farthest off;
    `logged` and `correct` are advantages, float64 [rows], NaN for none; `note` says
    what the table leaves out."""

    table: Table
    settings: Settings
    bug: str
    row: int
    logged: np.ndarray
    correct: np.ndarray
    note: str


def worst_steps(verdict: Verdict, most: int = 10) -> pd.DataFrame:
    """The steps that are furthest from the correct numbers, worst first."""
    off = verdict.frame[verdict.frame["verdict"].isin(OFF)]
    order = ["correct_residual", "flips"]
    return off.sort_values(order, ascending=False, kind="stable").head(most)


def shown_steps(verdict: Verdict) -> pd.DataFrame:
    """The verdict's frame for a person. If nothing was declared, a step that fits is
    called "matches" instead of "correct"."""
    names = {} if verdict.declared else {"correct": "matches"}
    return verdict.frame.assign(verdict=verdict.frame["verdict"].replace(names))


def step_rows(verdict: Verdict, step: object, most: int = ROWS) -> StepRows:
    """One step's rows in the log's order, with the row numbers of the verdict: at most
    `most` rows, in whole groups, beginning with the group of the worst row. Raises
    GradebookError if the step is not there."""
    j = verdict.judgement
    chosen = j.evidence.steps.labels.astype(str) == str(step) if j else np.zeros(0)
    if j is None or not chosen.any():
        raise refuse("a step that was judged", step, "step")
    whole = j.evidence.steps
    steps = whole.of_steps(chosen)
    name, settings = _bug_of(verdict, step), j.settings
    if name:  # what the bug is guessed to have, as it comes nearest to the numbers
        tried = [s for s in j.evidence.suspects if s.bug == name]
        size = j.suspect.group_size if j.suspect else None
        tried = tried or [*suspects.suspects(steps, (settings,), (name,), size)]
        ruler = Ruler(steps)
        nearest = min(tried, key=lambda s: numbers.fit(ruler, s).residual.max())
        settings = nearest.settings
    stride = 1
    if name and suspects.cuts_by_place(name):
        stride = int(steps.batch.under(settings).group_size[0])
        settings = replace(settings, group_size=stride)
    if "advantage" in steps.has:
        correct, other = j.correct[chosen[whole.step_of]], steps.advantage
    else:
        correct = compute(steps, Suspect("", settings)).values
        other = compute(steps, Suspect(name, settings)).values
    away = distance(correct, other)
    order = _shown_rows(steps, away, stride, most)
    table, note = _table(steps, order)
    if left := steps.rows - len(order):
        note += (
            f" {left} of the step's {steps.rows} rows are left out:"
            " numbers that depend on the whole step differ from the log."
        )
    row, logged = int(np.argmax(away[order])), steps.advantage[order]
    return StepRows(table, settings, name, row, logged, correct[order], note.strip())


def _bug_of(verdict: Verdict, step: object) -> str:
    """The bug by which the step is named. If something else was declared, the bug that
    the step equals. If neither exists, the log's bug."""
    judged = verdict.frame[verdict.frame["step"].astype(str) == str(step)]
    named = [bug for bug in judged["bug"] if bug]
    for asks in judged["asks"][judged["verdict"] == "other"]:
        named += asks
    if len(verdict.what_if):
        would = verdict.what_if[verdict.what_if["rows_off"] > 0]
        there = would["step"].astype(str) == str(step)
        named += [*would["bug"][there], *would["bug"]]
    return next(iter(named), verdict.bug)


def _shown_rows(
    steps: LoggedSteps, away: np.ndarray, stride: int, most: int
) -> np.ndarray:
    """int64, in the log's order: the rows to show, in whole groups from the group of
    the worst row by `away`. With a `stride` they begin at the start of a stride."""
    if steps.rows <= most:
        return np.arange(steps.rows)
    code = steps.prompt
    by_group, row = np.argsort(code, kind="stable"), np.argmax(away)
    worst, place = code[row], np.flatnonzero(by_group == row)[0]
    bounds = np.cumsum([0, *steps.groups.size])
    first, last = bounds[worst : worst + 2]
    begin = bounds[(bounds % stride == 0) & (bounds <= first)].max()
    begin = begin if last - begin <= most else max(first, place - most + 1)
    end = max(last, bounds[bounds <= begin + most].max())
    return np.sort(by_group[begin:end][:most])


def _table(steps: LoggedSteps, order: np.ndarray) -> tuple[Table, str]:
    """The rows as a table, and a note on what a table cannot hold."""
    b, note = steps.batch, ""
    columns = {
        "prompt": [f"p{code}" for code in b.prompt_index.numpy()[order]],
        "reward": b.reward.numpy()[order].tolist(),
    }
    for name in ("eos", "steps", "kept_steps"):
        if name in steps.has:
            columns[name] = getattr(b, name).numpy()[order].tolist()
    if "length" in steps.has:
        lengths = b.tokens.numpy()[order]
        width = int(max(lengths.max(initial=1), 1))
        if width > MOST_TOKENS:
            note = (
                "Responses are longer than the table is wide: each is shown as"
                " one token, or as none if it was rejected."
            )
            lengths, width = np.minimum(lengths, 1), 1
        columns |= {f"t{t + 1}": (lengths > t).tolist() for t in range(width)}
    return Table.of_columns(columns), note


def state_of(rows: StepRows, scenario: Scenario) -> State:
    """The scenario's state with these rows in it, under their settings."""
    case = start(scenario)
    return replace(case, table=rows.table, settings=rows.settings, row=rows.row)


def failing_test(verdict: Verdict) -> str:
    """A test file of the smallest step that names a bug. The test passes on a correct
    trainer and fails on this one. Raises GradebookError if no step names a bug."""
    off = verdict.frame[verdict.frame["bug"] != ""]
    if not len(off):
        raise refuse("a step that names a suspect", "none", "step")
    smallest = off.sort_values("rows", kind="stable")["step"].iloc[0]
    rows = step_rows(verdict, smallest, MOST_ROWS)
    return pytest_file(state_of(rows, load(rows.bug)), "python -m gradebook check")


def what_if(steps: LoggedSteps, declaration: Declaration) -> pd.DataFrame:
    """How far the faulty engines would differ from the correct one on these
    rows, under GRPO with the settings that were declared: one row for each bug
    that the columns allow and that can be computed, most flips first.

    Columns: bug, estimator; steps, on which they differ, of how many; rows_off,
    flips; where they differ most: step, row (counted from 0 in the step), largest
    (the difference), correct, faulty (the advantages of that row).
    """
    settings = replace(ESTIMATORS["grpo"], **declaration.settings)
    lines: dict[str, dict[str, Any]] = {}
    for suspect in suspects.suspects(
        steps, (settings,), group_size=declaration.group_size
    ):
        if suspect.bug in lines:
            continue
        faulty = compute(steps, suspect).values
        correct = compute(steps, suspect.correct).values
        if not np.isfinite(faulty + correct).all():
            continue
        away = distance(correct, faulty)
        row = int(away.argmax())
        step = steps.step_of[row]
        lines[suspect.bug] = {
            "bug": suspect.bug,
            "estimator": Computation.of(settings).title,
            "steps": np.count_nonzero(steps.worst(away) > DUST),
            "of": steps.step_count,
            "rows_off": np.count_nonzero(away > DUST),
            "flips": np.count_nonzero(flips(correct, faulty)),
            "step": steps.labels[step],
            "row": row - steps.starts[step],
            "largest": away[row],
            "correct": correct[row],
            "faulty": faulty[row],
        }
    most = itemgetter("flips", "rows_off", "largest")
    return pd.DataFrame(sorted(lines.values(), key=most, reverse=True))


def sentences(lines: pd.DataFrame) -> list[str]:
    """What each engine would compute, a sentence for each bug."""
    texts = []
    for line in lines.to_dict("records"):
        says = "both engines would give the same numbers on every step of this log."
        if line["steps"]:
            numbers = pair(line["correct"], line["faulty"])
            says = (
                f"under {line['estimator']}, the engines would differ on"
                f" {line['steps']} of {counted(line['of'], 'step')}, on"
                f" {counted(line['rows_off'], 'row')}; {counted(line['flips'], 'sign')}"
                f" would change. The largest difference is at step {line['step']},"
                f" row {line['row']}: correct {numbers[0]}, faulty {numbers[1]}."
            )
        texts.append(f"{bug(line['bug']).title}: {says}")
    return texts
