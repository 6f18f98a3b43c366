"""What a check is asked for: an example, files or a table, and options.

Whatever is chosen last starts a check by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gradebook.core.errors import GradebookError
from gradebook.core.project import PROJECT
from gradebook.logs.read.columns import NAMES
from gradebook.logs.read.sources import Source, natural, pasted
from gradebook.ui import keys
from gradebook.ui.checks.checking import Checking, answers, options_of
from gradebook.ui.parts import words

KINDS = ["parquet", "csv", "tsv", "jsonl", "json", "gz", "zst", "arrows"]
PASTED = "the pasted table"
FOLDER = PROJECT / "scenarios" / "logs"


@dataclass(frozen=True)
class Example:
    """A log that comes with the app; scenarios/logs/README.md says where
    each is from."""

    file: str
    title: str
    about: str


EXAMPLES = (
    Example(
        "trl.parquet",
        "A correct run",
        "Twelve steps of a log that TRL 1.16 wrote, unchanged.",
    ),
    Example(
        "lost-rollouts.csv",
        "A faulty run: lost rollouts",
        "The same run, but 12 rollouts are lost. The advantages come from"
        " Gradebook's replica of AReaL's bug.",
    ),
    Example(
        "rejected-answers.jsonl",
        "A faulty run: rejected answers",
        "The same run, but long answers are rejected. The advantages come"
        " from Gradebook's replica of verl's bug.",
    ),
)
OPTIONS = ("columns", "declared", "weights", "size", "estimator")


def log() -> None:
    """The log, and beside it the question that decides what its numbers are
    compared with."""
    files, configured = st.columns([2, 1])
    with configured:
        st.selectbox(
            "Which estimator, or which trainer and version?",
            [*answers()],
            index=None,
            placeholder="Choose, or type to find",
            help="Type to find yours: RLOO, or verl 0.7. A trainer's settings are"
            " what Gradebook measured in that release.",
            key="check-estimator",
            on_change=again,
            persist_state="session",
        )
    files.file_uploader(
        "Log files",
        type=KINDS,
        accept_multiple_files=True,
        key="check-files",
        on_change=_dropped,
        help="TRL's completions_*.parquet, CSV, JSON Lines or Parquet, with"
        " any column names. Several files are read in the order of their"
        " names.",
    )
    _examples()


def more() -> None:
    """What few logs need."""
    with st.expander("Paste a table instead"):
        st.text_area(
            "A table with a first line of column names",
            key="check-text",
            height=160,
            on_change=_typed,
        )
        st.button("Check this table", key="check-paste", on_click=_pasted)
    _options()


def answered() -> bool:
    """The question was answered, or settings were typed."""
    return bool(keys.widget("check-estimator") or keys.widget("check-declared"))


def confirm(column: str, declared: str) -> None:
    """Adds what a person said of a column, and checks again."""
    for field, added, mark in (("columns", column, "\n"), ("declared", declared, ", ")):
        if added:
            lines = filter(None, (typed(field), added))
            keys.show(f"check-{field}", mark.join(lines))
    again()


def typed(field: str) -> str:
    """What stands in one of the fields of settings and columns."""
    return (keys.widget(f"check-{field}") or "").strip()


def take_back() -> None:
    """Forgets what was said of the columns, and checks again."""
    for field in ("columns", "declared"):
        keys.show(f"check-{field}", "")
    again()


def again() -> None:
    """Checks the same log under the options as they stand."""
    held = keys.CHECKING.get()
    if held is not None:
        _begin(held.files, held.title)


def _begin(files: Sequence[Source], title: str) -> None:
    """Another log, or other options: a new check."""
    checking = Checking(files, title)
    try:
        checking.options = options_of(
            {name: keys.widget(f"check-{name}") or "" for name in OPTIONS}
        )
    except GradebookError as error:
        checking.error = str(error)
    keys.CHECKING.put(checking)


def _dropped() -> None:
    files = keys.widget("check-files") or []
    if not files:
        keys.CHECKING.drop()
        return
    ordered = sorted(files, key=lambda file: natural(file.name))
    title = ordered[0].name
    if len(ordered) > 1:
        title += f" and {len(ordered) - 1} more"
    if not any(file.size for file in files):
        keys.CHECKING.put(Checking([], title, error=f"{title}: empty."))
        return
    _begin([Source(f.name, data=f.getvalue()) for f in ordered], title)


def _typed() -> None:
    if (keys.widget("check-text") or "").strip():
        _pasted()


def _pasted() -> None:
    """Checks the table. A click on the button leaves the field first, so
    that the same check may have begun already."""
    held = keys.CHECKING.get()
    if held is not None and held.title == PASTED and held.waiting:
        return
    try:
        source = pasted(keys.widget("check-text") or "")
    except GradebookError as error:
        keys.CHECKING.put(Checking([], PASTED, error=str(error)))
    else:
        _begin([source], PASTED)


def _examples() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("No log at hand?", width="content")
        for example in EXAMPLES:
            st.button(
                example.title,
                key=f"check-example-{example.file.split('.')[0]}",
                on_click=_chosen,
                args=(example,),
                help=words.plain(example.about),
            )


def _chosen(example: Example) -> None:
    path = FOLDER / example.file
    _begin([Source(path.name, path)], f"the example “{example.title}”")


def _options() -> None:
    with st.expander("The trainer's settings, and names of columns"):
        st.text_input(
            "Settings that the trainer was asked for, between commas",
            key="check-declared",
            placeholder="estimator=grpo, scale=group",
            on_change=again,
            persist_state="session",
            help="Some bugs give exactly another setting's correct numbers."
            " With the settings that were asked for, the check tells them"
            " apart.",
        )
        st.text_area(
            "Columns, one “name = your column” a line",
            key="check-columns",
            height=100,
            on_change=again,
            persist_state="session",
            help="Names are guessed, and the verdict's evidence shows the"
            " guesses. Names: " + ", ".join(f"`{n}`" for n in NAMES) + ".",
        )
        st.text_input(
            "Weights of the reward functions, between commas",
            key="check-weights",
            on_change=again,
            persist_state="session",
        )
        st.text_input(
            "Rows per prompt",
            key="check-size",
            on_change=again,
            persist_state="session",
        )
