"""What a session does on the page of training runs, and its link."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from gradebook.cases.link import VERSION, in_words
from gradebook.training.runs import Runs, Task
from gradebook.training.study import OPTIMIZERS, SEEDS, Run, default_run, studied, study
from gradebook.training.train import Curves
from gradebook.ui.keys import Key
from gradebook.ui.parts.address import page_files

PAGE = "consequences"


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

    run: Run = field(default_factory=lambda: default_run(studied()[0]))
    visitor: str = field(default_factory=lambda: secrets.token_hex(8))
    arrivals: int = 0
    guesses: dict[str, tuple[str, Run]] = field(default_factory=dict)
    results: dict[Run, Curves] = field(default_factory=dict)
    idle: Run | None = None
    opened: Task | None = None
    problems: tuple[str, ...] = ()
    error: str = ""

    def choose(self, run: Run) -> None:
        """Another run stands on the page."""
        runs().cancel(Task(self.run), self.visitor)
        self.run, self.idle, self.error = run, None, ""


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    """The server's training runs."""
    return Runs()


DESK: Key[Desk] = Key("desk", Desk)
"""The session's desk."""


def query_of(run: Run) -> dict[str, str]:
    """The link's parameters."""
    return {
        "v": VERSION,
        "bug": run.bug,
        "value": f"{run.value:g}",
        "optimizer": run.optimizer,
        "seeds": str(run.seeds),
    }


def read_link(query: Mapping[str, str]) -> tuple[Run, tuple[str, ...]]:
    """The run of a link, and a sentence for all that was not understood in it."""
    problems: list[str] = []
    bug = query.get("bug", studied()[0])
    if bug not in studied():
        bug, expected = studied()[0], "one of " + ", ".join(studied())
        problems.append(in_words("bug", expected, query["bug"], f"{bug} is taken"))
    run, slider = default_run(bug), study(bug).slider
    steps = range(round((slider.most - slider.least) / slider.step) + 1)
    values = [slider.nearest(slider.least + step * slider.step) for step in steps]
    options: dict[str, dict[str, Any]] = {
        "value": {f"{value:g}": value for value in values},
        "optimizer": {name: name for name in OPTIMIZERS},
        "seeds": {str(count): count for count in SEEDS},
    }
    for key in query:
        if key in ("v", "bug"):
            continue
        readable = options.get(key, {})
        if query[key] in readable:
            changed = {key: readable[query[key]]}
            run = replace(run, **changed)
            continue
        expected = "one of " + ", ".join(readable) if readable else "left out"
        if key == "value":
            bounds = f"a number from {slider.least:g} to {slider.most:g}"
            expected = f"{bounds} in steps of {slider.step:g}"
        problems.append(in_words(key, expected, repr(query[key]), "it is left out"))
    return run, tuple(problems)


# From a bug's page to its training runs, and back to them


def matter(bug: str) -> None:
    """The link "Does it matter?", where the bug has training runs."""
    if bug in studied():
        run = DESK.get().run
        curves_link("Does it matter?", run if run.bug == bug else default_run(bug))


def back(bug: str) -> None:
    """What was opened from a training run, and the way back to its curves."""
    opened = DESK.get().opened
    if opened is None or opened.run.bug != bug:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"The batch of update {opened.update}, seed {opened.seed}, of a"
            " training run was opened here."
        )
        curves_link("Back to the curves", opened.run)


def curves_link(label: str, run: Run) -> None:
    """A link to the curves of the run."""
    st.page_link(page_files()[PAGE], label=label, query_params=query_of(run))
