"""Following the lead: a learner is taken to the lead's question and stage.

The batch there is the learner's own. The lead's is one click away, in a draft of
its own; the learner's draft and its history are left alone.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from gradebook.cases.link import decode
from gradebook.cases.scenario import Scenario, load
from gradebook.classroom.snapshot import Position
from gradebook.ui import keys
from gradebook.ui.parts import drafts, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.shell import bug_files, page_files, page_title
from gradebook.ui.rooms import seat
from gradebook.ui.rooms.seat import carried


def following() -> bool:
    """The learner follows the lead; on until switched off, and kept over a
    reload."""
    room, follows = seat.code(), keys.FOLLOWS.get()
    if follows is None:
        follows = not room or seat.rooms().follows(room, seat.seat())
        keys.FOLLOWS.put(follows)
    return follows


def switch(on: bool) -> None:
    """Follows the lead, or shows the learner's own drafts again."""
    seat.rooms().follow(seat.code(), seat.seat(), on)
    keys.SEEN.drop()


def follow(place: Position | None, page: str) -> dict[str, str] | None:
    """To the lead's question and stage, once for each of the lead's moves. The
    lead's link where that is on this page already."""
    goes = keys.GO.get()
    keys.GO.drop()
    keys.FOLLOWS.drop()
    if place is None or not (goes or heading(place) != keys.SEEN.get() and following()):
        return None
    keys.SEEN.put(heading(place))
    if place.page not in page_files():
        return None
    if place.page in bug_files():
        if place.question not in keys.FOLLOWED.get():
            keys.FOLLOWED.drop()
        keys.CASES.get()[place.page] = place.question
        drafts.of(load(place.question)).stage = place.stage
    if place.page != page:
        st.switch_page(page_files()[place.page], query_params=_query(place) | carried())
    return _query(place)


def heading(place: Position | None) -> tuple[str, ...] | None:
    """Where followers are taken: page, question and stage."""
    return None if place is None else (place.page, place.question, place.stage)


def case(place: Position | None) -> tuple[str, str] | None:
    """The page and the question at which the lead is."""
    return None if place is None else (place.page, place.question)


def _query(place: Position) -> dict[str, str]:
    """The address of the lead's page; a bug's page shows the learner's batch."""
    return {} if place.page in bug_files() else dict(parse_qsl(place.link, True))


def batch(place: Position | None, scenario: Scenario) -> None:
    """The lead's batch and the learner's own, one click apart."""
    if scenario.name in keys.FOLLOWED.get():
        st.button("Back to my batch", key="room-own", on_click=keys.FOLLOWED.drop)
    elif place is not None and place.question == scenario.name:
        st.button("Open the lead's batch", key="room-batch", on_click=open_batch)


def open_batch() -> None:
    """The lead's batch as it stands now, in place of the learner's own."""
    room = seat.rooms().read(seat.code())
    if room is None or room.position is None:
        return
    place = room.position
    state = decode(dict(parse_qsl(place.link, True)), default=place.page).state
    draft = Draft(state.scenario)
    draft.become(state)
    draft.stage = place.stage
    keys.FOLLOWED.put({place.question: draft})


def way_to(place: Position | None, question: str) -> None:
    """Where the lead is, with a link to it, where that is elsewhere."""
    if place is None or place.page not in page_files():
        return
    if place.question == question:
        return
    title = page_title(page_files()[place.page])
    if place.page in bug_files():
        title = load(place.question).title
    st.button(
        f"The lead is at “{words.plain(title)}”. Go there",
        key="room-way",
        type="tertiary",
        on_click=keys.GO.put,
        args=(True,),
    )
