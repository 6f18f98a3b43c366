"""What each engine would compute for a log without advantages."""

from __future__ import annotations

import numpy as np

from gradebook.cases.record import bug
from gradebook.core.differences import DUST, flips
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import ESTIMATORS
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.suspects import Suspect, suspects, trace

TITLES = {"grpo": "GRPO", "dr_grpo": "Dr. GRPO", "rloo": "RLOO"}
"""The estimators that are tried, as people write them."""
LIKELY = tuple(TITLES)

COLUMNS = (
    "step",
    "estimator",
    "bug",
    "rows_off",
    "flips",
    "groups_affected",
    "largest",
    "row",
    "correct",
    "faulty",
)


def what_if(steps: LoggedSteps, group_size: int | None = None) -> pd.DataFrame:
    """Where the faulty engines would differ from the correct one on these
    rows: one row for each step, estimator and bug that the columns allow.

    Columns: step, estimator, bug, rows_off, flips, groups_affected,
    largest (the largest difference), row (where, counted from 0 in the
    step), correct, faulty (the advantages of that row). Most flips first
    within a step.
    """
    first: dict[tuple[str, str], Suspect] = {}
    for name in LIKELY:
        for one in suspects(steps, (ESTIMATORS[name],), group_size=group_size):
            first.setdefault((name, one.bug), one)
    found = []
    for (name, _), suspect in first.items():
        part = _difference(steps, name, suspect)
        if part is not None:
            found.append(part)
    if not found:
        return pd.DataFrame({name: [] for name in COLUMNS})
    lines = pd.concat(found, ignore_index=True)
    order = np.lexsort(
        (-lines["largest"], -lines["flips"], pd.factorize(lines["step"])[0])
    )
    return lines.iloc[order].reset_index(drop=True)


def _difference(
    steps: LoggedSteps, estimator: str, suspect: Suspect
) -> pd.DataFrame | None:
    """Where one suspect would differ; None where it cannot be computed."""
    try:
        faulty = trace(steps, suspect).values
        correct = trace(steps, suspect.correct).values
    except GradebookError:
        return None
    away = np.abs(faulty - correct)
    worst = steps.worst(away)
    worst_row = steps.first_at(away, worst)
    off = away > DUST
    affected = np.zeros(len(steps.groups.size), dtype=bool)
    affected[steps.batch.prompt_index.numpy()[off]] = True
    touched = np.bincount(steps.groups.step, affected, minlength=steps.step_count)
    return pd.DataFrame(
        {
            "step": steps.labels,
            "estimator": estimator,
            "bug": suspect.bug,
            "rows_off": steps.total(off),
            "flips": steps.total(flips(correct, faulty)),
            "groups_affected": touched.astype("int64"),
            "largest": worst,
            "row": worst_row - steps.starts,
            "correct": correct[worst_row],
            "faulty": faulty[worst_row],
        }
    )[list(COLUMNS)]


def by_bug(found: pd.DataFrame) -> pd.DataFrame:
    """The same summed over the steps: one row for each bug and estimator,
    most flips first. `steps` says on how many the engines differ; step,
    row, correct and faulty are those of the largest difference."""
    if not len(found):
        return found.assign(steps=[])
    each = found.assign(off=found["rows_off"] > 0).groupby(
        ["bug", "estimator"], sort=False
    )
    table = each.agg(
        steps=("off", "sum"),
        of=("off", "size"),
        rows_off=("rows_off", "sum"),
        flips=("flips", "sum"),
        largest=("largest", "max"),
    ).reset_index()
    worst = found.loc[each["largest"].idxmax()].reset_index(drop=True)
    for name in ("step", "row", "correct", "faulty"):
        table[name] = worst[name]
    return table.sort_values(
        ["flips", "rows_off"], ascending=False, kind="stable"
    ).reset_index(drop=True)


def sentences(found: pd.DataFrame) -> list[str]:
    """What each engine would compute, a sentence for each bug: the
    estimator under which it would flip most."""
    said = []
    for _, line in by_bug(found).drop_duplicates("bug").iterrows():
        name = bug(line["bug"]).title
        if not line["steps"]:
            same = f"{name}: both engines would give the same numbers"
            said.append(f"{same} on every step of this log.")
            continue
        flips = int(line["flips"])
        steps = "step" if line["of"] == 1 else "steps"
        rows = "1 row" if line["rows_off"] == 1 else f"{line['rows_off']} rows"
        said.append(
            f"{name} under {TITLES[line['estimator']]}: the engines would"
            f" differ on {line['steps']} of {line['of']} {steps}, on {rows},"
            f" {flips or 'none'} of them with the other sign. They differ"
            f" most at step {line['step']}, row {line['row']}: correct"
            f" {line['correct']:+.3f}, faulty {line['faulty']:+.3f}."
        )
    return said
