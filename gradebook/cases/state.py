"""Everything a learner can change on a page, as one value: undo goes back to an older
state, and a link is a state written down. On a page it is always a valid batch."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Self

from gradebook.cases.scenario import Case
from gradebook.cases.table import Table
from gradebook.core.batch import Batch
from gradebook.core.columns import titled
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings


@dataclass(frozen=True)
class Opened:
    """A batch that came from elsewhere, in place of the case's own.

    source  where it came from, in words
    state   the batch as it came
    """

    source: str
    state: "State"


@dataclass(frozen=True)
class State:
    """A case as the learner has changed it, with the selected row, its selected token
    if the board's lines are tokens, and the bugs of the faulty engine. `opened` is
    the batch that the learner changes, if it is not the case's own."""

    scenario: Case
    table: Table
    settings: Settings
    row: int = 0
    bugs: tuple[str, ...] = ()
    token: int = 0
    opened: Opened | None = field(default=None, compare=False)

    @property
    def bug(self) -> str:
        """Raises GradebookError if there is not exactly one."""
        if len(self.bugs) != 1:
            named = " and ".join(self.bugs) or "none"
            raise GradebookError(key="bugs", expected="exactly one bug", found=named)
        return self.bugs[0]

    @property
    def rows(self) -> int:
        return len(self.table)

    def batch(self) -> Batch:
        """The table as a batch. Raises GradebookError with the place that makes it
        invalid."""
        return self.table.batch(self.settings)

    def same_batch(self, other: Self) -> bool:
        """The states differ at most in the selected row and token."""
        return replace(self, row=other.row, token=other.token) == other


@lru_cache(maxsize=256)
def start(scenario: Case) -> State:
    batch = (scenario.rows, scenario.settings)
    return State(scenario, *batch, scenario.focus, scenario.bugs, scenario.token)


TEXTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("fields.toml").read_text("utf-8")
)
"""Title and help of each setting, and of the estimator."""


def title(key: str) -> str:
    """What a setting or a column is called on the screen."""
    return TEXTS[key]["title"] if key in TEXTS else titled(key).replace("_", " ")


def message_of(error: GradebookError) -> str:
    """An error in the words of the page."""
    if not error.expected:
        return str(error)
    row = "" if error.row is None else f", row {error.row}"
    token = "" if error.token is None else f", token {error.token}"
    rest = error.at(key="", row=None, token=None)
    return f"{title(error.key)}{row}{token}: {rest}"
