"""The room on the session page: open one, join one, or what goes on in it."""

from __future__ import annotations

import streamlit as st

from gradebook.classroom.room import LENGTH, normal
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts.address import whole
from gradebook.ui.parts.shell import tool_files
from gradebook.ui.parts.words import safe
from gradebook.ui.rooms import follow, seat
from gradebook.ui.rooms.bar import (
    joined,
    leave_button,
    problem,
    shut,
    toggle,
    watch,
)
from gradebook.ui.rooms.news import news


def panel() -> None:
    """The section of the session page that is about the room."""
    st.header("The room")
    room = seat.code()
    problem()
    if not room:
        return _door()
    try:
        if seat.leading(room):
            _lead(room)
        elif not seat.rooms().read(room):
            shut(room)
        elif joined(room, ""):
            _learner(room)
    except GradebookError:  # the room was closed while the page ran
        st.rerun()


def _door() -> None:
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown(
            "**Lead.** Open a room, which has a short code. The server counts"
            " the learners' predictions without names, and deletes them with the"
            " room: when you close it, or a day after it was last used."
        )
        st.button("Open a room", key="room-open", on_click=seat.open_room)
        with st.expander("Take a room back"):
            st.text_input("Code of the room", key="room-back-code")
            st.text_input("Lead key", key="room-back-key", type="password")
            st.button("Take it back", key="room-back", on_click=_taken_back)
    with right.container(border=True, height="stretch"):
        st.markdown(
            f"**Learn.** Type the code of {LENGTH} characters that the lead shows."
        )
        st.text_input("Code", key="room-code", max_chars=12)
        st.button("Join", key="room-join", on_click=_typed)


def _typed() -> None:
    typed = normal(keys.widget("room-code"))
    if seat.admitted(typed):
        seat.enter(typed)


def _taken_back() -> None:
    room = normal(keys.widget("room-back-code"))
    seat.take_back(room, keys.widget("room-back-key").strip())


def _lead(room: str) -> None:
    with st.container(border=True, key="room-panel"):
        st.html(f'<div class="gb-code">{safe(room)}</div>')
        st.markdown("Learners open this link, or type the code on this page:")
        link = whole({seat.PARAMETER: room})
        st.code(link, language=None, wrap_lines=True)
        news(room, "heads")
        st.markdown(
            "The links of the plan below keep the room. On a bug's page"
            " you see how many learners have answered. **Reveal** shows the"
            " answer to everybody at once."
        )
        st.page_link(
            tool_files()["bug_or_not"],
            label="Play “Bug or not?” with the room",
            query_params=seat.carried(),
        )
        with st.expander("Keep the lead"):
            st.markdown(
                "A reload keeps it. On another device, take the room back"
                " with the lead key."
            )
            if key := keys.LEAD_KEY.get():
                st.code(key, language=None, wrap_lines=True)
            else:
                st.button("Make a new lead key", on_click=seat.new_key, args=(room,))
        st.button(
            "Close the room",
            key="room-close",
            on_click=seat.close,
            args=(room,),
        )


def _learner(room: str) -> None:
    place = seat.rooms().room(room).position
    follow.follow(place, "session")
    with st.container(border=True, key="room-panel"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"You are in room **{room}**.")
            toggle()
            leave_button(room)
        if place is None:
            st.markdown("The lead has not opened a bug yet. This page waits.")
        follow.way_to(place, "")
        watch(room, "", False, place)
