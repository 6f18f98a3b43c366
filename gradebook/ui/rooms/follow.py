"""Following the lead: a learner sees the lead's page, batch, row and stage.

The lead's batch stands in a draft of its own. The learner's draft and its
history are left alone, and come back when the learner stops following.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

import streamlit as st

from gradebook.cases.link import decode
from gradebook.cases.scenario import load
from gradebook.cases.state import State
from gradebook.classroom.plan import query
from gradebook.classroom.snapshot import Position
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.shell import bug_files, page_files, page_title
from gradebook.ui.rooms import seat
from gradebook.ui.rooms.seat import carried


class LeadsDraft(Draft):
    """The lead's batch on a learner's screen. An edit here changes nothing:
    it is acknowledged, and the board shows the lead's batch again."""

    def named(self, part: str) -> str:
        return f"{part}-of-the-lead-{self.scenario.name}"

    def show(self, state: State) -> None:
        """What the lead has on the board now."""
        self.states, self.notes = [state], []

    def become(self, state: State, gesture: int | None = None) -> None:
        if not state.same_batch(self.state):
            self.notes = ["This is the lead's batch. Stop following to edit your own."]


def following() -> bool:
    """The learner follows the lead; on until switched off, and kept over a
    reload."""
    room = seat.code()
    return not room or seat.rooms().follows(room, seat.seat())


def switch(on: bool) -> None:
    """Follows the lead, or shows the learner's own drafts again."""
    seat.rooms().follow(seat.code(), seat.seat(), on)
    keys.SEEN.drop()
    if not on:
        keys.FOLLOWED.drop()
        keys.CASES.get().update(keys.OWN_CASES.get())
        keys.OWN_CASES.drop()


def follow(place: Position | None, page: str) -> None:
    """To the lead's page and case, once for each of the lead's moves."""
    if not following() or place is None or place == keys.SEEN.get():
        return
    if place.page not in page_files():
        keys.SEEN.put(place)
        return
    if place.page != page:
        st.switch_page(page_files()[place.page], query_params=_query(place) | carried())
    if page in bug_files():
        _show(place, page)
    keys.SEEN.put(place)


def case(place: Position | None) -> tuple[str, str] | None:
    """The page and the question at which the lead is."""
    return None if place is None else (place.page, place.question)


def _query(place: Position) -> dict[str, str]:
    """The address of the lead's page, without the lead's edits."""
    if place.page in bug_files():
        return query(place.question)
    return dict(parse_qsl(place.link, True))


def _show(place: Position, page: str) -> None:
    """The lead's batch, row and stage stand on this bug's page."""
    state = _state(place)
    held = keys.FOLLOWED.get().get(place.question)
    if not isinstance(held, LeadsDraft):
        held = LeadsDraft(state.scenario)
    held.show(state)
    keys.FOLLOWED.put({place.question: held})
    cases = keys.CASES.get()
    keys.OWN_CASES.get().setdefault(page, cases.get(page, page))
    cases[page] = place.question
    held.stage = place.stage


def _state(place: Position) -> State:
    link: Mapping[str, str] = dict(parse_qsl(place.link, True))
    return decode(link, default=place.page).state


def way_to(place: Position | None, question: str) -> None:
    """Where the lead is, with a link to it, where that is elsewhere."""
    if place is None or place.page not in page_files():
        return
    if place.question == question:
        return
    file = page_files()[place.page]
    title = page_title(file)
    if place.page in bug_files():
        title = load(place.question).title
    st.page_link(
        file,
        label=f"The lead is at “{words.plain(title)}”. Go there",
        query_params=_query(place) | carried(),
    )
