"""Results: from the computations tried to one row a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.rollouts import Rollouts
from gradebook.logs.computations import Computation, unusual
from gradebook.logs.fits import ABSOLUTE, ALIKE, distance, numbers_of
from gradebook.logs.judging import Judging, fitting

COLUMNS = (
    "step",
    "verdict",
    "bug",
    "ties",
    "estimator",
    "residual",
    "correct_residual",
    "row",
)
"""The columns of `gradebook.check`."""

TINY = 1e-6
"""An advantage below this has no sign."""


@dataclass(frozen=True, eq=False)
class StepResults:
    """What was found for each step, [S] throughout.

    frame      the columns of COLUMNS
    timeline   rows, groups, flips, groups_affected of each step
    chosen     the computation named for the step, None without one
    """

    frame: pd.DataFrame
    timeline: pd.DataFrame
    chosen: tuple[Computation | None, ...]


@dataclass(frozen=True, eq=False)
class Stack:
    """Fits of several computations, [C, S]."""

    computations: tuple[Computation, ...]
    residual: np.ndarray
    fits: np.ndarray
    tight: np.ndarray

    @classmethod
    def of(cls, work: Judging, wanted: Iterable[Computation]) -> Stack:
        """The fits of the wanted computations."""
        found = tuple(sorted(wanted, key=unusual))
        if not found:
            none = np.zeros((0, work.rollouts.steps))
            return cls((), none, none.astype(bool), none.astype(bool))
        fits = [work.fits[c] for c in found]
        return cls(
            found,
            np.stack([f.residual for f in fits]),
            np.stack([f.fits for f in fits]),
            np.stack([f.tight for f in fits]),
        )

    def best(self, usable: np.ndarray) -> np.ndarray:
        """int64 [S] the preferred usable computation, -1 for none: the
        first whose residual is as small as the smallest."""
        if not len(self.computations):
            return np.full(self.residual.shape[1], -1)
        residual = np.where(usable, self.residual, np.inf)
        least = residual.min(0)
        alike = usable & (residual <= np.maximum(ALIKE, 3 * least))
        return np.where(alike.any(0), alike.argmax(0), -1)

    def nearest(self) -> np.ndarray:
        """int64 [S] the computation with the smallest residual."""
        residual = np.where(np.isnan(self.residual), np.inf, self.residual)
        return residual.argmin(0)


def results_of(work: Judging, usual: Computation | None = None) -> StepResults:
    """Verdict, bug, ties and evidence of each step. Where nothing fits, the
    distance is that from `usual`, the log's own correct computation, or
    else from the nearest one."""
    rollouts = work.rollouts
    if "advantage" not in rollouts.has:
        return _untold(rollouts)
    every = _live(work)
    correct = Stack.of(work, (c for c in every if not c.bug))
    faulty = Stack.of(work, (c for c in every if c.bug))
    right = correct.best(correct.tight)
    right = np.where(right >= 0, right, correct.best(correct.fits))
    wrong = faulty.best(faulty.fits)
    steps = np.arange(rollouts.steps)
    loose = (right >= 0) & ~correct.tight[right, steps]
    exact = np.full(rollouts.steps, -1)
    if loose.any():
        exact = faulty.best(faulty.tight)
    dusty = loose & (exact >= 0)
    wrong = np.where(dusty, exact, wrong)
    verdict = np.where(
        (right >= 0) & ~dusty,
        "correct",
        np.where(wrong >= 0, "suspect", "none fits"),
    ).astype(object)
    verdict[_nothing_varies(rollouts, verdict, loose)] = "cannot tell"
    both = Stack.of(work, every)
    index = {c: i for i, c in enumerate(both.computations)}
    picked = _picked(verdict, right, wrong, correct, faulty, both)
    chosen = np.array([index[c] for c in picked])
    residual = both.residual[chosen, steps]
    nearest = correct.nearest()
    compared = [
        c.correct if v != "none fits" else usual or correct.computations[n]
        for c, v, n in zip(picked, verdict, nearest)
    ]
    ties = _all_ties(verdict, chosen, both)
    rows, against, flips, affected = _compared(work, compared)
    told = (verdict == "suspect") | (verdict == "none fits")
    frame = pd.DataFrame(
        {
            "step": rollouts.labels,
            "verdict": verdict,
            "bug": [
                c.bug if v == "suspect" else ""
                for c, v in zip(picked, verdict)
            ],
            "ties": pd.Series(ties, dtype=object),
            "estimator": [c.estimator for c in picked],
            "residual": residual,
            "correct_residual": np.where(told, against, residual),
            "row": rows,
        }
    )
    timeline = _timeline(rollouts, flips, affected)
    return StepResults(frame, timeline, tuple(picked))


def _live(work: Judging) -> list[Computation]:
    """What fits some step, and the first correct computation; everything
    that was tried, where there is a step that nothing fits."""
    if not fitting(work).all():
        return list(work.fits)
    first = next(c for c in work.fits if not c.bug)
    return [c for c, f in work.fits.items() if c is first or f.fits.any()]


def _picked(
    verdict: np.ndarray,
    right: np.ndarray,
    wrong: np.ndarray,
    correct: Stack,
    faulty: Stack,
    both: Stack,
) -> list[Computation]:
    """The computation that each step is named by, or the nearest one."""
    every = both.computations
    found = []
    for v, r, w, n in zip(verdict, right, wrong, both.nearest()):
        if v == "suspect":
            found.append(faulty.computations[w])
        elif v == "none fits":
            found.append(every[n])
        else:
            found.append(correct.computations[max(r, 0)])
    return found


def _all_ties(
    verdict: np.ndarray, chosen: np.ndarray, both: Stack
) -> list[tuple[str, ...]]:
    """The ties of every step, worked out once for steps alike."""
    packed = np.packbits(both.fits, axis=0).T
    known: dict[tuple, tuple[str, ...]] = {}
    found = []
    for step, (v, c) in enumerate(zip(verdict, chosen.tolist())):
        key = (v, c, packed[step].tobytes())
        if key not in known:
            fits = np.flatnonzero(both.fits[:, step])
            names = [both.computations[i] for i in fits]
            known[key] = _ties(v, both.computations[c], names)
        found.append(known[key])
    return found


def _ties(
    verdict: str, chosen: Computation, fits: list[Computation]
) -> tuple[str, ...]:
    """Names that fit the step equally well: bugs first, then estimators of
    the engine that is named."""
    if verdict == "none fits":
        return ()
    bugs = dict.fromkeys(c.bug for c in fits if c.bug)
    named = dict.fromkeys(
        c.estimator for c in fits if c.bug == chosen.bug and c.tier == 1
    )
    if "grpo" in named or chosen.estimator == "grpo":
        named["grpo_vectorized"] = None
    own = (chosen.bug, chosen.estimator)
    return tuple(n for n in (*bugs, *named) if n not in own)


def _nothing_varies(
    rollouts: Rollouts, verdict: np.ndarray, loose: np.ndarray
) -> np.ndarray:
    """bool [S]: every reward equals its group's, and the advantages are 0
    or rounding dust."""
    logged = np.nan_to_num(np.abs(rollouts.advantage), nan=1.0)
    quiet = rollouts.worst(logged) <= ABSOLUTE
    quiet |= loose & (verdict == "correct")
    if not quiet.any():
        return quiet
    batch = rollouts.batch
    reward, group = batch.reward.numpy(), batch.prompt_index.numpy()
    high = np.full(group.max() + 1, -np.inf)
    np.maximum.at(high, group, reward)
    low = -np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, reward)
    spread = (high - low)[group] > TINY * np.abs(reward)
    return quiet & ~np.logical_or.reduceat(spread, rollouts.starts)


def flipped(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """bool [R]: the two advantages push the row to different sides."""
    with np.errstate(invalid="ignore", over="ignore"):
        signed = (np.abs(one) > TINY) & (np.abs(other) > TINY)
        return signed & (np.sign(one) * np.sign(other) < 0)


def _compared(
    work: Judging, references: list[Computation]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Against the correct numbers: the worst row of each step, its
    distance, rows whose sign flips, and groups that are off. [S] each."""
    rollouts = work.rollouts
    steps = rollouts.steps
    row = np.zeros(steps, dtype="int64")
    flips, affected = row.copy(), row.copy()
    largest = np.full(steps, np.nan)
    index = {c: i for i, c in enumerate(dict.fromkeys(references))}
    which = np.array([index[c] for c in references])
    for computation, i in index.items():
        at = which == i
        part = rollouts.of_steps(at)
        allowed = work.allowed
        if not at.all():
            allowed = allowed[rollouts.rows_of(at)]
        found = work.advantage(computation) if at.all() else None
        if found is None:
            found = numbers_of(part, computation)
        away = distance(found, part.advantage)
        worst = part.worst(away)
        largest[at] = worst
        row[at] = part.batch.place.numpy()[part.first_at(away, worst)]
        flips[at] = part.total(flipped(found, part.advantage).astype("int64"))
        hit = np.zeros(len(part.groups.size), dtype=bool)
        hit[part.batch.prompt_index.numpy()[away > allowed]] = True
        of = part.groups.step[hit]
        affected[at] = np.bincount(of, minlength=part.steps)
    return row, largest, flips, affected


def _timeline(
    rollouts: Rollouts, flips: np.ndarray, affected: np.ndarray
) -> pd.DataFrame:
    batch = rollouts.batch
    groups = np.bincount(rollouts.groups.step, minlength=rollouts.steps)
    return pd.DataFrame(
        {
            "rows": batch.step_rows.numpy(),
            "groups": groups,
            "flips": flips,
            "groups_affected": affected,
        }
    )


def _untold(rollouts: Rollouts) -> StepResults:
    """Without advantages nothing can be told."""
    steps = rollouts.steps
    none = np.zeros(steps, dtype="int64")
    frame = pd.DataFrame(
        {
            "step": rollouts.labels,
            "verdict": np.full(steps, "cannot tell", dtype=object),
            "bug": [""] * steps,
            "ties": pd.Series([()] * steps, dtype=object),
            "estimator": [""] * steps,
            "residual": np.full(steps, np.nan),
            "correct_residual": np.full(steps, np.nan),
            "row": none,
        }
    )
    return StepResults(
        frame, _timeline(rollouts, none, none.copy()), (None,) * steps
    )
