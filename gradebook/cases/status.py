"""The state of a report, as data: one record for each trainer that a bug names.

A record says what was read of the report, and which version was looked at last. Pages,
handouts, the command line and README render it; nothing else knows whether a bug is
fixed.

>>> fix = Version("v2.0.0", date(2026, 7, 2))
>>> run = Checked("1.0.4", on=date(2026, 11, 23), has_it=True, by="run")
>>> its = dict(trainer="AReaL", report="issue 1419", seen=date(2026, 9, 16))
>>> record = Status(**its, state="fixed", fixed_in=fix, checked=[run])
>>> record.headline
'AReaL · fixed in v2.0.0'
>>> print(record.sentence)
Fixed in v2.0.0 (2026-07-02). Checked: 1.0.4 has it (code run on 2026-11-23).
"""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from gradebook.cases.schema import FilePart, Flag, Reported, between
from gradebook.core.errors import GradebookError, refuse

ReportState = Literal["open", "fixed", "disputed", "not confirmed", "by design"]


@dataclass(frozen=True)
class Version(FilePart):
    """A release or a commit of a trainer, and its date."""

    name: str
    date: date

    def __str__(self) -> str:
        return f"{self.name} ({self.date})"


@dataclass(frozen=True)
class Checked(FilePart):
    """A version that was looked at.

    on      the day on which that was done
    has_it  whether this version has the bug
    by      how that is known: its code was run, or only read
    """

    version: str
    on: date
    has_it: Flag
    by: Literal["run", "read"] = "run"

    def __str__(self) -> str:
        has = "has it" if self.has_it else "does not have it"
        return f"{self.version} {has} (code {self.by} on {self.on})"


@dataclass(frozen=True, kw_only=True)
class Status(FilePart):
    """What is known of a report about one trainer.

    trainer   the trainer, as the page Trainers spells it
    report    the issue or pull request that was read
    state     what the report says; "by design" if the trainer documents it
    since     the first version or commit with the bug; None if it was not looked up
    fixed_in  the first version or commit without it; only a fixed bug has one
    checked   versions that were run or read, the newest last
    seen      the date of the newest comment, commit or release that was read
    note      what else a reader of the report must know

    Raises GradebookError for a fix without its version, a version of a fix without
    the state, and dates out of order.
    """

    trainer: str
    report: str
    state: ReportState
    checked: Annotated[tuple[Checked, ...], between(1)]
    seen: date
    since: Version | None = None
    fixed_in: Version | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if (self.state == "fixed") != (self.fixed_in is not None):
            expected = 'the first version without the bug, if the state is "fixed"'
            raise GradebookError(key="fixed_in", expected=expected, found=self.state)
        if self.since and self.fixed_in and self.since.date > self.fixed_in.date:
            found = f"{self.fixed_in}, before {self.since}"
            raise refuse("a version after `since`", found, "fixed_in")

    @property
    def words(self) -> str:
        """'fixed in v2.0.0', or the state."""
        return f"fixed in {self.fixed_in.name}" if self.fixed_in else self.state

    @property
    def headline(self) -> str:
        """'AReaL · fixed in v2.0.0'."""
        return f"{self.trainer} · {self.words}"

    @property
    def dated(self) -> str:
        """The state with the date that it rests on."""
        if self.fixed_in:
            return f"fixed in {self.fixed_in}"
        return f"{self.state} (as of {self.seen})"

    @property
    def sentence(self) -> str:
        """The whole record but trainer and report."""
        dated = self.dated
        parts = [f"{dated[0].upper()}{dated[1:]}."]
        if self.since:
            parts.append(f"First in {self.since}.")
        return " ".join(filter(None, [*parts, self.versions, self.note]))

    @property
    def versions(self) -> str:
        """What was run or read, the newest first."""
        return f"Checked: {'; '.join(map(str, reversed(self.checked)))}."


@dataclass(frozen=True, eq=False, kw_only=True)
class Tracked(Reported):
    """A report with its state in each trainer that it names."""

    status: Annotated[tuple[Status, ...], between(1)]

    @property
    def trainers(self) -> tuple[str, ...]:
        """The trainers that have, or had, the bug."""
        return tuple(record.trainer for record in self.status)

    @property
    def trainer(self) -> str:
        """The trainers, joined by ", "."""
        return ", ".join(self.trainers)

    @property
    def is_disputed(self) -> bool:
        """Somebody calls the behaviour right, in at least one trainer."""
        return any(record.state == "disputed" for record in self.status)

    @property
    def standing(self) -> str:
        """'AReaL · fixed in v2.0.0', or 'slime open · miles fixed in v0.1.0'."""
        if len(self.status) == 1:
            return self.status[0].headline
        return " · ".join(f"{record.trainer} {record.words}" for record in self.status)
