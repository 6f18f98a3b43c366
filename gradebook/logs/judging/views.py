"""Views: the rows of a log as readings may see them, by which rows count, how
they are grouped, and how rewards were clipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from gradebook.core.tensors import codes
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import Fit, Ruler
from gradebook.logs.judging.reading import Reading
from gradebook.logs.judging.space import (
    EPS,
    EPS_PLACES,
    Computed,
    Rows,
)

CLIPS = (20.0, 10.0, 5.0, 1.0)
"""Reward clips, tried where a reward lies beyond them."""


def views(steps: LoggedSteps, asked: Asked) -> Iterator[Rows]:
    """The rows as readings may see them: which rows count, how they are
    grouped, how rewards were clipped; the usual ways first."""
    counting = rows_that_count(steps, asked.declared)
    eps = asked.declared.get("eps")
    choices = EPS_PLACES if eps in (None, *EPS) else (*EPS_PLACES, (eps, "after"))
    seen = partial(Rows, choices=choices)
    for rows in counting:
        yield seen(steps, rows, clip=asked.reward_clip)
    for grouping, group in groupings(steps):
        for rows in counting:
            yield seen(steps, rows, grouping, group)
    part = without_copies(steps)
    if part is not None:
        for rows in counting:
            yield seen(part, rows, "without copies")
    largest = float(np.abs(steps.batch.reward.numpy()).max(initial=0))
    for clip in CLIPS:
        if largest > clip and asked.reward_clip is None:
            for rows in counting:
                yield seen(steps, rows, clip=clip)


def rows_that_count(steps: LoggedSteps, declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of ROWS are different on these rows."""
    if "mask_no_eos" in declared:
        first = "ended" if declared["mask_no_eos"] else "flagged"
        return (first, "all") if not declared["mask_no_eos"] else (first,)
    names = ["flagged"]
    plain = Rows(steps)
    if not bool(steps.batch.eos.all()):
        names.append("ended")
    if not plain.counted.all():
        names.append("all")
    return tuple(names)


def groupings(steps: LoggedSteps) -> Iterator[tuple[str, np.ndarray]]:
    """Other groups than rows that share step and prompt: draws, where a
    prompt was drawn twice, and texts. int64 [R]"""
    b = steps.batch
    prompt, text = b.prompt_index.numpy(), b.text.numpy()
    seen = {prompt.tobytes()}
    by_row = bool((steps.groups.size == 1).all())
    for name, labels in (
        *((("text", _codes(steps.step_of, text)),) if by_row else ()),
        ("id and text", _codes(prompt, text)),
        *_draws(steps, prompt),
    ):
        if labels.tobytes() not in seen:
            seen.add(labels.tobytes())
            yield name, labels


def _codes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers 0.. of the pairs, in order of appearance. int64 [R]"""
    return codes(first * (int(second.max(initial=0)) + 1) + second)


def _draws(steps: LoggedSteps, prompt: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Runs of one prompt; and these cut at the commonest and the smallest
    size of a run."""
    new = np.diff(prompt, prepend=-1) != 0
    new[steps.starts] = True
    run = np.cumsum(new) - 1
    yield "runs", run
    length = np.bincount(run)
    place = np.arange(len(run)) - np.flatnonzero(new)[run]
    sizes = np.bincount(length).argmax(), np.gcd.reduce(length), length.min()
    for size in dict.fromkeys(int(n) for n in sizes):
        if size > 1:
            yield f"draws of {size}", _codes(run, place // size)


def without_copies(steps: LoggedSteps) -> LoggedSteps | None:
    """The steps without rows at their end that repeat a row of theirs with
    its reward, tokens and advantage; none where there are no such."""
    b = steps.batch
    keys = np.stack(
        [
            b.prompt_index.numpy().astype(float),
            b.reward.numpy().astype(float),
            b.tokens.numpy().astype(float),
            steps.advantage,
        ]
    )
    keep = np.ones(steps.rows, dtype=bool)
    ends = np.append(steps.starts[1:], steps.rows)
    for first, end in zip(steps.starts, ends):
        rows = keys[:, first:end]
        last = end - first
        while last > 2 and (rows[:, last - 1] == rows[:, 0]).all():
            last -= 1
        wide = 1
        if last == end - first:  # or several rows, in their order
            for many in range(2, last // 2 + 1):
                if (rows[:, -many:] == rows[:, :many]).all():
                    wide, last = many, end - first - many
        if end - first - last >= wide and last < end - first:
            keep[first + last : end] = False
    return None if keep.all() else steps.of_rows(np.flatnonzero(keep))


def rows_of(steps: LoggedSteps, reading: Reading) -> Rows:
    """The rows as the reading sees them."""
    if reading.grouping == "without copies":
        steps = without_copies(steps) or steps
        return Rows(steps, reading.rows, reading.grouping, clip=reading.clip)
    group = None
    if reading.grouping != "prompt":
        same = [g for n, g in groupings(steps) if n == reading.grouping]
        group = same[0] if same else None
    return Rows(steps, reading.rows, reading.grouping, group, reading.clip)


def fit(ruler: Ruler, reading: Reading) -> Fit:
    """How a reading lies with the log."""
    rows = rows_of(ruler.steps, reading)
    return ruler.on(rows.steps).fit(rows.compute(reading))


def compute(steps: LoggedSteps, reading: Reading) -> Computed:
    """A reading's advantages on logged steps."""
    return rows_of(steps, reading).compute(reading)
