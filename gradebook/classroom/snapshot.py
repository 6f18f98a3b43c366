"""A room at one moment, read as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from gradebook.classroom.store import hashed, leads, reveals, rooms, seats, votes

GONE = 60.0
"""Seconds after which a silent seat no longer counts as in the room."""
LOOKED = -1
"""The choice of a seat that looked at the answer: no vote."""


@dataclass(frozen=True)
class Position:
    """Where the lead is.

    page      the page's name in its address
    question  the scenario that stands there
    link      the lead's state as the query of a link, edits and selected
              row included
    stage     the stage that is open
    """

    page: str
    question: str
    link: str = ""
    stage: str = ""


@dataclass(frozen=True)
class Room:
    """A room at one moment.

    leads     who leads it, hashed
    position  where the lead stands; None before the first case
    revealed  the questions whose answers the lead has revealed
    counts    how many seats made each choice, by question
    token     of the link that joins without a typed code
    locked    newcomers stay outside
    most      seats that the lead allows; None for MOST_SEATS
    names     learners may give a first name, which the lead sees
    ends      when the lead's timer ends; None without one
    tab       the lead's tab that the room follows; None before the first
    present   seats that were heard of in the last GONE seconds, by the
              question that they see
    """

    code: str
    version: int
    leads: frozenset[str]
    position: Position | None
    revealed: frozenset[str]
    counts: Mapping[str, Mapping[int, int]]
    present: Mapping[str, int]
    token: str
    locked: bool
    most: int | None
    names: bool
    ends: float | None
    tab: str | None

    @property
    def here(self) -> int:
        """All seats that are present."""
        return sum(self.present.values())

    def led_by(self, seat: str) -> bool:
        """This browser leads the room."""
        return hashed(seat) in self.leads

    def answers(self, question: str) -> int:
        """How many votes the question has."""
        return sum(self.counts.get(question, {}).values())


def snapshot(database: Connection, code: str, now: float) -> Room | None:
    """The room, None where it is not open."""
    room = database.execute(select(rooms).where(rooms.c.code == code)).first()
    if room is None:
        return None
    counted = select(votes.c.question, votes.c.choice, func.count())
    counted = counted.where(votes.c.code == code, votes.c.choice != LOOKED)
    counted = counted.group_by(votes.c.question, votes.c.choice)
    counts: dict[str, dict[int, int]] = {}
    for question, choice, count in sorted(database.execute(counted)):
        counts.setdefault(question, {})[choice] = count
    sitting = select(seats.c.question, func.count()).group_by(seats.c.question)
    sitting = sitting.where(seats.c.code == code, seats.c.heard >= now - GONE)
    opened = select(reveals.c.question).where(reveals.c.code == code)
    led = select(leads.c.seat).where(leads.c.code == code)
    place = None
    if room.page is not None:
        place = Position(room.page, room.question, room.link, room.stage)
    return Room(
        code=code,
        version=room.version,
        leads=frozenset(database.execute(led).scalars()),
        position=place,
        revealed=frozenset(database.execute(opened).scalars()),
        counts=counts,
        present=dict(database.execute(sitting).all()),
        token=room.token,
        locked=room.locked,
        most=room.most,
        names=room.names,
        ends=room.ends,
        tab=room.tab,
    )
