"""The report behind a bug: its status, the code of both engines, who is affected, and
what can be taken home."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis.formula import beside
from gradebook.bugs import BUGS, Swap
from gradebook.cases.link import encode, excess
from gradebook.cases.scenario import Scenario
from gradebook.cases.scenario import bug as record_of
from gradebook.cases.schema import Source
from gradebook.cases.status import Status
from gradebook.output.csv_file import csv_file
from gradebook.output.pytest_file import pytest_file
from gradebook.output.scenario_file import scenario_file
from gradebook.trainers.releases import measured, newest
from gradebook.ui.parts import words
from gradebook.ui.parts.address import whole
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.widget import download, table
from gradebook.ui.parts.words import safe


def facts(scenario: Scenario) -> str:
    source = scenario.sources[0]
    report = safe(source.label)
    if source.url:
        report = f'<a href="{safe(source.url)}" target="_blank">{report}</a>'
    # One trainer is named by its report.
    first, *others = scenario.status
    return f"{report} · {safe(scenario.standing if others else first.dated)}"


def the_code(bug: Swap, scenario: Scenario) -> None:
    """Both functions, what differs marked, and the trainer's change or the report."""
    st.markdown(words.titled("The code of both engines", level=3))
    html, listings = "", beside(bug.correct, bug.faulty)
    sides = zip(("correct", "faulty"), scenario.engine_names, listings)
    for engine, name, listing in sides:
        mark = f' class="off-{engine[0]}"'
        lines = "".join(
            f"<span{mark if line.differs else ''}>{safe(line.text) or ' '}</span>"
            for line in listing.lines
            if line.number  # not one that only keeps the other's lines level
        )
        html += (
            f'<div class="gb gb-listing"><p><i class="gb-{engine}"></i>'
            f"<b>{safe(name)}</b> · {safe(listing.file)}</p>"
            f'<pre tabindex="0" role="region" aria-label="{safe(name)} code">{lines}'
            "</pre></div>"
        )
    st.html(html)
    changes = (source for source in scenario.sources if source.commit)
    cites = cited(next(changes, scenario.sources[0]))
    text = "This is the code that runs here. The change in the trainer: "
    st.container(key="code-note").markdown(text + cites)


def affected(scenario: Scenario) -> None:
    """Am I affected: what was measured, first of a trainer that shows the bug, else of
    the report's; and what is reported."""
    report, bug = scenario.affected, scenario.bug
    st.markdown(words.titled("Am I affected?"))
    likely = [line["package"] for line in newest() if bug in line["bugs"]]
    trainers = scenario.trainers
    likely += [line["package"] for line in newest() if line["trainer"] in trainers]
    with st.container(key="affected"):
        package, release = _release(f"affected-{bug}", likely)
        word, sentence = status(bug, package, release)
        st.markdown(f"**{ANSWERS[word].format(f'{package} {release}')}** {sentence}")
    lines = [
        *(
            f"- **{words.plain(f'{status.trainer} ({status.report})')}:**"
            f" {words.plain(status.sentence)}"
            for status in scenario.status
        ),
        "- **Settings that trigger it:** ",
        *(f"  - `{key}`" for key in report.keys),
        f"- **Where to look in your code:** {words.plain(report.look)}",
        f"- **Workaround:** {words.plain(report.workaround)}",
    ]
    sources = ["**Sources**\n", *(f"- {cited(source)}" for source in scenario.sources)]
    if scenario.kin:
        sources.append("\n**Related reports**\n")
    for relative in scenario.kin:
        cites = "; ".join(map(cited, relative.sources))
        text = words.plain(relative.text) + (f" {cites}." if cites else "")
        sources.append(f"- **{words.plain(relative.title)}.** {text}")
    for part, texts in zip(st.columns(2, gap="large"), (lines, sources)):
        part.markdown("\n".join(texts))


@st.fragment(key="opinion")
def opinion(scenario: Scenario) -> None:
    """A second question, about a disputed report: nothing is scored, and the views
    come after the answer."""
    if scenario.dispute is None:
        return
    title = "Is it a bug? That is disputed"
    st.markdown(words.titled(title, "Nothing is scored. What do you say?", level=3))
    answer = st.pills(
        title,
        ("Yes", "No", "Both views have a point"),
        key=f"opinion-{scenario.bug}",
        label_visibility="collapsed",
    )
    if answer is None:
        return
    views = {
        "The maintainer": scenario.dispute.maintainer,
        "The other view": scenario.dispute.other_view,
        "The trap in the fix": scenario.dispute.trap,
    }
    for part, (view, text) in zip(st.columns(3), views.items()):
        part.markdown(f"**{view}**  \n{words.plain(text)}")


def cited(source: Source) -> str:
    """A source as Markdown: its link, its commit and what is said of it."""
    name = words.plain(source.label)
    link = f"[{name}]({source.url})" if source.url else name
    commit = f", commit `{source.commit}`" if source.commit else ""
    note = f": {words.plain(source.note)}" if source.note else ""
    return f"{link}{commit}{note}"


# Am I affected? What was measured of a bug, and what its report says


ANSWERS = {
    "has it": "Yes, {} has it.",
    "reported": "Reported for {}.",
    "fixed": "No, {} does not have it.",
    "not seen on these batches": "{} did not show it on the measured batches.",
    "not measured": "Not known: {} was not measured.",
    "not reported": "No report about {}.",
}


def status(bug: str, package: str, version: str) -> tuple[str, str]:
    """One of the ANSWERS, and what it rests on: a measurement of this release that
    shows the bug, else the report about this trainer, else a measurement without it.
    A probe that shows nothing is weaker than a report: its batches are few."""
    lines = [x for x in measured() if x["package"] == package]
    trainers = {line["trainer"] for line in lines}
    reports = [report for report in record_of(bug).status if report.trainer in trainers]
    same_version = [line for line in lines if line["version"] == version]
    shows = [line for line in same_version if bug in line["bugs"]]
    dated = "".join(f" The report: {report.dated}." for report in reports)
    if shows:
        return "has it", _ways(shows) + dated
    if looked_at := _looked_at(reports, version):
        return looked_at
    silent = ""
    if same_version:
        count, day = len(same_version), same_version[0]["measured_on"]
        silent = f"{count} functions were measured on {day}."
    not_fixed = next((report for report in reports if report.state != "fixed"), None)
    if not_fixed:
        note = f" {silent} None of their batches shows it." if silent else ""
        return "reported", _about(not_fixed) + note
    where = last_seen(bug)
    if silent and where:
        text = f"{silent}{dated} Last seen in {where}."
        return "not seen on these batches", text
    return _not_measured(bug, package, reports, where)


def _looked_at(reports: Sequence[Status], version: str) -> tuple[str, str] | None:
    """The answer of the report in which somebody looked at this version; None if
    nobody did."""
    for report in reports:
        for checked in report.checked:
            if checked.version == version:
                answer = "has it" if checked.has_it else "fixed"
                return answer, f"{report.report}: {report.dated}. {checked}."
    return None


def _not_measured(
    bug: str, package: str, reports: Sequence[Status], where: str
) -> tuple[str, str]:
    """The answer without a measurement of this release. `where` is where the bug was
    seen last, '' if a probe never showed it."""
    if reports:
        command = f"`gradebook probe --trainer {package}`"
        hint = f" If it is installed, {command} measures it." if where else ""
        return "not measured", _about(reports[0]) + hint
    if where:
        return "not measured", f"Last seen in {where}."
    others = ", ".join(record_of(bug).trainers)
    return "not reported", f"The bug was reported for {others}. A probe cannot show it."


def _ways(shows: Sequence[Mapping[str, Any]]) -> str:
    """When a release was measured, and the settings that reach the bug."""
    defaults = dict.fromkeys(line["reached"] for line in shows if line["default"])
    others = dict.fromkeys(
        line["reached"] for line in shows if line["reached"] not in defaults
    )
    parts = [
        f"{when}: {' or '.join(f'`{way}`' for way in ways)}."
        for when, ways in (("By default", defaults), ("If switched on", others))
        if ways
    ]
    return " ".join([f"Measured on {shows[0]['measured_on']}.", *parts])


def _about(report: Status) -> str:
    """The report of one trainer, without its note."""
    return f"{report.report}: {report.dated}. {report.versions}"


def last_seen(bug: str, package: str = "") -> str:
    """Where a bug was last seen: trainer, version and date; '' if nowhere."""
    last = {
        line["package"]: f"{line['trainer']} {line['version']} ({line['measured_on']})"
        for line in measured()
        if bug in line["bugs"] and package in ("", line["package"])
    }
    return "; ".join(last.values())


def affected_bugs() -> None:
    release = _release("affected")
    lines = [(record_of(bug).title, *status(bug, *release)) for bug in BUGS]
    lines.sort(key=lambda cells: [*ANSWERS].index(cells[1]))
    body = [[cell.replace("`", "") for cell in cells] for cells in lines]
    table(["bug", "", "what it rests on"], body, heads=1, label="bugs")


def _release(key: str, likely: Sequence[str] = ()) -> tuple[str, str]:
    """A package, first a likely one, and a version, as chosen or typed."""
    packages = list(dict.fromkeys(line["package"] for line in measured()))
    first = packages.index((*likely, *packages)[0])
    trainer, release = st.columns(2)
    package = trainer.selectbox("Trainer", packages, first, key=key)
    choices = [x["version"] for x in reversed(measured()) if x["package"] == package]
    chosen = release.selectbox(
        "Version",
        list(dict.fromkeys(choices)),
        key=f"{key}-{package}",
        accept_new_options=True,
    )
    return package, chosen or ""


def take_home(draft: Draft) -> None:
    state, name = draft.state, draft.scenario.name
    query, single = encode(state, covered=True), len(state.bugs) == 1
    text = "Test and scenario file need exactly one bug."
    if single:
        text = (
            "The **pytest file** needs only torch and pytest: call your own trainer in"
            " the adapter at its top. The **scenario file** becomes a case of the"
            " bug's page when you put it into `scenarios/`."
        )
        if draft.comparison.agree:
            text += " This batch hides the bug; the test has the case's own rows, too."
    st.markdown(words.titled("Take it home"))
    with st.container(horizontal=True):
        if single:
            link = whole(encode(state, covered=False))
            test, case = f"test_{name}.py", f"{state.bug}-mine.toml"
            download("pytest file", test, partial(pytest_file, state, link))
            download("Scenario file", case, partial(scenario_file, state))
        download("CSV", f"{name}.csv", partial(csv_file, state))
    text += " The **CSV** holds every stage of both engines. The board itself saves as"
    st.markdown(f"{text} SVG or PNG.")
    if too_long := excess(query):
        st.markdown(words.plain(too_long))
        return
    with st.expander("The link to this page"):
        st.markdown(
            "The link opens this batch for anyone who can reach this server. It is"
            " also the address of this page. Whoever opens it on a bug's page sees the"
            " question first, without the answer."
        )
        st.code(whole(query), language=None, wrap_lines=True)
