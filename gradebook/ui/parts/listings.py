"""The code: both functions of the swapped stage, from their files."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.source import Listing, beside
from gradebook.bugs import Swap
from gradebook.cases.scenario import Scenario
from gradebook.ui.parts import words
from gradebook.ui.parts.words import safe


def the_code(bug: Swap, scenario: Scenario) -> None:
    """Both functions, the lines that differ marked, and the trainer's own
    change; the report where no change is known."""
    said = (
        "This is the code that runs here, printed from its files. Lines that"
        " differ are marked."
    )
    changes = (source for source in scenario.sources if source.commit)
    source = next(changes, scenario.sources[0])
    label = words.plain(source.label)
    link = f"[{label}]({source.url})" if source.url else label
    said += f" In the trainer: {link}. {words.plain(source.note)}"
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
