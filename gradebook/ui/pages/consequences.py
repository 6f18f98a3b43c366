"""Does it matter? Two policies trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import query_string
from gradebook.cases.scenario import load
from gradebook.cases.state import start, typed_settings
from gradebook.cases.table import Table
from gradebook.classroom.plan import TRAINING
from gradebook.classroom.store import Position
from gradebook.core.errors import GradebookError
from gradebook.output.charts import curves_figure, dose_figure
from gradebook.training.environments import KINDS
from gradebook.training.runs import Task, shipped
from gradebook.training.study import (
    LESS,
    MORE,
    OPTIMIZERS,
    SAME,
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
from gradebook.training.train import Curves
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, predict, words
from gradebook.ui.parts.address import page_files
from gradebook.ui.parts.desk import DESK, PAGE, Desk, query_of, read_link, runs
from gradebook.ui.parts.predict import SKIPPED, choices
from gradebook.ui.parts.widget import chart, download, ink, table
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
    """The whole page."""
    mine = DESK.get()
    if query := room.before(PAGE) or address.arrived():
        mine.run, mine.problems = read_link(query)
        mine.arrivals += 1
    standing = _in_a_room(mine)
    st.title("Does it matter?")
    address.unread(mine.problems)
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
        mine.problems = ()
        mine.choose(default_run(bug))
    task = words.plain(study(bug).task)
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
    if seat.leads():
        shown = mine.run if bug in mine.guesses else usual
        room.move(Position(PAGE, name, query_string(query_of(shown))))
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
    run, its = mine.run, study(mine.run.bug)
    names = load(run.bug).engine_names
    text = question(its, run.value, names, its.report[0])

    def answer(choice: int) -> None:
        if standing:
            room.vote(TRAINING + run.bug, choice)
        else:
            kind = "" if choice == SKIPPED else KINDS[choice]
            mine.guesses[run.bug] = kind, run

    with st.container(key=f"predict-training-{run.bug}"):
        st.markdown(f"**Predict before you look:** {words.plain(text)}")
        if not (standing and standing.leads):
            offered = {
                f"training-choice-{kind}": choice[:1].upper() + choice[1:]
                for kind, choice in zip(KINDS, its.measured.choices)
            }
            choices(offered, answer, skip="skip-training")


def _switches(mine: Desk, columns: Sequence[DeltaGenerator]) -> None:
    """The slider, the optimizer and the seeds. Another setting starts at once."""
    run, slider = mine.run, study(mine.run.bug).slider
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
    value = slider.nearest(value)
    chosen = replace(run, value=value, optimizer=optimizer, seeds=seeds)
    if chosen != run:
        mine.choose(chosen)


# The result of a run


def _result(mine: Desk) -> None:
    """What the run on the page shows; while it trains, its place in the queue."""
    run = mine.run
    curves = mine.results.get(run) or shipped(run)
    if curves:
        mine.results[run] = curves
    left, right = st.columns([3, 2])
    with left, st.container(key="training"):
        if curves:
            _picture(mine, curves)
        elif mine.idle == run:
            st.subheader(words.plain(mine.error or "Cancelled."), anchor=False)
            if st.button("Start", key="training-start"):
                mine.idle, mine.error = None, ""
                st.rerun()
        else:
            st.fragment(_waiting, run_every=LOOK)(mine, Task(run))
    with right:
        _dose(mine)
    if curves:
        _below(mine, curves)


def _waiting(mine: Desk, task: Task) -> None:
    """The place in the queue, until the answer is there."""
    try:
        future = runs().ask(task, mine.visitor)
        if future.done():
            answer = future.result()
            if task.update:
                _open(mine, task, answer)
            mine.results[task.run] = answer
            st.rerun()
    except GradebookError as error:
        if task.update:
            st.error(words.plain(str(error)))
            return
        mine.idle, mine.error = task.run, str(error)
        st.rerun()
    waiting = f"Training {UPDATES} updates of both policies."
    if place := runs().place(task):
        waiting = f"Waiting: place {place} in the queue."
    st.subheader(waiting, anchor=False)
    if st.button("Cancel", key="training-cancel"):
        runs().cancel(task, mine.visitor)
        mine.idle = task.run
        st.rerun()


def _picture(mine: Desk, curves: Curves) -> None:
    """The guess on the run that was asked about, the result, and the curves."""
    run, its = mine.run, study(mine.run.bug)
    names, measured, update = load(run.bug).engine_names, its.measured, its.report[0]
    shown = _effect(run, curves, update)
    text = sentence(its, run.value, shown, update, names[1])
    guess, asked = mine.guesses[run.bug]
    if guess and asked == run:
        choices = dict(zip((MORE, LESS, SAME), measured.choices))
        right = " That is right." if guess == shown.kind else ""
        text = f"You said {choices[guess]}.{right} {text}"
    st.subheader(words.plain(text), anchor=False)
    figure = curves_figure(
        curves.updates,
        curves.values[its.measure],
        names,
        axis=measured.title,
        reach=measured.reach,
        ink=ink(),
    )
    chart(figure, key="curves", alt=_summary(run, curves))
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


def _summary(run: Run, curves: Curves) -> str:
    """The picture in words."""
    title = study(run.bug).measured.title
    correct, faulty = load(run.bug).engine_names
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
    run, slider = mine.run, study(mine.run.bug).slider
    update = study(run.bug).report[0]
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
        count = "1 setting" if len(points) == 1 else f"{len(points)} settings"
        chart(figure, key="dose-chart", alt=f"The difference at {count}.")


def _below(mine: Desk, curves: Curves) -> None:
    """What the run says, one update's batch, the numbers and a file."""
    run, its = mine.run, study(mine.run.bug)
    st.markdown(words.plain(_summary(run, curves)))
    st.markdown(f"**Why:** {words.plain(its.why)}")
    st.markdown(
        f"**How these conditions were found:** {words.plain(its.found)} They were"
        " searched for, to see where the bug hurts; the slider also shows where it"
        " does not. Intervals cover the chance in training and nothing else."
    )
    _one_update(mine)
    names = load(run.bug).engine_names
    with st.expander("The numbers as a table"):
        body = []
        for update in curves.updates[::5]:
            shown = _effect(run, curves, update)
            low = shown.difference - shown.half_width
            high = shown.difference + shown.half_width
            numbers = [shown.correct, shown.faulty, shown.difference, low, high]
            body.append([str(update), *map(_three, numbers)])
        head = ["updates", *names, "difference", "from", "to"]
        table(head, body, range(1, 6), heads=1, label=its.measured.title)
        name = f"{run.bug}-{run.value:g}-{run.optimizer}.csv"
        download("Curves (CSV)", name, partial(curves_csv, curves, names))


def curves_csv(curves: Curves, names: Sequence[str]) -> str:
    """One line for each update, measure, engine and seed."""
    columns = ["update", "measure", "engine", "seed", "value"]
    lines = [
        (update, measure, name, seed, value)
        for measure, frames in curves.values.items()
        for update, engines in zip(curves.updates, frames)
        for name, seeds in zip(names, engines)
        for seed, value in enumerate(seeds)
    ]
    return pd.DataFrame(lines, columns=columns).to_csv(index=False)


def _one_update(mine: Desk) -> None:
    """Which update of which seed to open, and the button that does it."""
    run = mine.run
    st.markdown(
        words.titled(
            "Watch one update",
            "Every update trains on one batch for each seed. Open one on the bug's"
            " page to see which row of which group turned the run. The page opens"
            f" with the batch of {run_name(load(run.bug).engine_names[1])}.",
        )
    )
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    update = left.slider("Update", 1, UPDATES, 10, key="training-update")
    seed = middle.number_input("Seed", 0, run.seeds - 1, 0, key="training-seed")
    if right.button("Open this batch", key="training-open"):
        task = Task(run, int(seed), update)
        st.fragment(_waiting, run_every=LOOK)(mine, task)


def _open(mine: Desk, task: Task, rows: list[dict]) -> None:
    """Shows the batch on the bug's page."""
    run, bug = task.run, task.run.bug
    _, _, settings = study(bug).at(run.value)
    state = start(load(bug))
    typed = typed_settings(settings)
    state = replace(state, table=Table.of(rows), typed=typed, row=0)
    drafts.of(state.scenario).become(state)
    mine.opened = task
    keys.CASES.get()[bug] = bug
    keys.OPENED.put(str(task))
    if predict.covered(bug):
        predict.progress().answer(bug, predict.SKIPPED)
    st.switch_page(page_files()[bug])
