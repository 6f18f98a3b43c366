"""Which room this browser is in, as its lead or as a learner.

The room stands in the address, in the session, and in a cookie that the
browser drops when it closes. So a typed address, a reload and a visit to Home
keep it. Only "Leave" and "Close the room" end it.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from contextlib import suppress
from functools import cache

import streamlit as st

from gradebook.classroom.room import Rooms, normal
from gradebook.classroom.wrong_codes import WrongCodes
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import present, words

PARAMETER = "room"
ROOM_COOKIE = "gradebook-room"
SEAT_COOKIE = "gradebook-seat"
TOKEN = re.compile(r"[A-Za-z0-9_-]{6,64}")


@cache
def rooms() -> Rooms:
    """The rooms of this server."""
    return Rooms()


@cache
def wrong_codes() -> WrongCodes:
    """The wrong codes that were typed on this server."""
    return WrongCodes()


def code() -> str:
    """The room of this session, or ''."""
    named = normal(st.query_params.get(PARAMETER, ""))
    if named and named != keys.ROOM.get():
        if admitted(named):
            keys.ROOM.put(named)
        else:
            st.query_params.pop(PARAMETER, None)
    if not keys.ROOM.get() and not keys.LEFT.get():
        remembered = _cookie(ROOM_COOKIE)
        if remembered and rooms().is_open(remembered):
            keys.ROOM.put(remembered)
    return keys.ROOM.get()


def client() -> str:
    """Who types a code: the address of the machine, or on this machine,
    where there is none, the browser's seat."""
    return str(st.context.ip_address or seat())


def admitted(room: str) -> bool:
    """There is such a room. Otherwise a wrong code is noted, and the next
    run says so; whoever typed too many of them has to wait."""
    pause = wrong_codes().wait(client())
    if pause:
        keys.ROOM_PROBLEM.put(
            f"Too many wrong codes. Try again in {math.ceil(pause)} s."
        )
        return False
    if rooms().is_open(room):
        return True
    wrong_codes().note(client())
    keys.ROOM_PROBLEM.put(
        f"No room with the code {room or '(empty)'} is open."
    )
    return False


def carried() -> dict[str, str]:
    """What every link passes on: the room, and the presenter view."""
    found = {PARAMETER: code()} if code() else {}
    return found | ({present.PARAMETER: "1"} if present.on() else {})


def leading(room: str) -> bool:
    """This browser leads the room."""
    return rooms().leads(room, lead_key(room))


def leads() -> bool:
    """This browser leads the room that it is in."""
    return bool(code()) and leading(code())


def learning() -> bool:
    """This browser sits in a room that another one leads."""
    room = code()
    return bool(room) and rooms().is_open(room) and not leading(room)


def lead_key(room: str) -> str:
    """The lead's key to the room, or '' for a learner."""
    held = keys.LEAD_KEYS.get()
    if room not in held:
        held[room] = _cookie(f"gradebook-lead-{room}")
    return held[room]


def seat() -> str:
    """This browser's seat: a random token, made when first asked for."""
    if not keys.SEAT.get():
        keys.SEAT.put(_cookie(SEAT_COOKIE) or secrets.token_urlsafe(12))
    return keys.SEAT.get()


def enter(room: str) -> None:
    """The session is in the room from now on."""
    keys.ROOM.put(room)
    keys.LEFT.drop()
    st.query_params[PARAMETER] = room


def leave(room: str) -> None:
    """The session leaves the room; its own drafts are as it left them."""
    with suppress(GradebookError):
        rooms().leave(room, seat())
    keys.ROOM.drop()
    keys.LEFT.put(True)
    keys.FOLLOWED.drop()
    st.query_params.pop(PARAMETER, None)


def open_room() -> None:
    """Opens a room that this browser leads, or says why it cannot."""
    try:
        room, key = rooms().open(seat())
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.place(error))
        return
    keys.LEAD_KEYS.get()[room] = key
    enter(room)


def close(room: str) -> None:
    """Closes the room that this browser leads."""
    with suppress(GradebookError):
        rooms().close(room, lead_key(room))
    leave(room)


def take_back(room: str, key: str) -> None:
    """The holder of the key leads the room again, here."""
    if admitted(room) and rooms().leads(room, key):
        keys.LEAD_KEYS.get()[room] = key
        enter(room)
    elif not keys.ROOM_PROBLEM.get():
        keys.ROOM_PROBLEM.put("This is not the room's lead key.")


def remember(room: str) -> None:
    """Leaves the room, the seat and a lead's key in the browser, so that a
    reload finds them. The browser drops them when it closes."""
    cookies = {ROOM_COOKIE: room, SEAT_COOKIE: seat()}
    if leading(room):
        cookies[f"gradebook-lead-{room}"] = lead_key(room)
    _set(cookies)


def forget() -> None:
    """After "Leave": the browser no longer knows the room."""
    if keys.LEFT.get() and _cookie(ROOM_COOKIE):
        _set({ROOM_COOKIE: ""})


def _set(cookies: dict[str, str]) -> None:
    lines = "".join(
        f"document.cookie = {json.dumps(f'{n}={v}; path=/; SameSite=Lax')};"
        for n, v in cookies.items()
    )
    with st.container(key="room-token"):
        st.html(f"<script>{lines}</script>", unsafe_allow_javascript=True)


def _cookie(name: str) -> str:
    found = str(st.context.cookies.get(name, ""))
    return found if TOKEN.fullmatch(found) else ""
