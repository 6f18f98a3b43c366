"""The session's drafts, and what a page keeps beside each of them.

A draft lives in the session, so it outlives a change of page, and no edit is
ever lost: a bad cell stays as typed until it is mended or undone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradebook.analysis.comparison import Comparison
from gradebook.cases import draft as drafts
from gradebook.cases.fields import said
from gradebook.cases.scenario import Scenario
from gradebook.cases.state import State
from gradebook.ui import keys


@dataclass
class Draft(drafts.Draft):
    """A draft with what its page worked out and chose.

    estimator  the named estimator that was chosen, where several fit
    seed       of the last draw of a subsample, -1 before the first
    good       the comparison of the last state that could be computed
    done       the last state that was computed; `faults` is what was wrong
    seen       what its board shows, made from the draft as it stands
    made       how often that was made
    """

    estimator: str = ""
    seed: int = -1
    good: Comparison | None = None
    done: State | None = None
    faults: list[str] = field(default_factory=list)
    seen: Callable[[], dict[str, Any]] = dict
    made: int = 0
    _own: tuple[tuple[str, ...], Comparison] | None = None

    @property
    def own(self) -> Comparison | None:
        """The comparison of the case's own batch under these bugs, where it
        is known."""
        if self._own is None or self._own[0] != self.state.bugs:
            return None
        return self._own[1]

    @own.setter
    def own(self, found: Comparison) -> None:
        self._own = self.state.bugs, found

    def named(self, part: str) -> str:
        """The name of a widget that shows a part of this draft."""
        return f"{part}-{self.scenario.name}"

    def wrong(self) -> list[str]:
        """Every cell and setting that cannot be read, in words."""
        return [said(error) for error in self.state.problems()]

    def reset(self) -> None:
        """The case as it came, as one more edit; the draws start again."""
        super().reset()
        self.seed = -1


def of(scenario: Scenario) -> Draft:
    """The draft of the scenario that stands on the page: the lead's while
    the learner follows, else the session's own, made at the first visit."""
    followed = keys.FOLLOWED.get().get(scenario.name)
    return own_of(scenario) if followed is None else followed


def own_of(scenario: Scenario) -> Draft:
    """The session's own draft of the scenario."""
    known = keys.DRAFTS.get()
    if scenario.name not in known:
        known[scenario.name] = Draft(scenario)
    return known[scenario.name]
