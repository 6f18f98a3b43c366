"""The verdict on a log: one card, what speaks for it, and the log step by step."""

from __future__ import annotations

import re
from functools import partial

import streamlit as st

from gradebook.cases.scenario import SANDBOX, bug, case, load
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import flips, plain
from gradebook.logs.explore import failing_test, state_of, worst_steps
from gradebook.logs.explore import sentences as in_words
from gradebook.logs.judging.suspects import HOW_ROWS_COUNT, main_column
from gradebook.logs.judging.verdict import Verdict, by_bug, named_as
from gradebook.logs.report import facts, report
from gradebook.output.charts import timeline_figure
from gradebook.output.figures import picture as rows_picture
from gradebook.output.panels import Panel, squashes
from gradebook.ui import keys
from gradebook.ui.checks import ask
from gradebook.ui.checks.ask import Checking, on_page
from gradebook.ui.parts import address, words
from gradebook.ui.parts.address import bug_files
from gradebook.ui.parts.widget import chart, download, ink, markup, offered, table

HEADS = {
    "correct": "A known computation",
    "other": "◇ Not what was declared",
    "suspect": "◆ Suspect",
    "asks": "? A question",
    "none fits": "? Nothing fits",
    "cannot tell": "? Cannot tell",
}
FIRST_SENTENCE = re.compile(r"(?<=[.!?])(?<!Dr\.)\s+(?=[A-Z])")
CHART = "check-timeline"
CHOSEN = "check-step"


def card(checking: Checking, verdict: Verdict) -> None:
    """What was found, and what to do."""
    with st.container(key="check-verdict"):
        head = HEADS[verdict.verdict]
        if verdict.verdict == "correct" and verdict.declared:
            head = "✓ Correct"
        if verdict.bug:
            head += f": {words.plain(load(verdict.bug).title)}"
        first, *rest = FIRST_SENTENCE.split(on_page(verdict.sentence), maxsplit=1)
        if verdict.verdict == "correct" and not verdict.declared:
            first = f"{first.removesuffix('.')}, if that is what you wanted."
        st.markdown(
            f"### {head}\n\n{words.plain(first)}\n\n" + " ".join(map(words.plain, rest))
        )
        if verdict.near:
            st.markdown(words.plain(verdict.near))
        _confirm(verdict)
        if ask.typed("columns"):  # what a person said of them
            answers = [*ask.typed("columns").splitlines(), ask.typed("declared")]
            texts = ", ".join(words.plain(answer) for answer in answers if answer)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"You said: {texts}.")
                st.button(
                    "Take that back", key="check-take-back", on_click=ask.take_back
                )
        name = verdict.bug or next(iter(verdict.asks), "")
        if name in bug_files() and verdict.verdict in ("other", "suspect", "asks"):
            _ways(checking, verdict, name)


def _confirm(verdict: Verdict) -> None:
    """Two buttons where a column's meaning decides about the bug that is asked
    about."""
    if verdict.verdict != "asks" or not verdict.bug:
        return
    record = bug(verdict.bug)
    counting = record.stage in HOW_ROWS_COUNT
    if not counting and record.proof != "column":
        return
    column = main_column(record)
    role, named = named_as(column, verdict.columns, counting)
    declared = f"counts={column}" if counting else ""
    yes, no = f"Yes, {named} says that", "No, it says something else"
    with st.container(horizontal=True):
        for key, label, added in (
            ("check-confirm", yes, (f"{role}={named}", declared)),
            ("check-deny", no, (f"{role}=", "")),
        ):
            st.button(words.plain(label), key=key, on_click=ask.confirm, args=added)


def _ways(checking: Checking, verdict: Verdict, name: str) -> None:
    """To the bug's page: as it is, or with the first step that is off."""
    title = words.plain(load(name).title)
    with st.container(horizontal=True, vertical_alignment="center"):
        if verdict.step is not None:
            step = words.plain(str(verdict.step))
            st.button(
                f"Open step {step} on the page {title}",
                key="check-open-first",
                on_click=open_step,
                args=(checking, verdict.step, name),
            )
        st.page_link(bug_files()[name], label=f"Read about the bug: {title}")


def evidence(checking: Checking, verdict: Verdict) -> None:
    """Everything else that the check knows; and files."""
    st.markdown(words.titled("Evidence", level=3))
    table(["", ""], [list(fact) for fact in facts(verdict)], label="evidence")
    if verdict.ties:
        with st.expander("What this log cannot tell", key="check-ties"):
            for tie in verdict.ties:
                title = words.plain(tie.title)
                if tie.name in bug_files():
                    st.page_link(bug_files()[tie.name], label=title)
                st.markdown(f"{title}: {words.plain(tie.why)}")
    for title, texts, expanded in (
        ("Notes, and what was not checked", verdict.notes, False),
        ("Left out, since it cannot be read", verdict.broken, True),
    ):
        if texts:
            with st.expander(title, expanded=expanded):
                st.markdown("\n".join(f"- {words.plain(text)}" for text in texts))
    with st.container(horizontal=True):
        json, html = "gradebook-verdict.json", "gradebook-report.html"
        download("Verdict as JSON", json, verdict.to_json, "check-json")
        download("Report as HTML", html, partial(report, verdict), "check-html")
        if verdict.bug:
            download(
                "Smallest failing step as pytest file",
                f"test_{verdict.bug}.py",
                lambda: failing_test(verdict).text,
                "check-test",
            )


# Step by step: the timeline, the worst steps, one step


def timeline(verdict: Verdict, answered: bool) -> None:
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
        texts = map(words.plain, in_words(verdict.what_if))
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
    markup(
        '<p class="gb-note"><i class="gb-correct"></i>correct &ensp; '
        '<i class="gb-faulty"></i>logged</p>'
        f'<div class="gb-step" role="img" tabindex="0" aria-label="{alt}">'
        f"{drawn}</div>",
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
    opened = f"These rows are step {step} of {checking.title}."
    address.open_batch(state_of(rows, case(name)), f"{opened} {rows.note}".strip())
