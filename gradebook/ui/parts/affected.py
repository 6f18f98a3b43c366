"""Am I affected? What was measured of a bug, for a trainer and a version."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gradebook.cases.record import bug as record_of
from gradebook.trainers.releases import measured, versions

SEEN = "seen"
NOT_SEEN = "not seen on these batches"
NOT_MEASURED = "not measured"
NOT_MEASURABLE = "not measurable this way"

TOLD_BY_REWARDS = frozenset(name for line in measured() for name in line["bugs"])
"""Bugs that groups of rewards can show: some measured release shows them."""


@dataclass(frozen=True)
class Status:
    """One of the four words, and a sentence on what it rests on."""

    word: str
    sentence: str


def status(bug: str, package: str, version: str) -> Status:
    """What was measured of a bug in a release. Never a neighbour's value."""
    if not record_of(bug).in_advantages:
        return Status(NOT_MEASURABLE, "Loss, masks and EOS are not probed.")
    lines = [
        line
        for line in measured()
        if (line["package"], line["version"]) == (package, version)
    ]
    if not lines:
        return Status(NOT_MEASURED, f"{package} {version} was not measured.")
    seen = [line for line in lines if bug in line["bugs"]]
    on = lines[0]["measured_on"]
    if seen:
        reached = "; ".join(
            line["reached"] + (" (the default)" if line["default"] else " (opt-in)")
            for line in seen
        )
        return Status(SEEN, f"Measured on {on}, with {reached}.")
    if bug not in TOLD_BY_REWARDS:
        return Status(NOT_MEASURABLE, "Groups of rewards alone do not show it.")
    return Status(NOT_SEEN, f"{len(lines)} functions, measured on {on}.")


def last_seen(bug: str) -> str:
    """Where a bug was last seen: trainer, version and date; '' if nowhere."""
    last = {line["package"]: line for line in measured() if bug in line["bugs"]}
    return "; ".join(
        f"{line['trainer']} {line['version']} ({line['measured_on']})"
        for line in last.values()
    )


def affected(bug: str) -> None:
    """The question, two choices and the answer."""
    packages = list(dict.fromkeys(line["package"] for line in measured()))
    trainer, release = st.columns(2)
    package = trainer.selectbox("Trainer", packages, key=f"affected-{bug}")
    known = versions(package)[::-1]
    version = release.selectbox(
        "Version", known, key=f"affected-{bug}-{package}", accept_new_options=True
    )
    found = status(bug, package, version or "")
    st.markdown(f"**{found.word.capitalize()}.** {found.sentence}")
