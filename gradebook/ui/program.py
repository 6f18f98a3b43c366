"""The program of the board and of the page's keys: plain JavaScript modules and
style sheets.

Streamlit sends a component's own source with every answer. These components are a
few lines that call the program, which a browser keeps.
"""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from gradebook.ui.security import own_path

FOLDER = Path(__file__).parent / "board" / "program"
PROGRAM = {file.name: file for file in sorted(FOLDER.iterdir())}
VERSION = hashlib.sha256(
    b"".join(file.read_bytes() for file in PROGRAM.values())
).hexdigest()[:12]


def stub(module: str) -> str:
    """The source of the component that the program's module draws."""
    address = own_path(f"/board-program/{VERSION}/{module}.js")
    return PROGRAM["component.js"].read_text("utf-8").replace("/MODULE", address)


async def program(request: Request) -> Response:
    file = PROGRAM.get(request.path_params["name"])
    if file is None:
        return PlainTextResponse("not found", 404)
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(file, headers=kept)
