"""Frame: a judgement as one row per step, beside the advantages that a correct trainer
would have logged. R rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradebook.core.formatting import flips
from gradebook.core.lazy_pandas import pd
from gradebook.core.tolerance import BEYOND
from gradebook.logs.judging import numbers
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.decide import VERDICT_COLUMNS, Judgement
from gradebook.logs.judging.evidence import most_fitting
from gradebook.logs.judging.fit import distance
from gradebook.logs.judging.suspects import Candidate


def framed(whole: Judgement, of_steps: Sequence[Judgement]) -> Judgement:
    """The judgement with one row per step and the reference advantages. `of_steps` are
    the judgements on each step alone, as `decide.by_step` gives them."""
    evidence, steps = whole.evidence, whole.evidence.steps
    correct = _correct(whole, of_steps)
    away = distance(correct, steps.advantage)
    off = away > BEYOND * evidence.ruler.base
    groups_off = np.bincount(steps.prompt, off) > 0
    has_advantages = "advantage" in steps.has
    columns = {
        "step": steps.labels,
        "verdict": [j.verdict for j in of_steps],
        "bug": [j.bug for j in of_steps],
        "ties": [j.tied for j in of_steps],
        "asks": [tuple(s.bug for s in j.asks) for j in of_steps],
        "estimator": [j.estimator for j in of_steps],
        "residual": [j.residual for j in of_steps],
        "correct_residual": steps.worst(away) if has_advantages else np.nan,
        "row": [part.argmax() for part in np.split(away, steps.starts[1:])],
        "flips": steps.total(flips(correct, steps.advantage)),
        "groups_affected": np.bincount(steps.groups.step, groups_off).astype("int64"),
        "rows": steps.batch.rows_per_step.numpy(),
        "groups": np.bincount(steps.groups.step),
    }
    frame = pd.DataFrame({name: columns[name] for name in VERDICT_COLUMNS})
    return replace(whole, frame=frame, correct=correct)


def _correct(whole: Judgement, of_steps: Sequence[Judgement]) -> np.ndarray:
    """The reference advantages. On steps that contradict the declaration, those of
    the declaration; otherwise the named computation, the bug's correct twin, or the
    computation that fits most steps. float64 [R]"""
    steps, declaration = whole.evidence.steps, whole.declaration
    values = steps.advantage
    if (twin := _correct_twin(whole, of_steps)) is not None:
        computed = numbers.advantages(steps, twin)
        values = np.where(np.isfinite(computed), computed, values)
    elif nearest := _nearest(whole):
        values = numbers.advantages(steps, nearest)
    contradicts = ("other", "none fits") if declaration.decides else ()
    other = np.array([j.verdict in contradicts for j in of_steps])[steps.step_of]
    if not other.any():
        return values
    declared = declaration.computation(whole.computations)
    return np.where(other, numbers.advantages(steps, declared), values)


def _correct_twin(whole: Judgement, of_steps: Sequence[Judgement]) -> Candidate | None:
    """The correct twin of the bug that the log, or a step of it, is named after."""
    suspect = whole.suspect
    if suspect is None and not whole.computations:
        named = {j.bug for j in of_steps}
        suspect = next((s for s in whole.evidence.suspects if s.bug in named), None)
    return suspect.correct if suspect else None


def _nearest(whole: Judgement) -> Computation | None:
    """The named computation, or the one that fits most steps, or most rows."""
    named = whole.computations or most_fitting(whole.evidence)
    return next(iter(named), whole.evidence.nearest)
