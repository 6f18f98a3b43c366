"""Check your run: drop a log, read the verdict, open its steps."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from gradebook.cases.scenario import SANDBOX, case, load
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted, flips
from gradebook.logs import explore, surfaces
from gradebook.logs.judging.sentences import PAGE, unnamed_said
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.read.log_columns import Unnamed
from gradebook.logs.signal import Signal
from gradebook.logs.worker import Checks
from gradebook.output.charts import signal_figure, timeline_figure
from gradebook.output.figures import NARROW
from gradebook.output.figures import picture as rows_picture
from gradebook.output.panels import Panel
from gradebook.ui import keys
from gradebook.ui.parts import address, ask, words
from gradebook.ui.parts.address import bug_files
from gradebook.ui.parts.ask import Checking, typed
from gradebook.ui.parts.widget import chart, download, markup, offered, table

HEADS = {
    "correct": "A known computation",
    "other": "◇ Not what was declared",
    "suspect": "◆ Suspect",
    "asks": "? A question",
    "none fits": "? Nothing fits",
    "cannot tell": "? Cannot tell",
}
LOOK = 0.2
"""Seconds between two looks at a check that runs."""
CHART = "check-timeline"
CHOSEN = "check-step"


def check_page() -> None:
    st.title("Check your run")
    st.markdown(
        "Which computation produced the advantages in your log, and is it the one that"
        " you configured? Drop a log with one row per rollout: prompt, reward and"
        " advantage. It stays on the server that runs this page."
    )
    checks().warm()
    ask.log()
    checking = keys.CHECKING.get()
    if checking is not None:
        if checking.verdict is None and not checking.error:
            _check(checking)
        if checking.error:
            st.error(f"There is no verdict. {words.as_typed(checking.error)}")
            ask.columns(checking)
            st.button("Check again", key="check-again", on_click=ask.again)
        elif checking.verdict is not None:
            _verdict(checking, checking.verdict)
    ask.more()


@st.cache_resource(show_spinner=False)
def checks() -> Checks:
    """The checks of this server."""
    return Checks()


def _check(checking: Checking) -> None:
    """Runs the check in the process for strangers' files. Cancel ends it, and so does
    leaving the page: Streamlit notices either when the bar is drawn."""
    cancel = partial(setattr, checking, "error", "The check was cancelled.")
    work = st.empty()
    with work.container(key="check-work"):
        bar = st.progress(0.0, f"Reading {words.plain(checking.title)}")
        st.button("Cancel", key="check-cancel", on_click=cancel)
    check = None
    try:
        check = checks().ask(checking.files(), checking.options())
        while not check.is_done(LOOK):
            share, steps = check.progress
            text = f"{steps:,} steps checked"
            if place := checks().place(check):
                text = f"{counted(place, 'check')} before yours"
            bar.progress(share, text)
        checking.verdict = check.future.result()
    except Unnamed as error:
        checking.error, checking.first = unnamed_said(error, PAGE), error.first
    except GradebookError as error:
        checking.error = str(error)
    finally:
        if check is not None:
            checks().cancel(check)
    work.empty()


def _verdict(checking: Checking, verdict: Verdict) -> None:
    st.markdown(words.titled(f"The verdict on {words.plain(checking.title)}"))
    if verdict.signal is None:
        _card(checking, verdict)
    else:
        card, learning = st.columns(2, gap="large")
        with card:
            _card(checking, verdict)
        with learning:
            _learning(verdict.signal)
    ask.columns(checking)
    has_steps = len(verdict.frame) > 0
    if len(verdict.what_if):
        st.markdown(
            "### What each engine would compute\n\nThe rewards alone show where a bug"
            " would change the advantages of these rows, if the trainer had it.\n\n"
            + _listed(explore.sentences(verdict.what_if))
        )
    elif has_steps:
        _timeline(verdict)
    left, right = st.columns([7, 5], gap="large")
    with right if has_steps else left:
        _evidence(verdict)
    if has_steps:
        with left:
            _steps(checking, verdict)


def _card(checking: Checking, verdict: Verdict) -> None:
    with st.container(key="check-verdict"):
        head = HEADS[verdict.verdict]
        first, rest = verdict.statement.first, verdict.statement.after(PAGE)
        if verdict.verdict == "correct" and verdict.declared:
            head = "✓ Correct"
        if verdict.bug:
            assert verdict.judgement is not None
            titles = (named.record.title for named in verdict.judgement.named)
            head += f": {words.plain(' or '.join(titles))}"
        paragraphs = [
            f"### {head}",
            *map(
                words.plain, (f"{first}.", rest, surfaces.judged(verdict), verdict.near)
            ),
        ]
        st.markdown("\n\n".join(paragraphs))
        _confirm(verdict)
        if typed("columns"):  # what a person said of them
            texts = (*typed("columns").splitlines(), typed("declared"))
            answers = [text + "none" * text.endswith("=") for text in texts if text]
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"You said: {', '.join(map(words.plain, answers))}.")
                st.button("Take that back", key="check-take-back", on_click=ask.say)
        name = verdict.bug or next(iter(verdict.asks), "")
        if name in bug_files() and verdict.verdict in ("other", "suspect", "asks"):
            with st.container(horizontal=True, vertical_alignment="center"):
                if verdict.step is not None:
                    _open_button("check-open-first", checking, verdict.step, name)
                title = words.plain(load(name).title)
                address.page_link(name, f"Read about the bug: {title}")


def _learning(signal: Signal) -> None:
    """Which prompts teach, step by step: a fact about the run, beside the verdict."""
    st.markdown(words.titled(surfaces.LEARNING, level=3))
    chart(
        signal_figure(signal.steps, signal.few_from),
        key="check-signal",
        alt="Each step's share of prompts whose rewards are all the lowest, differ, or"
        " are all the highest",
    )
    st.markdown("\n\n".join(map(words.plain, signal.sentences)))
    st.caption(
        "Right: the reward that a prompt's rows share is the log's highest; wrong: it"
        " is the lowest. Prompts that the trainer dropped before logging are not here."
    )
    numbers = signal.steps
    offered("these shares", "check-signal", lambda: {"Prompts by step": numbers})


def _confirm(verdict: Verdict) -> None:
    """Two buttons, if the meaning of a column decides whether the bug in question is
    there."""
    confirm = verdict.statement.confirm
    if confirm is None:
        return
    yes, no = f"{confirm.role}={confirm.named}", f"{confirm.role}="
    answers = (
        ("check-confirm", f"Yes, {confirm.named} says that", yes, confirm.declared),
        ("check-deny", "No, it says something else", no, ""),
    )
    with st.container(horizontal=True):
        for key, label, meaning, setting in answers:
            columns = f"{typed('columns')}\n{meaning}".strip()
            declared = f"{typed('declared')}, {setting}".strip(", ")
            texts = columns, declared
            st.button(words.plain(label), key=key, on_click=ask.say, args=texts)


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"- {words.plain(text)}" for text in texts)


def _evidence(verdict: Verdict) -> None:
    st.markdown(words.titled("Evidence", level=3))
    table(["", ""], [list(fact) for fact in surfaces.facts(verdict)], label="evidence")
    for title, texts in surfaces.lists(verdict).items():
        if texts:
            part = st.expander(title, expanded=title == "Left out or missing")
            part.markdown(_listed(texts))
    with st.container(horizontal=True):
        download("Verdict as JSON", "gradebook-verdict.json", verdict.to_json)
        html = partial(surfaces.report, verdict)
        download("Report as HTML", "gradebook-report.html", html)
        if verdict.bug:
            label, name = "Smallest failing step as pytest file", verdict.bug
            download(label, f"test_{name}.py", partial(explore.failing_test, verdict))


# Step by step: the timeline, the worst steps, one step


def _timeline(verdict: Verdict) -> None:
    """The timeline of a log with advantages: a mark for each step, in colour once the
    user has said what they are compared with."""
    frame = explore.shown_steps(verdict)
    labels = [str(label) for label in frame["step"]]

    def clicked() -> None:
        points = keys.widget(CHART).selection.points
        if points:
            keys.show(CHOSEN, labels[int(points[0]["x"])])

    answered = bool(verdict.declared or typed("estimator") or typed("declared"))
    chart(
        timeline_figure(frame, answered),
        key=CHART,
        on_select=clicked,
        selection_mode="points",
        alt="Each step's verdict and its distance from the correct numbers",
    )
    st.markdown("A click on a mark opens its step below.")
    names = ["step", "verdict", "correct_residual", "flips", "groups_affected"]
    numbers = frame[names].rename(columns={"correct_residual": "off by"})
    offered("the timeline's numbers", CHART, lambda: {"The steps": numbers})


def _steps(checking: Checking, verdict: Verdict) -> None:
    """One step that is opened, first the one that is furthest off."""
    by_label = {str(label): label for label in verdict.frame["step"].tolist()}
    if keys.widget(CHOSEN) not in by_label:
        would_differ = verdict.what_if.get("step", ())
        worst = [*explore.worst_steps(verdict, 1)["step"], *would_differ, *by_label]
        keys.show(CHOSEN, str(worst[0]))
    step = by_label[st.selectbox("Open a step", list(by_label), key=CHOSEN, width=240)]
    rows = checking.step(step)
    if rows is None:
        return
    if rows.note:
        st.markdown(words.plain(rows.note))
    off = flips(rows.correct, rows.logged).tolist()
    panel = Panel("advantage", rows.correct.tolist(), rows.logged.tolist(), off)
    prompts = list(map(str, rows.table["prompt"]))
    drawn = rows_picture(panel, prompts, plot=NARROW)
    alt = f"Step {words.safe(str(step))}: the logged advantages beside the correct ones"
    markup(
        '<p class="gb-note"><i class="gb-correct"></i>correct &ensp; '
        '<i class="gb-faulty"></i>logged</p>'
        f'<div class="gb-step" role="img" tabindex="0" aria-label="{alt}">'
        f"{drawn}</div>",
        key="check-rows",
    )
    _open_button("check-open", checking, step, rows.bug or verdict.bug or SANDBOX)


def _open_button(key: str, checking: Checking, step: object, name: str) -> None:
    """Goes to the page `name`, a bug's or the sandbox, with the step's rows in
    the learner's own draft. The page says what it shows."""
    where = "in the sandbox" if name == SANDBOX else f"on the page {load(name).title}"
    pressed = st.button(words.plain(f"Open step {step} {where}"), key=key)
    if pressed and (rows := checking.step(step)):
        note = f"These rows are step {step} of {checking.title}. {rows.note}".strip()
        address.open_batch(explore.state_of(rows, case(name)), note)
