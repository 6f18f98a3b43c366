"""The sandbox: any batch, any settings, any bugs, the whole pipeline."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.matrix import Line, matrix
from gradebook.bugs import BUGS, Swap
from gradebook.cases import edits
from gradebook.cases import sandbox as starts
from gradebook.cases.columns import titled
from gradebook.cases.engines import swaps
from gradebook.cases.scenario import combinations, load, variants
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import pair, plain
from gradebook.core.settings import ESTIMATORS
from gradebook.output.panels import GRADIENT
from gradebook.ui import keys
from gradebook.ui.parts import (
    address,
    controls,
    drafts,
    takehome,
    words,
)
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.heart import below, heart
from gradebook.ui.parts.shell import bug_files
from gradebook.ui.parts.shortcuts import shortcuts
from gradebook.ui.parts.stages import first_difference, meaning, stage_table
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.widget import button, choosing, picking, whole_page
from gradebook.ui.parts.workings import tokens, workings

PAGE = starts.NAME
PICTURES = {"sign": "advantage", GRADIENT: "gradient"}
MOST_SHOWN = 12
NO_BREAK = "\u00a0"


def sandbox() -> None:
    """The whole page."""
    address.arrive(PAGE)
    draft = drafts.of(address.case(PAGE))
    st.title("Sandbox")
    address.problems()
    st.markdown(
        "Edit the batch, and choose settings and bugs. The correct engine"
        " (filled circle) and one with all chosen bugs (open diamond) run on"
        " it. Below are their numbers at every stage, and under every"
        " estimator."
    )
    _combinations()
    first, second, third = st.columns([7, 12, 4])
    with first:
        _start(draft)
    with second:
        _bugs(draft)
    with third:
        kind = _kind(draft)
    try:
        parts = swaps(draft.state.bugs)
    except GradebookError as error:
        st.error(words.plain(words.place(error)))
        address.depart(PAGE)
        return
    _told(draft.state.bugs, parts)
    if draft.scenario.also:
        st.markdown(words.plain(draft.scenario.story))
    heart(draft, kind, covered=False)
    rest(draft, draft.state.bugs)


@st.fragment(key="rest")
def rest(draft: Draft, drawn: tuple[str, ...]) -> None:
    """What a finished edit draws again, apart from the board. Undo may also
    change the bugs: the page then shows others than it was `drawn` with, and
    is drawn as a whole."""
    with draft.lock:
        if draft.state.bugs != drawn:
            st.rerun()
        _columns(draft)
        _settings(draft)
        if draft.comparison.batch.rows:
            with below(draft):
                _pipeline(draft)
                _matrix(draft)
        if not draft.faults:
            takehome.take_home(draft)
        shortcuts(draft)
        address.depart(PAGE)


# The start


def _start(draft: Draft) -> None:
    """The batch to start from, every setting a control of it."""
    titles = {PAGE: "Blank batch"}
    for name in bug_files():
        main, *others = variants(name)
        titles[f"{PAGE}-{main.name}"] = main.title
        for other in others:
            titles[f"{PAGE}-{other.name}"] = f"{main.title}: {other.title}"
    for one in combinations():
        titles[f"{PAGE}-{one.name}"] = f"Together: {one.title}"

    def pick(name: str) -> None:
        _open(name)
        st.rerun()

    st.selectbox(
        "Start from",
        format_func=titles.__getitem__,
        help="Each start keeps its edits and its bugs.",
        **choosing(f"case-{PAGE}", list(titles), draft.scenario.name, pick),
    )


def _open(name: str) -> None:
    keys.CASES.get()[PAGE] = name


def _combinations() -> None:
    """Bugs that a trainer had at the same time, one click each."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Bugs that a trainer really had together:", width="content")
        for one in combinations():
            st.button(
                words.plain(one.title),
                key=f"together-{one.name}",
                help=words.plain(one.teaser),
                on_click=_open,
                args=(f"{PAGE}-{one.name}",),
            )


def _bugs(draft: Draft) -> None:
    """The bugs that the faulty engine has: part of the state."""
    among = {n: words.plain(load(n).title) for n in bug_files()}

    def pick(chosen: list[str]) -> None:
        draft.edit(bugs=tuple(n for n in BUGS if n in chosen))
        st.rerun()

    st.pills(
        "Bugs in the faulty engine",
        list(among),
        format_func=among.__getitem__,
        selection_mode="multi",
        wrap=True,
        **picking(
            draft.named("bugs"),
            list(draft.state.bugs),
            pick,
        ),
    )


def _told(chosen: tuple[str, ...], parts: tuple[Swap, ...]) -> None:
    """Which stages are swapped, and what two bugs of one stage do."""
    if not chosen:
        st.markdown("No bug is chosen: both engines are the correct one.")
        return
    said = ", ".join(f"`{one.stage}`" for one in parts)
    word = "stage" if len(parts) == 1 else "stages"
    lines = [f"Swapped {word}: {said}."]
    lines += [
        f"The bugs of `{one.stage}` act together: each drops one of the"
        " conditions that a row must meet in order to count."
        for one in parts
        if len(one.drops) > 1
    ]
    st.markdown(" ".join(lines))


# The batch


def _kind(draft: Draft) -> str:
    """Advantages, or with log-probabilities the gradient if asked for."""
    if "logp" not in draft.table:
        return "sign"
    kind = draft.kind or draft.scenario.telltale.kind
    now = kind if kind in PICTURES else "sign"

    def pick(one: str) -> None:
        draft.kind = one

    st.segmented_control(
        "Numbers to show",
        list(PICTURES),
        format_func=PICTURES.__getitem__,
        required=True,
        **picking(draft.named("kind"), now, pick, after=whole_page),
    )
    return now


def _columns(draft: Draft) -> None:
    """A button for the columns that this start's table lacks."""
    whole = draft.table.with_every_column()
    missing = [n for n in whole.headers if n not in draft.table]
    if not missing:
        return
    button(
        "Show every column",
        f"columns-{draft.scenario.name}",
        draft.do,
        edits.show_every_column,
        help="Adds, with values that change no advantage: "
        + ", ".join(titled(n) for n in missing)
        + ".",
    )


def _settings(draft: Draft) -> None:
    st.markdown(words.titled("Settings"))
    controls.settings(draft)
    if draft.table.width:
        controls.padded_width(draft)


# The pipeline


def _pipeline(draft: Draft) -> None:
    """Every stage, both engines, the first that differs open; and the
    selected row's formula."""
    by_stage = {one.stage: one for one in swaps(draft.state.bugs)}
    comparison = draft.comparison
    diverging = comparison.diverging
    first = (*diverging, *by_stage, "advantage")[0]
    said = first_difference(comparison, next(iter(by_stage), ""))
    st.markdown(words.titled("The whole pipeline", said))
    left, right = st.columns([11, 13])
    with left:
        for number, stage in enumerate(comparison.stages, 1):
            label = f"{number}. {stage} {'≠' if stage in diverging else '='}"
            if stage in by_stage:
                label += ", swapped"
            with st.expander(label, expanded=stage == first):
                one = by_stage.get(stage)
                st.markdown(meaning(one, stage, draft.state.engine_names))
                stage_table(draft, stage)
    with right:
        row = min(draft.row, comparison.batch.rows - 1)
        workings(comparison, row, draft.state.engine_names)
    tokens(comparison, row, draft.state.engine_names)


# The matrix


def _matrix(draft: Draft) -> None:
    """This batch under every estimator: which let the bugs through."""
    comparison = draft.comparison
    lines = matrix(comparison.batch, draft.swap.engine)
    leaking = sum(line.leaks for line in lines)
    said = (
        f"{leaking or 'None'} of {len(lines)} estimators show a difference."
        " An estimator sets baseline, scale, lone row, ddof, eps and"
        " whitening; the other settings stay as they are."
    )
    st.markdown(words.titled("This batch under every estimator", said))
    now = controls.estimator(draft)
    at = list(ESTIMATORS).index(now) if now in ESTIMATORS else None
    gradients = comparison.correct.gradient is not None
    table(
        [
            "estimator",
            "engines",
            "rows that differ",
            "rows that flip",
            "largest difference",
            *(["rows whose gradient differs"] if gradients else []),
        ],
        [_summary(line, gradients) for line in lines],
        numbers=(4,),
        at=at,
    )
    _every_row(lines, comparison.batch.rows)


def _summary(line: Line, gradients: bool) -> list[str]:
    if line.comparison is None:
        blank = [""] * (4 if gradients else 3)
        return [
            line.estimator,
            words.place(line.wrong) if line.wrong else "",
            *blank,
        ]
    count = line.comparison.batch.rows
    said = [
        line.estimator,
        f"differ{NO_BREAK}≠" if line.leaks else "agree",
        _rows(line.rows, count),
        _rows(line.flips, count),
        plain(line.largest, 3) if line.rows else "",
    ]
    if gradients:
        said.append(_rows(line.gradient_rows, count))
    return said


def _rows(rows: list[int], count: int) -> str:
    """Rows by number, on one line."""
    if len(rows) == count:
        return f"all {count}"
    shown = ", ".join(map(str, rows[:MOST_SHOWN]))
    more = len(rows) - MOST_SHOWN
    shown += f" and {more} more" if more > 0 else ""
    return (shown or "none").replace(" ", NO_BREAK)


def _every_row(lines: tuple[Line, ...], count: int) -> None:
    """Each row's advantage under each estimator, correct above faulty."""
    few = range(min(count, MOST_SHOWN))
    body = []
    for line in lines:
        if line.comparison is None:
            continue
        correct, faulty = line.correct.tolist(), line.faulty.tolist()
        pairs = [pair(correct[r], faulty[r]) for r in few]
        above = [a for a, _ in pairs]
        below = [_mark(line, r) + pairs[r][1] for r in few]
        body.append([line.estimator, f"correct{NO_BREAK}●", *above])
        body.append(["", f"faulty{NO_BREAK}◇", *below])
    st.markdown(
        "Each row's advantage; ≠ marks a faulty one that differs, FLIP one"
        " that has the other sign."
        + (f" The first {MOST_SHOWN} rows." if count > MOST_SHOWN else "")
    )
    head = ["estimator", "engine", *(f"row {r}" for r in few)]
    table(head, body, numbers=range(2, len(head)))


def _mark(line: Line, row: int) -> str:
    if row in line.flips:
        return "FLIP "
    return "≠ " if row in line.rows else ""
