"""What a session does on the page of training runs, and its link."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.cases.link import VERSION, in_words
from gradebook.core.errors import shown
from gradebook.training.study import (
    OPTIMIZERS,
    SEEDS,
    Run,
    studied,
    study,
)
from gradebook.ui import keys
from gradebook.ui.runs.pool import Job, Pool, Task

KEYS = ("v", "bug", "value", "optimizer", "seeds", "third")
"""The parameters of a link."""


@dataclass(eq=False)
class Desk:
    """One session's runs.

    who       the session, as a watcher of jobs
    run       what stands on the page
    wanted    what the session watches now, if anything
    guesses   bug -> the answer and the run that was asked about; an answer
              of '' was skipped
    results   run -> the frames of each run that is done or was stopped
    opening   the batch that is to be opened, while it is sampled again
    opened    the batch that was opened last
    problems  what the link said that was not understood
    error     why the last run ended early, if it did
    """

    run: Run
    who: str = field(default_factory=lambda: secrets.token_hex(8))
    wanted: Task | None = None
    guesses: dict[str, tuple[str, Run]] = field(default_factory=dict)
    results: dict[Run, list[dict]] = field(default_factory=dict)
    opening: Task | None = None
    opened: Task | None = None
    problems: tuple[str, ...] = ()
    error: str = ""

    @property
    def covered(self) -> bool:
        """The learner has neither predicted nor skipped for this bug."""
        return self.run.bug not in self.guesses

    def choose(self, **changes: Any) -> None:
        """Another run stands on the page, and starts where its result is
        not known yet."""
        self.run = replace(self.run, **changes)
        if self.run in self.results:
            self.want(None)
        else:
            self.start()

    def start(self) -> None:
        """Trains what stands on the page, from its first update."""
        self.results.pop(self.run, None)
        self.error = ""
        self.want(Task(self.run))

    def want(self, task: Task | None) -> None:
        """Watches another job, or none."""
        if self.wanted is not None and self.wanted != task:
            pool().leave(self.wanted, self.who)
        self.wanted = task

    def job(self) -> Job | None:
        """The job that the session watches; says that it still does."""
        if self.wanted is None:
            return None
        return pool().watch(self.wanted, self.who)

    def settle(self, frames: list[dict]) -> None:
        """The run is done or was stopped: keeps its frames."""
        self.results[self.run] = frames
        self.want(None)


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """The server's workers, started at the first visit."""
    return Pool()


def desk() -> Desk:
    """The session's desk."""
    found = keys.DESK.get()
    if found is None:
        found = Desk(default_run(studied()[0]))
        keys.DESK.put(found)
    return found


def default_run(bug: str) -> Run:
    """The run that a bug's study begins with."""
    return Run(bug, study(bug).slider.default)


def query_of(run: Run) -> dict[str, str]:
    """The link's parameters."""
    query = {
        "v": VERSION,
        "bug": run.bug,
        "value": f"{run.value:g}",
        "optimizer": run.optimizer,
        "seeds": str(run.seeds),
    }
    return query | ({"third": "1"} if run.third else {})


def read_link(query: Mapping[str, str]) -> tuple[Run, tuple[str, ...]]:
    """The run of a link, and a sentence for everything in it that could not
    be understood. Never raises."""
    problems: list[str] = []

    def wrong(key: str, expected: str, then: str) -> None:
        problems.append(in_words(key, expected, shown(query[key]), then))

    for key in query:
        if key not in KEYS:
            problems.append(f"This page has no parameter {shown(key)}; it is left out.")
    bug = query.get("bug", studied()[0])
    if bug not in studied():
        then = f"{studied()[0]} is taken"
        if bug in BUGS:
            then = f"this bug has no training runs; {then}"
        wrong("bug", "one of " + ", ".join(studied()), then)
        bug = studied()[0]
    run, slider = default_run(bug), study(bug).slider
    if "value" in query:
        value = _number(query["value"])
        bounds = f"a number from {slider.least:g} to {slider.most:g}"
        if value is None or not slider.least <= value <= slider.most:
            wrong("value", bounds, f"{slider.default:g} is taken")
        else:
            run = replace(run, value=slider.nearest(value))
            if abs(run.value - value) > 1e-9:
                steps = f"{bounds} in steps of {slider.step:g}"
                wrong("value", steps, f"{run.value:g} is taken")
    options: dict[str, dict[str, Any]] = {
        "optimizer": {name: name for name in OPTIMIZERS},
        "seeds": {str(count): count for count in SEEDS},
        "third": {"1": True} if study(bug).third else {},
    }
    for key in [key for key in options if key in query]:
        if query[key] in options[key]:
            changed: dict[str, Any] = {key: options[key][query[key]]}
            run = replace(run, **changed)
        else:
            one_of = "one of " + ", ".join(options[key])
            expected = one_of if options[key] else "left out for this bug"
            wrong(key, expected, f"{getattr(run, key)} is taken")
    return run, tuple(problems)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
