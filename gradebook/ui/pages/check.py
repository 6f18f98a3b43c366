"""Check your run: drop a log, read the verdict, explore it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from gradebook.cases.columns import number, whole
from gradebook.cases.scenario import load
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import settled, signed
from gradebook.logs.log import check_log
from gradebook.logs.pytest_file import state_of, test_file
from gradebook.logs.read.columns import NAMES
from gradebook.logs.read.pasted import pasted
from gradebook.logs.read.sources import Source
from gradebook.logs.report import report
from gradebook.logs.verdict.explore import (
    StepRows,
    step_rows,
    timeline,
    worst_steps,
)
from gradebook.logs.verdict.verdict import Verdict
from gradebook.logs.verdict.what_if import by_bug, sentences
from gradebook.output.figures import Timeline, timeline_figure
from gradebook.ui.parts import drafts, numbers, predict, words
from gradebook.ui.parts.pictures import chart, ink
from gradebook.ui.parts.shell import bug_files, require_entry
from gradebook.ui.parts.tables import table

KINDS = ["parquet", "csv", "tsv", "jsonl", "json"]
OPEN = "check-result"
ROWS = "check-rows"


def check_page() -> None:
    """The whole page."""
    require_entry()
    st.title("Check your run")
    st.markdown(
        "Drop a log of a training run: prompts, rewards and advantages, one"
        " rollout a row. Each step is computed under the correct engine and"
        " under every bug's replica, for every estimator and convention the"
        " columns allow; the answer is the one that gives exactly the logged"
        " numbers. TRL's `completions_*.parquet`, CSV, JSON Lines and Parquet"
        " with any column names will do. The log stays in this session."
    )
    files = _asked()
    if files:
        options = _options()
        st.button(
            "Check",
            key="check-go",
            disabled=options is None,
            on_click=lambda: st.session_state.update({OPEN: None}),
        )
        if OPEN in st.session_state and st.session_state[OPEN] is None:
            _check(files, options or {})
    found = st.session_state.get(OPEN)
    if found is not None:
        _show(*found)


def _asked() -> list[Source]:
    """The files that were dropped, or the table that was pasted."""
    dropped = st.file_uploader(
        "Log files",
        type=KINDS,
        accept_multiple_files=True,
        key="check-files",
        help="Several files are read one after the other, by name.",
    )
    with st.expander("Or paste a table"):
        text = st.text_area(
            "A table with a first line of column names",
            key="check-text",
            height=160,
        )
    if dropped:
        ordered = sorted(dropped, key=lambda file: file.name)
        return [Source(f.name, data=f.getvalue()) for f in ordered]
    if text.strip():
        try:
            return [pasted(text)]
        except GradebookError as error:
            st.error(words.plain(str(error)))
    return []


def _options() -> dict[str, Any] | None:
    """What the reader sets by hand; None where it cannot be read."""
    with st.expander("Columns, weights and group size by hand"):
        st.markdown(
            "Names are guessed and shown with the verdict. Here they can be"
            " set: one `name = your column` a line, with names from "
            + ", ".join(f"`{n}`" for n in NAMES)
            + "."
        )
        pairs = st.text_area("Columns", key="check-columns", height=100)
        weights = st.text_input(
            "Weights of the reward functions, between commas",
            key="check-weights",
        )
        size = st.text_input("Rows per prompt", key="check-size")
    try:
        return {
            "columns": _pairs(pairs),
            "weights": [number(w) for w in weights.split(",")]
            if weights.strip()
            else None,
            "group_size": whole(size) if size.strip() else None,
        }
    except GradebookError as error:
        st.error(words.plain(str(error)))
        return None


def _pairs(text: str) -> dict[str, str] | None:
    found = {}
    for row, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        name, mark, theirs = line.partition("=")
        if not mark or not theirs.strip():
            raise GradebookError(
                key="columns",
                row=row,
                expected="name = your column",
                found=line.strip(),
            )
        found[name.strip()] = theirs.strip()
    return found or None


def _check(files: Sequence[Source], options: dict[str, Any]) -> None:
    """Runs the check; a press of Cancel ends it at the next piece."""
    bar = st.progress(0.0, "Reading")
    st.button("Cancel", key="check-cancel", on_click=_cancel)

    def progress(share: float, steps: int) -> bool:
        bar.progress(min(share, 1.0), f"{steps:,} steps checked")
        return True

    try:
        verdict = check_log(files, progress=progress, **options)
    except GradebookError as error:
        _cancel()
        st.error(words.plain(str(error)))
        return
    st.session_state[OPEN] = (verdict, list(files))
    st.session_state[ROWS] = {}
    st.rerun()


def _cancel() -> None:
    st.session_state.pop(OPEN, None)


def _show(verdict: Verdict, files: list[Source]) -> None:
    st.header("The verdict")
    mark = {"correct": "✓", "suspect": "◇"}.get(verdict.verdict, "?")
    st.markdown(f"#### {mark} {words.plain(verdict.sentence)}")
    _evidence(verdict)
    _would_compute(verdict)
    if verdict.ties:
        st.subheader("What this log cannot tell")
        st.markdown(
            "\n".join(
                f"- **{words.plain(t.name)}**: {words.plain(t.why)}"
                for t in verdict.ties
            )
        )
    if verdict.notes:
        st.subheader("Notes")
        st.markdown("\n".join(f"- {words.plain(n)}" for n in verdict.notes))
    if verdict.broken:
        st.subheader("Left out")
        st.markdown("\n".join(f"- {words.plain(b)}" for b in verdict.broken))
    _take_home(verdict, files)
    if len(verdict.frame):
        _explore(verdict, files)


def _evidence(verdict: Verdict) -> None:
    rows = [
        [
            "steps judged",
            f"{verdict.steps_judged:,} of {verdict.steps_read:,}",
        ],
        ["steps that it fits", f"{verdict.steps_fitted:,}"],
        ["rollouts", f"{verdict.rows:,}"],
    ]
    if verdict.convention:
        rows.append(["convention", verdict.convention])
    if math.isfinite(verdict.residual):
        rows.append(["largest residual", f"{verdict.residual:.2g}"])
    if math.isfinite(verdict.correct_residual):
        rows.append(
            ["largest residual, correct", f"{verdict.correct_residual:.3g}"]
        )
    if verdict.step is not None:
        where = f"step {verdict.step}, row {verdict.row}"
        rows.append(["first off the correct numbers", where])
    rows.append(["rows whose sign flips", f"{verdict.flips:,}"])
    for name, theirs in verdict.columns.items():
        rows.append([f"column for {name}", str(theirs)])
    if verdict.weights:
        weights = ", ".join(f"{w:g}" for w in verdict.weights)
        rows.append(["weights of the rewards", weights])
    table(["evidence", "value"], rows)


def _would_compute(verdict: Verdict) -> None:
    """For a log without advantages: how the engines would differ."""
    lines = by_bug(verdict.what_if)
    if not len(lines):
        return
    st.subheader("What each engine would compute")
    st.markdown(
        "\n".join(f"- {words.plain(s)}" for s in sentences(verdict.what_if))
    )
    table(
        ["bug", "estimator", "steps", "rows", "flips", "largest"],
        [
            [
                line["bug"],
                line["estimator"],
                f"{line['steps']:,} of {line['of']:,}",
                f"{line['rows_off']:,}",
                f"{line['flips']:,}",
                f"{line['largest']:.3f}",
            ]
            for _, line in lines.iterrows()
        ],
        numbers=(3, 4, 5),
    )


def _take_home(verdict: Verdict, files: list[Source]) -> None:
    with st.container(horizontal=True):
        st.download_button(
            "Verdict as JSON",
            data=verdict.to_json,
            file_name="gradebook-verdict.json",
            key="check-json",
            on_click="ignore",
        )
        st.download_button(
            "Report as HTML",
            data=lambda: report(verdict),
            file_name="gradebook-report.html",
            key="check-html",
            on_click="ignore",
        )
        if verdict.verdict == "suspect":
            st.download_button(
                "Smallest failing step as pytest file",
                data=lambda: test_file(files, verdict).text,
                file_name=f"test_{verdict.bug}.py",
                key="check-test",
                on_click="ignore",
            )


def _explore(verdict: Verdict, files: list[Source]) -> None:
    """The timeline, and one step of it opened."""
    st.header("Step by step")
    frame = timeline(verdict)
    steps = [str(s) for s in frame["step"]]
    distances = frame["correct_residual"].fillna(0).tolist()
    key = "check-timeline"
    drawn = Timeline(
        steps,
        frame["verdict"].tolist(),
        distances,
        frame["flips"].tolist(),
        ink(),
    )
    chart(
        timeline_figure(drawn),
        key=key,
        on_select=lambda: _clicked(key, steps),
        selection_mode="points",
        config={"displayModeBar": False},
        alt="Each step's verdict and its distance from the correct numbers",
    )
    counts = frame["verdict"].value_counts()
    st.markdown(
        ", ".join(f"{n:,} {verdict}" for verdict, n in counts.items())
        + f"; {int(frame['flips'].sum()):,} flips,"
        f" {int(frame['groups_affected'].sum()):,} groups affected."
    )
    numbers.offered(
        "the timeline's numbers", key, lambda: numbers.of_timeline(drawn)
    )
    worst = worst_steps(verdict)
    if len(worst):
        would = len(verdict.what_if) > 0
        st.subheader(
            "Where the engines would differ most"
            if would
            else "The worst steps"
        )
        table(
            [
                "step",
                "bug" if would else "named",
                "off by",
                "flips",
                "groups affected",
            ],
            [
                [
                    str(row["step"]),
                    str(row["bug"] or row["verdict"]),
                    f"{row['correct_residual']:.3g}",
                    str(int(row["flips"])),
                    f"{int(row['groups_affected'])} of {int(row['groups'])}",
                ]
                for _, row in worst.iterrows()
            ],
            numbers=(2, 3),
        )
    first = str(worst["step"].iloc[0]) if len(worst) else steps[0]
    if st.session_state.get("check-step") not in steps:
        st.session_state["check-step"] = first
    chosen = st.selectbox("Open a step", steps, key="check-step")
    _step(verdict, files, frame["step"].tolist()[steps.index(chosen)])


def _clicked(key: str, steps: list[str]) -> None:
    points = st.session_state[key].selection.points
    if points:
        st.session_state["check-step"] = steps[int(points[0]["customdata"][0])]


def _step(verdict: Verdict, files: list[Source], step: object) -> None:
    known: dict[object, StepRows] = st.session_state[ROWS]
    try:
        if step not in known:
            known[step] = step_rows(files, verdict, step)
        rows = known[step]
    except GradebookError as error:
        st.error(words.plain(str(error)))
        return
    if rows.note:
        st.markdown(words.plain(rows.note))
    table(
        ["group", "first row", "rows", "off by", "flips"],
        [
            [
                str(int(g["prompt"])),
                str(int(g["first"])),
                str(int(g["rows"])),
                signed(settled(float(g["largest"]))),
                str(int(g["flips"])),
            ]
            for _, g in rows.groups.head(12).iterrows()
        ],
        numbers=(1, 2, 3, 4),
    )
    name = rows.bug or verdict.bug or next(iter(bug_files()))
    if st.button(
        words.plain(f"Open step {step} on the page of {load(name).title}"),
        key="check-open",
    ):
        draft = drafts.of(load(name))
        draft.become(state_of(replace(rows, bug=name)))
        st.session_state.setdefault("cases", {})[name] = name
        predict.answer(name, predict.SKIPPED)
        st.switch_page(bug_files()[name])
