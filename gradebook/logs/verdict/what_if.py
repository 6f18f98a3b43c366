"""What each engine would compute for a log without advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gradebook.cases.record import bug
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import ESTIMATORS
from gradebook.engine.pipeline import CORRECT, run
from gradebook.logs.candidates.rollouts import Rollouts, under
from gradebook.logs.check import prepared
from gradebook.logs.fits import distance
from gradebook.logs.judging import replicas
from gradebook.logs.results import TINY, flipped

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


def what_if(
    frame: pd.DataFrame,
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    estimators: Sequence[str] = LIKELY,
) -> pd.DataFrame:
    """Where the replicas would differ from the correct engine on these
    rows: one row for each step, estimator and bug that the columns allow.

    Columns: step, estimator, bug, rows_off, flips, groups_affected,
    largest (the largest difference), row (where, counted from 0 in the
    step), correct, faulty (the advantages of that row). Most flips first
    within a step. Raises GradebookError for what cannot be read.
    """
    rollouts, _ = prepared(frame, columns, weights, group_size, None)
    return differences(rollouts, group_size, estimators)


def differences(
    rollouts: Rollouts,
    group_size: int | None = None,
    estimators: Sequence[str] = LIKELY,
) -> pd.DataFrame:
    """The same for rollouts."""
    found = []
    for estimator in estimators:
        settings = replace(ESTIMATORS[estimator], group_size=group_size)
        for name in replicas(rollouts.has):
            chosen = settings
            if name == "no_eos_outliers":
                chosen = replace(settings, mask_no_eos=True)
            batch = under(rollouts.batch, chosen)
            correct = run(CORRECT, batch).advantage.numpy()
            faulty = run(bug(name).engine, batch).advantage.numpy()
            away = distance(faulty, correct)
            worst = rollouts.worst(away)
            first = rollouts.first_at(away, worst)
            off = away > TINY
            flips = flipped(correct, faulty)
            pairs = np.unique(batch.prompt_index.numpy()[off])
            groups = np.bincount(
                rollouts.groups.step[pairs], minlength=rollouts.steps
            )
            found.append(
                pd.DataFrame(
                    {
                        "step": rollouts.labels,
                        "estimator": estimator,
                        "bug": name,
                        "rows_off": rollouts.total(off.astype("int64")),
                        "flips": rollouts.total(flips.astype("int64")),
                        "groups_affected": groups,
                        "largest": worst,
                        "row": batch.place.numpy()[first],
                        "correct": correct[first],
                        "faulty": faulty[first],
                    }
                )
            )
    if not found:
        return pd.DataFrame({name: [] for name in COLUMNS})
    table = pd.concat(found, ignore_index=True)
    order = np.lexsort(
        (-table["largest"], -table["flips"], pd.factorize(table["step"])[0])
    )
    return table.iloc[order].reset_index(drop=True)


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
        under_it = f"{line['bug']} under {line['estimator']}"
        if not line["steps"]:
            same = f"{line['bug']}: both engines would give the same numbers"
            said.append(f"{same} on every step of this log.")
            continue
        said.append(
            f"{under_it}: the engines would differ on {line['steps']} of"
            f" {line['of']} steps, {line['rows_off']} rows, {line['flips']}"
            f" of them with the other sign; most at step {line['step']}, row"
            f" {line['row']}: correct {line['correct']:+.3f}, faulty"
            f" {line['faulty']:+.3f}."
        )
    return said
