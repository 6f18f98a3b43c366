"""A batch with settings and a title: what a draft, the board and a link need
of a case that is no bug's scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gradebook.cases.scenario import Scenario
from gradebook.core.settings import Settings


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainCase:
    """A batch, and what it is called.

    name      of its draft, its board and its widgets
    title     what the board's picture is called
    bugs      what the faulty engine has; () where there is only one engine
    controls  the settings that the page has widgets for
    """

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    settings: Settings
    focus: int = 0
    bugs: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    engine_names: tuple[str, str] = ("correct", "faulty")
    eos_by_width: bool = False

    def as_scenario(self) -> Scenario:
        """The same case for functions that take a scenario but read only
        what is declared here: State, Draft, view and link."""
        return cast(Scenario, self)
