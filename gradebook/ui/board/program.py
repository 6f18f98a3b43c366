"""The program of the board and of the page's keys: plain JavaScript modules
and a style sheet, which a browser loads as one script.

Streamlit sends a component's own source with every answer. These components
are a few lines that call the program, so an answer holds little besides its
data.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gradebook.ui.security import own_path

FOLDER = Path(__file__).with_name("program")
PLACE, NAME = "board-program", "program.js"
STUB = "component.js"
IMPORT = re.compile(r'^import (\{[^}]*\}|\w+) from "\./(\w+)\.(js|css)"[^;\n]*;$', re.M)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.M)


@lru_cache
def program() -> str:
    """All modules as one, so that a page asks for one file and not, import by
    import, for 25. Each becomes a function that is called once, after those
    that it imports from, and returns what it exports."""
    parts: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.js")):
        if file.name != STUB:
            _join(file, parts)
    modules = ", ".join(n.replace(".", "_") for n in parts if n.endswith(".js"))
    return "".join(parts.values()) + f"export {{ {modules} }};\n"


def _join(file: Path, parts: dict[str, str]) -> None:
    """Adds the file to the parts, behind those that it imports from."""
    if file.name in parts:
        return
    text, name = file.read_text("utf-8"), file.name.replace(".", "_")
    if file.suffix == ".css":
        made = f"new CSSStyleSheet();\n{name}.replaceSync({json.dumps(text)})"
        parts[file.name] = f"const {name} = {made};\n"
        return
    for _, other, suffix in IMPORT.findall(text):
        _join(file.with_name(f"{other}.{suffix}"), parts)
    names = ", ".join(name for _, name in EXPORT.findall(text))
    body = EXPORT.sub(r"\1", IMPORT.sub(r"const \1 = \2_\3;", text))
    parts[file.name] = (
        f"const {name} = (() => {{\n{body}return {{ {names} }};\n}})();\n"
    )


@lru_cache
def address() -> str:
    """The path of the program. It holds a hash of it, so that a browser may
    keep what it has loaded."""
    version = hashlib.sha256(program().encode()).hexdigest()[:12]
    return own_path(f"/{PLACE}/{version}/{NAME}")


async def answer(request: Request) -> Response:
    """The program, which a browser asks for."""
    if request.path_params["name"] != NAME:
        return PlainTextResponse("not found", 404)
    return Response(
        program(),
        media_type="text/javascript",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


def stub(module: str) -> str:
    """The source of the component that the program's module draws."""
    source = (FOLDER / STUB).read_text("utf-8")
    return source.replace("/PROGRAM", address()).replace("MODULE", f"{module}_js")
