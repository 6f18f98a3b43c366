"""The parts of a page: widgets that show and change a part of the session's state,
tables, charts, files, and the keys of the whole page.

A browser sends the values of all its widgets with each message, also those that the
server has changed since. A widget therefore gets a new key when the server changes its
value; values sent under an old key are ignored. The widget's default is the value that
it shows: a value in the session's state would overwrite what was typed since.

Until a run ends, the browser shows the old widget behind the new one. style.css hides
the second of two such neighbours, so each has its own container.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from mimetypes import guess_type
from typing import Any

import streamlit as st

from gradebook.output.charts import PlotlyFigure, Ready
from gradebook.ui import keys
from gradebook.ui.parts.address import presenting
from gradebook.ui.parts.drafts import SKIPPED, PageDraft, Progress
from gradebook.ui.parts.words import plain, safe
from gradebook.ui.program import stub

BOARD_AND_REST = ["heart", "rest"]
"""The fragments to draw after a callback has changed the draft, not only its own."""


def showing(
    name: str, value: Any, then: Callable[[Any], None], argument: str = "value"
) -> dict[str, Any]:
    """Arguments for the widget `name` that shows `value`: its key, its value as
    the named argument, and a callback that hands a new value to `then`."""
    shown = keys.SHOWN.get()
    # A browser that outlived a session sends the values of its widgets to the next.
    count, last = shown.get(name, (secrets.randbelow(10**6), value))
    if not _same(last, value):
        count += 1
    shown[name] = count, value
    key = f"{name}__at__{count}"

    def changed() -> None:
        nonlocal value
        last, value = value, keys.widget(key)
        if shown[name][0] == count:  # it shows the value already
            shown[name] = count, value
        if not _same(value, last):
            then(value)
            st.rerun(BOARD_AND_REST)

    return {"key": key, "on_change": changed, argument: value}


def choosing(
    name: str, options: Sequence[Any], value: Any, then: Callable[[Any], None]
) -> dict[str, Any]:
    """The same for a select box of these options."""
    arguments = showing(name, value, then, "index")
    return arguments | {"options": options, "index": options.index(value)}


def _same(value: Any, other: Any) -> bool:
    """Whether two values are equal. The order of several choices does not matter."""
    if isinstance(value, list):
        return set(value) == set(other or ())
    return value == other


def choices(
    name: str,
    texts: Sequence[str],
    pick: Callable[[int], Any],
    skip: str = "Skip, show me",
) -> None:
    """A question's choices as a line of buttons. `pick` is called with the number of
    the choice, and with SKIPPED by a last button of the label `skip`, if there is
    one."""
    with st.container(horizontal=True, key="choices"):
        for choice, text in enumerate(texts):
            key = f"{name}-{choice}"
            st.button(plain(text), key=key, on_click=pick, args=(choice,))
        if skip:
            key, args = f"{name}-skip", (SKIPPED,)
            st.button(skip, key=key, on_click=pick, args=args, type="tertiary")


def folded(title: str, name: str, content: Callable[[], None]) -> None:
    """A folded part. Its content is made only while it is open."""
    part = st.expander(title, key=f"open-{name}", on_change="rerun")
    if part.open:
        with part:
            content()


def download(label: str, name: str, make: Callable[[], str], **options: Any) -> None:
    """A button that downloads the file `name`. The file is made at the click, without a
    run of the page."""
    kind, key = guess_type(name)[0], f"take-{name}"
    st.download_button(label, make, name, kind, key=key, on_click="ignore", **options)


_memory = st.components.v2.component("gradebook_memory", js=stub("memory"))


def keep(progress: Progress) -> None:
    """Has the browser remember the learner's progress now. A board does so by itself
    with each of its answers."""
    _memory(key="memory", data=[progress.text()], height=1)


_markup = st.components.v2.component(
    "gradebook_markup", js=stub("markup"), isolate_styles=False
)


def markup(text: str, key: str) -> str:
    """HTML or SVG; the data-name of the link in it that was clicked, or ''.
    Streamlit's own element drops SVG, and starts a session at each link."""
    shown = _markup(key=key, data=[text], on_opened_change=lambda: None)
    return shown.opened or ""


def table(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    numbers: Sequence[int] | range = (),
    selected: int = -1,
    heads: int = 0,
    label: str = "",
) -> None:
    """A plain table; `numbers` are columns aligned at the decimal point,
    `heads` how many first cells name their row."""

    def line(tag: str, cells: Sequence[str], mark: str = "") -> str:
        inner = ""
        for column, cell in enumerate(cells):
            # An empty header names nothing.
            is_head = cell and (tag == "th" or column < heads)
            kind = "th" if is_head else "td"
            scope = ' scope="row"' if is_head and tag == "td" else ""
            style = " class=n" if column in numbers else ""
            inner += f"<{kind}{scope}{style}>{safe(cell)}</{kind}>"
        return f"<tr{mark}>{inner}</tr>"

    rows = "".join(
        line("td", cells, ' class="at"' * (row == selected))
        for row, cells in enumerate(body)
    )
    label = safe("Numbers: " + (label or ", ".join(filter(None, head))))
    st.html(
        f'<div class="gb" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead>{line('th', head)}</thead><tbody>{rows}</tbody>"
        "</table></div>"
    )


def chart(figure: PlotlyFigure, **options: Any) -> None:
    """The figure, in its own colours, without Plotly's buttons."""
    config = {"displayModeBar": False}
    ready = Ready(figure, st.context.theme.type or "light")
    st.plotly_chart(ready, theme=None, config=config, **options)


def offered(what: str, key: str, frames: Callable[[], Mapping[str, Any]]) -> None:
    """A switch that shows a picture's numbers as data frames, each under its title."""
    if st.toggle(f"Show {what} as a table", key=f"numbers-{key}"):
        for title, frame in frames().items():
            st.dataframe(frame, alt=title)
            st.caption(title)


_into_view = st.components.v2.component("gradebook_into_view", js=stub("into_view"))
_keys = st.components.v2.component("gradebook_shortcuts", js=stub("shortcuts"))


def into_view(opened: str, what: str) -> None:
    """Scrolls to the container with the key `opened` when it shows `what` for the first
    time. The last element of the container, which the browser then has as a whole."""
    _into_view(key=f"into-view-{what}", data=[opened], height=1)


def shortcuts(
    draft: PageDraft,
    acts: Mapping[str, Callable[[], object]] = {},
    focus: str = "",
    top: str = "",
) -> None:
    """The keys of the whole page, and the message that an edit is finished, which runs
    the fragment that calls this.

    acts   "back", "on", "reveal" -> what it does
    focus  a new text moves a lost focus to the verdict
    top    a new text shows the page from its top
    """
    here = keys.SHORTCUTS.get()
    every = {"undo": draft.undo, "redo": draft.redo, **acts}

    def pressed() -> None:
        message = keys.widget("shortcuts").get("pressed") or {}
        if message.get("epoch") != here["epoch"]:
            return  # from before the server's or the session's restart
        fresh = [press for press in message["keys"] if press[0] > here["seen"]]
        for number, name in fresh:
            here["seen"] = number
            if name in every:
                every[name]()
        if fresh:
            st.rerun(BOARD_AND_REST)

    data = {
        **here,
        "heard": (keys.widget("shortcuts") or {}).get("settled", 0),
        "presenter": presenting(),
        "focus": focus,
        "top": top,
    }
    _keys(
        key="shortcuts",
        data=[data],
        height=1,
        on_pressed_change=pressed,
        on_settled_change=lambda: None,  # the message makes the fragment run
    )
