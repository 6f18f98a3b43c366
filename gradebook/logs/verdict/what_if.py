"""What each engine would compute for a log without advantages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradebook.cases.record import bug
from gradebook.core.differences import DUST, flips
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.candidates import (
    Candidate,
    Evidence,
    faulty_ones,
    suggested,
)
from gradebook.logs.candidates.conventions import conventions
from gradebook.logs.candidates.fit import distance
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.trials import advantages
from gradebook.logs.candidates.wording import title

LIKELY = ("grpo", "dr_grpo", "rloo")
"""The estimators that are tried."""

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
    given = () if group_size is None else (("group_size", group_size),)
    sizes = suggested(steps.groups.size)
    seen = Evidence(steps.has, False, (), sizes, given)
    table = tuple(
        next(c for c in conventions() if c.estimator == name)
        for name in LIKELY
    )
    found = []
    for suspect in _first_of_each(faulty_ones(table, seen, likely=True)):
        part = _difference(steps, suspect)
        if part is not None:
            found.append(part)
    if not found:
        return pd.DataFrame({name: [] for name in COLUMNS})
    lines = pd.concat(found, ignore_index=True)
    order = np.lexsort(
        (-lines["largest"], -lines["flips"], pd.factorize(lines["step"])[0])
    )
    return lines.iloc[order].reset_index(drop=True)


def _first_of_each(suspects: Iterator[Candidate]) -> list[Candidate]:
    """The first candidate of each bug and estimator."""
    found: dict[tuple[str, str], Candidate] = {}
    for suspect in suspects:
        found.setdefault((suspect.estimator, suspect.bug), suspect)
    return sorted(found.values(), key=lambda c: LIKELY.index(c.estimator))


def _difference(steps: LoggedSteps, suspect: Candidate) -> pd.DataFrame | None:
    """Where one suspect would differ; None where it cannot be computed."""
    try:
        faulty = advantages(steps, suspect)
        correct = advantages(steps, suspect.correct)
    except GradebookError:
        return None
    away = distance(faulty, correct)
    worst = steps.worst(away)
    first = steps.first_at(away, worst)
    off = away > DUST
    prompts = np.unique(steps.batch.prompt_index.numpy()[off])
    groups = np.bincount(
        steps.groups.step[prompts], minlength=steps.step_count
    )
    return pd.DataFrame(
        {
            "step": steps.labels,
            "estimator": suspect.estimator,
            "bug": suspect.bug,
            "rows_off": steps.total(off),
            "flips": steps.total(flips(correct, faulty)),
            "groups_affected": groups,
            "largest": worst,
            "row": steps.batch.place.numpy()[first],
            "correct": correct[first],
            "faulty": faulty[first],
        }
    )


def by_bug(found: pd.DataFrame) -> pd.DataFrame:
    """The same summed over the steps: one row for each bug and estimator,
    most flips first. `steps` says on how many the engines differ; step,
    row, correct and faulty are those of the largest difference."""
    if not len(found):
        return found.assign(steps=[])
    lines = []
    for (name, estimator), part in found.groupby(
        ["bug", "estimator"], sort=False
    ):
        worst = part.loc[part["largest"].idxmax()]
        lines.append(
            {
                "bug": name,
                "estimator": estimator,
                "steps": int((part["rows_off"] > 0).sum()),
                "of": len(part),
                "rows_off": int(part["rows_off"].sum()),
                "flips": int(part["flips"].sum()),
                "largest": float(worst["largest"]),
                "step": worst["step"],
                "row": int(worst["row"]),
                "correct": float(worst["correct"]),
                "faulty": float(worst["faulty"]),
            }
        )
    table = pd.DataFrame(lines)
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
            f"{name} under {title(line['estimator'])}: the engines would"
            f" differ on {line['steps']} of {line['of']} {steps}, on {rows},"
            f" {flips or 'none'} of them with the other sign. They differ"
            f" most at step {line['step']}, row {line['row']}: correct"
            f" {line['correct']:+.3f}, faulty {line['faulty']:+.3f}."
        )
    return said
