"""Am I affected? First the reports about the visitor's own trainer, then what was
measured of its releases; the rest is folded."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Scenario, by_trainer
from gradebook.cases.scenario import bug as record_of
from gradebook.cases.status import Status
from gradebook.trainers.releases import measured, newest
from gradebook.ui import keys
from gradebook.ui.parts import drafts, words
from gradebook.ui.parts.report import cited
from gradebook.ui.parts.widget import keep, table

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
    lines = [x for x in _measurements(package) if x["version"] == version]
    shows = [line for line in lines if bug in line["bugs"]]
    reports = _reports_about(bug, package)
    dated = "".join(f" The report: {report.dated}." for report in reports)
    if shows:
        return "has it", _ways(shows) + dated
    if looked_at := _looked_at(reports, version):
        return looked_at
    silent = ""
    if lines:
        silent = f"{len(lines)} functions were measured on {lines[0]['measured_on']}."
    not_fixed = next((report for report in reports if report.state != "fixed"), None)
    if not_fixed:
        note = f" {silent} None of their batches shows it." if silent else ""
        return "reported", _about(not_fixed) + note
    where = last_seen(bug)
    if silent and where:
        text = f"{silent}{dated} Last seen in {where}."
        return "not seen on these batches", text
    return _not_measured(bug, package, reports, where)


def trainers_of(package: str) -> set[str]:
    """The trainer of a measured package, or the name itself if none has that name."""
    return {line["trainer"] for line in _measurements(package)} or {package}


def _measurements(package: str) -> list[dict[str, Any]]:
    """What was measured of a package, the oldest release first."""
    return [line for line in measured() if line["package"] == package]


def _reports_about(bug: str, package: str) -> list[Status]:
    """The bug's reports about the trainer of this package."""
    mine = trainers_of(package)
    return [report for report in record_of(bug).status if report.trainer in mine]


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


# What the pages show


def affected(scenario: Scenario) -> None:
    """For one bug. Until a trainer was chosen: one whose newest measured release shows
    the bug, else one of the report's."""
    bug, report = scenario.bug, scenario.affected
    st.markdown(words.titled("Am I affected?"))
    likely = [line["package"] for line in newest() if bug in line["bugs"]]
    likely += [x["package"] for x in newest() if x["trainer"] in scenario.trainers]
    with st.container(key="affected"):
        package, release = _chosen(f"affected-{bug}", [*likely, *scenario.trainers])
        word, sentence = status(bug, package, release)
        named = f"{package} {release}".strip()
        st.markdown(f"**{ANSWERS[word].format(named)}** {sentence}")
    mine, trainer = trainers_of(package), words.plain(_packages()[package])
    theirs = [record for record in scenario.status if record.trainer in mine]
    others = [record for record in scenario.status if record.trainer not in mine]
    lines = _reports(theirs) or [f"- No report about {trainer} is known."]
    lines.append(f"- **Measured releases:** {_releases(bug, package)}")
    advice = [
        "- **Settings that trigger it:** ",
        *(f"  - `{key}`" for key in report.keys),
        f"- **Where to look in your code:** {words.plain(report.look)}",
        f"- **Workaround:** {words.plain(report.workaround)}",
    ]
    for part, texts in zip(st.columns(2, gap="large"), (lines, advice)):
        part.markdown("\n".join(texts))
    with st.expander("Other trainers, sources and related reports"):
        sources = [f"- {cited(source)}" for source in scenario.sources]
        parts = [*_reports(others), "\n**Sources**\n", *sources, *_related(scenario)]
        st.markdown("\n".join(parts))


def _related(scenario: Scenario) -> list[str]:
    """The related reports, under their title; [] without any."""
    lines = ["\n**Related reports**\n"] if scenario.kin else []
    for relative in scenario.kin:
        cites = "; ".join(map(cited, relative.sources))
        text = words.plain(relative.text) + (f" {cites}." if cites else "")
        lines.append(f"- **{words.plain(relative.title)}.** {text}")
    return lines


def affected_bugs() -> None:
    """For all bugs."""
    package, release = _chosen("affected")
    mine, trainer = trainers_of(package), words.plain(_packages()[package])
    reported: list[list[str]] = []
    seen: list[list[str]] = []
    rest: list[list[str]] = []
    for bug in BUGS:
        record = record_of(bug)
        word, sentence = status(bug, package, release)
        cells = [record.title, word, sentence.replace("`", "")]
        if mine & {*record.trainers}:
            reported.append(cells)
        elif word == "has it":
            seen.append(cells)
        else:
            rest.append(cells)
    named = f"{package} {release}".strip()
    _answers(f"Reports about {trainer}", reported)
    _answers(f"Measured in {named}, without a report", seen)
    other = "The other" if reported or seen else "All"
    with st.expander(f"{other} {len(rest)} bugs: no report about {trainer}"):
        _answers("", rest)


def _answers(title: str, lines: list[list[str]]) -> None:
    if not lines:
        return
    if title:
        st.markdown(words.titled(title, level=3))
    lines.sort(key=lambda cells: [*ANSWERS].index(cells[1]))
    head, label = ["bug", "", "what it rests on"], title or "other bugs"
    table(head, lines, heads=1, label=label)


def _reports(records: Sequence[Status]) -> list[str]:
    return [
        f"- **{words.plain(f'{record.trainer} ({record.report})')}:**"
        f" {words.plain(record.sentence)}"
        for record in records
    ]


def _releases(bug: str, package: str) -> str:
    """What the measurements of a package say of the bug."""
    lines = _measurements(package)
    versions = list(dict.fromkeys(line["version"] for line in lines))
    shows = {line["version"] for line in lines if bug in line["bugs"]}
    if not versions:
        return f"none of {words.plain(package)}."
    span = f"{len(versions)}, from {versions[0]} to {versions[-1]}"
    if len(versions) == 1:
        span = f"one, {versions[0]}"
    if shows:
        named = ", ".join(version for version in versions if version in shows)
        return f"{span}. The bug showed in {named}."
    if not last_seen(bug):
        return f"{span}. The measured batches cannot show this bug."
    return f"{span}. None showed it on the measured batches."


def _chosen(key: str, likely: Sequence[str] = ()) -> tuple[str, str]:
    """The visitor's trainer, as a measured package or a name, and its version, "" for
    none. It is chosen once for all pages; until then the first that is `likely`."""
    progress, names = drafts.PROGRESS.get(), _packages()
    packages = sorted(names, key=lambda name: names[name].casefold())
    mine, version = progress.mine
    first = next((n for n in (mine, *likely) if n in names), packages[0])

    def choose() -> None:
        progress.mine = keys.widget(key), ""

    trainer, release = st.columns(2)
    package = trainer.selectbox(
        "My trainer",
        packages,
        packages.index(first),
        names.__getitem__,
        key=key,
        on_change=choose,
    )
    key_of_version = f"{key}-{package}"

    def choose_version() -> None:
        progress.mine = package, keys.widget(key_of_version) or ""

    newest_first = reversed(_measurements(package))
    versions = list(dict.fromkeys(line["version"] for line in newest_first))
    if mine == package and version and version not in versions:
        versions.insert(0, version)
    at = versions.index(version) if mine == package and version else 0
    chosen = release.selectbox(
        "Version",
        versions,
        at if versions else None,
        key=key_of_version,
        on_change=choose_version,
        accept_new_options=True,
    )
    keep(progress)
    return package, chosen or ""


@cache
def _packages() -> dict[str, str]:
    """Every measured package, and every further trainer that a report names -> what
    it is called; with the package, if a trainer has several."""
    names = {line["package"]: line["trainer"] for line in measured()}
    trainers = list(names.values())
    for package, trainer in names.items():
        if trainers.count(trainer) > 1:
            names[package] = f"{trainer} ({package})"
    return names | {name: name for name in by_trainer() if name not in trainers}
