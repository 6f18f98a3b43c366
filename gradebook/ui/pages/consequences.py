"""Does it matter? Two policies trained side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import query_string
from gradebook.cases.scenario import load
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.classroom.plan import TRAINING
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.output.charts import curves_figure, dose_figure
from gradebook.training.environments import KINDS
from gradebook.training.runs import shipped
from gradebook.training.study import (
    OPTIMIZERS,
    SEEDS,
    UPDATES,
    Effect,
    Run,
    default_run,
    effect,
    question,
    run_name,
    sentence,
    studied,
    study,
)
from gradebook.training.train import Curves, rows_at, trained
from gradebook.ui.parts import address, words
from gradebook.ui.parts.desk import DESK, PAGE, Desk, query_of, read_link, runs
from gradebook.ui.parts.predict import SKIPPED, choices
from gradebook.ui.parts.widget import chart, ink, offered
from gradebook.ui.rooms import bar as room

LEAD = (
    "A small policy is trained twice, with the same seeds and the same luck: once"
    " with each engine. The policies are tables, not language models. Neither the"
    " size nor the direction of an effect is promised to carry over: try the other"
    " optimizers."
)
LOOK = 0.5
"""Seconds from one look at a run to the next."""


def consequences() -> None:
    mine = DESK.get()
    if query := room.follow(PAGE) or address.arrived():
        mine.run, mine.problem = read_link(query)
        mine.arrivals += 1
    standing = _in_a_room(mine)
    st.title("Does it matter?")
    address.unread(mine.problem)
    first, *columns = st.columns([3, 4, 4, 2], vertical_alignment="bottom")
    bug = first.selectbox(
        "Bug",
        studied(),
        index=studied().index(mine.run.bug),
        format_func=lambda bug: load(bug).title,
        key=f"training-bug-{mine.arrivals}",
        label_visibility="collapsed",
    )
    if bug != mine.run.bug:
        mine.problem = ""
        mine.choose(default_run(bug))
    task = words.plain(mine.study.task)
    if standing and not standing.is_open or bug not in mine.guesses:
        st.markdown(f"{LEAD}\n\n{task}")
        _ask(mine, standing)
    else:
        _switches(mine, columns)
        _result(mine)
        st.markdown(f"**What is trained:** {task} {LEAD}")
    address.put(query_of(mine.run))


def _in_a_room(mine: Desk) -> room.Standing | None:
    """Where this browser stands in a room that asks about the bug's run as it
    comes; None without a room."""
    bug = mine.run.bug
    name, usual = TRAINING + bug, default_run(bug)
    shown = mine.run if bug in mine.guesses else usual
    room.move(PAGE, name, query_string(query_of(shown)))
    standing = room.about(name)
    if standing and standing.is_open:
        kinds: dict[int | None, str] = dict(enumerate(KINDS))
        kind = kinds.get(standing.vote, "")  # a look at the answer is no vote
        mine.guesses.setdefault(bug, (kind, usual))
    elif standing:
        mine.guesses.pop(bug, None)
        mine.choose(usual)
    return standing


def _ask(mine: Desk, standing: room.Standing | None) -> None:
    """The question. In a room an answer is a vote, and the lead has none."""
    run, its = mine.run, mine.study

    def answer(choice: int) -> None:
        if standing:
            room.vote(TRAINING + run.bug, choice)
        else:
            kind = "" if choice == SKIPPED else KINDS[choice]
            mine.guesses[run.bug] = kind, run

    with st.container(key=f"predict-training-{run.bug}"):
        text = words.plain(question(its, run.value, mine.names, its.report[0]))
        st.markdown(f"**Predict before you look:** {text}")
        if not (standing and standing.leads):
            offered = {
                f"training-choice-{kind}": choice[:1].upper() + choice[1:]
                for kind, choice in zip(KINDS, its.measured.choices)
            }
            choices(offered, answer, skip="skip-training")


def _switches(mine: Desk, columns: Sequence[DeltaGenerator]) -> None:
    """The slider, the optimizer and the seeds. Another setting starts at once."""
    run, slider = mine.run, mine.study.slider
    key = partial("training-{}-{}-{}".format, run.bug, mine.arrivals)
    digits = len(f"{slider.step:g}".partition(".")[2])
    value = columns[0].slider(
        slider.label,
        slider.least,
        slider.most,
        run.value,
        slider.step,
        format=f"%.{digits}f",
        key=key("value"),
    )
    optimizer = columns[1].segmented_control(
        "Optimizer",
        list(OPTIMIZERS),
        default=run.optimizer,
        format_func=lambda name: OPTIMIZERS[name].title,
        required=True,
        key=key("optimizer"),
    )
    seeds = columns[2].segmented_control(
        "Seeds", list(SEEDS), default=run.seeds, required=True, key=key("seeds")
    )
    chosen = Run(run.bug, slider.nearest(value), optimizer, seeds)
    if chosen != run:
        mine.choose(chosen)


# The result of a run


def _result(mine: Desk) -> None:
    """What the run on the page shows; while it trains, its place in the queue."""
    run = mine.run
    curves = mine.results.get(run) or shipped(run)
    left, right = st.columns([3, 2])
    with left, st.container(key="training"):
        if curves:
            mine.results[run] = curves
            _picture(mine, curves)
        elif mine.idle == run:
            st.subheader(words.plain(mine.error), anchor=False)
            if st.button("Start", key="training-start"):
                mine.choose(run)
                st.rerun()
        else:

            def keep(curves: Curves) -> None:
                mine.results[run] = curves
                st.rerun()

            doing = f"Training {UPDATES} updates of both policies."
            st.fragment(_waiting, run_every=LOOK)(mine, doing, keep, trained, run)
    with right:
        _dose(mine)
    if curves:
        _below(mine, curves)


def _waiting(mine: Desk, doing: str, then: Callable[[Any], object], *call: Any) -> None:
    """What a call trains, or its place in the queue. `then` takes its value."""
    try:
        future = runs().ask(*call)
        if future.done() and not future.cancelled():  # by another session
            then(future.result())
    except GradebookError as error:
        mine.idle, mine.error = mine.run, str(error)
        st.rerun()
    place = runs().place(*call)
    text = f"Waiting: place {place} in the queue." if place else doing
    st.subheader(text, anchor=False)
    if st.button("Cancel", key="training-cancel"):
        runs().cancel(*call)
        mine.idle, mine.error = mine.run, "Cancelled."
        st.rerun()


def _picture(mine: Desk, curves: Curves) -> None:
    """The guess on the run that was asked about, the result, and the curves."""
    run, its, names = mine.run, mine.study, mine.names
    measured, update = its.measured, its.report[0]
    shown = _effect(run, curves, update)
    text = sentence(its, run.value, shown, update, names[1])
    guess, asked = mine.guesses[run.bug]
    if guess and asked == run:
        choice = dict(zip(KINDS, measured.choices))[guess]
        right = " That is right." if guess == shown.kind else ""
        text = f"You said {choice}.{right} {text}"
    st.subheader(words.plain(text), anchor=False)
    figure = curves_figure(
        curves.updates,
        curves.values[its.measure],
        names,
        axis=measured.title,
        reach=measured.reach,
        ink=ink(),
    )
    chart(figure, key="curves", alt=_summary(mine, curves))
    diverged = _effect(run, curves, UPDATES).diverged
    if diverged:
        st.warning(
            f"{diverged} of {run.seeds} seeds diverged: their policy is not a number"
            " any more. Their curves end there, and the result leaves them out."
        )


def _effect(run: Run, curves: Curves, update: int) -> Effect:
    """The faulty run beside the correct one, by the run's own measure."""
    frame = curves.updates.index(update)
    return effect(*curves.values[study(run.bug).measure][frame])


def _summary(mine: Desk, curves: Curves) -> str:
    run, (correct, faulty) = mine.run, mine.names
    title = mine.study.measured.title
    start, end = _effect(run, curves, 0), _effect(run, curves, UPDATES)
    return (
        f"{title[:1].upper()}{title[1:]}, mean of {run.seeds} seeds:"
        f" {_three(start.correct)} at the start; after {UPDATES} updates"
        f" {correct} {_three(end.correct)}, {faulty} {_three(end.faulty)}."
    )


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", "−").replace("nan", "no value")


def _dose(mine: Desk) -> None:
    """The effect at each setting of this slider that the session has seen."""
    run, slider, update = mine.run, mine.study.slider, mine.study.report[0]
    points = []
    for other, curves in mine.results.items():
        if replace(other, value=run.value) == run:
            shown = _effect(other, curves, update)
            points.append((other.value, shown.difference, shown.half_width))
    if not points:
        return
    figure = dose_figure(
        points,
        axis=f"difference after {update} updates",
        across=slider.label,
        reach=(slider.least, slider.most),
        setting=run.value,
        ink=ink(),
    )
    with st.container(key="dose"):
        st.markdown("**Every setting that you have tried**")
        chart(figure, key="dose-chart", alt="The difference at each of them.")


def _below(mine: Desk, curves: Curves) -> None:
    run, its, names = mine.run, mine.study, mine.names
    st.markdown(
        f"{words.plain(_summary(mine, curves))}\n\n**Why:** {words.plain(its.why)}\n\n"
        f"**How these conditions were found:** {words.plain(its.found)} They were"
        " searched for, to see where the bug hurts; the slider also shows where it"
        " does not. Intervals cover the chance in training and nothing else."
    )

    _one_update(mine)

    def frames() -> dict[str, pd.DataFrame]:
        effects = [asdict(_effect(run, curves, update)) for update in curves.updates]
        frame = pd.DataFrame(effects, pd.Index(curves.updates, name="updates"))
        named = dict(zip(("correct", "faulty"), names), half_width="95 % interval ±")
        return {its.measured.title: frame.drop(columns="exact").rename(columns=named)}

    offered("the numbers", "curves", frames)


def _one_update(mine: Desk) -> None:
    """Which update of which seed to open, and the button that does it."""
    run = mine.run
    st.markdown(
        words.titled(
            "Watch one update",
            "Every update trains on one batch for each seed. Open one on the bug's"
            " page to see which row of which group turned the run. The page opens"
            f" with the batch of {run_name(mine.names[1])}.",
        )
    )
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    update = left.slider("Update", 1, UPDATES, 10, key="training-update")
    seed = middle.number_input("Seed", 0, run.seeds - 1, 0, key="training-seed")
    if right.button("Open this batch", key="training-open"):
        mine.error = ""
        place, doing = (int(seed), update), "Training up to this update."
        then = partial(_open, mine, *place)
        st.fragment(_waiting, run_every=LOOK)(mine, doing, then, rows_at, run, *place)
    elif mine.error:
        st.error(words.plain(mine.error))


def _open(mine: Desk, seed: int, update: int, rows: list[dict]) -> NoReturn:
    """Shows the batch on the bug's page."""
    run = mine.run
    _, _, settings = mine.study.at(run.value)
    case = start(load(run.bug))
    state = replace(case, table=Table.of(rows), settings=settings, row=0)
    where = f"update {update}, seed {seed}, of a training run"
    address.open_batch(state, f"This is the batch of {where}.")
