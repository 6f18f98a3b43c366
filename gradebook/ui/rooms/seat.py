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
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

import streamlit as st

from gradebook.classroom.room import Rooms
from gradebook.classroom.store import Room, Store, normal
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import address, words
from gradebook.ui.security import seat_of

PARAMETER = "room"
LEAD = "lead"
"""The parameter of the lead's own link: the lead key."""


class Slowdown:
    """Counts what each client does, and slows it down: after `free` times each one
    doubles the wait before the next, up to 60 seconds. A client that stays away
    for ten minutes starts anew.
    """

    def __init__(self, free: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.free = free
        self._clock = clock
        self._done: dict[str, tuple[int, float]] = {}
        self._lock = Lock()

    def wait(self, client: str) -> float:
        """Seconds until the client may go on; 0 for now."""
        with self._lock:
            count, last = self._done.get(client, (0, 0.0))
            pause = min(2.0 ** (count - self.free), 60.0)
            return max(0.0, last + pause - self._clock()) if count > self.free else 0.0

    def note(self, client: str) -> None:
        """The client did it once more."""
        with self._lock:
            now = self._clock()
            for name, (_, last) in list(self._done.items()):
                if now - last > 600.0:
                    del self._done[name]
            count = self._done.get(client, (0, 0.0))[0]
            self._done[client] = (count + 1, now)


WRONG_CODES = Slowdown(free=5), Slowdown(free=200)
"""The wrong codes that each machine typed on this server, and all."""
OPENINGS = Slowdown(free=20)
"""The rooms that each machine opened on this server."""
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


def code() -> str:
    """The code of this session's room, or ''."""
    query, room = st.query_params.to_dict(), keys.ROOM.get()
    named, _, token = query.get(PARAMETER, "").partition(".")
    named = normal(named)
    if key := query.get(LEAD):
        st.query_params.pop(LEAD, None)
        try:
            rooms().take(named, key, seat())
        except GradebookError:
            keys.ROOM_PROBLEM.put("This is not the room's lead key.")
            st.query_params.pop(PARAMETER, None)
        else:
            keys.LEAD_KEY.put(key)
            room = named
            st.query_params[PARAMETER] = named
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
    of_one, of_all = WRONG_CODES
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
    pause = OPENINGS.wait(client())
    if pause:
        many = "Many rooms were opened from your address."
        keys.ROOM_PROBLEM.put(f"{many} Try again in {math.ceil(pause)} s.")
        return
    OPENINGS.note(client())
    try:
        enter(rooms().open(seat()))
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.place(error))


def close() -> None:
    """Deletes the room that this browser leads."""
    act(Rooms.close)
    leave()
