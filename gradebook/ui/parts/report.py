"""The report behind a bug: its status, the code of both engines, its story,
and who is affected."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

from gradebook.analysis.source import Listing, beside
from gradebook.bugs import BUGS, Swap
from gradebook.cases.case import Kin, Source
from gradebook.cases.record import bug as record_of
from gradebook.cases.scenario import Scenario
from gradebook.trainers.releases import measured, newest, versions
from gradebook.ui.parts import words
from gradebook.ui.parts.tables import table
from gradebook.ui.parts.words import safe


def facts(scenario: Scenario) -> str:
    """Report and status of a bug, as one line of HTML."""
    source = scenario.sources[0]
    report = safe(source.label)
    if source.url:
        report = f'<a href="{safe(source.url)}" target="_blank">{report}</a>'
    status = scenario.standing if scenario.statuses else scenario.status
    return f"{report} · {safe(status)}"


def the_code(bug: Swap, scenario: Scenario) -> None:
    """Both functions, the lines that differ marked, and the trainer's own
    change; the report where no change is known."""
    changes = (source for source in scenario.sources if source.commit)
    source = next(changes, scenario.sources[0])
    st.markdown(words.titled("The code of both engines", level=3))
    listings = beside(bug.correct, bug.faulty)
    sides = zip(scenario.engine_names, listings, ("correct", "faulty"))
    st.html("".join(_listing(*side) for side in sides))
    with st.container(key="code-note"):
        st.markdown(
            "This is the code that runs here, printed from its files. In the"
            f" trainer: {_link(source)}. {words.plain(source.note)}"
        )


def _listing(name: str, listing: Listing, engine: str) -> str:
    """One function. The other's lines stand beside it, so lines that only
    keep them level are left out."""
    mark = f' class="off-{engine[0]}"'
    lines = [
        f"<span{mark if line.differs else ''}>{safe(line.text) or ' '}</span>"
        for line in listing.lines
        if line.number
    ]
    return (
        f'<div class="gb gb-listing"><p><i class="gb-{engine}"></i><b>{safe(name)}</b>'
        f" · {safe(listing.file)}</p>"
        f'<pre tabindex="0" role="region" aria-label="{safe(name)} code">'
        + "".join(lines)
        + "</pre></div>"
    )


def affected(scenario: Scenario) -> None:
    """Am I affected: what was measured of a trainer and a version; the report
    and its keys, a workaround; and the bug's relatives."""
    told = scenario.affected
    versions = f"- **Versions:** {words.plain(told.versions)}\n"
    keys = "\n".join(f"  - `{key}`" for key in told.keys)
    said = (
        f"- **Trainer:** {words.plain(told.trainer)}\n"
        f"{'' if last_seen(scenario.bug) else versions}"
        f"- **Switched on by:**\n{keys}\n"
        f"- **Where to look in your code:** {words.plain(told.look)}\n"
        f"- **Workaround:** {words.plain(told.workaround)}\n\n"
        f"**Status.** {words.plain(scenario.status_note)}"
    )
    sources = "\n".join(f"- {cited(one)}" for one in scenario.sources)
    st.markdown(words.titled("Am I affected?"))
    with st.container(key="affected"):
        affected_release(scenario.bug)
    if scenario.kin:
        kin = "\n".join(f"- {_relative(one)}" for one in scenario.kin)
        sources += f"\n\n**Related reports**\n\n{kin}"
    left, right = st.columns(2, gap="large")
    left.markdown(said)
    right.markdown(f"**Sources**\n\n{sources}")


def _relative(one: Kin) -> str:
    """A relative of the bug that has no page, as Markdown."""
    sources = "; ".join(map(cited, one.sources))
    told = f"**{words.plain(one.title)}.** {words.plain(one.text)}"
    return f"{told} {sources}." if sources else told


def dispute(scenario: Scenario) -> None:
    """Both views of a report that is no agreed bug, and the fix's trap."""
    if scenario.dispute is None:
        return
    st.markdown(words.titled("Is it a bug? That is disputed"))
    views = (
        ("The maintainer", scenario.dispute.maintainer),
        ("The other view", scenario.dispute.other_view),
        ("The trap in the fix", scenario.dispute.trap),
    )
    for part, (title, text) in zip(st.columns(3), views):
        with part:
            st.markdown(f"**{title}**  \n{words.plain(text)}")


def _link(source: Source) -> str:
    name = words.plain(source.label)
    return f"[{name}]({source.url})" if source.url else name


def cited(source: Source) -> str:
    """A source as Markdown: its link, its commit and what is said of it."""
    commit = f", commit `{source.commit}`" if source.commit else ""
    note = f": {words.plain(source.note)}" if source.note else ""
    return f"{_link(source)}{commit}{note}"


# Am I affected? What was measured of a bug, for a trainer and a version


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


def affected_release(bug: str) -> None:
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
