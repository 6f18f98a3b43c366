"""What each engine would compute for a log without advantages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradebook.cases.scenario import bug
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import DUST, counted, signed
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import ESTIMATORS
from gradebook.logs.judging.fit import apart, distance
from gradebook.logs.judging.reading import Asked, Reading
from gradebook.logs.judging.suspects import Suspect, suspects, trace
from gradebook.logs.logged_steps import LoggedSteps


def what_if(steps: LoggedSteps, asked: Asked) -> pd.DataFrame:
    """Where the faulty engines would differ from the correct one on these
    rows, under GRPO with the settings that were declared: one row for each bug
    that the columns allow and each step, where any can be computed.

    Columns: step, estimator, bug, rows_off, flips, groups_affected,
    largest (the largest difference), row (where, counted from 0 in the
    step), correct, faulty (the advantages of that row). Most flips first
    within a step.
    """
    if not asked.by_engine:
        return pd.DataFrame()
    settings = replace(ESTIMATORS["grpo"], **asked.declared)
    first: dict[str, Suspect] = {}
    for suspect in suspects(steps, (settings,), group_size=asked.group_size):
        first.setdefault(suspect.bug, suspect)
    parts = []
    for name, suspect in first.items():
        try:
            faulty = trace(steps, suspect).values
            correct = trace(steps, suspect.correct).values
        except GradebookError:
            continue
        off = distance(correct, faulty) > DUST
        columns: Mapping[str, Any] = apart(steps, correct, faulty, off)
        row = columns["row"] + steps.starts
        part = pd.DataFrame({"step": steps.labels, "bug": name, **columns})
        part = part.assign(correct=correct[row], faulty=faulty[row], place=part.index)
        parts.append(part.assign(rows_off=steps.total(off)))
    if not parts:
        return pd.DataFrame()
    order = {"place": True, "flips": False, "largest": False}
    lines = pd.concat(parts).sort_values(
        [*order], ascending=[*order.values()], kind="stable"
    )
    lines["estimator"] = Reading.of(settings).title
    return lines.drop(columns="place").reset_index(drop=True)


def by_bug(lines: pd.DataFrame) -> pd.DataFrame:
    """The same summed over the steps: one row for each bug, most flips first.
    `steps` says on how many of `of` the engines differ; step, row, correct and
    faulty are those of the largest difference."""
    if not len(lines):
        return pd.DataFrame({"bug": [], "steps": []})
    each = lines.assign(off=lines["rows_off"] > 0).groupby("bug", sort=False)
    table = lines.loc[each["largest"].idxmax()].set_index("bug")
    table[["rows_off", "flips"]] = each[["rows_off", "flips"]].sum()
    table = table.assign(steps=each["off"].sum(), of=each["off"].size())
    order = ["flips", "rows_off"]
    return table.sort_values(order, ascending=False, kind="stable").reset_index()


def sentences(lines: pd.DataFrame) -> list[str]:
    """What each engine would compute, a sentence for each bug."""
    texts = []
    for _, line in by_bug(lines).iterrows():
        name = bug(line["bug"]).title
        if not line["steps"]:
            same = f"{name}: both engines would give the same numbers"
            texts.append(f"{same} on every step of this log.")
            continue
        texts.append(
            f"{name} under {line['estimator']}: the engines would differ on"
            f" {line['steps']} of {counted(line['of'], 'step')}, on"
            f" {counted(line['rows_off'], 'row')}, {line['flips'] or 'none'} of them"
            f" with the other sign. They differ most at step {line['step']}, row"
            f" {line['row']}: correct {signed(line['correct'])}, faulty"
            f" {signed(line['faulty'])}."
        )
    return texts
