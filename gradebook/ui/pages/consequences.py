"""Does it matter? Two policies trained side by side: a transformer first, then tables
as the quick laboratory."""

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
from gradebook.output import policies
from gradebook.output.charts import curves_figure, dose_figure
from gradebook.training import study
from gradebook.training.runs import shipped
from gradebook.training.study import UPDATES, Effect, Run
from gradebook.training.train import TabularCurves, rows_at, trained
from gradebook.training.transformer import outcome
from gradebook.training.transformer.experiments import experimented
from gradebook.training.transformer.live import UPDATES as LIVE_UPDATES
from gradebook.training.transformer.live import live, live_run, size
from gradebook.training.transformer.results import Pair, folder_of, measured, read_run
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, words
from gradebook.ui.parts.desk import (
    DESK,
    OF_TABLES,
    PAGE,
    Desk,
    first_place,
    query_of,
    read_link,
    runs,
)
from gradebook.ui.parts.widget import chart, choices, keep, offered
from gradebook.ui.program import stub
from gradebook.ui.rooms import bar as room
from gradebook.ui.rooms import seat

LEAD = (
    "A transformer that had learnt to work two-digit sums aloud was trained on with"
    " GRPO, once with each engine: the same weights at the start, the same prompts and"
    " the same luck. A success says the sum and ends."
)
TABLES_ARE = "The tables are policies without a network, trained below."
TABLES = (
    "Tables are not language models: a policy here is a table of chances for each word,"
    " on a task with a handful of words. They train in seconds at any dose, and with"
    " other optimizers. Neither the size nor the direction of an effect is promised to"
    " carry over."
)
ONE = 1
"""A live run is a comparison of its own: nobody chose it among others."""
FAR = 5
"""Effects whose sizes have a larger ratio differ in size."""
LOOK = 0.5
"""Seconds from one look at a run to the next."""
_mount = st.components.v2.component("gradebook_policies", js=stub("policies"))


def consequences() -> None:
    mine = DESK.get()
    if query := room.follow(PAGE) or address.arrived():
        place, keys.ADDRESS.get()["problem"] = read_link(query)
        mine.go(place)
        mine.arrivals += 1
        mine.opens = not query.keys().isdisjoint(OF_TABLES)
    bug = mine.bug
    name, usual = TRAINING + bug, first_place(bug)
    place = mine.place if bug in mine.guesses else usual
    room.move(PAGE, name, query_string(query_of(place)))
    standing = room.about(name)
    if standing and standing.is_open:
        mine.guesses.setdefault(bug, (standing.vote, usual.dose))
    elif standing:  # a room asks about the bug's run as it comes
        mine.guesses.pop(bug, None)
        mine.go(usual)
    st.title("Does it matter?")
    address.unread()
    first, second = st.columns([2, 5], vertical_alignment="bottom")
    bugs = experimented()
    bug = first.selectbox(
        "Bug",
        bugs,
        index=bugs.index(mine.bug),
        format_func=lambda bug: load(bug).title,
        key=f"training-bug-{mine.arrivals}",
        label_visibility="collapsed",
    )
    if bug != mine.bug:
        keys.ADDRESS.get()["problem"] = ""
        mine.go(first_place(bug))
    if standing and not standing.is_open or bug not in mine.guesses:
        st.markdown(LEAD)
        _ask(mine, standing)
    else:
        _doses(mine, second)
        _transformer(mine)
        st.markdown(f"**What is claimed:** {outcome.CLAIMED} {outcome.INTERVALS}")
        _explained(mine)
        if mine.place.run is not None:
            _tables(mine)
    address.put(query_of(mine.place))
    keep(drafts.PROGRESS.get())


def _ask(mine: Desk, standing: room.Standing | None) -> None:
    trial, dose = mine.experiment, mine.place.dose
    last = measured(mine.bug, dose).updates[-1]

    def answer(choice: int) -> None:
        if standing:
            seat.act("vote", TRAINING + mine.bug, choice)
        else:
            mine.guesses[mine.bug] = choice, dose

    with st.container(key=f"predict-training-{mine.bug}"):
        text = words.plain(outcome.question_of(trial, dose, last, mine.names))
        st.markdown(f"**Predict before you look:** {text}")
        # While a room's database is away nobody may see its answer before the vote.
        if not (standing.leads if standing else seat.cut_off()):
            texts = [t[:1].upper() + t[1:] for t in outcome.SUCCESS.choices]
            more = {"skip": room.SKIP} if standing else {}
            choices("training", texts, answer, **more)


# The transformer


def _doses(mine: Desk, column: DeltaGenerator) -> None:
    trial = mine.experiment
    chosen = column.segmented_control(
        trial.label,
        trial.names,
        default=mine.place.dose,
        required=True,
        key=f"training-dose-{mine.bug}-{mine.arrivals}",
    )
    if chosen != mine.place.dose:
        mine.go(replace(mine.place, dose=chosen))


def _transformer(mine: Desk) -> None:
    """The run that is shipped, or a live one as it grows."""
    dose = mine.bug, mine.place.dose
    if mine.grows == dose:
        _growing(mine)
        return
    grown = mine.grown.get(dose)
    if grown:
        _shown(mine, grown, _headlines(mine, grown, ONE))
    else:
        _measured(mine)
    run, now = read_run(folder_of(mine.bug)), live_run()
    smaller = "a smaller one" if now.parameters < run.parameters else "it again"
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Train it now", key="live-start"):
            mine.error, mine.grows = "", dose
            st.rerun()
        if grown and st.button("Back to the measured run", key="live-back"):
            del mine.grown[dose]
            st.rerun()
        st.markdown(
            f"Trains {smaller} while you watch, on this server: {size()},"
            f" {LIVE_UPDATES} updates, from the same kind of start. A minute or two on"
            " an idle core."
        )
    if mine.error:
        st.error(words.plain(mine.error))
    what = outcome.trained_on(now if grown else run, mine.experiment.rollouts)
    st.markdown(f"**What was trained:** {words.plain(what)}")


@st.fragment(run_every=LOOK)
def _growing(mine: Desk) -> None:
    """The live run so far, or its place in the queue."""
    if mine.grows is None:  # cancelled; the page is about to be drawn without it
        return
    call = live, *mine.grows
    try:
        future = runs().ask(*call)
        if future.done() and not future.cancelled():
            mine.grown[mine.grows], mine.grows = future.result(), None
            st.rerun()
    except GradebookError as error:
        mine.error, mine.grows = str(error), None
        st.rerun()
    place, pair = runs().place(*call), runs().so_far(*call)
    if pair is not None:
        last = pair.updates[-1]
        doing = {str(last): f"Training: {last} of {LIVE_UPDATES} updates."}
        _shown(mine, pair, _headlines(mine, pair, ONE) | doing, LIVE_UPDATES)
    else:
        starting = "Starting: a new process loads torch and the weights."
        text = f"Waiting: place {place} in the queue." if place else starting
        st.markdown(
            f"**{text}** Until its first numbers come, this is the measured run."
        )
        _measured(mine)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Cancel", key="live-cancel"):
            mine.stop()
            st.rerun()
        done = pair.updates[-1] if pair else 0
        st.markdown(f"{done} of {LIVE_UPDATES} updates: {size()}, on this server.")


def _measured(mine: Desk) -> None:
    """The run that was made in advance, and whether the reader's prediction about it
    was right."""
    pair = measured(mine.bug, mine.place.dose)
    headlines, last = _headlines(mine, pair, outcome.comparisons()), pair.updates[-1]
    guess, about = mine.guesses[mine.bug]
    if about == mine.place.dose:
        verdict = outcome.verdict(guess, pair.effect(last))
        headlines[str(last)] = verdict + headlines[str(last)]
    _shown(mine, pair, headlines)


def _headlines(mine: Desk, pair: Pair, compared: int) -> dict[str, str]:
    """By update. The run is one of so many that were compared."""
    trial, dose, faulty = mine.experiment, mine.place.dose, mine.names[1]
    return {
        update: outcome.result_of(trial, dose, pair, int(update), faulty, compared)
        for update in pair.correct.words
    }


def _shown(mine: Desk, pair: Pair, headlines: dict[str, str], most: int = 0) -> None:
    """A run, which still grows if it is to have more updates."""
    last, seeds = pair.updates[-1], len(pair.correct.success)
    asked = len(pair.correct.words[str(last)])
    data = {
        "key": [mine.bug, mine.place.dose, max(most, last), seeds],
        "names": list(mine.names),
        "axis": f"share of {pair.correct.prompts} held-out prompts that are solved, by"
        " updates",
        "most": max(most, last),
        "grows": last < most,
        "headlines": headlines,
        "prompts": policies.prompts(policies.asked(asked)),
        "words": policies.words(pair),
        "notes": {
            update: outcome.endings_of(pair, int(update), mine.names)
            for update in pair.correct.words
        },
        "note": "An answer adds the ones, then the tens. Held-out prompts, the same for"
        " every bug, chosen before training. Sampled, first seed.",
        **policies.curves(pair),
    }
    _mount(key="policies", data=[data])


def _explained(mine: Desk) -> None:
    """Why, and what the tables found at the same dose beside the measured run."""
    trial, dose = mine.experiment, mine.experiment.dose(mine.place.dose)
    pair = measured(mine.bug, dose.name)
    which = mine.bug, dose.name
    learnt = ""  # by a run that still grows
    if mine.grows != which:
        grown = mine.grown.get(which)
        shown, compared = (grown, ONE) if grown else (pair, outcome.comparisons())
        learnt = outcome.learnt(trial, shown, mine.names, compared)
    parts = {"Why:": f"{trial.why} {learnt}"}
    if trial.tables:
        head, text = "The tables:", ""
        if dose.tables is not None:
            head, text = _of_the_tables(mine, dose.tables, pair)
        parts[head] = f"{TABLES_ARE} {text} {trial.tables}"
    if trial.note:
        parts["To read this:"] = trial.note
    st.markdown(
        "\n\n".join(f"**{head}** {words.plain(text)}" for head, text in parts.items())
    )


def _of_the_tables(mine: Desk, value: float, pair: Pair) -> tuple[str, str]:
    """What the tables found with the slider at this value: a heading, which says
    whether the transformer differs, and the result."""
    run, tables = Run(mine.bug, value), mine.study
    effect = _effect_of(run, shipped()[run])
    setting, updates = tables.slider.in_words(value), tables.report[0]
    text = study.sentence(setting, updates, tables.measured, effect, mine.names[1])
    if tables.measure != "success":
        return "The tables:", text
    return _compared(effect, pair.effect(pair.updates[-1])), text


def _compared(tables: Effect, transformer: Effect) -> str:
    """A heading: do both differ in what the bug does to success?"""
    kind = outcome.kind(transformer, outcome.comparisons())
    small, large = sorted(abs(each.difference) for each in (tables, transformer))
    if tables.kind != kind:
        return "Tables and transformer disagree:"
    if kind != study.SAME and large > FAR * small:
        return "Tables and transformer differ in size:"
    return "The tables:"


def _effect_of(run: Run, curves: TabularCurves) -> Effect:
    task = study.study(run.bug)
    frame = curves.updates.index(task.report[0])
    return study.effect(*curves.values[task.measure][frame])


# The tables


def _tables(mine: Desk) -> None:
    part = st.expander(
        "The quick laboratory: tables, any dose",
        key=f"open-tables-{mine.arrivals}",
        expanded=mine.opens,
        on_change="rerun",
    )
    if not part.open:
        return
    with part:
        task = words.plain(mine.study.task)
        st.markdown(f"{TABLES} **What is trained:** {task}")
        _switches(mine, st.columns([4, 4, 2], vertical_alignment="bottom"))
        _result(mine)


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
        mine.go(replace(mine.place, run=chosen))


def _result(mine: Desk) -> None:
    run = mine.run
    curves = mine.results.get(run) or shipped().get(run)
    left, right = st.columns([3, 2])
    with left, st.container(key="training"):
        if curves:
            mine.results[run] = mine.results.pop(run, curves)  # the last one seen
            _picture(mine, curves)
        elif mine.error:
            st.subheader(words.plain(mine.error), anchor=False)
            if st.button("Start", key="training-start"):
                mine.error = ""
                st.rerun()
        else:
            doing = f"Training {UPDATES} updates of both policies."
            then = partial(mine.results.setdefault, run)
            _waiting(mine, doing, then, trained, run)
            _meanwhile(mine)
    with right:
        _dose(mine)
    if curves:
        st.markdown(
            f"{words.plain(_summary(mine, curves))}\n\n"
            f"**Why:** {words.plain(mine.study.why)}\n\n"
            f"**How these conditions were found:** {words.plain(mine.study.found)} They"
            " were searched for, because the bug hurts under them. The slider also has"
            " conditions under which it does not. The intervals cover training noise"
            " only."
        )
        _one_update(mine)
        offered("the numbers", "curves", partial(_numbers, mine, curves))


@st.fragment(run_every=LOOK)
def _waiting(mine: Desk, doing: str, then: Callable[[Any], object], *call: Any) -> None:
    """Draws the progress of a training call, or its place in the queue. `then` takes
    the call's value, and the page is drawn with it."""
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


def _picture(mine: Desk, curves: TabularCurves) -> None:
    run, task, names = mine.run, mine.study, mine.names
    measure, shown = task.measured, _effect(mine, curves, task.report[0])
    setting = task.slider.in_words(run.value)
    text = study.sentence(setting, task.report[0], measure, shown, names[1])
    st.subheader(words.plain(text), anchor=False)
    values = curves.values[task.measure]
    figure = curves_figure(curves.updates, values, names, measure)
    chart(figure, key="curves", alt=_summary(mine, curves))
    diverged = _effect(mine, curves, UPDATES).diverged
    if diverged:
        st.warning(
            f"{diverged} of {run.seeds} seeds diverged: their policy is not a number"
            " any more. Their curves end there, and the result leaves them out."
        )


def _meanwhile(mine: Desk) -> None:
    """The last chart of the bug, until the new one is there."""
    before = [run for run in mine.results if run.bug == mine.run.bug]
    if not before:
        return
    run, its = before[-1], mine.study
    setting = words.plain(its.slider.in_words(run.value))
    st.markdown(f"Until then, the run before: {setting}.")
    values = mine.results[run].values[its.measure]
    figure = curves_figure(mine.results[run].updates, values, mine.names, its.measured)
    chart(figure, key="curves-before", alt=f"The run before: {setting}.")


def _effect(mine: Desk, curves: TabularCurves, update: int) -> Effect:
    """The faulty run beside the correct one, by the study's own measure."""
    frame = curves.updates.index(update)
    return study.effect(*curves.values[mine.study.measure][frame])


def _summary(mine: Desk, curves: TabularCurves) -> str:
    (correct, faulty), title = mine.names, mine.study.measured.title
    start, end = (_effect(mine, curves, update) for update in (0, UPDATES))
    return (
        f"{title[:1].upper()}{title[1:]}, mean of {mine.run.seeds} seeds:"
        f" {plain(start.correct)} at the start; after {UPDATES} updates"
        f" {correct} {plain(end.correct)}, {faulty} {plain(end.faulty)}."
    )


def _numbers(mine: Desk, curves: TabularCurves) -> "dict[str, pd.DataFrame]":
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
