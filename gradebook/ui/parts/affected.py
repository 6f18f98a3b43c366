"""Am I affected? What was measured of a bug, for a trainer and a version."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gradebook.cases.record import bug as record_of
from gradebook.trainers.releases import measured, newest, versions

SEEN = "seen"
NOT_SEEN = "not seen on these batches"
NOT_MEASURED = "not measured"
NOT_MEASURABLE = "not measurable this way"


@dataclass(frozen=True)
class Status:
    """One of the four words, and a sentence on what it rests on."""

    word: str
    sentence: str


def status(bug: str, package: str, version: str) -> Status:
    """What was measured of a bug in a release. Never a neighbour's value."""
    if not record_of(bug).in_advantages:
        return Status(NOT_MEASURABLE, "Loss, masks and EOS are not probed.")
    if not last_seen(bug):
        return Status(
            NOT_MEASURABLE, "No measured release shows it on groups of rewards."
        )
    lines = [
        line
        for line in measured()
        if (line["package"], line["version"]) == (package, version)
    ]
    if not lines:
        return Status(
            NOT_MEASURED,
            f"{package} {version} was not measured. Where it is installed,"
            f" `gradebook probe --trainer {package}` measures it.",
        )
    seen = [line for line in lines if bug in line["bugs"]]
    on = lines[0]["measured_on"]
    if seen:
        reached = "; ".join(
            f"`{line['reached']}` "
            + ("(the default)" if line["default"] else "(opt-in)")
            for line in seen
        )
        return Status(SEEN, f"Measured on {on}, with {reached}.")
    before = [line for line in measured() if line["package"] == package]
    last = [line["version"] for line in before if bug in line["bugs"]]
    until = f" Last seen in {package} {last[-1]}." if last else ""
    return Status(NOT_SEEN, f"{len(lines)} functions, measured on {on}.{until}")


def last_seen(bug: str) -> str:
    """Where a bug was last seen: trainer, version and date; '' if nowhere."""
    last = {line["package"]: line for line in measured() if bug in line["bugs"]}
    return "; ".join(
        f"{line['trainer']} {line['version']} ({line['measured_on']})"
        for line in last.values()
    )


def affected(bug: str) -> None:
    """The question, two choices and the answer; first of a trainer whose
    newest measured release shows the bug."""
    packages = list(dict.fromkeys(line["package"] for line in measured()))
    shown = (line["package"] for line in newest() if bug in line["bugs"])
    first = packages.index(next(shown, packages[0]))
    trainer, release = st.columns(2)
    package = trainer.selectbox("Trainer", packages, first, key=f"affected-{bug}")
    version = release.selectbox(
        "Version",
        versions(package)[::-1],
        key=f"affected-{bug}-{package}",
        accept_new_options=True,
    )
    found = status(bug, package, version or "")
    st.markdown(f"**{found.word.capitalize()}.** {found.sentence}")
