"""What a session does on the page "Does it matter?", and its link."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from gradebook.cases.link import VERSION, in_words
from gradebook.cases.scenario import load
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.training.runs import TrainingQueue
from gradebook.training.study import (
    OPTIMIZERS,
    SEEDS,
    Run,
    Study,
    default_run,
    studied,
    study,
)
from gradebook.training.train import TabularCurves, trained
from gradebook.training.transformer.experiments import (
    Experiment,
    experiment,
    experimented,
)
from gradebook.training.transformer.live import live
from gradebook.training.transformer.results import Pair
from gradebook.ui.keys import Key
from gradebook.ui.parts import drafts

PAGE = "consequences"
OF_TABLES = "value", "optimizer", "seeds"
"""The parameters of a link that are about the tables."""


@dataclass(frozen=True)
class Place:
    """What the page shows: a bug, a dose of the transformer's, and a run of the tables;
    None for a bug whose tables were not trained."""

    bug: str
    dose: str
    run: Run | None


def first_place(bug: str) -> Place:
    run = default_run(bug) if bug in studied() else None
    return Place(bug, experiment(bug).shown, run)


@dataclass(eq=False)
class Desk:
    """One session's runs.

    arrivals  how often a link has set the place; the widgets then start anew
    results   of the tables
    grown     live runs of the transformer that are whole, by bug and dose
    grows     the live run that is watched
    error     why the run, or the batch of one update, is not there; '' while it trains
    opens     the tables are open at first
    """

    place: Place = field(default_factory=lambda: first_place(experimented()[0]))
    arrivals: int = 0
    results: dict[Run, TabularCurves] = field(default_factory=dict)
    grown: dict[tuple[str, str], Pair] = field(default_factory=dict)
    grows: tuple[str, str] | None = None
    error: str = ""
    opens: bool = False

    @property
    def guesses(self) -> dict[str, tuple[int | None, str]]:
        """Bug -> the choice, if one was made, and the dose in the question. The browser
        remembers them over a reload."""
        return drafts.PROGRESS.get().trained

    @property
    def bug(self) -> str:
        return self.place.bug

    @property
    def run(self) -> Run:
        """The tables' run, if there is one."""
        assert self.place.run is not None
        return self.place.run

    @property
    def experiment(self) -> Experiment:
        return experiment(self.bug)

    @property
    def study(self) -> Study:
        return study(self.bug)

    @property
    def names(self) -> tuple[str, ...]:
        return load(self.bug).engine_names

    def go(self, place: Place) -> None:
        """Shows another place. A training that only the old place needs is
        cancelled."""
        if place.run != self.place.run and self.place.run is not None:
            runs().cancel(trained, self.place.run)
            self.error = ""
        if (place.bug, place.dose) != (self.bug, self.place.dose):
            self.stop()
        self.place = place

    def stop(self) -> None:
        """Ends the live run."""
        if self.grows is not None:
            runs().cancel(live, *self.grows)
        self.grows = None


@st.cache_resource(show_spinner=False)
def runs() -> TrainingQueue:
    return TrainingQueue()


DESK: Key[Desk] = Key("desk", Desk)


def query_of(place: Place) -> dict[str, str]:
    query = {"v": VERSION, "bug": place.bug, "dose": place.dose}
    run = place.run
    if run is None or run == default_run(place.bug):
        return query
    texts = f"{run.value:g}", run.optimizer, str(run.seeds)
    return query | dict(zip(OF_TABLES, texts))


def read_link(query: Mapping[str, str]) -> tuple[Place, str]:
    """The place of a link, and what was not understood in it; the link is then left out
    as a whole. Other parameters are passed over."""
    bug = query.get("bug", "")
    usual = first_place(bug if bug in experimented() else experimented()[0])
    try:
        if bug:
            choice(bug, experimented(), "bug")
        dose = query.get("dose", usual.dose)
        choice(dose, experiment(usual.bug).names, "dose")
        run = usual.run and _read_run(query, usual.run)
    except GradebookError as error:
        then = "the bug's first run is shown"
        return usual, in_words(error.key, error.expected, error.found, then)
    return Place(usual.bug, dose, run), ""


def _read_run(query: Mapping[str, str], usual: Run) -> Run:
    """The tables' run of a link. Raises GradebookError for a value that it cannot
    have."""
    slider = study(usual.bug).slider
    usually = f"{usual.value:g}", usual.optimizer, str(usual.seeds)
    value, optimizer, seeds = (
        query.get(name, text) for name, text in zip(OF_TABLES, usually)
    )
    steps = f"from {slider.least:g} to {slider.most:g} in steps of {slider.step:g}"
    if value not in [f"{value:g}" for value in slider.values]:
        raise refuse(f"a number {steps}", value, "value")
    choice(optimizer, OPTIMIZERS, "optimizer")
    choice(seeds, map(str, SEEDS), "seeds")
    return Run(usual.bug, float(value), optimizer, int(seeds))
