"""Am I affected? What was measured of a bug, for a trainer and a version."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.cases.record import bug as record_of
from gradebook.trainers.releases import measured, newest, versions
from gradebook.ui.parts.tables import table

SEEN = "seen"
NOT_SEEN = "not seen on these batches"
NOT_MEASURED = "not measured"
NOT_MEASURABLE = "not measurable this way"
ANSWERS = {
    SEEN: "Yes, {} has it{}.",
    NOT_SEEN: "No sign of it in {}, on these batches.",
    NOT_MEASURED: "Not known: {} was not measured.",
    NOT_MEASURABLE: "Cannot tell for {}.",
}


@dataclass(frozen=True)
class Status:
    """One of the four words, a sentence on what it rests on, and when it is
    reached."""

    word: str
    sentence: str
    when: str = ""


def status(bug: str, package: str, version: str) -> Status:
    """What was measured of a bug in a release. Never a neighbour's value."""
    where = last_seen(bug)
    if not where:
        return Status(
            NOT_MEASURABLE,
            "A probe gives groups of rewards, and this bug needs more: tokens, masks,"
            " EOS, texts or the loss. Its report says which versions have it.",
        )
    release = (package, version)
    lines = [x for x in measured() if (x["package"], x["version"]) == release]
    if not lines:
        return Status(
            NOT_MEASURED,
            f"If it is installed, `gradebook probe --trainer {package}` measures"
            f" it. Last seen in {where}.",
        )
    reached = [line for line in lines if bug in line["bugs"]]
    on = lines[0]["measured_on"]
    if reached:
        ways = "; ".join(
            f"`{line['reached']}`" + " (the default)" * line["default"]
            for line in reached
        )
        default = any(line["default"] for line in reached)
        fixed = "fixed" in record_of(bug).status
        return Status(
            SEEN,
            f"Measured on {on}, with {ways}."
            + (" The report is marked fixed; this release shows it." if fixed else ""),
            " by default" if default else ", with opt-in settings",
        )
    return Status(
        NOT_SEEN,
        f"{len(lines)} functions were measured on {on}."
        f" Last seen in {last_seen(bug, package) or where}.",
    )


def last_seen(bug: str, package: str = "") -> str:
    """Where a bug was last seen: trainer, version and date; '' if nowhere."""
    last = {
        line["package"]: line
        for line in measured()
        if bug in line["bugs"] and package in ("", line["package"])
    }
    return "; ".join(
        f"{line['trainer']} {line['version']} ({line['measured_on']})"
        for line in last.values()
    )


def affected(bug: str) -> None:
    """The question, two choices and the answer; first of the trainer that is
    installed, or of one whose newest measured release shows the bug, or of the
    report's."""
    shown = [line["package"] for line in newest() if bug in line["bugs"]]
    own = record_of(bug).trainer.split(", ")
    shown += [line["package"] for line in newest() if line["trainer"] in own]
    package, release = _release(f"affected-{bug}", shown)
    answer = status(bug, package, release)
    first = ANSWERS[answer.word].format(f"{package} {release}", answer.when)
    st.markdown(f"**{first}** {answer.sentence}")


def affected_bugs() -> None:
    """The question for all bugs at once."""
    release = _release("affected", [])
    answers = [(record_of(bug).title, status(bug, *release)) for bug in BUGS]
    answers.sort(key=lambda pair: [*ANSWERS].index(pair[1].word))
    body = [[title, a.word, a.sentence.replace("`", "")] for title, a in answers]
    table(["bug", "", "what it rests on"], body, heads=1, label="bugs")


def _release(key: str, shown: list[str]) -> tuple[str, str]:
    """A package and a version, as chosen."""
    packages = list(dict.fromkeys(line["package"] for line in measured()))
    here = {package: _installed(package) for package in packages}
    likely = [package for package in packages if here[package]] + shown + packages
    trainer, release = st.columns(2)
    package = trainer.selectbox("Trainer", packages, packages.index(likely[0]), key=key)
    choices = list(dict.fromkeys((here[package], *versions(package)[::-1])))
    version = release.selectbox(
        "Version",
        [choice for choice in choices if choice],
        key=f"{key}-{package}",
        accept_new_options=True,
    )
    return package, version or ""


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
