"""What a session does on the page of training runs, and its link."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from gradebook.cases.link import VERSION, in_words
from gradebook.cases.scenario import load
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.training.runs import Runs
from gradebook.training.study import (
    OPTIMIZERS,
    SEEDS,
    Run,
    Study,
    default_run,
    studied,
    study,
)
from gradebook.training.train import Curves, trained
from gradebook.ui.keys import Key

PAGE = "consequences"


@dataclass(eq=False)
class Desk:
    """One session's runs.

    arrivals  how often a link has set the run; the widgets then start anew
    guesses   bug -> the choice, where one was made, and the run that was asked about
    error     why the run, or the batch of one update, is not there; '' while it trains
    """

    run: Run = field(default_factory=lambda: default_run(studied()[0]))
    arrivals: int = 0
    guesses: dict[str, tuple[int | None, Run]] = field(default_factory=dict)
    results: dict[Run, Curves] = field(default_factory=dict)
    error: str = ""

    @property
    def study(self) -> Study:
        return study(self.run.bug)

    @property
    def names(self) -> tuple[str, ...]:
        return load(self.run.bug).engine_names

    def choose(self, run: Run) -> None:
        runs().cancel(trained, self.run)
        self.run, self.error = run, ""


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    return Runs()


DESK: Key[Desk] = Key("desk", Desk)


def query_of(run: Run) -> dict[str, str]:
    return {
        "v": VERSION,
        "bug": run.bug,
        "value": f"{run.value:g}",
        "optimizer": run.optimizer,
        "seeds": str(run.seeds),
    }


def read_link(query: Mapping[str, str]) -> tuple[Run, str]:
    """The run of a link, and what was not understood in it; the link is then left out
    as a whole. Other parameters are passed over."""
    bug = query.get("bug", "")
    usual = default_run(bug if bug in studied() else studied()[0])
    slider, texts = study(usual.bug).slider, {**query_of(usual), **query}
    value, optimizer, seeds = texts["value"], texts["optimizer"], texts["seeds"]
    steps = f"from {slider.least:g} to {slider.most:g} in steps of {slider.step:g}"
    try:
        choice(texts["bug"], studied(), "bug")
        if value not in [f"{value:g}" for value in slider.values]:
            raise refuse(f"a number {steps}", value, "value")
        choice(optimizer, OPTIMIZERS, "optimizer")
        choice(seeds, map(str, SEEDS), "seeds")
    except GradebookError as error:
        then = "the bug's first run is shown"
        return usual, in_words(error.key, error.expected, error.found, then)
    return Run(usual.bug, float(value), optimizer, int(seeds)), ""
