"""The bugs as a catalogue: what they can be chosen by, from their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from gradebook.bugs import BUGS
from gradebook.cases.case import STATUSES
from gradebook.cases.record import Bug, bug
from gradebook.engine.pipeline import STAGES

IN_LOG = ("yes", "with more columns", "no")
"""Whether a log can show a bug: with rewards, advantages and a prompt id;
only with further columns; or not at all."""


class Filter(NamedTuple):
    """One thing that the bugs can be chosen by.

    title   what it is called
    every   what stands for no choice
    order   the values, in the order they are offered
    values  a bug's own values
    """

    title: str
    every: str
    order: Callable[[Iterable[str]], list[str]]
    values: Callable[[Bug], tuple[str, ...]]


def in_log(one: Bug) -> str:
    """Whether a log can show the bug, one of IN_LOG."""
    if not one.in_advantages:
        return IN_LOG[2]
    return IN_LOG[0 if set(one.columns) <= {"prompt"} else 1]


def _alphabetical(found: Iterable[str]) -> list[str]:
    return sorted(found, key=str.lower)


def _as_in(order: tuple[str, ...]) -> Callable[[Iterable[str]], list[str]]:
    return lambda found: sorted(found, key=order.index)


FILTERS: Mapping[str, Filter] = {
    "trainer": Filter(
        "Trainer",
        "All trainers",
        _alphabetical,
        lambda one: tuple(one.trainer.split(", ")),
    ),
    "stage": Filter("Stage", "All stages", _as_in(STAGES), lambda one: (one.stage,)),
    "status": Filter(
        "Status",
        "Any status",
        _as_in(STATUSES),
        lambda one: one.statuses or (one.status,),
    ),
    "log": Filter(
        "Can a log show it?",
        "Either way",
        _as_in(IN_LOG),
        lambda one: (in_log(one),),
    ),
}


@lru_cache
def choices(name: str) -> tuple[str, ...]:
    """The values of a filter that some bug has."""
    one = FILTERS[name]
    found = {value for b in BUGS for value in one.values(bug(b))}
    return tuple(one.order(found))


def chosen(among: Iterable[str], wanted: Mapping[str, str]) -> list[str]:
    """The bugs `among` these that have each wanted value, in their order;
    '' as a value wants nothing. With a trainer, a status is that of the bug
    in this trainer."""
    return [name for name in among if _fits(bug(name), wanted)]


def _fits(one: Bug, wanted: Mapping[str, str]) -> bool:
    trainer, status = wanted.get("trainer"), wanted.get("status")
    if trainer and status and one.statuses:
        stands = zip(FILTERS["trainer"].values(one), one.statuses)
        if (trainer, status) not in stands:
            return False
    return all(
        not value or value in FILTERS[key].values(one) for key, value in wanted.items()
    )
