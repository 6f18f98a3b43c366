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
    pieces, by several ranks for example. Each place is the whole step where it
    has as many rows as the steps that stand once, and either the same prompts
    each time, or the log goes back and on again, but not to its first step.
    Where no step stands once, the places have to be equal row for row: the
    same file was given twice.
    """
    if "step" not in table or not len(table):
        return table, 0
    if is_unknown(table["step"].to_numpy()).any():
        return table, 0
    code = pd.factorize(table["step"], use_na_sentinel=False)[0]
    prompt = table["prompt"].to_numpy() if "prompt" in table else code
    head = np.flatnonzero(np.diff(code, prepend=-1))
    head = _with_twins(prompt, head)
    step, rows = code[head], np.diff(np.append(head, len(code)))
    time = pd.Series(step).groupby(step).cumcount().to_numpy()
    again = np.isin(step, step[time > 0])
    if not again.any() or (rows == 1).all() or _by_rank(table, code, head):
        return table, 0
    if again.all():
        marks = pd.util.hash_pandas_object(table.drop(columns="step"), index=False)
    else:
        marks = pd.Series(pd.util.hash_array(prompt))
    total = pd.Series(np.add.reduceat(marks.to_numpy(), head))
    whole = bool((total == total.groupby(step).transform("first")).all())
    if not again.all():
        change = np.diff(step, prepend=-1)
        back = (change <= 1).all() and not (step[change < 0] == 0).any()
        usual = np.median(rows[~again])
        whole = (whole or bool(back)) and np.median(rows[again]) >= WHOLE * usual
    if not whole:
        return table, 0
    ends = ["", " (again)", *(f" (again {at})" for at in range(2, time.max() + 1))]
    names = table["step"].astype(str).to_numpy(dtype=object)
    names = names + np.repeat(np.array(ends, dtype=object)[time], rows)
    return table.assign(step=names), len(np.unique(step[time > 0]))


def _with_twins(prompt: np.ndarray, head: np.ndarray) -> np.ndarray:
    """The first rows of the stretches of one step, int64, with those of
    steps that directly follow themselves: such a stretch has twice the usual
    rows, its halves have the same prompts in the same order, several, and a
    half has as many rows of a prompt as the other steps. One step whose
    prompts are interleaved has fewer of each in a half."""
    rows = np.diff(np.append(head, len(prompt)))
    twice = np.flatnonzero((rows == 2 * np.median(rows)) & (rows % 2 == 0))
    if not len(twice):
        return head
    stretches = np.split(prompt, head[1:])
    usual = np.median([_largest(stretch) for stretch in stretches])
    twins = [*head.tolist()]
    for at in twice:
        first, second = np.split(stretches[at], 2)
        several = len(first) > _largest(first) == usual > 1
        if several and (first == second).all():
            twins.append(head[at] + len(first))
    return np.sort(twins)


def _largest(prompt: np.ndarray) -> int:
    """The most rows that any prompt has."""
    return int(np.unique(prompt, return_counts=True)[1].max())


def _by_rank(table: pd.DataFrame, code: np.ndarray, head: np.ndarray) -> bool:
    """No rank stands in two places of one step: each wrote its piece."""
    if "rank" not in table:
        return False
    rank = pd.factorize(table["rank"])[0]
    new = np.diff(rank, prepend=-2) != 0
    new[head] = True
    return not pd.DataFrame({"s": code[new], "r": rank[new]}).duplicated().any()
