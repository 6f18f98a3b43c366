"""The verdict on a log: one card, and below it what speaks for it."""

from __future__ import annotations

import re
from functools import partial

import streamlit as st

from gradebook.cases.scenario import bug, load
from gradebook.logs.explore import failing_test
from gradebook.logs.judging.proof import HOW_ROWS_COUNT, main_column
from gradebook.logs.judging.sentences import named_as
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.report import facts, report
from gradebook.ui.checks import ask
from gradebook.ui.checks.ask import Checking, on_page
from gradebook.ui.checks.steps import open_step
from gradebook.ui.parts import words
from gradebook.ui.parts.address import bug_files
from gradebook.ui.parts.widget import download, table

HEADS = {
    "correct": "A known computation",
    "other": "◇ Not what was declared",
    "suspect": "◆ Suspect",
    "asks": "? A question",
    "none fits": "? Nothing fits",
    "cannot tell": "? Cannot tell",
}
FIRST_SENTENCE = re.compile(r"(?<=[.!?])(?<!Dr\.)\s+(?=[A-Z])")


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
        _answers()
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


def _answers() -> None:
    """What a person said of the columns, and a way to take it back."""
    answers = [*ask.typed("columns").splitlines(), ask.typed("declared")]
    if ask.typed("columns"):
        with st.container(horizontal=True, vertical_alignment="center"):
            texts = ", ".join(words.plain(answer) for answer in answers if answer)
            st.markdown(f"You said: {texts}.")
            st.button("Take that back", key="check-take-back", on_click=ask.take_back)


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
