"""One update of a training run, opened as a batch on the bug's page."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from gradebook.cases.fields import typed_settings
from gradebook.cases.scenario import load
from gradebook.cases.state import State, start
from gradebook.cases.table import Table
from gradebook.training.study import study
from gradebook.ui import keys
from gradebook.ui.parts import drafts, predict, words
from gradebook.ui.parts.desk import Desk, pool
from gradebook.ui.parts.shell import page_files
from gradebook.ui.runs.pool import DONE, ENDED, Task

BEAT = 0.2
"""Seconds from one look at the worker to the next."""


def choose(mine: Desk, last: int) -> None:
    """Which update of which seed to open, and the button that does it."""
    run = mine.run
    said = (
        "Every update trains on one batch for each seed. Open one on the"
        " bug's page, to see which row of which group turned the run. It is"
        f" the batch that the {load(run.bug).engine_names[1]} run sampled."
    )
    st.markdown(words.titled("Watch one update", said))
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    with left:
        update = st.slider(
            "Update", 1, max(last, 2), min(10, last), key="training-update"
        )
    with middle:
        seed = st.number_input("Seed", 0, run.seeds - 1, 0, key="training-seed")
    with right:
        wanted = st.button("Open this batch", key="training-open")
    if wanted:
        mine.opening = Task(run, int(seed), update)
    if mine.opening is not None:
        st.fragment(_opening, run_every=BEAT)(mine, mine.opening)


def _opening(mine: Desk, task: Task) -> None:
    """Waits until the batch has been sampled again, then opens it."""
    job = pool().watch(task, mine.who)
    if job.state not in (DONE, ENDED):
        st.markdown(f"Training up to update {task.update}.")
        return
    mine.opening = None
    if job.error:
        st.error(words.plain(job.error))
        return
    state = opened(task, job.rows)
    drafts.of(state.scenario).become(state)
    mine.opened = task
    bug = task.run.bug
    keys.CASES.get()[bug] = bug
    keys.OPENED.put(f"{task}")
    if predict.covered(bug):
        predict.answer(bug, predict.SKIPPED)
    st.switch_page(page_files()[bug])


def opened(task: Task, rows: list[dict]) -> State:
    """The bug's own case with the rows of an update and its settings."""
    _, _, settings = study(task.run.bug).at(task.run.value)
    own = start(load(task.run.bug))
    return replace(
        own,
        table=Table.of(rows),
        typed=typed_settings(settings),
        row=0,
    )
