"""The fields of the page "Check your run": an example, files or a table, and options.
Each change starts a check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import streamlit as st

from gradebook.core import PROJECT
from gradebook.core.errors import GradebookError
from gradebook.core.settings import CHOICES, ESTIMATORS
from gradebook.core.vocabulary import NAMED
from gradebook.logs.explore import StepRows, step_rows
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.log import options_of
from gradebook.logs.read.files import LogFile, natural
from gradebook.logs.read.log_columns import NAMES, First
from gradebook.logs.read.rows import pasted
from gradebook.trainers.releases import measured
from gradebook.ui import keys
from gradebook.ui.parts import words

FOLDER = PROJECT / "scenarios" / "logs"
EXAMPLES = {
    "trl.parquet": (
        "A correct run",
        "Twelve steps of a log that TRL 1.16 wrote, unchanged. Its two reward functions"
        " have the weights 1 and 0.5.",
        "1, 0.5",
    ),
    "lost-rollouts.csv": (
        "A faulty run: lost rollouts",
        "The same run, but 12 rollouts are lost. The advantages come from"
        " Gradebook's replica of AReaL's bug.",
        "",
    ),
    "rejected-answers.jsonl": (
        "A faulty run: rejected answers",
        "The same run, but long answers are rejected. The advantages come"
        " from Gradebook's replica of verl's bug.",
        "",
    ),
}
"""Logs that come with the app, each with its title, what it is and the weights of its
reward functions; scenarios/logs/README.md says where they are from."""


def log() -> None:
    """The log, and beside it the question that decides what its numbers are
    compared with."""
    files, configured = st.columns([2, 1])
    configured.selectbox(
        "Which estimator, or which trainer and version?",
        [*answers()],
        index=None,
        placeholder="Choose, or type to find",
        help="Type to find yours: RLOO, or verl 0.7. A trainer's settings are"
        " what Gradebook measured in that release.",
        key="check-estimator",
        **KEPT,
    )
    files.file_uploader(
        "Log files",
        accept_multiple_files=True,
        key="check-files",
        on_change=_dropped,
        help="TRL's completions_*.parquet, CSV, JSON Lines or Parquet, with any column"
        " names. Several files are read in the order of their names.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("No log at hand?", width="content")
        for file, (title, about, _) in EXAMPLES.items():
            key, help = f"check-example-{file.split('.')[0]}", words.plain(about)
            st.button(title, key=key, on_click=_example, args=(file,), help=help)


def more() -> None:
    with st.expander("Paste a table instead"):
        label = "A table with a first line of column names"
        st.text_area(label, key="check-text", height=160, on_change=_pasted)
        st.button("Check this table", key="check-paste")  # pressing it leaves the field
    with st.expander("The trainer's settings, and names of columns"):
        st.text_input(
            "Settings that the trainer was asked for, between commas",
            key="check-declared",
            placeholder="estimator=grpo, scale=group",
            help="Some bugs give the numbers of another setting. If you say what you"
            " asked for, the check can tell them apart.",
            **KEPT,
        )
        st.text_area(
            "Other columns, one “name = your column” a line",
            key="check-columns",
            height=100,
            help="Names are guessed, and the verdict's evidence shows the guesses."
            f" Names: {', '.join(f'`{name}`' for name in NAMES)}.",
            **KEPT,
        )
        label = "Weights of the reward functions, between commas"
        st.text_input(label, key="check-weights", **KEPT)
        st.text_input("Rows per prompt", key="check-size", **KEPT)


FOUR = ("reward", "prompt", "advantage", "step")
"""The columns that a person chooses from lists."""
NONE = "none"
LETTERS = 28
"""So many characters of a name and its first cells fit into one of these lists."""


def columns(checking: "Checking") -> None:
    """Four lists over the log's columns: which is what. Each begins with what was
    guessed; a choice begins another check."""
    verdict = checking.verdict
    first = verdict.log.columns.first if verdict else checking.first
    if not first:
        return
    chosen = dict(verdict.columns) if verdict else {}
    for line in typed("columns").splitlines():
        role, _, name = (part.strip() for part in line.partition("="))
        chosen[role] = name
    st.markdown(words.titled("Columns", level=3))
    for role, place in zip(FOUR, st.columns(len(FOUR))):
        named = chosen.get(role, "")
        options = [NONE, *dict.fromkeys([*first, *([named] if named else [])])]

        def shown(name: str) -> str:
            cells = ", ".join(first.get(name, ()))
            room = max(0, LETTERS - len(name))
            if len(cells) > room:
                cells = f"{cells[:room].rstrip(', ')}…"
            return f"{name}: {cells}" if cells else name

        key = f"check-column-{role}"
        keys.show(key, named or NONE)
        place.selectbox(
            role.capitalize(),
            options,
            format_func=shown,
            key=key,
            on_change=_choose,
            args=(role,),
        )


def _choose(role: str) -> None:
    """Writes the chosen column of a role beside what else was said of columns."""
    name = keys.widget(f"check-column-{role}")
    lines = typed("columns").splitlines()
    others = [line for line in lines if line.partition("=")[0].strip() != role]
    choice = f"{role} = {'' if name == NONE else name}"
    say("\n".join([*others, choice]), typed("declared"))


def typed(name: str) -> str:
    """The text in one of the fields of settings and columns."""
    return (keys.widget(f"check-{name}") or "").strip()


def say(columns: str = "", declared: str = "") -> None:
    """Writes what a person said of the columns into the fields, and checks again."""
    keys.show("check-columns", columns)
    keys.show("check-declared", declared)
    again()


def again() -> None:
    if held := keys.CHECKING.get():
        keys.CHECKING.put(Checking(held.files, held.title, held.weights))


KEPT: dict[str, Any] = {"on_change": again, "persist_state": "session"}
"""Of a field whose change begins another check."""


def _example(file: str) -> None:
    title, _, weights = EXAMPLES[file]
    source = LogFile(file, FOLDER / file)
    keys.CHECKING.put(Checking(lambda: [source], f"the example “{title}”", weights))


def _dropped() -> None:
    files = sorted(keys.widget("check-files") or [], key=lambda f: natural(f.name))
    if not files:
        return keys.CHECKING.drop()
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    sources = [LogFile(file.name, data=file.getvalue()) for file in files]
    keys.CHECKING.put(Checking(lambda: sources, files[0].name + more))


def _pasted() -> None:
    if text := typed("text"):
        keys.CHECKING.put(Checking(lambda: [pasted(text)], "the pasted table"))


# A log that the session checks, and what came of it


@dataclass(eq=False)
class Checking:
    """One log, from the moment it is chosen, with the weights that come with it; what
    was found, or why there is no verdict; and the steps that were opened, by label.
    `files` may raise GradebookError."""

    files: Callable[[], Sequence[LogFile]]
    title: str
    weights: str = ""
    verdict: Verdict | None = None
    error: str = ""
    first: First = field(default_factory=dict)
    rows: dict[object, StepRows] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """The arguments of `check_log`, from the fields. Raises GradebookError for what
        cannot be read."""
        columns, weights = typed("columns").splitlines(), typed("weights")
        declared = answers().get(typed("estimator"), {})
        options = options_of(
            columns, typed("declared"), weights or self.weights, typed("size")
        )
        return options | {"declared": {**declared, **options["declared"]}}

    def step(self, label: object) -> StepRows | None:
        """A step's rows, read once; None if they cannot be read, which is said."""
        assert self.verdict is not None
        try:
            if label not in self.rows:
                self.rows[label] = step_rows(self.verdict, label)
        except GradebookError as error:
            st.error(words.as_typed(str(error)))
        return self.rows.get(label)


@cache
def answers() -> Mapping[str, Mapping[str, Any]]:
    """What a person may say of a run -> what it declares: an estimator, or a
    function of a trainer's release, the newest first, as it was measured."""
    answers: dict[str, Mapping[str, Any]] = {"I don't know": {}}
    for name, title, _ in NAMED.values():
        declared = {"estimator": name}
        if "/" not in name and declared not in answers.values():
            answers[title[:1].upper() + title[1:]] = declared
    for line in reversed(measured()):
        if not line["baseline"] or line["scale"] not in CHOICES["scale"]:
            continue
        names = ("baseline", "scale", "ddof", "eps")
        settings = {name: line[name] for name in names if line[name] != ""}
        if not line["second"]:
            settings["whiten_tokens"] = False
        if line["setting"] in ESTIMATORS:  # also what no group of rewards shows
            settings = {"estimator": line["setting"]}
        title = f"{line['trainer']} {line['version']}, {line['setting']}"
        answers.setdefault(title, settings)
    return answers
