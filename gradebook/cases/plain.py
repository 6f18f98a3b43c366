"""A batch with settings and a title: what a draft, the board and a link need
of a case that is no bug's scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from gradebook.cases.case import SettingsTable
from gradebook.cases.rows import Rows
from gradebook.cases.scenario import Scenario
from gradebook.cases.schema import Count, Part, Text


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainCase(Part):
    """A batch, and what it is called.

    name      of its draft, its board and its widgets
    title     what the board's picture is called
    bugs      what the faulty engine has; () where there is only one engine
    controls  the settings that the page has widgets for
    """

    name: Text
    title: Text
    rows: Rows
    settings: SettingsTable
    focus: Count = 0
    bugs: tuple[Text, ...] = ()
    controls: tuple[Text, ...] = ()
    engine_names: tuple[Text, Text] = ("correct", "faulty")

    def as_scenario(self) -> Scenario:
        """The same case for functions that take a scenario but read only
        what is declared here: State, Draft, view and link."""
        return cast(Scenario, self)
