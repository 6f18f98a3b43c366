"""Frame: a judgement as one row per step, beside the advantages that a correct trainer
would have logged. R rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradebook.core.formatting import flips
from gradebook.core.lazy_pandas import pd
from gradebook.logs.judging import decide, numbers
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.decide import COLUMNS, Judgement
from gradebook.logs.judging.evidence import most_fitting
from gradebook.logs.judging.fit import distance
from gradebook.logs.judging.suspects import Candidate

SHOWS = 10
"""A row is off where it is this many times further than what is always allowed."""


def framed(whole: Judgement) -> Judgement:
    """The judgement with one row per step and the reference advantages."""
    evidence, steps = whole.evidence, whole.evidence.steps
    judged = decide.by_step(whole)
    correct = _correct(whole, judged)
    away = distance(correct, steps.advantage)
    off = away > SHOWS * evidence.ruler.base
    groups_off = np.bincount(steps.prompt, off) > 0
    has_advantages = "advantage" in steps.has
    columns = {
        "step": steps.labels,
        "verdict": [j.verdict for j in judged],
        "bug": [j.bug for j in judged],
        "ties": [j.tied for j in judged],
        "asks": [tuple(s.bug for s in j.asks) for j in judged],
        "estimator": [j.estimator for j in judged],
        "residual": [j.residual for j in judged],
        "correct_residual": steps.worst(away) if has_advantages else np.nan,
        "row": [part.argmax() for part in np.split(away, steps.starts[1:])],
        "flips": steps.total(flips(correct, steps.advantage)),
        "groups_affected": np.bincount(steps.groups.step, groups_off).astype("int64"),
        "rows": steps.batch.step_rows.numpy(),
        "groups": np.bincount(steps.groups.step),
    }
    frame = pd.DataFrame({name: columns[name] for name in COLUMNS})
    return replace(whole, frame=frame, correct=correct)


def _correct(whole: Judgement, judged: Sequence[Judgement]) -> np.ndarray:
    """The reference advantages. On steps that contradict the declaration, those of
    the declaration; otherwise the named computation, the bug's correct twin, or the
    computation that fits most steps. float64 [R]"""
    steps, declaration = whole.evidence.steps, whole.declaration
    values = steps.advantage
    if (twin := _correct_twin(whole, judged)) is not None:
        computed = numbers.advantages(steps, twin)
        values = np.where(np.isfinite(computed), computed, values)
    elif nearest := _nearest(whole):
        values = numbers.advantages(steps, nearest)
    contradicts = ("other", "none fits") if declaration.decides else ()
    other = np.array([j.verdict in contradicts for j in judged])[steps.step_of]
    if not other.any():
        return values
    declared = declaration.computation(whole.computations)
    return np.where(other, numbers.advantages(steps, declared), values)


def _correct_twin(whole: Judgement, judged: Sequence[Judgement]) -> Candidate | None:
    """The correct twin of the bug that the log, or a step of it, is named after."""
    suspect = whole.suspect
    if suspect is None and not whole.computations:
        named = {j.bug for j in judged}
        suspect = next((s for s in whole.evidence.suspects if s.bug in named), None)
    return suspect.correct if suspect else None


def _nearest(whole: Judgement) -> Computation | None:
    """The named computation, or the one that fits most steps, or most rows."""
    named = whole.computations or most_fitting(whole.evidence)
    return next(iter(named), whole.evidence.nearest)
