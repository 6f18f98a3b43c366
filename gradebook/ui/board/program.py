"""The program of the board and of the page's keys: plain JavaScript modules
and a style sheet, served as files of the app.

Streamlit sends a component's own source with every answer. These components
are two lines that call the program, so an answer holds little besides its
data.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gradebook.ui.own_path import own_path

FOLDER = Path(__file__).with_name("program")
TYPES = {".js": "text/javascript", ".css": "text/css"}
PLACE = "board-program"


@lru_cache
def files() -> dict[str, bytes]:
    """Name -> content of the program's files."""
    found = (f for f in sorted(FOLDER.iterdir()) if f.suffix in TYPES)
    return {file.name: file.read_bytes() for file in found}


@lru_cache
def address() -> str:
    """The path of the program's files. It holds a hash of them, so that a
    browser may keep what it has loaded."""
    content = b"".join(files().values())
    version = hashlib.sha256(content).hexdigest()[:12]
    return own_path(f"/{PLACE}/{version}")


async def answer(request: Request) -> Response:
    """The file that a browser asks for."""
    return file(request.path_params["name"])


def file(name: str) -> Response:
    """A file of the program, from memory."""
    if name not in files():
        return PlainTextResponse("not found", 404)
    return Response(
        files()[name],
        media_type=TYPES[Path(name).suffix],
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


def stub(name: str) -> str:
    """The source of the component that the program's file `name` draws."""
    source = files()["component.js"].decode()
    return source.replace("/PROGRAM", f"{address()}/{name}")
