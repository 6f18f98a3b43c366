"""The program of the board and of the page's keys: plain JavaScript modules and
style sheets.

Streamlit sends a component's own source with every answer. These components are a
few lines that call the program, which a browser keeps.

A browser gets all modules in one file. As 35 files they were a chain of four imports: a
new learner's Home took 1.4 to 1.5 times as long as an empty app's page
(`tests/bench/page.py join`, 2026-11-28).
"""

import hashlib
import re
from mimetypes import guess_type
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gradebook.ui.security import own_path

FOLDER = Path(__file__).parent / "board" / "program"
COMPONENT = (FOLDER / "component.js").read_text("utf-8")
NO_MODULES = ("component", "types")
"""What Streamlit holds of a component, and types, which only an editor reads."""
IMPORT = re.compile(r'^import (\{.+?\}) from "\./(\w+)\.js";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.M)


def joined(folder: Path) -> str:
    """The folder's modules as one, which exports all of them as `modules`. Each is in a
    function that returns its exports, behind the modules that it imports.

    Raises ValueError if a line of import or export has another form than these.
    """
    parts = ["export const modules = {};\n"]

    def add(name: str, text: str) -> None:
        for _, other in IMPORT.findall(text):
            if other in waiting:
                add(other, waiting.pop(other))
        exports = ", ".join(EXPORT.findall(text))
        body = IMPORT.sub(r"const \1 = modules.\2;\n", EXPORT.sub("", text))
        if line := re.search(r"^(import|export)\b.*", body, re.M):
            raise ValueError(f"{name}.js: {line[0]}")
        parts.append(f"modules.{name} = await (async () => {{\n{body}")
        parts.append(f"return {{ {exports} }};\n}})();\n")

    waiting = {
        file.stem: file.read_text("utf-8")
        for file in sorted(folder.glob("*.js"))
        if file.stem not in NO_MODULES
    }
    while waiting:
        add(*waiting.popitem())
    return "".join(parts)


SHEETS = {file.name: file.read_bytes() for file in sorted(FOLDER.glob("*.css"))}
PROGRAM = {"program.js": joined(FOLDER).encode(), **SHEETS}
VERSION = hashlib.sha256(b"".join(PROGRAM.values())).hexdigest()[:12]


def stub(module: str) -> str:
    """The source of the component that the program's module draws."""
    address = own_path(f"/board-program/{VERSION}/program.js")
    return COMPONENT.replace("/PROGRAM", address).replace("MODULE", module)


async def program(request: Request) -> Response:
    name = request.path_params["name"]
    file = PROGRAM.get(name)
    if file is None:
        return PlainTextResponse("not found", 404)
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(file, headers=kept, media_type=guess_type(name)[0])
