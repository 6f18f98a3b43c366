"""The sandbox: any batch, any settings, any bugs, the whole pipeline."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.bugs import BUGS, swaps
from gradebook.cases import edits
from gradebook.cases.scenario import SANDBOX, Scenario, combinations, load
from gradebook.cases.state import TEXTS
from gradebook.core.columns import titled
from gradebook.core.errors import GradebookError
from gradebook.core.settings import FLAGS
from gradebook.output.panels import GRADIENT
from gradebook.ui import keys
from gradebook.ui.board.component import below, board
from gradebook.ui.board.lesson import path
from gradebook.ui.board.view import view
from gradebook.ui.parts import address, controls, drafts, report, stages, unnamed, words
from gradebook.ui.parts.address import bug_files
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.widget import choosing, folded, shortcuts, showing

BASIC = ("estimator", "baseline", "scale", "ddof", "eps")
"""Settings that matter to every bug."""
GROUPS = (
    *("Rewards and rows", "Baseline and scale", "Second normalization"),
    *("Token by token", "Loss", "KL"),
)
"""The groups of cases/fields.toml, in the order of the computation."""
PICTURES = {"sign": "advantage", GRADIENT: "gradient"}


def sandbox() -> None:
    address.arrive(SANDBOX)
    draft = drafts.of(address.case(SANDBOX))
    bugs = draft.state.bugs
    st.title("Sandbox", anchor=False)
    address.unread()
    main, side = st.columns([3, 1], gap="medium")
    # Each in a container of its own: see parts/widget.
    with side.container():
        _start(draft)
    with side.container():
        _bugs(draft)
    with side.container():
        kind = _kind(draft)
    with main:
        try:
            st.markdown(_swapped(bugs))
        except GradebookError as error:
            st.error(words.as_typed(words.message_of(error)))
            address.depart(SANDBOX)
            return
        if draft.scenario.also:
            st.markdown(words.plain(draft.scenario.story))
        board_and_path(draft, kind)
    rest(draft, bugs, main.container(), side.container(key="settings"))


@st.fragment(key="heart")
def board_and_path(draft: PageDraft[Scenario], kind: str) -> None:

    def seen() -> dict[str, Any]:
        data = view(draft, kind=kind, covered=False)
        return data | {"path": path(draft, False), "formula": stages.formula(draft)}

    draft.channel.acts = {"stage": partial(stages.choose, draft)}
    board(draft, seen)


@st.fragment(key="rest")
def rest(
    draft: PageDraft[Scenario],
    drawn: tuple[str, ...],
    main: DeltaGenerator,
    side: DeltaGenerator,
) -> None:
    """What a finished edit draws again, apart from the board; after an Undo that
    changes the bugs that it was `drawn` with, the whole page."""
    with draft.lock:
        if draft.state.bugs != drawn:
            st.rerun()
        with side:
            _settings(draft)
        with main:
            with below(draft):
                stages.opened(draft)
                if not draft.page.stage:
                    stages.workings(draft)
            if not draft.fault:
                report.take_home(draft)
        shortcuts(draft)
        address.depart(SANDBOX)


def _start(draft: PageDraft[Scenario]) -> None:
    """The batch to start from: each case, then bugs that a trainer had together."""
    titles = {SANDBOX: "Blank batch"}
    for bug in bug_files():
        for name, title in unnamed.titles(bug).items():
            called = f"{load(bug).title}: {title}" if name != bug else load(bug).title
            titles[f"{SANDBOX}-{name}"] = called
    for case in combinations():
        titles[f"{SANDBOX}-{case.name}"] = f"Together: {case.title}"

    def pick(name: str) -> None:
        keys.CASES.get()[SANDBOX] = name
        st.rerun()

    st.selectbox(
        "Start from",
        format_func=titles.__getitem__,
        help="Each start keeps its edits and its bugs.",
        **choosing(f"case-{SANDBOX}", list(titles), draft.scenario.name, pick),
    )


def _bugs(draft: PageDraft[Scenario]) -> None:
    def pick(chosen: list[str]) -> None:
        draft.edit(bugs=tuple(name for name in BUGS if name in chosen))
        st.rerun()

    key, chosen = f"bugs-{draft.scenario.name}", list(draft.state.bugs)
    st.pills(
        "Bugs in the faulty engine",
        list(bug_files()),
        format_func=lambda name: words.plain(load(name).title),
        selection_mode="multi",
        wrap=True,
        **showing(key, chosen, pick, "default"),
    )


def _swapped(bugs: tuple[str, ...]) -> str:
    """Which stages the bugs swap. Raises GradebookError if they cannot be combined."""
    parts = swaps(bugs)
    if not bugs:
        return "No bug is chosen: both engines are the correct one."
    names = ", ".join(f"`{part.stage}`" for part in parts)
    text = f"Swapped in the faulty engine: {names}."
    if any(len(part.drops) > 1 for part in parts):
        text += (
            " The bugs of `counted` act together: each drops one of the conditions"
            " that a row must meet in order to count."
        )
    return text


def _kind(draft: PageDraft[Scenario]) -> str:
    """What the board shows: advantages, or the gradient if the batch has
    log-probabilities and the learner chose it."""
    if "logp" not in draft.state.table.cells:
        return "sign"
    kind = draft.page.kind or draft.scenario.telltale.kind
    now = kind if kind in PICTURES else "sign"

    def pick(kind: str) -> None:
        draft.page.kind = kind
        st.rerun()

    st.segmented_control(
        "Numbers to show",
        list(PICTURES),
        format_func=PICTURES.__getitem__,
        required=True,
        **showing(f"kind-{draft.scenario.name}", now, pick, "default"),
    )
    return now


def _settings(draft: PageDraft[Scenario]) -> None:
    """The settings that matter to the chosen bugs; the others are folded, by group."""
    named = {*BASIC, *(name for bug in draft.state.bugs for name in load(bug).controls)}
    _fields(draft, [name for name in draft.scenario.controls if name in named])
    groups: dict[str, list[str]] = {}
    for name in draft.scenario.controls:
        if name not in named:
            groups.setdefault(TEXTS[name]["group"], []).append(name)
    changed = controls.changed(draft)
    for group in sorted(groups, key=GROUPS.index):
        moved = len({*groups[group]} & {*changed})
        title = group + (f", {moved} changed" if moved else "")
        folded(title, group, partial(_fields, draft, groups[group]))
    folded("Columns", "columns", partial(_columns, draft))


def _fields(draft: PageDraft[Scenario], names: Sequence[str]) -> None:
    """Fields in two columns, then the switches, whose words need a whole line."""
    fields = [name for name in names if name not in FLAGS]
    controls.settings(draft, fields, across=2)
    controls.settings(draft, [name for name in names if name in FLAGS], across=1)


def _columns(draft: PageDraft[Scenario]) -> None:
    table = draft.state.table
    if table.width:
        controls.settings(draft, ["padded_width"])
    headers = table.with_every_column().headers
    missing = [titled(name) for name in headers if name not in table.cells]
    text = f"Adds, with values that change no advantage: {', '.join(missing)}."
    key = f"columns-{draft.scenario.name}"
    if missing and st.button("Show every column", key=key, help=text):
        draft.do(edits.show_every_column)
        st.rerun()
    elif not missing and not table.width:
        st.markdown("The board has every column.")
