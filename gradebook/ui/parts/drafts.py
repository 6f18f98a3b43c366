"""The session's drafts, and what a page keeps beside each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gradebook.analysis.comparison import Comparison, compare, compared
from gradebook.bugs import Swap, swapped
from gradebook.cases import edits as drafts
from gradebook.cases.scenario import Scenario
from gradebook.cases.state import State, said, start
from gradebook.core.errors import GradebookError
from gradebook.ui import keys


@dataclass
class Draft(drafts.Draft):
    """A draft with what its page works out and what was chosen there.

    estimator  the named estimator that was chosen, where several fit
    stage      the stage that is open on the path, '' for none
    kind       what the sandbox shows, where it was chosen
    challenge  the number of the challenge that is shown
    opened     the part at the page's end that is open, '' for none
    acts       what else the board's edits may do: name -> act
    seen       what its board shows, made from the draft as it stands
    made       how often that was made
    """

    estimator: str = ""
    stage: str = ""
    kind: str = ""
    challenge: int = 0
    opened: str = ""
    acts: Mapping[str, Callable[[Mapping[str, Any]], None]] = field(
        default_factory=dict
    )
    seen: Callable[[], dict[str, Any]] = dict
    made: int = 0
    _of: State | None = None
    _good: Comparison | None = None
    _faults: list[str] = field(default_factory=list)

    @property
    def swap(self) -> Swap:
        """The faulty engine, with every bug of the state."""
        return swapped(self.state.bugs)

    @property
    def comparison(self) -> Comparison:
        """Both engines on the batch as it stands. Where it has `faults`, on the
        last good one of these bugs, else on the case's."""
        self._compare()
        return self._good or self.original

    @property
    def faults(self) -> list[str]:
        """What the engines cannot compute of the batch, in words."""
        self._compare()
        return self._faults

    @property
    def original(self) -> Comparison:
        """Both engines on the case's own batch."""
        return _as_it_came(self.scenario, self.state.bugs)

    @property
    def shown_row(self) -> int:
        """The selected row, or the last of the batch that was compared."""
        return min(self.row, self.comparison.batch.rows - 1)

    @property
    def prompts(self) -> list[str]:
        """The rows' prompts as typed; by number where the comparison is older."""
        typed, batch = list(self.table["prompt"]), self.comparison.batch
        if len(typed) == batch.rows:
            return typed
        return [str(prompt) for prompt in batch.prompt.tolist()]

    def compared(self) -> Comparison:
        """Both engines on the state. Raises GradebookError."""
        return compared(self.state)

    def _compare(self) -> None:
        """Once for each state."""
        if self._of is self.state:
            return
        if self._of is None or self._of.bugs != self.state.bugs:
            self._good = None
        self._faults = []
        try:
            self._good = self.compared() if self.edited else self.original
        except GradebookError as error:
            self._faults = [said(error)]
        self._of = self.state

    def named(self, part: str) -> str:
        """The name of a widget that shows a part of this draft."""
        return f"{part}-{self.scenario.name}"

    def _take(self, edit: Mapping[str, Any]) -> None:
        act = self.acts.get(str(edit.get("do")))
        if act is None:
            super()._take(edit)
        else:
            act(edit)


@lru_cache(maxsize=256)
def _as_it_came(scenario: Scenario, bugs: tuple[str, ...]) -> Comparison:
    return compare(swapped(bugs), start(scenario).batch())


def of(scenario: Scenario) -> Draft:
    """The session's draft of the scenario, made at the first visit."""
    drafts_of_session = keys.DRAFTS.get()
    if scenario.name not in drafts_of_session:
        drafts_of_session[scenario.name] = Draft(scenario)
    return drafts_of_session[scenario.name]
