"""Does it matter? Two policies trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.cases.link import query_string
from gradebook.cases.scenario import load
from gradebook.classroom.plan import TRAINING
from gradebook.classroom.store import Position
from gradebook.training.effect import question
from gradebook.training.environments import KINDS
from gradebook.training.study import OPTIMIZERS, SEEDS, default_run, studied, study
from gradebook.ui.parts import address, trained, words
from gradebook.ui.parts.desk import DESK, PAGE, Desk, query_of, read_link
from gradebook.ui.parts.predict import SKIPPED, choices
from gradebook.ui.rooms import bar as room
from gradebook.ui.rooms import seat

LEAD = (
    "A small policy is trained twice, with the same seeds and the same luck: once"
    " with each engine. The policies are tables, not language models. Neither the"
    " size nor the direction of an effect is promised to carry over: try the other"
    " optimizers."
)


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
        trained.result(mine)
        st.markdown(f"**What is trained:** {task} {LEAD}")
    address.put(query_of(mine.run))


def _in_a_room(mine: Desk) -> room.Standing | None:
    """Where this browser stands in a room that asks about the bug's run, None
    without a room. The room asks about the run as it comes."""
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
    """The question, before anything faulty is shown. In a room an answer is a
    vote, and the lead has none."""
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
    """The one slider, the optimizer and the number of seeds. Another setting
    starts at once."""
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
