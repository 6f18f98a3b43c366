"""A checked log step by step: the timeline, the worst steps, one step."""

from __future__ import annotations

import streamlit as st

from gradebook.cases.scenario import SANDBOX, case, load
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import flips, plain
from gradebook.logs.explore import state_of, worst_steps
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.what_if import by_bug, sentences
from gradebook.output.charts import timeline_figure
from gradebook.output.figures import picture as rows_picture
from gradebook.output.panels import Panel, squashes
from gradebook.ui import keys
from gradebook.ui.checks.ask import Checking
from gradebook.ui.parts import drafts, predict, words
from gradebook.ui.parts.address import bug_files, page_files
from gradebook.ui.parts.widget import chart, ink, offered, table
from gradebook.ui.parts.widget import markup as show

CHART = "check-timeline"
CHOSEN = "check-step"


def picture(verdict: Verdict, answered: bool) -> None:
    """The timeline of a log with advantages: a mark for each step, in colour
    once it was said what they are compared with."""
    frame = verdict.frame.copy()
    if not verdict.declared:
        frame["verdict"] = frame["verdict"].replace("correct", "matches")
    labels = [str(label) for label in frame["step"]]

    def clicked() -> None:
        points = keys.widget(CHART).selection.points
        if points:
            keys.show(CHOSEN, labels[int(points[0]["customdata"][0])])

    chart(
        timeline_figure(frame, ink(), answered or bool(verdict.declared)),
        key=CHART,
        on_select=clicked,
        selection_mode="points",
        alt="Each step's verdict and its distance from the correct numbers",
    )
    counts = frame["verdict"].value_counts().items()
    verdicts = ", ".join(f"{count:,} {name}" for name, count in counts)
    st.markdown(
        f"Steps: {verdicts}. Rows whose sign flips: {int(frame['flips'].sum()):,}."
        f" Groups that are off: {int(frame['groups_affected'].sum()):,}. A click on a"
        " mark opens its step below."
    )
    columns = ["step", "verdict", "correct_residual", "flips"]
    numbers = frame[columns].rename(columns={"correct_residual": "off by"})
    offered("the timeline's numbers", CHART, lambda: {"The steps": numbers})


def would_compute(verdict: Verdict) -> None:
    """For a log without advantages: how the engines would differ on it."""
    lines = by_bug(verdict.what_if).drop_duplicates("bug")
    differ = lines[lines["steps"] > 0].to_dict("records")
    st.markdown(
        words.titled(
            "What each engine would compute",
            "The rewards alone tell where a bug would change the advantages"
            " of these rows, if the trainer had it.",
            level=3,
        )
    )
    table(
        ["bug", "estimator", "steps", "rows", "flips", "largest"],
        [
            [
                load(line["bug"]).title,
                line["estimator"],
                f"{line['steps']:,} of {line['of']:,}",
                f"{line['rows_off']:,}",
                f"{line['flips']:,}",
                f"{line['largest']:.3f}",
            ]
            for line in differ
        ],
        numbers=(3, 4, 5),
    )
    with st.container(horizontal=True):
        for line in differ:
            if file := bug_files().get(line["bug"]):
                st.page_link(file, label=words.plain(load(line["bug"]).title))
    with st.expander("In words, bug by bug"):
        texts = map(words.plain, sentences(verdict.what_if))
        st.markdown("\n".join(f"- {text}" for text in texts))


def steps(checking: Checking, verdict: Verdict) -> None:
    """The worst steps, and one step that is opened."""
    steps = verdict.frame["step"].tolist()
    labels = [str(label) for label in steps]
    worst = worst_steps(verdict)
    if len(worst):
        title = "The steps that are furthest off"
        if len(verdict.what_if):
            title = "The steps on which the engines would differ most"
        st.markdown(words.titled(title, level=3))
        table(
            ["step", "named", "off by", "flips", "groups affected"],
            [
                [
                    str(row["step"]),
                    load(row["bug"]).title if row["bug"] else row["verdict"],
                    plain(float(row["correct_residual"])),
                    str(int(row["flips"])),
                    f"{int(row['groups_affected'])} of {int(row['groups'])}",
                ]
                for row in worst.to_dict("records")
            ],
            numbers=(2, 3),
        )
    if keys.widget(CHOSEN) not in labels:
        keys.show(CHOSEN, str(worst["step"].iloc[0]) if len(worst) else labels[0])
    chosen = st.selectbox("Open a step", labels, key=CHOSEN, width=240)
    _step(checking, verdict, steps[labels.index(chosen)])


def _step(checking: Checking, verdict: Verdict, step: object) -> None:
    try:
        rows = checking.step(step)
    except GradebookError as error:
        st.error(words.plain(str(error)))
        return
    if rows.note:
        st.markdown(words.plain(rows.note))
    off = flips(rows.correct, rows.logged).tolist()
    panel = Panel("advantage", rows.correct.tolist(), rows.logged.tolist(), off)
    drawn = rows_picture(panel, list(map(str, rows.table["prompt"])), squashes([panel]))
    alt = f"Step {words.safe(str(step))}: the logged advantages beside the correct ones"
    show(
        '<p class="gb-note"><i class="gb-correct"></i>correct &ensp; '
        '<i class="gb-faulty"></i>logged</p>'
        f'<div class="gb-step" role="img" aria-label="{alt}">{drawn}</div>',
        key="check-rows",
    )
    name = rows.bug or verdict.bug or SANDBOX
    where = "in the sandbox"
    if name != SANDBOX:
        where = f"on the page {load(name).title}"
    st.button(
        words.plain(f"Open step {step} {where}"),
        key="check-open",
        on_click=open_step,
        args=(checking, step, name),
    )


def open_step(checking: Checking, step: object, name: str) -> None:
    """Goes to the page `name`, a bug's or the sandbox, with the step's rows in
    the learner's own draft. The page says what it shows."""
    try:
        rows = checking.step(step)
    except GradebookError as error:
        checking.error = str(error)
        return
    scenario = case(name)
    draft = drafts.own_of(scenario)
    draft.become(state_of(rows, scenario))
    opened = f"These rows are step {step} of {checking.title}."
    draft.notes = [f"{opened} {rows.note}".strip()]
    keys.CASES.get()[name] = name
    keys.OPENED.put(opened)
    if name != SANDBOX and predict.covered(name):
        predict.progress().answer(name, predict.SKIPPED)
    st.switch_page(page_files()[name])
