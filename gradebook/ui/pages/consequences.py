"""Does it matter? Two policies trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
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
from gradebook.ui.parts.desk import Desk, desk, query_of, read_link
from gradebook.ui.parts.predict import SKIPPED, choices
from gradebook.ui.rooms import bar as room
from gradebook.ui.rooms import seat

PAGE = "consequences"
LEAD = (
    "A small policy is trained twice, with the same seeds and the same luck: once"
    " with each engine. The policies are tables, not language models. Neither the"
    " size nor the direction of an effect is promised to carry over: try the other"
    " optimizers."
)


def consequences() -> None:
    """The whole page."""
    mine = desk()
    query = room.before(PAGE) or address.arrived(PAGE)
    if query is not None:
        mine.run, mine.problems = read_link(query)
        mine.arrivals += 1
    asked = _in_a_room(mine)
    st.title("Does it matter?")
    address.unread(mine.problems)
    bug, *switches = st.columns([3, 4, 4, 2], vertical_alignment="bottom")
    with bug:
        _bug(mine)
    task = words.plain(study(mine.run.bug).task)
    if asked and not asked.is_open or mine.run.bug not in mine.guesses:
        st.markdown(f"{LEAD}\n\n{task}")
        _ask(mine, asked)
    else:
        _switches(mine, switches)
        trained.result(mine)
        st.markdown(f"**What is trained:** {task} {LEAD}")
    address.put_link(query_of(mine.run))


def _bug(mine: Desk) -> None:
    titles = {bug: load(bug).title for bug in studied()}
    bug = st.selectbox(
        "Bug",
        list(titles),
        index=list(titles).index(mine.run.bug),
        format_func=titles.__getitem__,
        key=f"training-bug-{mine.arrivals}",
        label_visibility="collapsed",
    )
    if bug != mine.run.bug:
        mine.problems = ()
        mine.choose(**vars(default_run(bug)))


def _in_a_room(mine: Desk) -> room.Standing | None:
    """Where this browser stands in a room that asks about the bug's run, None
    without a room. The room asks about the run as it comes."""
    bug = mine.run.bug
    name, usual = TRAINING + bug, default_run(bug)
    if seat.leads():
        at = mine.run if bug in mine.guesses else usual
        room.move(Position(PAGE, name, query_string(query_of(at))))
    asked = room.about(name)
    if asked and asked.is_open:
        vote = asked.vote if asked.vote in range(len(KINDS)) else None
        kind = "" if vote is None else KINDS[vote]
        mine.guesses.setdefault(bug, (kind, usual))
    elif asked:
        mine.guesses.pop(bug, None)
        mine.choose(**vars(usual))
    return asked


def _ask(mine: Desk, asked: room.Standing | None) -> None:
    """The question, before anything faulty is shown. In a room an answer is a
    vote, and the lead has none."""
    one = study(mine.run.bug)
    names = load(mine.run.bug).engine_names
    text = question(one, mine.run.value, names, one.report[0])

    def answer(choice: int) -> None:
        if asked:
            room.vote(TRAINING + mine.run.bug, choice)
            return
        kind = "" if choice == SKIPPED else KINDS[choice]
        mine.guesses[mine.run.bug] = kind, mine.run

    with st.container(key=f"predict-training-{mine.run.bug}"):
        st.markdown(f"**Predict before you look:** {words.plain(text)}")
        if asked and asked.leads:
            return
        choices(
            {
                f"training-choice-{kind}": text[:1].upper() + text[1:]
                for kind, text in zip(KINDS, one.measured.choices)
            },
            answer,
            skip="skip-training",
        )


def _switches(mine: Desk, columns: Sequence[DeltaGenerator]) -> None:
    """The one slider, the optimizer and the number of seeds. Another setting
    starts at once."""
    run, slider = mine.run, study(mine.run.bug).slider
    named = partial("training-{}-{}-{}".format, run.bug, mine.arrivals)
    value = columns[0].slider(
        slider.label,
        slider.least,
        slider.most,
        run.value,
        slider.step,
        format=f"%.{len(f'{slider.step:g}'.partition('.')[2])}f",
        key=named("value"),
    )
    optimizer = columns[1].segmented_control(
        "Optimizer",
        list(OPTIMIZERS),
        default=run.optimizer,
        format_func=lambda name: OPTIMIZERS[name].title,
        required=True,
        key=named("optimizer"),
    )
    seeds = columns[2].segmented_control(
        "Seeds", list(SEEDS), default=run.seeds, required=True, key=named("seeds")
    )
    chosen = {
        "value": slider.nearest(value),
        "optimizer": optimizer,
        "seeds": seeds,
    }
    if any(getattr(run, name) != now for name, now in chosen.items()):
        mine.choose(**chosen)
