"""The report behind a bug: its status, its story, and who is affected."""

from __future__ import annotations

import streamlit as st

from gradebook.cases.case import Kin, Source
from gradebook.cases.scenario import Scenario
from gradebook.ui.parts import words


def facts(scenario: Scenario) -> str:
    """Status, trainers and report of a bug, as one line of Markdown."""
    each = list(zip(scenario.statuses, scenario.trainers))
    stands = [
        f":gray-badge[{status}] {words.plain(trainer)}"
        for status, trainer in each or [(scenario.status, scenario.trainer)]
    ]
    reports = [_link(source) for source in scenario.sources[:1]]
    return " · ".join([*stands, *reports])


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
