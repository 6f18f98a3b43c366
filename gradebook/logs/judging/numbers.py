"""Numbers: what a computation, or the engine of a bug, gives on the rows of a log, and
how that compares with what was logged."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gradebook.cases.scenario import bug
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.fit import Fit, Numbers, Ruler
from gradebook.logs.judging.space import EngineRuns
from gradebook.logs.judging.suspects import OWN, ZERO, Candidate, Suspect
from gradebook.logs.logged_steps import LoggedSteps


def compute(steps: LoggedSteps, candidate: Candidate) -> Numbers:
    """A computation's numbers, or one plain run of the suspect's engine, of the
    correct one without a bug. NaN on steps that it cannot compute."""
    if isinstance(candidate, Computation):
        c = candidate
        return EngineRuns(steps, c.view, c.ended, c.clip).compute(c)
    suspect = candidate
    engine = bug(suspect.bug).engine if suspect.bug else CORRECT
    engine = replace(engine, trained=lambda batch, score, counted, group: counted)
    if suspect.tail == OWN:
        engine = replace(engine, group=_with_tail(engine.group))
    try:
        traced = run(engine, steps.batch.under(suspect.settings))
    except GradebookError as error:
        numbers = np.full((4, steps.rows), np.nan)
        refused = [True] * steps.step_count if error.steps is None else error.steps
        computed = ~np.asarray(refused)
        if computed.any():
            part = compute(steps.of_steps(computed), suspect)
            rows = part.values, part.baseline, part.scale, part.group
            numbers[:, computed[steps.step_of]] = rows
        return Numbers(*numbers)
    columns = traced.advantage, traced.baseline, traced.scale
    values, baseline, scale = (column.double().numpy() for column in columns)
    group = traced.group.numpy()
    if suspect.tail == ZERO:
        values = np.where(group < 0, 0.0, values)
    return Numbers(values, baseline, scale, group)


def _with_tail(group: Callable[[Batch], Tensor]) -> Callable[[Batch], Tensor]:
    """The stage `group`, with a group for the rows of a step that it puts in none."""

    def with_tail(batch: Batch) -> Tensor:
        of = group(batch)
        tail = int(of.max()) + 1 + batch.step_index
        return torch.where(of < 0, tail, of)

    return with_tail


def beyond(ruler: Ruler, candidate: Candidate) -> np.ndarray:
    """float64 [S] how many times further than rounding allows the worst row of each
    step is; infinite on steps that it cannot compute."""
    parts = map(ruler.of_steps, ruler.steps.parts())
    away = [part.beyond(compute(part.steps, candidate)) for part in parts]
    return np.nan_to_num(np.concatenate(away), nan=np.inf)


def fit(ruler: Ruler, candidate: Candidate) -> Fit:
    """How it compares with the log; steps that it cannot compute do not fit."""
    parts = map(ruler.of_steps, ruler.steps.parts())
    fits = [vars(part.fit(compute(part.steps, candidate))) for part in parts]
    return Fit(**{name: np.concatenate([f[name] for f in fits]) for name in fits[0]})


def advantages(steps: LoggedSteps, candidate: Candidate) -> np.ndarray:
    """Its advantage of each row, NaN if it cannot be computed. float64 [R]"""
    parts = map(steps.of_steps, steps.parts())
    return np.concatenate([compute(part, candidate).values for part in parts])


def cut_groups(steps: LoggedSteps, suspect: Suspect) -> np.ndarray:
    """The groups of the suspect's engine, each with a number of its own: -1 in none,
    NaN without an advantage. float64 [R]"""
    groups: list[np.ndarray] = []
    for part in map(steps.of_steps, steps.parts()):
        traced, before = compute(part, suspect), sum(map(len, groups))
        assert traced.group is not None
        group = np.where(traced.group >= 0, traced.group + before, -1)
        groups.append(np.where(np.isfinite(traced.values), group, np.nan))
    return np.concatenate(groups)
