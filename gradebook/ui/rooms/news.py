"""News of a room: a part of a page is drawn again when the room changes.

The browser asks a small address of this server, and tells the page only when
there is something new. So thirty waiting learners cost the server little.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from gradebook.ui.own_path import own_path
from gradebook.ui.rooms import seat

PROGRAM = Path(__file__).with_name("news.js").read_text("utf-8")
_mount = st.components.v2.component("gradebook_room_news", js=PROGRAM)


def news(room: str, name: str) -> None:
    """Draws the fragment that calls this again whenever the room changes.

    name  tells the fragments of one page apart
    """
    _mount(
        key=f"room-news-{name}",
        data={
            "asked": own_path(f"/room-news/{quote(room)}"),
            "news": seat.rooms().news(room),
        },
        height=1,
        on_news_change=lambda: None,
    )


async def answer(request: Request) -> PlainTextResponse:
    """What the browser asks: a text that changes with the room."""
    room = request.path_params["room"]
    own = request.cookies.get(seat.SEAT_COOKIE, "")
    return PlainTextResponse(seat.rooms().news(room, own))
