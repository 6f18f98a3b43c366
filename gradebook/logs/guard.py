"""Guard: judges each training step as it is trained.

On a healthy step after the first only the declared computation runs. If the
trainer's advantages are not what it gives, everything else is tried. Without a
declaration the guard warns only of what no declaration could excuse.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

import numpy as np

from gradebook.cases.scenario import bug
from gradebook.core.columns import ALL
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.formatting import pair
from gradebook.logs.judging import numbers
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.decide import Judgement
from gradebook.logs.judging.declaration import declaration_of
from gradebook.logs.judging.fit import WRITTEN, Ruler, distance
from gradebook.logs.judging.gather import search
from gradebook.logs.judging.judge import judge
from gradebook.logs.judging.rounding import Rounding
from gradebook.logs.judging.sentences import statement_of
from gradebook.logs.logged_steps import LoggedSteps, to_logged
from gradebook.logs.recorder import RecordedStep, recorded_step
from gradebook.logs.signal import signal_of


@dataclass(frozen=True)
class Finding:
    """The first step whose advantages are wrong.

    step      its number
    row       the row that is farthest off, counted from 0
    correct   that row's advantage as declared
    trained   that row's advantage as logged
    bug       a name from BUGS, or "" if no known bug computes the step
    verdict   other, suspect or none fits, as the check would say
    sentence  what the advantages match, in words that need no context

    >>> guard = Guard(declared={"estimator": "dr_grpo"}, action=str)
    >>> rows = {"prompt": [0, 0], "reward": [1.0, 3.0]}
    >>> finding = guard.step(7, advantage=[-1.0, 0.5], **rows)
    >>> finding.step, finding.row, finding.correct, finding.trained
    (7, 1, 1.0, 0.5)
    """

    step: int
    row: int
    correct: float
    trained: float
    bug: str
    verdict: str
    sentence: str

    def __str__(self) -> str:
        correct, trained = pair(self.correct, self.trained)
        numbers = f"correct {correct}, trained {trained}"
        return f"Step {self.step}, row {self.row}: {numbers}. {self.sentence}"


class WrongAdvantages(RuntimeError):
    """Raised by a guard whose action is "raise". `finding` is the Finding.

    >>> guard = Guard(declared={"estimator": "dr_grpo"}, action="raise")
    >>> try:
    ...     guard.step(7, prompt=[0, 0], reward=[1.0, 3.0], advantage=[-1.0, 0.5])
    ... except WrongAdvantages as wrong:
    ...     print(wrong.finding.verdict)
    none fits
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class Guard:
    """Judges each step's rows, until it has found something.

    declared  what the trainer was configured with, by the names of
              gradebook.Settings, or {"estimator": ...}
    action    "warn"; "raise" a WrongAdvantages; or a function that is
              called with the Finding. The last two need `declared`
    equal     a share from 0 to 1: the guard warns, once, at the first step in which
              at least this share of the prompts has equal rewards, so that they
              teach nothing. None never warns. It is no Finding: nothing is wrong

    `finding` is the Finding; None until a step is wrong. If statistics of the
    whole batch are declared, hand over the rows of all ranks. Raises
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
        equal: float | None = None,
    ) -> None:
        if equal is not None and not 0 < equal <= 1:
            raise refuse("a share above 0 and up to 1", equal, "equal")
        if action not in ("warn", "raise") and not callable(action):
            raise refuse("warn, raise or a function", action, "action")
        self.declared = dict(declared or {})
        if action != "warn" and not self.declared:
            configured = 'what the trainer was configured with: {"estimator": "grpo"}'
            raise GradebookError(key="declared", expected=configured, found="nothing")
        self.action = action
        self._equal = equal
        self.finding: Finding | None = None
        self._declaration = declaration_of(self.declared, trusted=frozenset(ALL))
        self._fitted: tuple[Computation, ...] = ()
        self._warned = False

    def step(self, step: int, **columns: Any) -> Finding | None:
        """Judges the rows of training step `step`. `columns` are those of
        `Recorder.step`. Returns the Finding of this step or an earlier one; None if
        every step so far is right."""
        if self.finding is not None:
            return self.finding
        try:
            rows = recorded_step(step, columns)
            self.finding = self._judged(rows) if rows.rows else None
        except Exception as error:
            if self.action == "raise":
                raise
            if not self._warned:
                self._warned = True
                reason = str(error) or type(error).__name__
                text = f"gradebook could not judge step {step}: {reason}. Training"
                text += " goes on; further failures will not be reported."
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        if self.finding is None:
            return None
        if callable(self.action):
            self.action(self.finding)
        elif self.action == "raise":
            raise WrongAdvantages(self.finding)
        else:
            warnings.warn(str(self.finding), RuntimeWarning, stacklevel=2)
        return self.finding

    def _judged(self, rows: RecordedStep) -> Finding | None:
        """The finding on a step, if the step is wrong and the guard acts on it; else
        None."""
        # A row without a reward is not scored.
        reward = np.nan_to_num(rows.columns["reward"])
        steps = to_logged({**rows.columns, "reward": reward})
        # Only a type of few digits rounds what a trainer holds.
        advantage, rewards = (
            Rounding.as_type(rows.types[name]) for name in ("advantage", "reward")
        )
        ruler = Ruler(steps, advantage, rewards)
        self._warn_of_equal(steps, rows.step)
        if steps.quiet.all():
            return None
        fitted = self._fitting(ruler)
        if fitted:
            self._fitted = tuple(fitted)
            return None
        j = judge(ruler, self._declaration)
        if j.verdict == "correct":
            allowed = filter(self._declaration.allows, j.computations)
            self._fitted = tuple(allowed)
        if not self._acts_on(j):
            return None
        correct = j.correct
        if self._fitted:  # what fitted the steps before
            correct = numbers.compute(steps, self._fitted[0]).values
        row = int(np.argmax(distance(correct, steps.advantage)))
        columns = {name: name for name in steps.has}
        return Finding(
            step=rows.step,
            row=row,
            correct=float(correct[row]),
            trained=float(steps.advantage[row]),
            bug=j.bug if j.verdict == "suspect" else "",
            verdict=j.verdict,
            sentence=statement_of(j, self.declared, columns).words(),
        )

    def _fitting(self, ruler: Ruler) -> list[Computation]:
        """The computations to try first at the next step; the first of them gives this
        step's advantages. Empty if none does. Those that fitted an earlier step are
        tried one after the other, then all that were declared."""

        def misses(c: Computation) -> bool:
            return not numbers.fit(ruler, c).good.all()

        fitted = [*dropwhile(misses, self._fitted)]
        if fitted or not self.declared:
            return fitted
        declaration = self._declaration

        def is_declared(c: Computation) -> bool:
            counts = declaration.counts and c.view.all_rows
            return declaration.allows(c) and not counts

        declared = search(ruler, declaration, only=is_declared)
        return declared.fitting(np.array([0]), WRITTEN)

    def _acts_on(self, j: Judgement) -> bool:
        """Whether the guard acts on the judgement. Without a declaration it acts only
        on a bug that the numbers prove by themselves."""
        if self.declared:
            return j.verdict in ("other", "suspect", "none fits")
        return j.verdict == "suspect" and bug(j.bug).proof == "structure"

    def _warn_of_equal(self, steps: LoggedSteps, step: int) -> None:
        """Warns once if too many prompts of a step have equal rewards."""
        if self._equal is None:
            return
        signal = signal_of(steps)
        share = float(np.nan_to_num(signal.shares[0]))
        if share >= self._equal:
            self._equal = None
            text = f"Step {step}: {signal.sentences[0]} The guard was asked to warn at"
            text += " this share."
            warnings.warn(text, RuntimeWarning, stacklevel=4)
