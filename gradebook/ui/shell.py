"""What every page needs before its first element."""

from __future__ import annotations

import gc
from pathlib import Path

import streamlit as st

from gradebook.scenario import variants
from gradebook.ui.home import home

ROOT = Path(__file__).parents[2]
KEYS = Path(__file__).with_name("keys.js")
STYLE = Path(__file__).with_name("style.css")
EDITORS = ("data-grid-overlay-editor.*.js", "number-overlay-editor.*.js")


@st.cache_resource(show_spinner=False)
def freeze() -> bool:
    """Takes the imported heap out of garbage collection, once.

    Streamlit collects after every run of a page; over torch's objects that
    costs ten times a small page, for every learner.
    """
    gc.collect()
    gc.freeze()
    return True


@st.cache_resource(show_spinner=False)
def editor_chunks() -> list[str]:
    """Files of the grid's cell editors, loaded with the page: fetched at
    the first edit, they lose the keys typed meanwhile."""
    folder = Path(st.__file__).parent / "static" / "static" / "js"
    return [f.name for p in EDITORS for f in sorted(folder.glob(p))]


def bug_files() -> dict[str, Path]:
    """Bug name -> its page file, in the order of the files' numbers."""
    files = sorted(
        ROOT.glob("pages/[0-9]*_*.py"),
        key=lambda f: int(f.stem.split("_")[0]),
    )
    return {f.stem.split("_", 1)[1]: f for f in files}


def navigation() -> dict[str, list]:
    """Home, and the bugs' pages under their scenario's title."""
    bugs = [
        st.Page(file, title=variants(bug)[0].title, url_path=bug)
        for bug, file in bug_files().items()
    ]
    first = st.Page(home, title="Home", url_path="home", default=True)
    return {"": [first], "The bugs": bugs}


def configure() -> None:
    """Before any navigation: a page icon of its own asks no server."""
    st.set_page_config(page_title="Gradebook", page_icon="📗", layout="wide")


def require_entry() -> None:
    """On a server nobody has visited, Streamlit runs a page of a folder
    named pages/ by itself; this sends the visitor through the app."""
    if not st.session_state.get("entered"):
        configure()
        st.navigation(navigation(), position="top")
        st.rerun()


def app() -> None:
    """The whole app: navigation, style, the chosen page."""
    freeze()
    configure()
    st.session_state["entered"] = True
    page = st.navigation(navigation(), position="top")
    st.html(STYLE)
    imports = "".join(
        f"import(new URL('static/js/{name}', document.baseURI).href)"
        ".catch(() => {});"
        for name in editor_chunks()
    )
    script = f"<script>{imports}{KEYS.read_text()}</script>"
    st.html(script, unsafe_allow_javascript=True)
    page.run()
