"""Guard: judges each training step as it is trained.

    guard = gradebook.Guard(declared={"estimator": "grpo"}, action="raise")
    for step in range(steps):
        ...
        guard.step(step, prompt=uid, reward=reward, advantage=advantage,
                   mask=response_mask)

On a healthy step only the declared computation runs. Where the trainer's
advantages are not what it gives, the known bugs are tried, and the guard
says what the check of a log would say.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradebook.analysis.law_check import broken_as_it_is
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.formatting import digits_apart, signed
from gradebook.logs.candidates.candidates import Candidate, correct_ones
from gradebook.logs.candidates.conventions import Convention
from gradebook.logs.candidates.fit import distance, rounding_of_type
from gradebook.logs.candidates.logged_steps import (
    CANONICAL,
    LoggedSteps,
    one_step,
    under,
)
from gradebook.logs.candidates.trials import Trials, Tried, advantages
from gradebook.logs.check import tried
from gradebook.logs.quiet import undisturbed
from gradebook.logs.recording.intake import StepReader, StepRows
from gradebook.logs.verdict.one_step import judged, search
from gradebook.logs.verdict.sentences import sentence_of
from gradebook.logs.verdict.tally import Named

ACTIONS = ("warn", "raise")

ONLY_BUGS = ("rank", "text")
"""Columns that no correct computation reads."""

WORST = 8
"""So many rows are looked at, with their prompts, for a broken law."""


@dataclass(frozen=True)
class Finding:
    """The first step whose advantages are wrong.

    step      its number
    row       the row that is off most, counted from 0
    correct   that row's advantage as declared
    trained   the advantage that the trainer computed
    bug       a name from BUGS, or "" where no known bug computes the step
    law       where no bug is named: how the step breaks a law, or ""
    sentence  what the check would say of the step

    >>> guard = Guard(declared={"estimator": "dr_grpo"}, action=str)
    >>> found = guard.step(
    ...     7, prompt=[0, 0], reward=[1.0, 3.0], advantage=[-1.0, 0.5]
    ... )
    >>> found.step, found.row, found.correct, found.trained
    (7, 1, 1.0, 0.5)
    """

    step: int
    row: int
    correct: float
    trained: float
    bug: str
    law: str
    sentence: str

    def __str__(self) -> str:
        digits = digits_apart(self.correct, self.trained)
        numbers = (
            f"Step {self.step}, row {self.row}: correct"
            f" {signed(self.correct, digits)}, trained"
            f" {signed(self.trained, digits)}."
        )
        said = (self.sentence, numbers, self.law)
        return " ".join(part for part in said if part)


class WrongAdvantages(RuntimeError):
    """Raised by a guard whose action is "raise". `finding` has the facts.

    >>> guard = Guard(declared={"estimator": "dr_grpo"}, action="raise")
    >>> rows = {"prompt": [0, 0], "reward": [1.0, 3.0]}
    >>> try:
    ...     guard.step(7, advantage=[-1.0, 0.5], **rows)
    ... except WrongAdvantages as wrong:
    ...     print(wrong.finding.law)
    The advantages of row 0's prompt add up to −0.500.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class Guard:
    """Judges each step's rows, until it has found something.

    declared  what the trainer was configured with, by the names of
              gradebook.Settings, or {"estimator": ...}. Without it, every
              listed trainer's computation counts as correct
    action    "warn"; "raise" a WrongAdvantages; or a function that is
              called with the Finding

    `finding` is what was found, None so far. Where statistics of the whole
    batch are declared, hand over the rows of all ranks. Raises
    GradebookError for a bad argument here; a bad argument of `step` is
    raised with the action "raise", else it is warned of once.

    >>> guard = Guard(declared={"estimator": "dr_grpo"})
    >>> rows = {"prompt": [0, 0], "reward": [1.0, 3.0]}
    >>> guard.step(0, advantage=[-1.0, 1.0], **rows)  # healthy: None
    """

    def __init__(
        self,
        *,
        declared: Mapping[str, Any] | None = None,
        action: str | Callable[[Finding], object] = "warn",
    ) -> None:
        if action not in ACTIONS and not callable(action):
            expected = f"{', '.join(ACTIONS)} or a function"
            raise refuse(expected, action, "action")
        self.declared = dict(declared or {})
        self.action = action
        self.finding: Finding | None = None
        self._tried = tried(self.declared, None)
        self._reader = StepReader()
        self._last: Candidate | None = None
        self._alive: tuple[Convention, ...] = ()
        self._warned = False

    def step(self, step: int, **columns: Any) -> Finding | None:
        """Judges one step's rows: the arguments of `Recorder.step`. What was
        found, at this step or before; None so far."""
        if self.finding is not None:
            return self.finding
        try:
            number, rows = self._reader.read(step, columns)
            if not rows.rows:
                return None
            self.finding = self._judged(number, rows)
        except Exception as error:
            self._note(step, error)
            return None
        if self.finding is not None:
            self._act(self.finding)
        return self.finding

    def _note(self, step: int, error: Exception) -> None:
        """A step that cannot be judged: raised, or warned of once."""
        if self.action == "raise":
            raise error
        if not self._warned:
            self._warned = True
            said = str(error) or type(error).__name__
            warnings.warn(
                f"gradebook could not judge step {step}: {said}. Training"
                " goes on; further such steps are not told.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _act(self, finding: Finding) -> None:
        if callable(self.action):
            self.action(finding)
        elif self.action == "raise":
            raise WrongAdvantages(finding)
        else:
            warnings.warn(str(finding), RuntimeWarning, stacklevel=3)

    def _judged(self, step: int, rows: StepRows) -> Finding | None:
        rounding = rounding_of_type(rows.types["advantage"])
        own = Tried(self._alive or self._tried.table, self._tried.given)
        if self._last is not None:
            few = Trials(_logged(step, rows, without=ONLY_BUGS), rounding, own)
            if _gives(self._last, few) or _fits(self._last, few):
                return None
        trials = Trials(_logged(step, rows), rounding, own)
        if trials.quiet.all():
            return None
        with undisturbed():
            return self._searched(trials)

    def _searched(self, trials: Trials) -> Finding | None:
        """Tries what else counts as correct, and then the known bugs."""
        correct = list(correct_ones(trials.tried.table, trials.seen))
        fitting = [c for c in correct if _fits(c, trials)]
        if fitting:
            self._last = fitting[0]
            self._alive = tuple(dict.fromkeys(c.convention for c in fitting))
            return None
        return self._named(trials, correct[0])

    def _named(self, trials: Trials, correct: Candidate) -> Finding | None:
        """What the check says of the step. The conventions that the steps
        before followed are tried first, then all that count as declared."""
        search(trials)
        if self._alive and not trials.fitted.any():
            trials = self._widened(trials)
        told = judged(trials)
        if self._alive and told.verdict == "cannot tell":
            wide = judged(self._widened(trials))
            told = wide if wide.verdict == "suspect" else told
        if told.verdict == "correct":
            return None
        if told.verdict == "suspect" and told.candidate is not None:
            correct = told.candidate.correct
        return self._finding(told, correct, trials)

    def _widened(self, trials: Trials) -> Trials:
        """Everything that counts as declared, tried on the same step."""
        wide = trials.widened(self._tried)
        search(wide)
        return wide

    def _finding(
        self, told: Named, correct: Candidate, trials: Trials
    ) -> Finding | None:
        """The facts of a step that is wrong. None where no known bug
        computes it, no law is broken and nothing was declared."""
        steps = trials.steps
        due = trials.runs.trace(correct).advantage.double().numpy()
        away = distance(due, steps.advantage)
        row = int(np.argmax(away))
        bug, law = "", ""
        if told.verdict == "suspect" and told.candidate is not None:
            bug = told.candidate.bug
        else:
            law = _law(trials, correct, away)
        if not (bug or law or self.declared):
            return None
        if told.verdict == "cannot tell" and not law:
            return None
        return Finding(
            step=int(steps.labels[0]),
            row=row,
            correct=float(due[row]),
            trained=float(steps.advantage[row]),
            bug=bug,
            law=law,
            sentence=sentence_of(told, self.declared),
        )


def _gives(candidate: Candidate, trials: Trials) -> bool:
    """One plain run of the candidate's engine gives the step's numbers, as
    closely as they can tell."""
    try:
        found = advantages(trials.steps, candidate)
    except GradebookError:
        return False
    away = distance(found, trials.steps.advantage)
    return bool((away <= trials.ruler.allowed).all())


def _fits(candidate: Candidate, trials: Trials) -> bool:
    """The candidate computes the step, up to the rounding of its numbers,
    where that rounding is not as large as the numbers."""
    trials.try_on(np.ones(1, dtype=bool), [candidate])
    fit = trials.fits[candidate]
    if fit.tight.all():
        return True
    trace = trials.trace(candidate) if fit.loose.all() else None
    return trace is not None and not trials.ruler.blurred(trace).any()


def _law(trials: Trials, correct: Candidate, away: np.ndarray) -> str:
    """The law that the prompts of the rows that are off most break, with
    its numbers; "" where they break none."""
    steps = trials.steps
    trace = trials.runs.trace(correct)
    prompt = steps.batch.prompt_index.numpy()
    worst = np.argsort(-away, kind="stable")[:WORST]
    chosen = np.isin(prompt, prompt[worst])
    rows = np.flatnonzero(chosen)
    allowed = trials.ruler.allowed[rows] + trials.ruler.slack(trace, rows)
    broken = broken_as_it_is(
        under(steps.of_rows(chosen).batch, correct.settings),
        rows.tolist(),
        steps.advantage[rows].tolist(),
        allowed.tolist(),
    )
    return broken.sentence if broken else ""


def _logged(step: int, rows: StepRows, without: tuple[str, ...] = ()) -> LoggedSteps:
    """The rows as a logged step. A row without a reward is not scored."""
    columns = {
        name: values
        for name, values in rows.columns.items()
        if name in CANONICAL and name not in without
    }
    columns["reward"] = np.nan_to_num(columns["reward"])
    return one_step(step, columns)
