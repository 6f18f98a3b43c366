"""The pages: their files, titles and navigation; the presenter view."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.core.project import PROJECT

STYLE = Path(__file__).with_name("style.css")
ICON = Path(__file__).with_name("icon.svg")
HIDDEN = ("map",)
"""Pages that only lead elsewhere."""


@cache
def page_files() -> dict[str, Path]:
    """Name -> page file, in the order of the files' numbers, as they stood when
    the server first asked."""
    files = sorted(
        PROJECT.glob("pages/[0-9]*_*.py"),
        key=lambda file: int(file.stem.split("_")[0]),
    )
    return {file.stem.split("_", 1)[1]: file for file in files}


def bug_files() -> dict[str, Path]:
    """The bugs' pages by bug."""
    return {name: file for name, file in page_files().items() if name in BUGS}


def tool_files() -> dict[str, Path]:
    """The other pages by name, without Home."""
    others = (*BUGS, "home")
    return {name: file for name, file in page_files().items() if name not in others}


def navigation() -> dict[str, list]:
    """Home; the bugs' pages; the tools."""
    home = st.Page(page_files()["home"], title="Home", default=True)
    bugs, tools = (
        [
            st.Page(
                file,
                title=page_title(file),
                url_path=name,
                visibility="hidden" if name in HIDDEN else "visible",
            )
            for name, file in files.items()
        ]
        for files in (bug_files(), tool_files())
    )
    return {"": [home], "The bugs": bugs, "The tools": tools}


@cache
def page_title(file: Path) -> str:
    """What a page is called: its docstring up to the colon. A bug's page is
    called what its scenario is; to read all scenarios here would delay a
    started server's first page."""
    doc = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or file.stem
    return doc.split(":")[0].strip()


# The presenter view: larger type, no chrome, keys for stages and reveal


PRESENT_STYLE = Path(__file__).with_name("present.css")
PRESENT = "present"


def presenting() -> bool:
    """The address asks for the presenter view."""
    return st.query_params.get(PRESENT) == "1"


def present_foot() -> None:
    """The way back from the presenter view, at the foot of a page."""
    with st.container(horizontal=True, key="present-foot"):
        st.markdown("← and → change the stage, space reveals.")
        st.button(
            "Leave the presenter view",
            key="present-leave",
            on_click=_leave,
            type="tertiary",
        )


def _leave() -> None:
    st.query_params.pop(PRESENT, None)
