"""Which room this browser is in, as its lead or as a learner.

The room stands in the address and in the session, and the database knows in
which room each seat is. The seat is a cookie that came with the first page
(`security`). So a typed address, a reload and a visit to Home keep
the room. Only "Leave" and "Close the room" end it.
"""

from __future__ import annotations

import hmac
import math
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

import streamlit as st

from gradebook.classroom.codes import Slowdown, normal
from gradebook.classroom.room import Rooms
from gradebook.classroom.store import Room, Store
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import address, words
from gradebook.ui.security import seat_of

PARAMETER = "room"
LEAD = "lead"
"""The parameter of the lead's own link: the lead key."""
_opening = Lock()


def rooms() -> Rooms:
    """The rooms of this server's database, which is opened once, however many
    sessions ask for it at the same time: each opening takes connections."""
    with _opening:
        return _rooms()


@cache
def _rooms() -> Rooms:
    """The rooms of the database that the environment or Streamlit's secrets
    name, else of the one in the user's data folder."""
    url = os.environ.get("GRADEBOOK_DATABASE_URL", "")
    if not url and st.secrets.load_if_toml_exists():
        url = st.secrets.get("connections", {}).get("gradebook", {}).get("url", "")
    return Rooms(Store(url))


@cache
def wrong_codes() -> tuple[Slowdown, Slowdown]:
    """The wrong codes that each machine typed on this server, and all."""
    return Slowdown(free=5), Slowdown(free=200)


@cache
def openings() -> Slowdown:
    """The rooms that each machine opened on this server."""
    return Slowdown(free=20)


def code() -> str:
    """The code of this session's room, or ''."""
    query, room = st.query_params.to_dict(), keys.ROOM.get()
    named, _, token = query.get(PARAMETER, "").partition(".")
    named = normal(named)
    if key := query.get(LEAD):
        st.query_params.pop(LEAD, None)
        if take_back(named, key):
            return named
        st.query_params.pop(PARAMETER, None)
    elif named and named != room:
        if admitted(named, token):
            room = named
        else:
            st.query_params.pop(PARAMETER, None)
    if not (room or keys.ROOM_SOUGHT.get()):
        room = rooms().room_of(seat())
        keys.ROOM_SOUGHT.put(True)
    keys.ROOM.put(room)
    return room


def here() -> Room | None:
    """This session's room as it stands; None for none, and for a closed one."""
    room = code()
    return rooms().read(room) if room else None


def leads() -> bool:
    """This browser leads the room that it is in."""
    room = here()
    return room is not None and room.led_by(seat())


def learning() -> bool:
    """This browser sits in a room that another one leads."""
    room = here()
    return room is not None and not room.led_by(seat())


def client() -> str:
    """Who types a code: the address of the machine."""
    return str(st.context.ip_address or "this machine")


def admitted(code: str, token: str = "") -> bool:
    """There is such a room. Otherwise a wrong code is noted, and the next
    run says so; whoever typed too many of them has to wait. A browser that is
    in the room already need not, nor need one with the token of its link."""
    room = rooms().read(code)
    if room and hmac.compare_digest(room.token.encode(), token.encode()):
        return True
    if rooms().heard(code, seat()):
        return True
    of_one, of_all = wrong_codes()
    pause = max(of_one.wait(client()), of_all.wait(""))
    if pause:
        seconds = math.ceil(pause)
        keys.ROOM_PROBLEM.put(f"Too many wrong codes. Try again in {seconds} s.")
        return False
    if room:
        return True
    of_one.note(client())
    of_all.note("")
    keys.ROOM_PROBLEM.put(f"No room with the code {code or '(empty)'} is open.")
    return False


def carried() -> dict[str, str]:
    """What every link passes on: the room, and the presenter view."""
    room = {PARAMETER: code()} if code() else {}
    return room | ({address.PRESENT: "1"} if address.presenting() else {})


def seat() -> str:
    """This browser's seat: a random token, made when first asked for."""
    if not keys.SEAT.get():
        keys.SEAT.put(seat_of(st.context.cookies) or secrets.token_urlsafe(12))
    return keys.SEAT.get()


def enter(room: str) -> None:
    """The session is in the room from now on."""
    keys.ROOM.put(room)
    st.query_params[PARAMETER] = room


def act(what: Callable[..., object], *values: Any, **named: Any) -> None:
    """Does something in the session's room with this browser's seat: a method
    of Rooms, with what comes after code and seat. A room that was closed
    meanwhile takes nothing; the next run says so."""
    with suppress(GradebookError):
        what(rooms(), code(), seat(), *values, **named)


def leave() -> None:
    """The session leaves the room; its own drafts are as it left them."""
    act(Rooms.leave)
    keys.ROOM.drop()
    keys.FOLLOWED.drop()
    st.query_params.pop(PARAMETER, None)


def open_room() -> None:
    """Opens a room that this browser leads, or says why it cannot."""
    pause = openings().wait(client())
    if pause:
        many = "Many rooms were opened from your address."
        keys.ROOM_PROBLEM.put(f"{many} Try again in {math.ceil(pause)} s.")
        return
    openings().note(client())
    try:
        enter(rooms().open(seat()))
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.place(error))


def close() -> None:
    """Deletes the room that this browser leads."""
    act(Rooms.close)
    leave()


def take_back(room: str, key: str) -> bool:
    """The holder of the key leads the room again, here."""
    try:
        rooms().take(room, key, seat())
    except GradebookError:
        keys.ROOM_PROBLEM.put("This is not the room's lead key.")
        return False
    keys.LEAD_KEY.put(key)
    enter(room)
    return True


def invitation(room: Room) -> str:
    """The value of the address that joins the room without a typed code."""
    return f"{room.code}.{room.token}"
