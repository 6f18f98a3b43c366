"""Does it matter? Two policies trained side by side."""

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
from gradebook.core.formatting import plain
from gradebook.core.lazy_pandas import pd
from gradebook.output.charts import curves_figure, dose_figure
from gradebook.training import study
from gradebook.training.runs import shipped
from gradebook.training.study import KINDS, UPDATES, Effect, Run
from gradebook.training.train import Curves, rows_at, trained
from gradebook.ui import keys
from gradebook.ui.parts import address, words
from gradebook.ui.parts.desk import DESK, PAGE, Desk, query_of, read_link, runs
from gradebook.ui.parts.widget import chart, choices, offered
from gradebook.ui.rooms import bar as room
from gradebook.ui.rooms import seat

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
        run, keys.ADDRESS.get()["problem"] = read_link(query)
        mine.choose(run)
        mine.arrivals += 1
    bug = mine.run.bug
    name, usual = TRAINING + bug, study.default_run(bug)
    asked = mine.run if bug in mine.guesses else usual
    room.move(PAGE, name, query_string(query_of(asked)))
    standing = room.about(name)
    if standing and standing.is_open:
        mine.guesses.setdefault(bug, (standing.vote, usual))
    elif standing:  # a room asks about the bug's run as it comes
        mine.guesses.pop(bug, None)
        mine.choose(usual)
    st.title("Does it matter?")
    address.unread()
    first, *columns = st.columns([3, 4, 4, 2], vertical_alignment="bottom")
    bug = first.selectbox(
        "Bug",
        study.studied(),
        index=study.studied().index(mine.run.bug),
        format_func=lambda bug: load(bug).title,
        key=f"training-bug-{mine.arrivals}",
        label_visibility="collapsed",
    )
    if bug != mine.run.bug:
        keys.ADDRESS.get()["problem"] = ""
        mine.choose(study.default_run(bug))
    task = words.plain(mine.study.task)
    if standing and not standing.is_open or bug not in mine.guesses:
        st.markdown(f"{LEAD}\n\n{task}")
        _ask(mine, standing)
    else:
        _switches(mine, columns)
        _result(mine)
        st.markdown(f"**What is trained:** {task} {LEAD}")
    address.put(query_of(mine.run))


def _ask(mine: Desk, standing: room.Standing | None) -> None:
    run, its = mine.run, mine.study

    def answer(choice: int) -> None:
        if standing:
            seat.act("vote", TRAINING + run.bug, choice)
        else:
            mine.guesses[run.bug] = choice, run

    with st.container(key=f"predict-training-{run.bug}"):
        text = words.plain(study.question(its, run.value, mine.names))
        st.markdown(f"**Predict before you look:** {text}")
        if not (standing and standing.leads):
            texts = [text[:1].upper() + text[1:] for text in its.measured.choices]
            choices("training", texts, answer)


def _switches(mine: Desk, columns: Sequence[DeltaGenerator]) -> None:
    """The slider, the optimizer and the seeds. Another setting starts at once."""
    run, slider = mine.run, mine.study.slider
    key = partial("training-{}-{}-{}".format, run.bug, mine.arrivals)
    value = columns[0].slider(
        slider.label,
        slider.least,
        slider.most,
        run.value,
        slider.step,
        format="%.6g",
        key=key("value"),
    )
    optimizer = columns[1].segmented_control(
        "Optimizer",
        list(study.OPTIMIZERS),
        default=run.optimizer,
        format_func=lambda name: study.OPTIMIZERS[name][0],
        required=True,
        key=key("optimizer"),
    )
    seeds = columns[2].segmented_control(
        "Seeds", study.SEEDS, default=run.seeds, required=True, key=key("seeds")
    )
    stop = min(slider.values, key=lambda stop: abs(stop - value))
    chosen = Run(run.bug, stop, optimizer, seeds)
    if chosen != run:
        mine.choose(chosen)


def _result(mine: Desk) -> None:
    run = mine.run
    curves = mine.results.get(run) or shipped().get(run)
    left, right = st.columns([3, 2])
    with left, st.container(key="training"):
        if curves:
            mine.results[run] = curves
            _picture(mine, curves)
        elif mine.error:
            st.subheader(words.plain(mine.error), anchor=False)
            if st.button("Start", key="training-start"):
                mine.choose(run)
                st.rerun()
        else:
            doing = f"Training {UPDATES} updates of both policies."
            keep = partial(mine.results.setdefault, run)
            _waiting(mine, doing, keep, trained, run)
    with right:
        _dose(mine)
    if curves:
        st.markdown(
            f"{words.plain(_summary(mine, curves))}\n\n"
            f"**Why:** {words.plain(mine.study.why)}\n\n"
            f"**How these conditions were found:** {words.plain(mine.study.found)} They"
            " were searched for, to see where the bug hurts; the slider also shows"
            " where it does not. Intervals cover the chance in training and nothing"
            " else."
        )
        _one_update(mine)
        offered("the numbers", "curves", partial(_numbers, mine, curves))


@st.fragment(run_every=LOOK)
def _waiting(mine: Desk, doing: str, then: Callable[[Any], object], *call: Any) -> None:
    """What a call trains, or its place in the queue. `then` takes its value, and the
    page is drawn with it."""
    try:
        future = runs().ask(*call)
        if future.done() and not future.cancelled():  # by another session
            then(future.result())
            st.rerun()
    except GradebookError as error:
        mine.error = str(error)
        st.rerun()
    place = runs().place(*call)
    text = f"Waiting: place {place} in the queue." if place else doing
    st.subheader(text, anchor=False)
    if st.button("Cancel", key="training-cancel"):
        runs().cancel(*call)
        mine.error = "Cancelled."
        st.rerun()


def _picture(mine: Desk, curves: Curves) -> None:
    run, its, names = mine.run, mine.study, mine.names
    measured, shown = its.measured, _effect(mine, curves, its.report[0])
    text = study.sentence(its, run.value, shown, names[1])
    guess, asked = mine.guesses[run.bug]
    if guess is not None and guess >= 0 and asked == run:
        right = " That is right." if KINDS[guess] == shown.kind else ""
        text = f"You said {measured.choices[guess]}.{right} {text}"
    st.subheader(words.plain(text), anchor=False)
    values = curves.values[its.measure]
    figure = curves_figure(curves.updates, values, names, measured)
    chart(figure, key="curves", alt=_summary(mine, curves))
    diverged = _effect(mine, curves, UPDATES).diverged
    if diverged:
        st.warning(
            f"{diverged} of {run.seeds} seeds diverged: their policy is not a number"
            " any more. Their curves end there, and the result leaves them out."
        )


def _effect(mine: Desk, curves: Curves, update: int) -> Effect:
    """The faulty run beside the correct one, by the study's own measure."""
    frame = curves.updates.index(update)
    return study.effect(*curves.values[mine.study.measure][frame])


def _summary(mine: Desk, curves: Curves) -> str:
    (correct, faulty), title = mine.names, mine.study.measured.title
    start, end = (_effect(mine, curves, update) for update in (0, UPDATES))
    return (
        f"{title[:1].upper()}{title[1:]}, mean of {mine.run.seeds} seeds:"
        f" {plain(start.correct)} at the start; after {UPDATES} updates"
        f" {correct} {plain(end.correct)}, {faulty} {plain(end.faulty)}."
    )


def _numbers(mine: Desk, curves: Curves) -> "dict[str, pd.DataFrame]":
    effects = [asdict(_effect(mine, curves, update)) for update in curves.updates]
    frame = pd.DataFrame(effects, pd.Index(curves.updates, name="updates"))
    names = dict(zip(("correct", "faulty"), mine.names), half_width="95 % interval ±")
    return {mine.study.measured.title: frame.rename(columns=names)}


def _dose(mine: Desk) -> None:
    """The effect at each setting of this slider that the session has seen."""
    run, slider, update = mine.run, mine.study.slider, mine.study.report[0]
    points = []
    for other, curves in mine.results.items():
        if replace(other, value=run.value) == run:
            shown = _effect(mine, curves, update)
            points.append((other.value, shown.difference, shown.half_width))
    if points:
        axis = f"difference after {update} updates"
        figure = dose_figure(points, slider, run.value, axis)
        with st.container(key="dose"):
            st.markdown("**Every setting that you have tried**")
            chart(figure, key="dose-chart", alt="The difference at each of them.")


def _one_update(mine: Desk) -> None:
    run = mine.run
    st.markdown(
        words.titled(
            "Watch one update",
            "Every update trains on one batch for each seed. Open one on the bug's"
            " page to see which row of which group turned the run. The page opens"
            f" with the batch of {study.run_name(mine.names[1])}.",
        )
    )
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    update = left.slider("Update", 1, UPDATES, 10, key="training-update")
    seed = middle.number_input("Seed", 0, run.seeds - 1, 0, key="training-seed")
    if right.button("Open this batch", key="training-open"):

        def show(rows: list[dict]) -> NoReturn:
            _, _, settings = mine.study.at(run.value)
            case = start(load(run.bug))
            state = replace(case, table=Table.of(rows), settings=settings, row=0)
            where = f"update {update}, seed {seed}, of a training run"
            address.open_batch(state, f"This is the batch of {where}.")

        mine.error, doing = "", "Training up to this update."
        _waiting(mine, doing, show, rows_at, run, int(seed), update)
    elif mine.error:
        st.error(words.plain(mine.error))
