"""Evidence: what a log shows, as one frozen table. It depends on the log and on the
declaration alone: `gather` makes it, `decide` reads it. S steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gradebook.core.tolerance import BEYOND, MOST_ROUNDING
from gradebook.logs.judging.computation import Computation, plainness
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import NONE, REWARDS, WRITTEN, Fit, Ruler
from gradebook.logs.judging.left_over import LeftOver
from gradebook.logs.judging.near import NearMiss
from gradebook.logs.judging.suspects import Suspect
from gradebook.logs.logged_steps import LoggedSteps


@dataclass(frozen=True, eq=False)
class ChangePoint:
    """One change that explains a run: the number of the `step` from which the second
    computation fits, the computations before and after, and the suspects beside
    them."""

    step: int
    before: Computation
    after: Computation
    suspects: Mapping[Suspect, Fit] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Evidence:
    """How computations and suspects compare with the steps of a log.

    ruler         the steps, and what distances are measured with
    declaration   what a person, a recorder or the page said of the run
    computations  those that fit some step, each with its fit on every step
    suspects      bugs that fit some step that had to be explained, with their fit
    twins         the fit of each suspect's correct engine
    cells         the groups of each suspect that cuts rows by place, float64 [R]
    beyond        how many times further than rounding allows each suspect's correct
                  engine is, [S], and
    declared_beyond  the nearest computation that was declared; None if one of
                  those that fit was declared, or nothing was
    coarse        bool [S] the correct engine fits, if advantages were stored in a
                  type of few digits; of bugs that their arithmetic proves
    copies        rows at a step's end that repeat its first rows, and vote
    nearest       the computation that fits most rows of the sample
    change        one change that explains the run, or None
    left_over     what the numbers show, if nothing fits, or only what tells nothing
    near          the closest computation, if none fits and they show nothing
    """

    ruler: Ruler
    declaration: Declaration
    computations: Mapping[Computation, Fit] = field(default_factory=dict)
    suspects: Mapping[Suspect, Fit] = field(default_factory=dict)
    twins: Mapping[Suspect, Fit] = field(default_factory=dict)
    cells: Mapping[Suspect, np.ndarray] = field(default_factory=dict)
    beyond: Mapping[Suspect, np.ndarray] = field(default_factory=dict)
    declared_beyond: np.ndarray | None = None
    coarse: Mapping[Suspect, np.ndarray] = field(default_factory=dict)
    copies: int = 0
    nearest: Computation | None = None
    change: ChangePoint | None = None
    left_over: tuple[LeftOver, ...] = ()
    near: NearMiss | None = None

    @property
    def steps(self) -> LoggedSteps:
        return self.ruler.steps

    @property
    def telling(self) -> np.ndarray:
        """int64: the numbers of the steps that tell something."""
        return np.flatnonzero(~self.steps.quiet)

    @property
    def is_all_zero(self) -> bool:
        """All advantages are 0."""
        return bool(self.steps.has_zero_advantages.all())

    def level(self) -> np.ndarray:
        """int [S] the best level of any computation."""
        levels = [fit.level for fit in self.computations.values()]
        return np.min([np.full(self.steps.step_count, NONE), *levels], axis=0)

    def fitting(self, at: np.ndarray, level: int) -> list[Computation]:
        """Computations that fit every step in `at`, int64 or bool. Only those at the
        best level that any reaches count, and it must not exceed `level`."""
        fits = self.computations.items()
        worst = {c: fit.level[at].max(initial=0) for c, fit in fits}
        best = min(worst.values(), default=NONE)
        named = [c for c in worst if worst[c] == best <= level]
        return sorted(named, key=plainness)

    def tells_nothing(self, computation: Computation, at: np.ndarray) -> bool:
        """Whether the computation fits the steps `at` only since rounding of the
        rewards may move their advantages that much."""
        fit = self.computations[computation]
        slack = fit.slack[at].max(initial=0)
        by_rewards = fit.level[at].max(initial=0) == REWARDS
        return bool(by_rewards and not slack <= MOST_ROUNDING)

    def explains(self, suspect: Suspect, at: np.ndarray) -> bool:
        """Whether the suspect fits all the steps `at`, or fits some while its correct
        engine fits the others."""
        good = self.suspects[suspect].good[at]
        if good.any() and not good.all():
            good = good | self.twins[suspect].good[at]
        return bool(good.all())

    def contradicts_declaration(self, at: np.ndarray) -> bool:
        """Whether the declared computation is far from a row of the steps `at`."""
        beyond = self.declared_beyond
        return beyond is not None and bool(beyond[at].max() >= BEYOND)

    def contradicts_twin(self, suspect: Suspect, at: np.ndarray) -> bool:
        """Whether the suspect's correct engine is far from a row of the steps `at`."""
        return bool(self.beyond[suspect][at].max() >= BEYOND)

    def with_change(self) -> "Evidence":
        """The evidence, with the suspects that were tried beside the computations of
        the change."""
        if self.change is None:
            return self
        return replace(self, suspects={**self.suspects, **self.change.suspects})


def most_fitting(evidence: Evidence) -> Sequence[Computation]:
    """The computations, those that fit most steps first."""
    fits = evidence.computations
    return sorted(fits, key=lambda c: (-fits[c].good.sum(), plainness(c)))


def unexplained(evidence: Evidence) -> np.ndarray:
    """bool [S] the steps that tell something and that no computation fits."""
    return ~evidence.steps.quiet & (evidence.level() > WRITTEN)
