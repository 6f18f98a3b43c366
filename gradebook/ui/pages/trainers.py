"""Trainers: what released trainers compute, as measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from gradebook.analysis.law_check import words
from gradebook.bugs import BUGS
from gradebook.cases.link import encode, query_string
from gradebook.cases.record import bug
from gradebook.cases.sandbox import blank
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.trainers.measure import pinned
from gradebook.trainers.probe import NAMES
from gradebook.trainers.releases import measured, newest, releases, row
from gradebook.ui.parts.download import download
from gradebook.ui.parts.tables import table

MARKS = {
    "holds": "✓",
    "broken": "✕ broken",
    "refused": "refused",
    "by convention": "by design",
    "not measured": "–",
}
ANY = "any"


def trainers() -> None:
    """The whole page."""
    st.title("Trainers")
    dates = sorted({line["measured_on"] for line in newest()})
    st.markdown(
        "What the advantage functions of released trainers compute. Each was cut"
        " out of its wheel and run on small batches of rewards; nothing here is"
        f" asserted. Newest measured releases, on {', '.join(dates)}."
    )
    lines = _filtered(newest())
    if not lines:
        st.markdown("No measured function fits these choices.")
        return
    chosen = st.dataframe(
        [_cells(line) for line in lines],
        key="trainers",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height=420,
    )
    download(
        "Save the table (CSV)",
        "gradebook-trainers.csv",
        lambda: releases().to_csv(index=False),
    )
    picked = chosen["selection"]["rows"] if chosen else []
    if picked and picked[0] < len(lines):
        _line(lines[picked[0]])
    else:
        st.markdown("Choose a row to see its batches and its history.")
    _small_print()


def _filtered(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    first, second, third = st.columns(3)
    names = list(dict.fromkeys(line["trainer"] for line in lines))
    trainer = first.selectbox("Trainer", [ANY, *names])
    law = second.selectbox("Breaks the law", [ANY, *NAMES], format_func=_law)
    seen = [name for name in BUGS if any(name in line["bugs"] for line in lines)]
    shown = third.selectbox("Shows the bug", [ANY, *seen], format_func=_bug)
    return [
        line
        for line in lines
        if trainer in (ANY, line["trainer"])
        and (law == ANY or line["laws"][law] == "broken")
        and (shown == ANY or shown in line["bugs"])
    ]


def _law(name: str) -> str:
    return name.replace("_", " ")


def _bug(name: str) -> str:
    return name if name == ANY else bug(name).title


def _cells(line: dict[str, Any]) -> dict[str, str]:
    return {
        "trainer": f"{line['trainer']} {line['version']}",
        "setting": line["setting"],
        "bugs": ", ".join(map(_bug, line["bugs"])) or "none seen on these batches",
        "computes": line["computes"] or "none of the known computations",
        **{_law(name): MARKS[line["laws"][name]] for name in NAMES},
        "a lone row": line["lone_row"],
        "a missing reward": line["missing"],
        "unequal groups": line["ragged"],
        "float type": line["float_type"],
        "reached by": line["reached"] + (" (default)" if line["default"] else ""),
    }


def _line(line: dict[str, Any]) -> None:
    """One function: its batches and its history."""
    st.subheader(f"{line['trainer']} {line['version']}: {line['setting']}")
    st.markdown(
        f"`{line['file']}`, {line['function']}. Reached by {line['reached']}"
        f" ({'the default' if line['default'] else 'opt-in'})."
        f" Licence: {line['license']}."
    )
    for name, shown in line["bugs"].items():
        st.markdown(f"**{_bug(name)}** gives exactly these advantages.")
        _batch(shown, line, name)
    for name, shown in line["shown"].items():
        st.markdown(f"**{words(name)}** {shown['sentence']}")
        _batch(shown, line, "")
    _history(line)


def _batch(shown: dict[str, Any], line: dict[str, Any], name: str) -> None:
    """Rewards, the trainer's own advantages, and the board that shows both
    engines on them."""
    pairs = zip(shown["rewards"], shown["advantages"] or [])
    body = [
        [f"{chr(65 + at)}", "missing" if r is None else f"{r:g}", f"{a:.4g}"]
        for at, (rewards, advantages) in enumerate(pairs)
        for r, a in zip(rewards, advantages)
    ]
    table(["prompt", "reward", f"{line['trainer']}'s advantage"], body, (1, 2))
    st.markdown(f"[Open this batch in the sandbox]({link(shown, line, name)})")


def link(shown: dict[str, Any], line: dict[str, Any], name: str) -> str:
    """The sandbox with the batch, the measured convention and the bug."""
    own = start(blank())
    filler = dict(blank().rows[0])
    rows = [
        filler
        | {"prompt": chr(65 + at), "reward": r or 0.0, "scored": r is not None}
        | {"rollout": f"{chr(65 + at)}{n}"}
        for at, group in enumerate(shown["rewards"])
        for n, r in enumerate(group)
    ]
    known = {"baseline", "scale", "ddof", "eps"}
    typed = {k: str(line[k]) for k in known if line[k]}
    typed |= {"group_size": str(max(map(len, shown["rewards"])))}
    if typed.get("scale") in ("spread", "group_mean"):
        typed |= {"scale": "group_std" if typed["scale"] == "spread" else "none"}
    state = replace(
        own,
        table=Table.of(tuple(rows)),
        typed={**own.typed, **typed},
        bugs=(name,) if name else own.bugs,
    )
    return "sandbox?" + query_string(encode(state, covered=False))


def _history(line: dict[str, Any]) -> None:
    """Release by release, a strip for each law and setting. A release that
    was not measured has a dot."""
    known = {
        other["version"]: row(other)
        for other in measured()
        if (other["package"], other["setting"]) == (line["package"], line["setting"])
    }
    releases_of = list(pinned()[line["package"]]["versions"])
    strips = (*NAMES, "baseline", "scale", "ddof", "eps", "missing", "ragged", "bugs")
    body = []
    for name in strips:
        cells = [str(known[v][name]) if v in known else "·" for v in releases_of]
        body.append([_law(name), *(MARKS.get(cell, cell) or "–" for cell in cells)])
    st.markdown("Its history. A dot: not measured, or not in that release.")
    table(["", *releases_of], body, heads=1, label="history")


def _small_print() -> None:
    st.caption(
        "Names and line numbers only; no trainer's code is shown or shipped."
        " Gradebook is not affiliated with any of these projects. To correct an"
        " entry, change its adapter in gradebook/trainers/adapters and measure"
        " again: python -m gradebook.trainers measure. A measurement says what a"
        " function returned for these batches, and no more."
    )
