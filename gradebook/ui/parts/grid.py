"""The editable batch: the table, the selected row's widgets, the buttons.

Streamlit's grid has a fixed set of rows here; rows come and go by buttons,
since its dynamic mode drops edits when a computed column changes. Rewards
are text cells, read in Python, since number cells swallow bad input.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.formula import Worked
from gradebook.cases import edits
from gradebook.cases.columns import COLUMNS, TOKEN, column_of, titled
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.output.figures import HEADER, ROW_HEIGHT
from gradebook.ui import keys
from gradebook.ui.parts import present, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.pictures import values_of
from gradebook.ui.parts.widget import kept, picking, place, showing

WIDTHS = {
    "row": 48,
    "in mean": 68,
    "prompt": 86,
    "reward": 86,
    "eos": 72,
    "step": 72,
    "steps": 78,
    "kept_steps": 72,
    "correct": 78,
    "faulty": 78,
}
TOKEN_WIDTH = 52
LIST_WIDTH = 220
LISTS = ("logp", "ref_logp")
IN_MEAN = "Rows in the selected row's baseline: ● correct, ◇ faulty."


def grid(
    draft: Draft, results: dict[str, list[str]], heard: tuple[Worked, ...]
) -> None:
    """The table, with each row's results and who is in the mean.

    It is given the cells as they stood when it came, and lays its edits over
    them: so a cell that is edited back is known from one never edited.
    """
    count, detector = draft.state.rows, draft.state.detector
    locked = ["row", "in mean", *results, *(["eos"] if detector else [])]
    called = draft.named("grid")
    about = (len(draft.table.headers) + len(results), int(detector))
    key = place(called, draft.table, *about)
    given = _given(called, key, draft.table)
    laid = _edits(key)

    def take() -> None:
        """What is new: the grid sends all of its edits each time."""
        nonlocal laid
        before, laid = laid, _edits(key)
        table = draft.table
        for at in {at for at, _ in before.items() ^ laid.items()}:
            row, name = at
            if row < len(table) and name in table:
                value = laid[at] if at in laid else given[name][row]
                table = table.with_cell(row, name, _cell(name, value))
        if table != draft.table:
            draft.edit(table=table)
            kept(key, called, table, *about)

    shown = given.frame()
    if detector:
        shown["eos"] = _found(draft)
    marks = [_mark(r, heard) for r in range(count)]
    shown.insert(0, "row", [_name(r, draft.row) for r in range(count)])
    shown.insert(1, "in mean", marks)
    lists = [n for n in LISTS if n in shown.columns]
    at = len(shown.columns) - len(lists)
    for name, texts in reversed(results.items()):
        fits = len(texts) == count
        shown.insert(at, name, texts if fits else [""] * count)
    st.data_editor(
        shown,
        key=key,
        hide_index=True,
        num_rows="fixed",
        row_height=ROW_HEIGHT,
        height=_header() + ROW_HEIGHT * max(min(count, 60), 1) + 3,
        disabled=locked,
        column_config=_columns(shown, results),
        on_change=take,
        alt="The batch: one rollout a row, editable",
    )


def _header() -> int:
    """Pixels of the head, which grows with the presenter view's type."""
    return HEADER * 5 // 4 + 1 if present.on() else HEADER


def _edits(key: str) -> dict[tuple[int, str], Any]:
    """Row and column of each cell that was edited in this grid -> value."""
    rows = st.session_state.get(key, {}).get("edited_rows", {})
    return {
        (int(row), name): value
        for row, changed in rows.items()
        for name, value in changed.items()
    }


def _given(called: str, key: str, table: Table) -> Table:
    """The cells as they stood when the grid with this key came."""
    stood = st.session_state.setdefault("given", {})
    if key not in st.session_state or stood[called][0] != key:
        stood[called] = (key, table)
    return stood[called][1]


def _cell(name: str, value: Any) -> Any:
    if _is_flag(name):
        return bool(value)
    return "" if value is None else str(value).strip()


def _is_flag(header: str) -> bool:
    known = COLUMNS.get(column_of(header))
    return known is not None and known.kind in ("flag", "tokens")


def _name(row: int, selected: int) -> str:
    return f"▸ {row}" if row == selected else str(row)


def _mark(row: int, heard: tuple[Worked, ...]) -> str:
    return "".join(
        sign for sign, side in zip("●◇", heard) if row in side.voters
    )


def _found(draft: Draft) -> list[bool]:
    """Whether the trainer's detector finds EOS, row by row."""
    width = draft.table.width
    return [sum(mask) < width for mask in draft.table["mask"]]


def _columns(shown: pd.DataFrame, results: Any) -> dict[str, Any]:
    text, flag = st.column_config.TextColumn, st.column_config.CheckboxColumn
    config: dict[str, Any] = {}
    for name in shown.columns:
        known = COLUMNS.get(column_of(name))
        kind = flag if _is_flag(name) else text
        config[name] = kind(
            titled(name),
            width=column_width(name),
            help=known.help if known else IN_MEAN,
            alignment="right" if name in results else None,
        )
    return config


def column_width(name: str) -> int:
    """Pixels of a column of the table, a fifth more in the presenter view's
    type."""
    pixels = WIDTHS.get(name, LIST_WIDTH)
    if TOKEN.fullmatch(name):
        pixels = TOKEN_WIDTH
    return pixels * 6 // 5 if present.on() else pixels


def width(draft: Draft) -> int:
    """Pixels the table wants, its lists of numbers aside."""
    names = [n for n in draft.table.headers if n not in LISTS]
    names += ["row", "in mean", "correct", "faulty"]
    edge = 20 if present.on() else 0
    return sum(column_width(n) for n in names) + edge


def row_widgets(draft: Draft) -> None:
    """The selected row's cells as widgets, all acting at once."""
    table = draft.table
    if not len(table):
        st.markdown("The batch has no rows.")
        return
    row = draft.row
    names = [n for n in table.headers if not _is_flag(n)]
    short = [n for n in names if n not in LISTS]
    parts = st.columns(
        [1.6, *[1] * len(short), 0.8], vertical_alignment="bottom"
    )
    with parts[0]:
        st.number_input(
            "Row",
            min_value=0,
            max_value=len(table) - 1,
            step=1,
            **showing(draft.named("row"), row, draft.select),
        )
    for part, name in zip(parts[1:], short):
        with part:
            _text_widget(draft, row, name)
    with parts[-1]:
        if "eos" in table:
            held = _found(draft)[row] if draft.state.detector else None
            state = table["eos"][row] is True if held is None else held
            st.checkbox(
                "EOS",
                disabled=draft.state.detector,
                **_of_row(draft, row, "eos", state),
            )
    for name in LISTS:
        if name in table:
            with st.container():
                _text_widget(draft, row, name)
    tokens = [h for h in table.headers if TOKEN.fullmatch(h)]
    if tokens:
        st.container().pills(
            f"Response mask of row {row}",
            tokens,
            selection_mode="multi",
            **picking(
                draft.named("mask"),
                [t for t in tokens if table[t][row] is True],
                lambda chosen: _set_mask(draft, row, chosen),
                row,
                len(tokens),
            ),
        )


def _text_widget(draft: Draft, row: int, name: str) -> None:
    title = titled(name)
    st.text_input(
        title[0].upper() + title[1:],
        help=COLUMNS[name].help,
        **_of_row(draft, row, name, draft.table[name][row]),
    )


def _of_row(draft: Draft, row: int, name: str, shown: Any) -> dict[str, Any]:
    """Key, default and callback of one of the row's cells."""
    return showing(
        draft.named(name), shown, lambda v: _set(draft, row, name, v), row
    )


def _set(draft: Draft, row: int, name: str, value: Any) -> None:
    if row < draft.state.rows:
        cell = _cell(name, value)
        draft.become(edits.set_cell(draft.state, row, name, cell))


def _set_mask(draft: Draft, row: int, chosen: list[str]) -> None:
    if row < draft.state.rows:
        mask = [f"t{t + 1}" in chosen for t in range(draft.table.width)]
        draft.edit(table=draft.table.with_cell(row, "mask", mask))


def buttons(draft: Draft) -> None:
    """Add, remove, paste, undo, redo, reset."""
    with st.container(horizontal=True, gap="xsmall"):
        name = draft.scenario.name
        st.button(
            "Add row",
            key=f"add-{name}",
            on_click=_add,
            args=(draft,),
            help="A copy of the selected row, below it.",
        )
        st.button(
            "Remove row",
            key=f"remove-{name}",
            on_click=_remove,
            args=(draft,),
            disabled=not draft.state.rows,
            help="The selected row leaves the batch.",
        )
        with st.popover("Paste rows"):
            _paste_form(draft)
        st.button(
            "Undo",
            key=f"undo-{name}",
            on_click=draft.undo,
            disabled=draft.at == 0,
            help="Ctrl+Z, outside a text field.",
        )
        st.button(
            "Redo",
            key=f"redo-{name}",
            on_click=draft.redo,
            disabled=draft.at == len(draft.states) - 1,
            help="Ctrl+Shift+Z, outside a text field.",
        )
        st.button(
            "Reset",
            key=f"reset-{name}",
            on_click=draft.reset,
            disabled=not draft.edited,
            help="Back to the case as it came.",
        )


def history(draft: Draft) -> None:
    """A slider through the states, once there are some."""
    if len(draft.states) < 3:
        return
    last = len(draft.states) - 1
    st.slider(
        "History of edits",
        min_value=0,
        max_value=last,
        help="0 is the scenario as it came.",
        **showing(draft.named("history"), draft.at, draft.go, last),
    )


def _paste_form(draft: Draft) -> None:
    names = ", ".join(f"`{n}`" for n in draft.table.headers)
    st.markdown(
        "A block from a spreadsheet, cells between tabs, in the order"
        f" {names}, or under a first line of these names. One column alone"
        " is the rewards. It replaces all rows."
    )
    key = f"paste-{draft.scenario.name}"
    st.text_area("Block", key=key, height=160)
    st.button(
        "Replace the rows",
        key=f"{key}-go",
        on_click=_paste,
        args=(draft, key),
    )
    for note in draft.notes:
        st.error(words.plain(note))


def _add(draft: Draft) -> None:
    draft.become(edits.add_row(draft.state, draft.row))


def _remove(draft: Draft) -> None:
    draft.become(edits.remove_row(draft.state, draft.row))


def _paste(draft: Draft, key: str) -> None:
    draft.notes = []
    try:
        draft.become(edits.replace_rows(draft.state, keys.widget(key)))
    except GradebookError as error:
        draft.notes = [words.place(error)]


def results(comparison: Comparison | None, kind: str) -> dict[str, list[str]]:
    """Each row's result as text, correct and faulty: what the picture
    shows."""
    if comparison is None:
        return {"correct": [], "faulty": []}
    correct, faulty = values_of(comparison, kind)
    return {"correct": correct, "faulty": faulty}
