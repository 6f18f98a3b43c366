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
from gradebook.training.runs import Runs, Task
from gradebook.training.study import OPTIMIZERS, SEEDS, Run, default_run, studied, study
from gradebook.training.train import Curves
from gradebook.ui import keys


@dataclass(eq=False)
class Desk:
    """One session's runs.

    visitor   the session, as it asks for runs
    run       what stands on the page
    arrivals  how often a link has set the run; the widgets then start anew
    guesses   bug -> the answer and the run that was asked about; an answer
              of '' was skipped
    results   run -> its curves, of each run that this session has seen
    idle      a run that was cancelled or failed, until Start
    opened    the batch that was opened last on the bug's page
    problems  what the link said that was not understood
    error     why the last run has no result
    """

    run: Run
    visitor: str = field(default_factory=lambda: secrets.token_hex(8))
    arrivals: int = 0
    guesses: dict[str, tuple[str, Run]] = field(default_factory=dict)
    results: dict[Run, Curves] = field(default_factory=dict)
    idle: Run | None = None
    opened: Task | None = None
    problems: tuple[str, ...] = ()
    error: str = ""

    def choose(self, **changes: Any) -> None:
        """Another run stands on the page."""
        runs().cancel(Task(self.run), self.visitor)
        self.run, self.idle, self.error = replace(self.run, **changes), None, ""


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    """The server's training runs."""
    return Runs()


def desk() -> Desk:
    """The session's desk."""
    desk = keys.DESK.get()
    if desk is None:
        desk = Desk(default_run(studied()[0]))
        keys.DESK.put(desk)
    return desk


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
    for key in query:
        if key not in (*options, "v", "bug", "value"):
            problems.append(f"This page has no parameter {shown(key)}; it is left out.")
        elif key in options and query[key] in options[key]:
            changed: dict[str, Any] = {key: options[key][query[key]]}
            run = replace(run, **changed)
        elif key in options:
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
