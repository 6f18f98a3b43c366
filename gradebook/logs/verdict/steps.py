"""Steps: from the candidates tried to one row a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True, eq=False)
class StepResults:
    """What was found for each step, [S] throughout.

    frame    the columns of COLUMNS, then rows, groups, flips,
             groups_affected
    sides    candidate -> int64 [S] rows on which the log sides with it
             against the correct engine
    """

    frame: pd.DataFrame
    sides: dict[Candidate, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Stack:
    """Fits of several candidates, [C, S]."""

    candidates: tuple[Candidate, ...]
    residual: np.ndarray
    tight: np.ndarray
    loose: np.ndarray

    @classmethod
    def of(cls, trials: Trials, wanted: Iterable[Candidate]) -> _Stack:
        """The fits of the wanted candidates."""
        found = tuple(wanted)
        fits = [trials.fits[c] for c in found]
        shape = (len(found), trials.steps.step_count)
        return cls(
            found,
            np.array([f.residual for f in fits], float).reshape(shape),
            np.array([f.tight for f in fits], bool).reshape(shape),
            np.array([f.loose for f in fits], bool).reshape(shape),
        )

    def best(self, usable: np.ndarray) -> np.ndarray:
        """int64 [S] the preferred usable candidate, -1 for none: the first
        whose residual is as small as the smallest."""
        if not self.candidates:
            return np.full(self.residual.shape[1], -1)
        residual = np.where(usable, self.residual, np.inf)
        least = residual.min(0)
        alike = usable & (residual <= np.maximum(ALIKE, 3 * least))
        return np.where(alike.any(0), alike.argmax(0), -1)


def results_of(trials: Trials, usual: Candidate | None = None) -> StepResults:
    """Verdict, bug, ties and evidence of each step. Where nothing fits, the
    distance is that from `usual`, the log's own correct candidate, or else
    from the nearest one."""
    steps = trials.steps
    every = list(trials.fits)
    correct = _Stack.of(trials, (c for c in every if not c.bug and c.listed))
    faulty = _Stack.of(trials, (c for c in every if c.bug and c.listed))
    other = _Stack.of(trials, (c for c in every if not c.listed))
    right = correct.best(correct.tight)
    dusty = correct.best(correct.loose)
    sharp = dusty >= 0
    for at in set(dusty[(right < 0) & sharp].tolist()):
        here = dusty == at
        trace = trials.runs.trace(correct.candidates[at])
        sharp[here] &= ~trials.ruler.blurred(trace)[here]
    right = np.where((right < 0) & sharp, dusty, right)
    sides = _all_sides(trials, faulty, (right < 0) & ~trials.quiet)
    enough = np.zeros(faulty.loose.shape, dtype=bool)
    for at, candidate in enumerate(faulty.candidates):
        if candidate in sides:
            enough[at] = sides[candidate] > candidate.freedom
    exact = faulty.best(faulty.tight & enough)
    wrong = np.where(exact >= 0, exact, faulty.best(faulty.loose & enough))
    weak = faulty.best(faulty.loose)
    else_ = other.best(other.loose)
    verdicts, picked = [], []
    nearest = _nearest(trials, every)
    for step in range(steps.step_count):
        if trials.quiet[step]:
            at = max(right[step], 0)
            told, c = "cannot tell", _at(correct, at)
        elif right[step] >= 0:
            told, c = "correct", _at(correct, right[step])
        elif wrong[step] >= 0:
            told, c = "suspect", _at(faulty, wrong[step])
        elif weak[step] >= 0:
            told, c = "cannot tell", _at(faulty, weak[step])
        elif dusty[step] >= 0:
            told, c = "cannot tell", _at(correct, dusty[step])
        elif else_[step] >= 0:
            told, c = "cannot tell", _at(other, else_[step])
        else:
            told, c = "none fits", every[nearest[step]] if every else None
        verdicts.append(told)
        picked.append(c)
    frame = _frame(trials, verdicts, picked, correct, usual)
    return StepResults(frame, sides)


def _at(stack: _Stack, at: int) -> Candidate | None:
    return stack.candidates[at] if stack.candidates else None


def _nearest(trials: Trials, every: list[Candidate]) -> np.ndarray:
    """int64 [S] the candidate with the smallest residual."""
    best = np.full(trials.steps.step_count, np.inf)
    found = np.zeros(trials.steps.step_count, dtype="int64")
    for at, candidate in enumerate(every):
        residual = trials.fits[candidate].residual
        closer = residual < best
        best[closer], found[closer] = residual[closer], at
    return found


def _all_sides(
    trials: Trials, faulty: _Stack, open_steps: np.ndarray
) -> dict[Candidate, np.ndarray]:
    """For each bug that fits an open step: the rows on which the log sides
    with it against the correct engine under the same convention. [S]"""
    found: dict[Candidate, np.ndarray] = {}
    known: dict[tuple, np.ndarray] = {}
    for at, candidate in enumerate(faulty.candidates):
        here = faulty.loose[at] & open_steps
        if not here.any():
            continue
        one, other = trials.trace(candidate), trials.trace(candidate.correct)
        if one is not None and other is not None:
            key = (*one.numbers.values(), *other.numbers.values())
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
    verdicts: list[str],
    picked: list[Candidate | None],
    correct: _Stack,
    usual: Candidate | None,
) -> pd.DataFrame:
    """The columns of a step's row."""
    steps = trials.steps
    close = correct.residual.argmin(0) if correct.candidates else None
    compared = [
        (c.correct if c is not None else None)
        if told != "none fits" or close is None
        else usual or correct.candidates[n]
        for c, told, n in zip(
            picked,
            verdicts,
            np.zeros(len(picked), int) if close is None else close,
        )
    ]
    own = _compared(trials, picked)
    off = own if compared == picked else _compared(trials, compared)
    told = np.array(verdicts, dtype=object)
    ties = _all_ties(trials, verdicts, picked)
    groups = np.bincount(steps.groups.step, minlength=steps.step_count)
    return pd.DataFrame(
        {
            "step": steps.labels,
            "verdict": told,
            "bug": [
                c.bug if c is not None and v == "suspect" else ""
                for c, v in zip(picked, verdicts)
            ],
            "ties": pd.Series(ties, dtype=object),
            "estimator": ["" if c is None else c.estimator for c in picked],
            "residual": own["largest"],
            "correct_residual": off["largest"],
            "row": off["row"],
            "rows": steps.batch.step_rows.numpy(),
            "groups": groups,
            "flips": off["flips"],
            "groups_affected": off["groups"],
        }
    )


def _all_ties(
    trials: Trials, verdicts: list[str], picked: list[Candidate | None]
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
    return tuple(
        n for n in (*bugs, *named) if n and n not in (own, chosen.estimator)
    )


def _compared(
    trials: Trials, references: Sequence[Candidate | None]
) -> dict[str, np.ndarray]:
    """Against each step's reference, from plain engine runs: the distance
    of the worst row, that row, rows whose sign flips, and groups that are
    off. [S] each."""
    steps = trials.steps
    count = steps.step_count
    found = {
        "largest": np.full(count, np.nan),
        "row": np.zeros(count, dtype="int64"),
        "flips": np.zeros(count, dtype="int64"),
        "groups": np.zeros(count, dtype="int64"),
    }
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
        _measure(found, at, part, numbers, allowed)
    return found


def _measure(
    found: dict[str, np.ndarray],
    at: np.ndarray,
    part: LoggedSteps,
    numbers: np.ndarray,
    allowed: np.ndarray,
) -> None:
    """Fills in the steps `at`, whose rows are `part`."""
    away = distance(numbers, part.advantage)
    worst = part.worst(away)
    found["largest"][at] = worst
    found["row"][at] = part.batch.place.numpy()[part.first_at(away, worst)]
    found["flips"][at] = part.total(flips(numbers, part.advantage))
    hit = np.zeros(len(part.groups.size), dtype=bool)
    hit[part.batch.prompt_index.numpy()[away > allowed]] = True
    of = part.groups.step[hit]
    found["groups"][at] = np.bincount(of, minlength=part.step_count)


def without_advantages(steps: LoggedSteps) -> pd.DataFrame:
    """The steps' rows where the log has no advantages."""
    count = steps.step_count
    columns = {
        "step": steps.labels,
        "verdict": "cannot tell",
        "bug": "",
        "ties": pd.Series([()] * count, dtype=object),
        "estimator": "",
        "residual": np.nan,
        "correct_residual": np.nan,
        "row": 0,
        "rows": steps.batch.step_rows.numpy(),
        "groups": np.bincount(steps.groups.step, minlength=count),
        "flips": 0,
        "groups_affected": 0,
    }
    return pd.DataFrame(columns)
