"""Which room this browser is in, as its lead or as a learner.

The database knows in which room each seat is, and the seat is a cookie that came with
the first page (`security`). So a typed address, a reload and a visit to Home keep the
room; "Leave" and "Close the room" end it. An address with a room is an invitation.

A browser that was in a room has another cookie. The database is opened only when such
a browser returns or someone opens or joins a room, because importing SQLAlchemy is an
eighth of a first visit.
"""

import hmac
import math
import os
import secrets
import time
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Lock
from typing import TYPE_CHECKING, Any

import streamlit as st

from gradebook.classroom.away import AWAY, Away
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.security import BEEN, ROOM, seat_of

if TYPE_CHECKING:
    from gradebook.classroom.room import Rooms
    from gradebook.classroom.store import Room

LEAD = "lead"
"""The parameter of the lead's own link, a key."""


class Slowdown:
    """Slows each client down: after `free` times each one doubles the wait before the
    next, up to 60 seconds. A client that stays away for ten minutes starts anew.

    60 seconds are short for a person who mistyped, and long for a machine: it tries
    1,440 codes a day. If 1,000 rooms are open, one code of 86,000 is right.
    """

    def __init__(self, free: int) -> None:
        self.free = free
        self._done: dict[str, tuple[int, float]] = {}
        self._lock = Lock()

    def wait(self, client: str) -> float:
        """Seconds until the client may go on; 0 for now."""
        count, last = self._done.get(client, (0, 0.0))
        pause = min(2.0 ** (count - self.free), 60.0)
        return max(0.0, last + pause - time.monotonic()) if count > self.free else 0.0

    def knows(self, client: str) -> bool:
        """It was noted in the last ten minutes."""
        last = self._done.get(client, (0, -math.inf))[1]
        return time.monotonic() - last <= 600.0

    def note(self, client: str) -> None:
        now = time.monotonic()
        with self._lock:
            done = {name: n for name, n in self._done.items() if now - n[1] <= 600.0}
            count = done.get(client, (0, 0.0))[0]
            self._done = done | {client: (count + 1, now)}


WRONG_CODES = Slowdown(free=5), Slowdown(free=200)
"""The wrong codes that each machine typed on this server, and all. 5 are more typing
errors than a person makes; 200 allow for classes that mistype at one time, and make a
crowd of machines as slow as one."""
OPENINGS = Slowdown(free=20)
"""The rooms that each machine opened on this server. 20 leads of a school may share its
address. In the two hours after which a full server deletes silent rooms (`room.IDLE`)
one machine opens fewer than 150 of 1,000."""
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
    return Rooms(url)


def code() -> str:
    """The code of this session's room, or ''. While the database is away, the code that
    is known; the next run asks again."""
    try:
        room = keys.ROOM.get()
        if room is None:
            room = rooms().room_of(SEAT.get()) if _has_been() else ""
        keys.ROOM.put(_invited() or room)
    except Away:
        pass
    return keys.ROOM.get() or ""


def _has_been() -> bool:
    return st.context.cookies.get(BEEN) == "1"


def _invited() -> str:
    """The code of the room to which the address invites, if this browser may enter it;
    '' for any other address. Raises Away, and leaves the address as it is."""
    invited, _, token = st.query_params.get(ROOM, "").partition(".")
    invited = normal(invited)
    if key := st.query_params.get(LEAD, ""):
        try:
            rooms().take(invited, key, SEAT.get())
            keys.LEAD_KEY.put(key)
            keys.LEAD_NOTES.put(True)
        except Away:
            raise
        except GradebookError:
            keys.ROOM_PROBLEM.put("No open room has this link of its lead.")
            st.query_params.pop(ROOM, None)
            invited = ""
        st.query_params.pop(LEAD, None)
    if invited and invited != keys.ROOM.get() and not admitted(invited, token):
        st.query_params.pop(ROOM, None)
        return ""
    return invited


def here() -> "Room | None":
    """This session's current room; None for none, for a closed one, and while the
    database is away."""
    room = code()
    return look(room) if room else None


def look(code: str) -> "Room | None":
    """The room; None for a closed one, and while the database is away."""
    try:
        return rooms().read(code)
    except Away:
        return None


def cut_off() -> bool:
    """This browser is in a room whose database is away, or may be in one."""
    room = keys.ROOM.get()
    asks = room or st.query_params.get(ROOM) or (room is None and _has_been())
    return bool(asks) and rooms().database.is_away


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
    """Who types a code: the address of the machine, of IPv6 the network of 64 bits that
    a provider gives to one customer."""
    typed = str(st.context.ip_address or "this machine")
    try:
        address = ip_address(typed.partition("%")[0])
    except ValueError:
        return typed
    if isinstance(address, IPv6Address) and not address.ipv4_mapped:
        return str(ip_network((address, 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


def admitted(code: str, token: str = "") -> bool:
    """Whether this browser may enter the room of the code. A wrong code is noted, and
    the next run says so; after too many wrong codes a client must wait. A browser that
    is in the room already never waits, nor does one with the token of the room's
    link."""
    room = rooms().read(code)
    if room and hmac.compare_digest(room.token.encode(), token.encode()):
        return True
    if rooms().heard(code, SEAT.get()):
        return True
    of_one, of_all = WRONG_CODES
    pause = of_one.wait(client())
    if of_one.knows(client()):  # a client without a wrong code does not wait for others
        pause = max(pause, of_all.wait(""))
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


def join(code: str) -> None:
    """Enters the room of a typed code, or says why not."""
    try:
        if admitted(code):
            enter(code)
    except Away:
        keys.ROOM_PROBLEM.put(AWAY)


def enter(room: str) -> None:
    keys.ROOM.put(room)
    keys.LEAD_KEY.drop()
    keys.LEAD_NOTES.drop()
    st.query_params.pop(ROOM, None)


def act(what: str, *values: Any, **named: Any) -> None:
    """As `carried_out`; a button's callback returns nothing."""
    carried_out(what, *values, **named)


def carried_out(what: str, *values: Any, **named: Any) -> bool:
    """Calls the method `what` of Rooms with the session's room, this browser's seat,
    and the further arguments. Returns whether it was carried out. If not, the next run
    shows the refusal, or that the room was closed meanwhile."""
    try:
        getattr(rooms(), what)(code(), SEAT.get(), *values, **named)
        return True
    except Away:
        keys.ROOM_PROBLEM.put(AWAY)
    except GradebookError as error:
        if here():
            keys.ROOM_PROBLEM.put(words.message_of(error))
    return False


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
        keys.ROOM_PROBLEM.put(words.message_of(error))


def own_link(code: str) -> None:
    """Makes the key in the lead's own link, or says why not."""
    try:
        keys.LEAD_KEY.put(rooms().new_key(code, SEAT.get()))
    except GradebookError as error:
        keys.ROOM_PROBLEM.put(words.message_of(error))


def close() -> None:
    act("close")
    leave()
