"""The sandbox: any batch, any settings, any bugs, the whole pipeline."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.bugs import BUGS, Swap
from gradebook.cases import edits
from gradebook.cases import sandbox as starts
from gradebook.cases.columns import titled
from gradebook.cases.engines import swaps
from gradebook.cases.scenario import combinations, load, variants
from gradebook.core.errors import GradebookError
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
from gradebook.ui.parts.widget import button, choosing, picking, whole_page
from gradebook.ui.parts.workings import tokens, workings

PAGE = starts.NAME
PICTURES = {"sign": "advantage", GRADIENT: "gradient"}


def sandbox() -> None:
    """The whole page."""
    address.arrive(PAGE)
    draft = drafts.of(address.case(PAGE))
    st.title("Sandbox")
    address.problems()
    st.markdown(
        "Edit the batch, and choose settings and bugs. The correct engine"
        " (filled circle) and one with all chosen bugs (open diamond) run on"
        " it. Below are their numbers at every stage."
    )
    main, side = st.columns([17, 8], gap="medium")
    # Each in a container of its own: see parts/widget.
    with side.container():
        _start(draft)
    with side.container():
        _bugs(draft)
    with side.container():
        kind = _kind(draft)
    try:
        parts = swaps(draft.state.bugs)
    except GradebookError as error:
        main.error(words.plain(words.place(error)))
        address.depart(PAGE)
        return
    with main:
        _told(draft.state.bugs, parts)
        if draft.scenario.also:
            st.markdown(words.plain(draft.scenario.story))
        heart(draft, kind, covered=False)
    rest(draft, draft.state.bugs, main.container(), side.container())


@st.fragment(key="rest")
def rest(
    draft: Draft, drawn: tuple[str, ...], main: DeltaGenerator, side: DeltaGenerator
) -> None:
    """What a finished edit draws again, apart from the board. Undo may also
    change the bugs: the page then shows others than it was `drawn` with, and
    is drawn as a whole."""
    with draft.lock:
        if draft.state.bugs != drawn:
            st.rerun()
        with side:
            _settings(draft)
            _columns(draft)
        if draft.comparison.batch.rows:
            with main, below(draft):
                _pipeline(draft)
        if not draft.faults:
            takehome.take_home(draft)
        shortcuts(draft)
        address.depart(PAGE)


# The start


def _start(draft: Draft) -> None:
    """The batch to start from, every setting a control of it. The last ones
    have bugs that a trainer had at the same time."""
    titles = {PAGE: "Blank batch"}
    for name in bug_files():
        main, *others = variants(name)
        titles[f"{PAGE}-{main.name}"] = main.title
        for other in others:
            titles[f"{PAGE}-{other.name}"] = f"{main.title}: {other.title}"
    for one in combinations():
        titles[f"{PAGE}-{one.name}"] = f"Together: {one.title}"

    def pick(name: str) -> None:
        keys.CASES.get()[PAGE] = name
        st.rerun()

    st.selectbox(
        "Start from",
        format_func=titles.__getitem__,
        help="Each start keeps its edits and its bugs.",
        **choosing(f"case-{PAGE}", list(titles), draft.scenario.name, pick),
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
    controls.settings(draft, across=2)
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
    row = min(draft.row, comparison.batch.rows - 1)
    workings(comparison, row, draft.state.engine_names)
    for number, stage in enumerate(comparison.stages, 1):
        label = f"{number}. {stage} {'≠' if stage in diverging else '='}"
        if stage in by_stage:
            label += ", swapped"
        with st.expander(label, expanded=stage == first):
            one = by_stage.get(stage)
            st.markdown(meaning(one, stage, draft.state.engine_names))
            stage_table(draft, stage)
    tokens(comparison, row, draft.state.engine_names)
