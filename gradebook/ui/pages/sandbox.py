"""The sandbox: any batch, any settings, any bugs, the whole pipeline."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.bugs import BUGS, Swap, swaps
from gradebook.cases import edits
from gradebook.cases.scenario import SANDBOX, combinations, load, variants
from gradebook.core.columns import titled
from gradebook.core.errors import GradebookError
from gradebook.output.panels import GRADIENT
from gradebook.ui import keys
from gradebook.ui.board.component import below, board
from gradebook.ui.board.lesson import path
from gradebook.ui.board.view import view
from gradebook.ui.parts import address, controls, drafts, stages, takehome, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.shell import bug_files
from gradebook.ui.parts.shortcuts import shortcuts
from gradebook.ui.parts.stages import workings
from gradebook.ui.parts.widget import button, choosing, folded, picking

PAGE = SANDBOX
BASIC = ("estimator", "baseline", "scale", "ddof", "eps")
"""Settings that matter to every bug."""
PICTURES = {"sign": "advantage", GRADIENT: "gradient"}


def sandbox() -> None:
    """The whole page."""
    address.arrive(PAGE)
    draft = drafts.of(address.case(PAGE))
    st.title("Sandbox", anchor=False)
    address.problems()
    main, side = st.columns([3, 1], gap="medium")
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
        st.markdown(_swapped(draft.state.bugs, parts))
        if draft.scenario.also:
            st.markdown(words.plain(draft.scenario.story))
        _board(draft, kind)
    rest(draft, draft.state.bugs, main.container(), side.container(key="settings"))


@st.fragment(key="heart")
def _board(draft: Draft, kind: str) -> None:
    """The board, and the path of its row through the stages."""
    draft.acts = {"stage": partial(stages.choose, draft)}
    board(draft, partial(_seen, draft, kind))


def _seen(draft: Draft, kind: str) -> dict[str, Any]:
    seen = view(draft, kind=kind, covered=False)
    return seen | {"path": path(draft, False)}


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
        row = min(draft.row, draft.comparison.batch.rows - 1)
        if row >= 0:
            with main, below(draft):
                stages.opened(draft)
                if not draft.stage:
                    workings(draft, row)
        if not draft.faults:
            with main:
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


def _swapped(bugs: tuple[str, ...], parts: tuple[Swap, ...]) -> str:
    """Which stages the bugs swap, and what two bugs of one stage do."""
    if not bugs:
        return "No bug is chosen: both engines are the correct one."
    names = ", ".join(f"`{part.stage}`" for part in parts)
    lines = [f"Swapped {'stage' if len(parts) == 1 else 'stages'}: {names}."]
    lines += [
        f"The bugs of `{part.stage}` act together: each drops one of the"
        " conditions that a row must meet in order to count."
        for part in parts
        if len(part.drops) > 1
    ]
    return " ".join(lines)


def _kind(draft: Draft) -> str:
    """Advantages, or with log-probabilities the gradient if asked for."""
    if "logp" not in draft.table:
        return "sign"
    kind = draft.kind or draft.scenario.telltale.kind
    now = kind if kind in PICTURES else "sign"

    def pick(one: str) -> None:
        draft.kind = one
        st.rerun()

    st.segmented_control(
        "Numbers to show",
        list(PICTURES),
        format_func=PICTURES.__getitem__,
        required=True,
        **picking(draft.named("kind"), now, pick),
    )
    return now


def _settings(draft: Draft) -> None:
    """Those that matter to the chosen bugs; folded, the others."""
    named = {*BASIC, *(n for bug in draft.state.bugs for n in load(bug).controls)}
    near = [n for n in draft.scenario.controls if n in named]
    far = [n for n in draft.scenario.controls if n not in named]
    controls.settings(draft, near, across=2)

    def others() -> None:
        controls.settings(draft, far, across=2)
        if draft.table.width:
            controls.padded_width(draft)
        _columns(draft)

    moved = sum(name in far for name in controls.changed(draft))
    title = "Other settings and columns" + (f", {moved} changed" if moved else "")
    folded(title, "settings", others)


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
