"""The report behind a bug: its status, the code of both engines, its story,
and who is affected."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.source import Listing, beside
from gradebook.bugs import Swap
from gradebook.cases.case import Kin, Source
from gradebook.cases.scenario import Scenario
from gradebook.ui.parts import words
from gradebook.ui.parts.affected import affected as measured
from gradebook.ui.parts.affected import last_seen
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
        measured(scenario.bug)
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
