"""Which room this browser is in, as its lead or as a learner.

The database knows in which room each seat is, and the seat is a cookie that came with
the first page (`security`). So a typed address, a reload and a visit to Home keep the
room; "Leave" and "Close the room" end it. An address with a room is an invitation.

A browser that was in a room has another cookie (`news.js`). The database is opened
only when such a browser returns or someone opens or joins a room, because importing
SQLAlchemy is an eighth of a first visit.
"""

import hmac
import math
import os
import secrets
import time
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import streamlit as st

from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.security import seat_of

if TYPE_CHECKING:
    from gradebook.classroom.room import Rooms
    from gradebook.classroom.store import Room

PARAMETER = "room"
LEAD = "lead"
"""The parameters of a room's link, and of the lead's own, a key."""
BEEN = "gradebook-room"
"""The cookie of a browser that was in a room, as `news.js` writes it."""
OPENED = Event()
"""This server has opened the database."""


class Slowdown:
    """Slows each client down: after `free` times each one doubles the wait before the
    next, up to 60 seconds. A client that stays away for ten minutes starts anew."""

    def __init__(self, free: int) -> None:
        self.free = free
        self._done: dict[str, tuple[int, float]] = {}
        self._lock = Lock()

    def wait(self, client: str) -> float:
        """Seconds until the client may go on; 0 for now."""
        count, last = self._done.get(client, (0, 0.0))
        pause = min(2.0 ** (count - self.free), 60.0)
        return max(0.0, last + pause - time.monotonic()) if count > self.free else 0.0

    def note(self, client: str) -> None:
        now = time.monotonic()
        with self._lock:
            done = {name: n for name, n in self._done.items() if now - n[1] <= 600.0}
            count = done.get(client, (0, 0.0))[0]
            self._done = done | {client: (count + 1, now)}


WRONG_CODES = Slowdown(free=5), Slowdown(free=200)
"""The wrong codes that each machine typed on this server, and all."""
OPENINGS = Slowdown(free=20)
"""The rooms that each machine opened on this server."""
SEAT: keys.Key[str] = keys.Key(
    "seat", lambda: seat_of(st.context.cookies) or secrets.token_urlsafe(12)
)
"""This browser's seat: a random token."""


@st.cache_resource(show_spinner=False)
def rooms() -> "Rooms":
    """The rooms of the database that the environment or Streamlit's secrets
    name, else of the one in the user's data folder."""
    from gradebook.classroom.room import Rooms

    url = os.environ.get("GRADEBOOK_DATABASE_URL", "")
    if not url and st.secrets.load_if_toml_exists():
        url = st.secrets.get("connections", {}).get("gradebook", {}).get("url", "")
    opened = Rooms(url)
    OPENED.set()
    return opened


def code() -> str:
    """The code of this session's room, or ''."""
    room = keys.ROOM.get()
    if room is None:
        asks = OPENED.is_set() or st.context.cookies.get(BEEN) == "1"
        room = rooms().room_of(SEAT.get()) if asks else ""
    invited, _, token = st.query_params.get(PARAMETER, "").partition(".")
    invited = normal(invited)
    if key := st.query_params.pop(LEAD, ""):
        try:
            rooms().take(invited, key, SEAT.get())
            keys.LEAD_KEY.put(key)
        except GradebookError:
            keys.ROOM_PROBLEM.put("No open room has this link of its lead.")
            st.query_params.pop(PARAMETER, None)
            invited = ""
    if invited and invited != room:
        if admitted(invited, token):
            room = invited
        else:
            st.query_params.pop(PARAMETER, None)
    keys.ROOM.put(room)
    return room


def here() -> "Room | None":
    """This session's room as it stands; None for none, and for a closed one."""
    room = code()
    return rooms().read(room) if room else None


def leads() -> bool:
    """This browser leads the room that it is in."""
    room = here()
    return room is not None and room.seat(SEAT.get()).leads


def learning() -> bool:
    """This browser sits in a room that another one leads."""
    return here() is not None and not leads()


def normal(typed: str) -> str:
    """A code as people type it: any case, with spaces or hyphens."""
    return "".join(c for c in typed.upper() if c.isalnum())[:100]


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
    if rooms().heard(code, SEAT.get()):
        return True
    of_one, of_all = WRONG_CODES
    pause = max(of_one.wait(client()), of_all.wait(""))
    if _waits(pause, "Too many wrong codes."):
        return False
    if room:
        return True
    of_one.note(client())
    of_all.note("")
    keys.ROOM_PROBLEM.put(f"No room with the code {code or '(empty)'} is open.")
    return False


def _waits(pause: float, why: str) -> bool:
    if pause:
        keys.ROOM_PROBLEM.put(f"{why} Try again in {math.ceil(pause)} s.")
    return pause > 0


def enter(room: str) -> None:
    keys.ROOM.put(room)
    keys.LEAD_KEY.drop()
    st.query_params.pop(PARAMETER, None)


def act(what: str, *values: Any, **named: Any) -> None:
    """Does something in the session's room with this browser's seat: the method of
    Rooms with this name, with what comes after code and seat. The next run says what
    is refused, or that the room was closed meanwhile."""
    try:
        getattr(rooms(), what)(code(), SEAT.get(), *values, **named)
    except GradebookError as error:
        if here():
            keys.ROOM_PROBLEM.put(words.said(error))


def leave() -> None:
    """The session leaves the room; its own drafts are as it left them."""
    act("change_seat", heard=0)
    enter("")


def open_room() -> None:
    """Opens a room that this browser leads, or says why it cannot."""
    if _waits(OPENINGS.wait(client()), "Many rooms were opened from your address."):
        return
    OPENINGS.note(client())
    try:
        enter(rooms().open(SEAT.get()))
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.said(error))


def close() -> None:
    act("close")
    leave()
