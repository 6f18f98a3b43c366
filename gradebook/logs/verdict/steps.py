"""Steps: from the candidates tried to one row a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradebook.core.differences import flips
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.fit import ALIKE, distance
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.trials import Trials, advantages

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

COUNTS = ("rows", "groups", "flips", "groups_affected")
"""What else is known of a step."""


@dataclass(frozen=True, eq=False)
class StepResults:
    """What was found for each step, [S] throughout.

    frame    the columns of COLUMNS and COUNTS
    sides    candidate -> int64 [S] rows on which the log sides with it
             against the correct engine
    """

    frame: pd.DataFrame
    sides: dict[Candidate, np.ndarray]


def results_of(trials: Trials, usual: Candidate | None = None) -> StepResults:
    """Verdict, bug, ties and evidence of each step. Where nothing fits, the
    distance is that from `usual`, the log's own correct candidate, or else
    from the nearest one."""
    every, fits = [*trials.fits], trials.fits.values()
    shape = (len(every), trials.steps.step_count)
    residual = np.array([f.residual for f in fits], float).reshape(shape)
    tight = np.array([f.tight for f in fits], bool).reshape(shape)
    loose = np.array([f.loose for f in fits], bool).reshape(shape)
    listed = np.array([c.listed for c in every], bool)[:, None]
    bug = np.array([bool(c.bug) for c in every], bool)[:, None]
    correct, faulty = listed & ~bug, listed & bug

    def best(usable: np.ndarray) -> np.ndarray:
        """int64 [S] the first candidate whose residual is as small as the
        smallest, -1 where none is usable, bool [C, S]."""
        least = np.where(usable, residual, np.inf).min(0, initial=np.inf)
        alike = usable & (residual <= np.maximum(ALIKE, 3 * least))
        return np.where(alike.any(0), _first(alike), -1)

    right, dusty = best(tight & correct), best(loose & correct)
    for at in set(dusty[(right < 0) & (dusty >= 0)].tolist()):
        blurred = trials.ruler.blurred(trials.runs.trace(every[at]))
        right = np.where((right < 0) & (dusty == at) & ~blurred, at, right)
    open_ = (right < 0) & ~trials.quiet
    sides = _all_sides(trials, every, loose & faulty & open_)
    enough = np.zeros(shape, dtype=bool)
    for at, candidate in enumerate(every):
        if candidate in sides:
            enough[at] = sides[candidate] > candidate.freedom
    wrong = best(tight & faulty & enough)
    wrong = np.where(wrong >= 0, wrong, best(loose & faulty & enough))
    nearest = residual.argmin(0) if every else right
    told = np.full(shape[1], "none fits", dtype=object)
    picked = nearest.copy()
    for verdict, found in (
        ("cannot tell", best(loose & ~listed)),
        ("cannot tell", dusty),
        ("cannot tell", best(loose & faulty)),
        ("suspect", wrong),
        ("correct", right),
    ):
        told[found >= 0] = verdict
        picked = np.where(found >= 0, found, picked)
    first = np.where(correct.any(), _first(correct), -1)
    told[trials.quiet] = "cannot tell"
    picked = np.where(trials.quiet, np.where(right >= 0, right, first), picked)
    chosen = [every[at] if at >= 0 else None for at in picked]
    away = nearest
    if correct.any():
        away = np.where(correct, residual, np.inf).argmin(0)
    compared = [
        (usual or every[at]) if c and v == "none fits" else c and c.correct
        for c, v, at in zip(chosen, told, away)
    ]
    return StepResults(_frame(trials, told, chosen, compared), sides)


def _first(flags: np.ndarray) -> np.ndarray:
    """The first candidate with a flag, bool [C, S]; 0 where none has."""
    return flags.argmax(0) if len(flags) else np.zeros(flags.shape[1], int)


def _all_sides(
    trials: Trials, every: list[Candidate], wanted: np.ndarray
) -> dict[Candidate, np.ndarray]:
    """For each candidate that is wanted on some step, bool [C, S]: the rows
    on which the log sides with it against the correct engine under the same
    convention. [S]"""
    found: dict[Candidate, np.ndarray] = {}
    known: dict[tuple, np.ndarray] = {}
    for at in np.flatnonzero(wanted.any(1)):
        candidate, here = every[at], wanted[at]
        one, other = trials.trace(candidate), trials.trace(candidate.correct)
        if one is not None and other is not None:
            key = (one.key, other.key)
            if key not in known:
                known[key] = trials.ruler.sides(one, other)
            found[candidate] = known[key]
            continue
        part = trials.part(here)
        one, other = part.trace(candidate), part.trace(candidate.correct)
        rows = np.zeros(trials.steps.step_count, dtype="int64")
        if one is not None and other is not None:
            rows[here] = part.ruler.sides(one, other)
        found[candidate] = rows
    return found


def _frame(
    trials: Trials,
    told: np.ndarray,
    picked: list[Candidate | None],
    compared: list[Candidate | None],
) -> pd.DataFrame:
    """The columns of a step's row: what it was `told`, the candidate that
    was picked, and the one whose numbers count as correct. [S] each"""
    steps = trials.steps
    own = _compared(trials, picked)
    off = own if compared == picked else _compared(trials, compared)
    ties = _all_ties(trials, told, picked)
    return pd.DataFrame(
        {
            "step": steps.labels,
            "verdict": told,
            "bug": [
                c.bug if c is not None and v == "suspect" else ""
                for c, v in zip(picked, told)
            ],
            "ties": pd.Series(ties, dtype=object),
            "estimator": ["" if c is None else c.estimator for c in picked],
            "residual": own["largest"],
            "correct_residual": off["largest"],
            "row": off["row"],
            "rows": steps.batch.step_rows.numpy(),
            "groups": np.bincount(steps.groups.step, minlength=steps.step_count),
            "flips": off["flips"],
            "groups_affected": off["groups_affected"],
        }
    )


def _all_ties(
    trials: Trials, verdicts: np.ndarray, picked: list[Candidate | None]
) -> list[tuple[str, ...]]:
    """The ties of every step, worked out once for steps alike."""
    live = [c for c in trials.fits if trials.fits[c].loose.any() and c.listed]
    if not live:
        return [()] * len(verdicts)
    fits = np.stack([trials.fits[c].loose for c in live])
    packed = np.packbits(fits, axis=0).T
    known: dict[tuple, tuple[str, ...]] = {}
    found = []
    for step, (told, chosen) in enumerate(zip(verdicts, picked)):
        key = (told, chosen, packed[step].tobytes())
        if key not in known:
            names = [live[i] for i in np.flatnonzero(fits[:, step])]
            known[key] = _ties(told, chosen, names)
        found.append(known[key])
    return found


def _ties(
    told: str, chosen: Candidate | None, fits: list[Candidate]
) -> tuple[str, ...]:
    """Names that fit the step equally well: bugs first, then estimators of
    the engine that is named."""
    if told == "none fits" or chosen is None:
        return ()
    own = chosen.bug if told != "cannot tell" else ""
    bugs = dict.fromkeys(c.bug for c in fits if c.bug)
    named = dict.fromkeys(c.estimator for c in fits if c.bug == own)
    if "grpo" in named or chosen.estimator == "grpo":
        named["grpo_vectorized"] = None
    return tuple(n for n in (*bugs, *named) if n and n not in (own, chosen.estimator))


def _compared(
    trials: Trials, references: Sequence[Candidate | None]
) -> dict[str, np.ndarray]:
    """The differences of the log from each step's reference, from plain
    engine runs. [S] each"""
    steps = trials.steps
    names = ("row", "rows_off", "flips", "groups_affected")
    found = {name: np.zeros(steps.step_count, "int64") for name in names}
    found["largest"] = np.full(steps.step_count, np.nan)
    index = {c: i for i, c in enumerate(dict.fromkeys(references))}
    which = np.array([index[c] for c in references])
    for candidate, number in index.items():
        if candidate is None:
            continue
        at = which == number
        part = steps.of_steps(at)
        try:
            numbers = advantages(part, candidate)
        except GradebookError:
            continue
        allowed = trials.ruler.allowed[at[steps.step_of]]
        own = differences(part, numbers, part.advantage, allowed)
        for name, values in own.items():
            found[name][at] = values
    return found


def differences(
    steps: LoggedSteps,
    one: np.ndarray,
    other: np.ndarray,
    allowed: np.ndarray | float,
) -> dict[str, np.ndarray]:
    """Where two computations differ by more than is allowed: the largest
    distance, its row in the step, rows and groups that are off, and rows
    whose sign flips. [S] each"""
    away = distance(one, other)
    largest = steps.worst(away)
    off = away > allowed
    touched = np.bincount(steps.batch.prompt_index.numpy()[off])
    of = steps.groups.step[np.flatnonzero(touched)]
    place = steps.batch.place.numpy()
    return {
        "largest": largest,
        "row": place[steps.first_at(away, largest)],
        "rows_off": steps.total(off),
        "flips": steps.total(flips(one, other)),
        "groups_affected": np.bincount(of, minlength=steps.step_count),
    }


def joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row a step, over all parts of a log."""
    none = pd.DataFrame({name: [] for name in (*COLUMNS, *COUNTS)})
    return pd.concat(frames, ignore_index=True) if frames else none


def without_advantages(steps: LoggedSteps) -> pd.DataFrame:
    """The steps' rows where the log has no advantages."""
    told = np.full(steps.step_count, "cannot tell", dtype=object)
    nobody: list[Candidate | None] = [None] * steps.step_count
    return _frame(Trials(steps), told, nobody, nobody)
