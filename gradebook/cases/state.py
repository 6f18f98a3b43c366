"""Everything a learner can change on a page, as one value.

A state is never changed, only replaced: undo is going back to an older one,
and a link is a state written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from gradebook.cases import table as tables
from gradebook.cases.scenario import Scenario
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import CHOICES, FLAGS, MAY_BE_NONE, Settings
from gradebook.engine.trainer import NORMALIZATIONS, eos_by_width

WHOLE = ("group_size", "max_tokens", "accumulation", "min_group_size")
SWITCHES = ("detector", "evaluation", "training_guard")


@dataclass(frozen=True, eq=False)
class State:
    """A scenario under the learner's hands, cells and settings as typed.

    cells          the batch as a table (gradebook.table), never mutated;
                   None while it is the scenario's own
    typed          every setting: text for numbers, '' for none
    row            the selected row
    detector       EOS is found by the padded width
    normalization  one of trainer.NORMALIZATIONS, for the faulty side
    evaluation     one generation a prompt
    training_guard the correct engine's guard holds in training only
    bugs           what the faulty engine has; on a bug's page that bug
    """

    scenario: Scenario
    cells: pd.DataFrame | None = None
    typed: Mapping[str, Any] = field(default_factory=dict)
    row: int = 0
    detector: bool = False
    normalization: str = NORMALIZATIONS[-1]
    evaluation: bool = False
    training_guard: bool = False
    bugs: tuple[str, ...] = ()

    @property
    def bug(self) -> str:
        """The one bug of the faulty engine. Raises GradebookError where
        there is none, or more."""
        if len(self.bugs) != 1:
            raise GradebookError(
                key="bugs",
                expected="exactly one bug",
                found=" and ".join(self.bugs) or "none",
            )
        return self.bugs[0]

    @property
    def table(self) -> pd.DataFrame:
        """The batch as a table. Not to be changed in place."""
        return _own(self.scenario) if self.cells is None else self.cells

    @property
    def columns(self) -> list[str]:
        """The table's columns."""
        own = self.cells is None
        return list(tables.to_cells(self.scenario.rows) if own else self.cells)

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        own = self.cells is None
        return len(self.scenario.rows) if own else len(self.cells)

    def settings(self) -> Settings:
        """The settings as typed. Raises GradebookError naming one."""
        return read_settings(self.typed, self.scenario.settings)

    def batch(self) -> Batch:
        """The table as a batch. Raises GradebookError with its place."""
        batch = self.scenario.batch(self.cells, self.settings())
        if self.detector:
            batch = replace(batch, eos=eos_by_width(batch))
        return batch

    def problems(self) -> list[GradebookError]:
        """Every cell and setting that cannot be read."""
        found = [] if self.cells is None else tables.problems(self.cells)
        for name, value in self.typed.items():
            try:
                read_settings({name: value}, self.scenario.settings)
            except GradebookError as error:
                found.append(error)
        return found

    def same_batch(self, other: State) -> bool:
        """Equal but for the selected row."""
        switches = ("normalization", "bugs", *SWITCHES)
        return (
            self.scenario.name == other.scenario.name
            and dict(self.typed) == dict(other.typed)
            and all(getattr(self, s) == getattr(other, s) for s in switches)
            and self._same_cells(other)
        )

    def _same_cells(self, other: State) -> bool:
        if self.cells is None and other.cells is None:
            return self.scenario.rows == other.scenario.rows
        return self.cells is other.cells or self.table.equals(other.table)

    def same(self, other: State) -> bool:
        """Equal in everything."""
        return self.row == other.row and self.same_batch(other)


@lru_cache(maxsize=256)
def _own(scenario: Scenario) -> pd.DataFrame:
    """The scenario's own table."""
    return scenario.table()


@lru_cache(maxsize=256)
def start(scenario: Scenario) -> State:
    """The state that says what the scenario says."""
    return State(
        scenario=scenario,
        typed=typed_settings(scenario.settings),
        row=scenario.focus,
        detector=scenario.eos_by_width,
        bugs=(scenario.bug,),
    )


def typed_settings(settings: Settings) -> dict[str, Any]:
    """Settings as a person types them: numbers as text, none as ''."""
    typed: dict[str, Any] = {}
    for name in settings.keys():
        value = settings[name]
        if name in CHOICES or name in FLAGS:
            typed[name] = value
        elif isinstance(value, float):
            short = f"{value:g}"
            typed[name] = short if float(short) == value else repr(value)
        else:
            typed[name] = tables.as_text(value)
    return typed


def read_settings(typed: Mapping[str, Any], base: Settings) -> Settings:
    """Typed settings laid over `base`. Raises GradebookError naming one."""
    return replace(base, **{n: read_setting(n, v) for n, v in typed.items()})


def read_setting(name: str, value: Any) -> Any:
    """One typed setting's value. Raises GradebookError naming it."""
    if name in CHOICES or name in FLAGS:
        return value
    if name in MAY_BE_NONE and not str(value).strip():
        return None
    try:
        return tables.whole(value) if name in WHOLE else tables.number(value)
    except GradebookError as error:
        raise GradebookError(
            key=name, expected=error.expected, found=error.found
        ) from None
