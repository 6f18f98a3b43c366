"""The program of the board and of the page's keys: plain JavaScript modules and
style sheets.

Streamlit sends a component's own source with every answer. These components are a
few lines that call the program, which a browser keeps.
"""

import hashlib
from mimetypes import guess_type
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gradebook.ui.security import own_path

FOLDER = Path(__file__).parent / "board" / "program"
PROGRAM = {file.name: file.read_bytes() for file in sorted(FOLDER.iterdir())}
VERSION = hashlib.sha256(b"".join(PROGRAM.values())).hexdigest()[:12]


def stub(module: str) -> str:
    """The source of the component that the program's module draws."""
    address = own_path(f"/board-program/{VERSION}/{module}.js")
    return PROGRAM["component.js"].decode().replace("/MODULE", address)


async def program(request: Request) -> Response:
    name = request.path_params["name"]
    file = PROGRAM.get(name)
    if file is None:
        return PlainTextResponse("not found", 404)
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    # From memory: a new learner's browser asks for all these files at once, and each
    # read would change threads three times.
    return Response(file, headers=kept, media_type=guess_type(name)[0])
