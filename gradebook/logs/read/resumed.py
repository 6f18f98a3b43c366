"""Resumed: steps that stand twice in a log, since a run was started again."""

from __future__ import annotations

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.canonical import is_unknown

WHOLE = 0.75
"""A step that stands again has at least this share of the rows of the steps
that stand once. One that is cut in two has half of them."""


def told_apart(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The canonical table of a whole log, and how many of its steps stand
    again, as after a resumed run. Those are renamed, so that each time is a
    step of its own: "4", then "4 (again)".

    A step also stands in several places where its rows were written in
    pieces, by several ranks for example. So the log must go from step to
    step, start again at a step after its first one, and have as many rows
    of a step each time as of the steps that stand once. Otherwise the
    table is as it was.
    """
    if "step" not in table or not len(table):
        return table, 0
    if is_unknown(table["step"].to_numpy()).any():
        return table, 0
    code = pd.factorize(table["step"], use_na_sentinel=False)[0]
    head = np.flatnonzero(np.diff(code, prepend=-1))
    step, rows = code[head], np.diff(np.append(head, len(code)))
    time = pd.Series(step).groupby(step).cumcount().to_numpy()
    again = np.isin(step, step[time > 0])
    back = np.diff(step, prepend=-1) < 0
    if not again.any() or again.all():
        return table, 0
    in_order = (np.diff(step, prepend=-1) <= 1).all()
    usual = np.median(rows[~again])
    if not in_order or (step[back] == 0).any() or len(step) == len(code):
        return table, 0
    if np.median(rows[again]) < WHOLE * usual or _by_rank(table, code):
        return table, 0
    ends = np.array(["", " (again)"], dtype=object)
    names = table["step"].astype(str).to_numpy(dtype=object)
    times = np.repeat(time, rows)
    late = times > 1
    names = names + ends[np.minimum(times, 1)]
    names[late] = [f"{n} {t}" for n, t in zip(names[late], times[late])]
    return table.assign(step=names), len(np.unique(step[time > 0]))


def _by_rank(table: pd.DataFrame, code: np.ndarray) -> bool:
    """No rank stands in two places of one step: each wrote its piece."""
    if "rank" not in table:
        return False
    rank = pd.factorize(table["rank"])[0]
    new = (np.diff(code, prepend=-1) != 0) | (np.diff(rank, prepend=-1) != 0)
    return (
        not pd.DataFrame({"s": code[new], "r": rank[new]}).duplicated().any()
    )
