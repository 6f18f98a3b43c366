"""Bug or not: reports to judge, real bugs among false alarms.

A seed decides which reports are drawn and in which order, so a link with the
seed replays the game. Nothing in the seed says which report is a bug.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from gradebook.bugs import BUGS
from gradebook.cases.alarm import Alarm, alarms
from gradebook.cases.plain import PlainCase
from gradebook.cases.scenario import Scenario, load

ROUNDS = 12
"""Reports of a game, unless every false alarm is asked for."""
AGREED = ("fixed", "open")
"""The statuses of reports that nobody disputes."""


@dataclass(frozen=True)
class Report:
    """A report to judge. Its `source` is a bug's scenario, or a false alarm.

    number  its place in the game, from 0
    seed    of the game
    every   the game has every false alarm
    """

    number: int
    seed: str
    source: Scenario | Alarm
    every: bool = False

    @property
    def is_bug(self) -> bool:
        """The report is of a real bug."""
        return isinstance(self.source, Scenario)

    @property
    def scored(self) -> bool:
        """The report counts. One that is disputed has no right answer."""
        return self.source.status != "disputed"

    @property
    def claim(self) -> str:
        """What the report says is wrong."""
        return self.source.claim

    @property
    def scene(self) -> str:
        """The sentence before the claim."""
        if isinstance(self.source, Scenario):
            return self.source.teaser
        return self.source.scene

    @property
    def picture(self) -> str:
        """What the board shows (Telltale.kind): advantages or gradients."""
        if isinstance(self.source, Scenario):
            return self.source.telltale.kind
        return self.source.picture

    @property
    def question(self) -> str:
        """The report's name in a room. It says nothing about the answer."""
        kind = "every" if self.every else "report"
        return f"{kind}-{self.seed}-{self.number}"

    def case(self, answered: bool) -> PlainCase:
        """The report's batch for a draft and a board. Before the answer it
        names no bug, and a bug's batch is like any other."""
        found: dict[str, Any] = {
            "name": self.question,
            "title": f"Report {self.number + 1}",
            "rows": self.source.rows,
            "settings": self.source.settings,
            "focus": self.source.focus,
        }
        if answered and isinstance(self.source, Scenario):
            found["name"] += "-answered"
            found["title"] = self.source.title
            found["bugs"] = self.source.bugs
            found["engine_names"] = self.source.engine_names
        return PlainCase(**found)


def real() -> tuple[Scenario, ...]:
    """The bugs that nobody disputes."""
    found = (load(name) for name in BUGS)
    return tuple(one for one in found if one.status in AGREED)


def game(seed: str, every: bool = False) -> tuple[Report, ...]:
    """The reports of a game, in order.

    every  with every false alarm and as many bugs; otherwise ROUNDS reports,
           of which about half are bugs
    """
    lures, bugs = list(alarms()), list(real())
    lures.sort(key=lambda one: _draw(seed, "alarm", one.name))
    bugs.sort(key=lambda one: _draw(seed, "bug", one.name))
    taken = len(lures)
    if not every:
        spread = int(_draw(seed, "share"), 16) % 3 - 1
        taken = ROUNDS // 2 + spread
        lures = lures[: ROUNDS - taken]
    chosen: list[Scenario | Alarm] = [*lures, *bugs[:taken]]
    chosen.sort(key=lambda one: _draw(seed, "order", one.name))
    return tuple(Report(at, seed, one, every) for at, one in enumerate(chosen))


def named(question: str) -> Report | None:
    """The report that has this name in a room, if it is one's."""
    kind, _, rest = question.partition("-")
    seed, _, number = rest.partition("-")
    if kind not in ("report", "every") or not number.isdecimal():
        return None
    reports = game(seed, kind == "every")
    return reports[int(number)] if int(number) < len(reports) else None


def _draw(*parts: str) -> str:
    """A number that depends on the parts and looks like chance, as hex
    digits. The same on every machine and in every version of Python."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
