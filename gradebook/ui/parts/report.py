"""The report behind a bug: its status, the code of both engines, its story,
and who is affected."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.source import Listing, beside
from gradebook.bugs import Swap
from gradebook.cases.case import Kin, Source
from gradebook.cases.scenario import Scenario
from gradebook.ui.parts import words
from gradebook.ui.parts.words import safe


def facts(scenario: Scenario) -> str:
    """Status, trainers and report of a bug, as one line of Markdown."""
    each = list(zip(scenario.statuses, scenario.trainers))
    stands = [
        f":gray-badge[{status}] {words.plain(trainer)}"
        for status, trainer in each or [(scenario.status, scenario.trainer)]
    ]
    reports = [_link(source) for source in scenario.sources[:1]]
    return " · ".join([*stands, *reports])


def the_code(bug: Swap, scenario: Scenario) -> None:
    """Both functions, the lines that differ marked, and the trainer's own
    change; the report where no change is known."""
    said = (
        "This is the code that runs here, printed from its files. Lines that"
        " differ are marked."
    )
    changes = (source for source in scenario.sources if source.commit)
    source = next(changes, scenario.sources[0])
    said += f" In the trainer: {_link(source)}. {words.plain(source.note)}"
    st.markdown(words.titled("The code", said))
    listings = beside(bug.correct, bug.faulty)
    sides = zip(scenario.engine_names, listings, ("off-c", "off-f"))
    shown = "".join(_listing(*side) for side in sides)
    st.html(f'<div class="gb-two">{shown}</div>')


def _listing(name: str, listing: Listing, mark: str) -> str:
    lines = []
    for line in listing.lines:
        number = f"{line.number:4d}" if line.number else "    "
        sign = "≠" if line.differs else " "
        style = f' class="{mark}"' if line.differs else ""
        text = safe(line.text) or " "
        lines.append(f"<span{style}><i>{number} {sign} </i>{text}</span>")
    return (
        f'<div class="gb"><div class="file"><b>{name}</b>,'
        f" {safe(listing.file)}</div>"
        f'<pre tabindex="0" role="region" aria-label="{name} code">'
        + "".join(lines)
        + "</pre></div>"
    )


def affected(scenario: Scenario) -> None:
    """Am I affected: the trainer, its versions and keys, a workaround; and
    the bug's relatives."""
    told = scenario.affected
    keys = "\n".join(f"  - `{key}`" for key in told.keys)
    said = (
        f"{words.plain(scenario.story)}\n\n"
        f"- **Trainer:** {words.plain(told.trainer)}\n"
        f"- **Versions:** {words.plain(told.versions)}\n"
        f"- **Switched on by:**\n{keys}\n"
        f"- **Where to look in your code:** {words.plain(told.look)}\n"
        f"- **Workaround:** {words.plain(told.workaround)}\n\n"
        f"**Status.** {words.plain(scenario.status_note)}\n\n"
        "**Sources**\n"
    )
    sources = "\n".join(f"- {cited(one)}" for one in scenario.sources)
    st.markdown(words.titled("Am I affected?", f"{said}{sources}"))
    if scenario.kin:
        kin = "\n".join(f"- {_relative(one)}" for one in scenario.kin)
        st.markdown(f"**Relatives of this bug**\n\n{kin}")


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
