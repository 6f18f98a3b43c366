"""Views: the rows of a log as readings may see them, by which rows count, how
they are grouped, and how rewards were clipped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradebook.core.batch import codes
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.fit import Fit, Numbers, Ruler
from gradebook.logs.judging.reading import Reading
from gradebook.logs.judging.space import Rows
from gradebook.logs.logged_steps import LoggedSteps

CLIPS = (20.0, 10.0, 5.0, 1.0)
"""Reward clips, tried where a reward lies beyond them."""


def views(steps: LoggedSteps, asked: Asked) -> Iterator[Rows]:
    """The rows as readings may see them, the usual ways first."""
    counting = ["flagged"]
    if not bool(steps.batch.eos.all()):
        counting.append("ended")
    if not Rows(steps).counted.all():
        counting.append("all")
    masked = asked.declared.get("mask_no_eos")
    if masked is not None:
        counting = ["ended"] if masked else ["flagged", "all"]
    for rows in counting:
        yield Rows(steps, rows, clip=asked.reward_clip)
    for grouping, group in groupings(steps):
        for rows in counting:
            yield Rows(steps, rows, grouping, group)
    part = without_copies(steps)
    if part is not steps:
        for rows in counting:
            yield Rows(part, rows, "without copies")
    largest = float(np.abs(steps.batch.reward.numpy()).max(initial=0))
    for clip in CLIPS if asked.reward_clip is None else ():
        if largest > clip:
            for rows in counting:
                yield Rows(steps, rows, clip=clip)


def groupings(steps: LoggedSteps) -> Iterator[tuple[str, np.ndarray]]:
    """Other groups than rows that share step and prompt: draws, where a
    prompt was drawn twice, and texts. int64 [R]"""
    prompt, text = steps.batch.prompt_index.numpy(), steps.batch.text.numpy()
    new = np.diff(prompt, prepend=-1) != 0
    new[steps.starts] = True
    run = np.cumsum(new) - 1
    length = np.bincount(run)
    place = np.arange(len(run)) - np.flatnonzero(new)[run]
    sizes = np.bincount(length).argmax(), np.gcd.reduce(length), length.min()
    labels = {"text": _pairs(steps.step_of, text)}
    if (steps.groups.size > 1).any():
        labels = {}  # an id that names no row names prompts better than texts
    labels |= {"id and text": _pairs(prompt, text), "runs": run}
    labels |= {f"draws of {n}": _pairs(run, place // n) for n in sizes if n > 1}
    seen = {prompt.tobytes()}
    for name, group in labels.items():
        if group.tobytes() not in seen:
            seen.add(group.tobytes())
            yield name, group


def _pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers 0.. of the pairs, in order of appearance. int64 [R]"""
    return codes(first * (int(second.max(initial=0)) + 1) + second)


def without_copies(steps: LoggedSteps) -> LoggedSteps:
    """The steps without rows at their end that repeat their first row, or their
    first rows in order, with reward, tokens and advantage."""
    b = steps.batch
    columns = b.prompt_index.numpy(), b.reward.numpy(), b.tokens.numpy()
    cells = np.stack([*columns, steps.advantage], axis=1)
    keep = [
        np.arange(len(rows)) < len(rows) - _copies(rows)
        for rows in np.split(cells, steps.starts[1:])
    ]
    kept = np.concatenate(keep)
    return steps if kept.all() else steps.of_rows(np.flatnonzero(kept))


def _copies(rows: np.ndarray) -> int:
    last = len(rows)
    while last > 2 and (rows[last - 1] == rows[0]).all():
        last -= 1
    if last < len(rows):
        return len(rows) - last
    several = range(len(rows) // 2, 1, -1)
    return next((n for n in several if (rows[-n:] == rows[:n]).all()), 0)


def rows_of(steps: LoggedSteps, reading: Reading) -> Rows:
    """The rows as the reading sees them."""
    if reading.grouping == "without copies":
        steps = without_copies(steps)
    group = None
    if reading.grouping not in ("prompt", "without copies"):
        group = dict(groupings(steps)).get(reading.grouping)
    return Rows(steps, reading.rows, reading.grouping, group, reading.clip)


def fit(ruler: Ruler, reading: Reading) -> Fit:
    """How a reading lies with the log."""
    rows = rows_of(ruler.steps, reading)
    return ruler.on(rows.steps).fit(rows.compute(reading))


def compute(steps: LoggedSteps, reading: Reading) -> Numbers:
    """A reading's advantages on logged steps."""
    return rows_of(steps, reading).compute(reading)
