"""Trainers: what released trainers compute, as measured."""

from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from gradebook.analysis.comparison import compared
from gradebook.analysis.law_check import words
from gradebook.cases.link import decode
from gradebook.cases.scenario import load
from gradebook.core.formatting import minus, short
from gradebook.trainers.releases import LAWS, measured, newest, releases
from gradebook.ui.parts.report import cited
from gradebook.ui.parts.widget import download, table
from gradebook.ui.rooms.bar import asks

MARKS = {
    "holds": "✓",
    "broken": "✕ broken",
    "refused": "refused",
    "by convention": "by design",
    "not measured": "–",
}
TITLES = {name: name.replace("_", " ") for name in LAWS}
ANY: dict[str, Any] = {"index": None, "placeholder": "any"}
UNKNOWN = "none of the known computations"
SETTINGS = {
    "baseline": "baseline",
    "scale": "divided by",
    "ddof": "ddof",
    "eps": "eps",
    "lone_row": "a lone row",
    "missing": "a missing reward",
    "ragged": "unequal groups",
    "float_type": "float type",
}


def trainers() -> None:
    st.title("Trainers")
    if asks("trainers"):
        return
    every = newest()
    dates = sorted({line["measured_on"] for line in every})
    st.markdown(
        "What the advantage functions of released trainers compute. Each function was"
        " extracted from its wheel and run on small batches of rewards. Everything here"
        f" was measured. Newest measured releases, on {', '.join(dates)}."
    )
    first, second, third = st.columns(3)
    names = list(dict.fromkeys(line["trainer"] for line in every))
    trainer = first.selectbox("Trainer", names, **ANY)
    law = second.selectbox("Breaks the law", list(TITLES.values()), **ANY)
    seen = {bug: load(bug).title for line in every for bug in line["bugs"]}
    shown = third.selectbox(
        "Shows the bug", sorted(seen), format_func=seen.__getitem__, **ANY
    )
    lines = [line for line in every if _fits(line, trainer, law, shown)]
    if not lines:
        st.markdown("No measured function fits these choices.")
        return
    chosen = st.dataframe(
        [_cells(line) for line in lines],
        key="trainers",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-cell",
        column_config={
            "trainer": {"width": 110, "pinned": True},
            "setting": {"width": 170},
            "computes": {"width": 190},
            "bugs": {"width": 150},
        },
    )
    download(
        "Save the table of all measured releases (CSV)",
        "gradebook-trainers.csv",
        lambda: releases().to_csv(index=False),
    )
    picked = chosen["selection"]["cells"] if chosen else []
    if picked and picked[0][0] < len(lines):
        place, column = picked[0]
        _line(lines[place], column)
    else:
        st.markdown(
            "Choose a cell. A broken law or a bug shows its smallest batch; any other"
            " cell shows all batches of the function. The function's history is below."
        )
    st.caption(
        "Names and line numbers only; no trainer's code is shown or shipped."
        " Gradebook is not affiliated with any of these projects. To correct an"
        " entry, change its adapter in gradebook/measure/adapters.py and measure"
        " again: python -m gradebook.measure. A measurement says what a function"
        " returned for these batches, and no more."
    )


def _fits(
    line: dict[str, Any], trainer: str | None, law: str | None, bug: str | None
) -> bool:
    """The function is of this trainer, breaks the law with this title and shows this
    bug; None for any."""
    breaks = law is None or _strips(line)[law] == MARKS["broken"]
    shows = bug is None or bug in line["bugs"]
    return trainer in (None, line["trainer"]) and breaks and shows


def _cells(line: dict[str, Any]) -> dict[str, str]:
    return {
        "trainer": f"{line['trainer']} {line['version']}",
        "setting": line["setting"],
        "computes": line["computes"] or UNKNOWN,
        **_strips(line),
        "reached by": line["reached"] + (" (default)" if line["default"] else ""),
        "licence": line["license"],
    }


def _strips(line: dict[str, Any]) -> dict[str, str]:
    """The values that may change between releases, by their names on the page."""
    laws = {TITLES[name]: MARKS[line["laws"][name]] for name in LAWS}
    settings = {title: minus(line[name]) or "–" for name, title in SETTINGS.items()}
    bugs = ", ".join(load(name).title for name in line["bugs"]) or "none seen"
    return {**laws, "bugs": bugs, **settings}


def _line(line: dict[str, Any], column: str) -> None:
    """One function: the smallest batches of the chosen column, and its history."""
    st.subheader(f"{line['trainer']} {line['version']}: {line['setting']}")
    st.markdown(
        f"`{line['file']}`, {line['function']}. Reached by {line['reached']}"
        f" ({'the default' if line['default'] else 'must be switched on'})."
        f" Computes {line['computes'] or UNKNOWN}."
        f" Licence: {line['license']}. Measured on {line['measured_on']}."
    )
    laws, bugs = line["shown"], line["bugs"]
    if column == "bugs":
        laws = {}
    elif chosen := {n: shown for n, shown in laws.items() if TITLES[n] == column}:
        laws, bugs = chosen, {}
    for name, shown in bugs.items():
        report, prefix = load(name), line["trainer"].casefold()
        st.markdown(f"**[{report.title}]({name})** gives these advantages.")
        sources = [s for s in report.sources if s.label.casefold().startswith(prefix)]
        where = line["trainer"] if sources else "other trainers"
        cites = "; ".join(map(cited, sources or report.sources))
        st.markdown(f"Reported in {where}: {cites}")
        _batch(shown, line)
    for name, shown in laws.items():
        st.markdown(f"**{words(name)}** {shown['sentence']}")
        _batch(shown, line)
    _history(line)


def _batch(shown: dict[str, Any], line: dict[str, Any]) -> None:
    query = dict(parse_qsl(shown["link"].partition("?")[2]))
    both = compared(decode(query, default="sandbox").state)
    engines = zip(both.correct.advantage.tolist(), both.faulty.advantage.tolist())
    body = []
    for number, pairs in enumerate(zip(shown["rewards"], shown["advantages"])):
        for reward, advantage in zip(*pairs):
            cells = [chr(65 + number), "missing" if reward is None else short(reward)]
            numbers = (advantage, *next(engines))
            body.append(cells + [short(round(x, 6) + 0, 4) for x in numbers])
    head = ["prompt", "reward", line["trainer"], "correct", "faulty"]
    table(head, body, range(1, 5))
    st.markdown(f"[Open this batch in the sandbox]({shown['link']})")


def _history(line: dict[str, Any]) -> None:
    """What changed from release to release, and one line per law and setting."""
    key = line["package"], line["setting"]
    history = [each for each in measured() if (each["package"], each["setting"]) == key]
    measurements = {each["version"]: _strips(each) for each in history}
    changes = []
    for (before, old), (after, new) in pairwise(measurements.items()):
        differing = [f"{n}: {old[n]} → {new[n]}" for n in new if old[n] != new[n]]
        if differing:
            changes.append(f"- **{after}**, after {before}: {'; '.join(differing)}")
    lines = "\n".join(changes) or "Nothing changed between them."
    st.markdown(f"**Its history**, {len(measurements)} measured releases.\n\n{lines}")
    body = [
        [name.replace(" ", "\N{NO-BREAK SPACE}")]
        + [strips[name] for strips in measurements.values()]
        for name in _strips(line)
    ]
    table(["", *measurements], body, heads=1, label="history")
    st.caption("Releases between these, if there are any, were not measured.")
