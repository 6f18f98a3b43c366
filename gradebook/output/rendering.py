"""The templates of what a reader takes home: handout, report, pytest file,
scenario file.

They stand in the folder `templates` beside this file. What goes into an HTML
or SVG template is escaped by itself.
"""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import (
    Environment,
    FileSystemLoader,
    StrictUndefined,
    select_autoescape,
)
from markupsafe import Markup, escape

from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus

FOLDER = Path(__file__).parent / "templates"


def rendered(template: str, **values: Any) -> str:
    """The template of that name, filled in. A name that the template uses
    and `values` lacks is an error."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=select_autoescape(["html.jinja", "svg.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "px": lambda value: f"{value:.1f}",
        "rich": rich,
        "toml": toml,
        "wrapped": lambda text, width: textwrap.wrap(text, int(width)),
    }
    return environment


def rich(text: object) -> Markup:
    """Text for HTML: spaces folded, true minus signs, and what stands
    between backticks as code."""
    parts = minus(" ".join(str(text).split())).split("`")
    if len(parts) % 2 == 0:
        return Markup(escape("`".join(parts)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def toml(value: Any) -> str:
    """A value as TOML writes it. Raises GradebookError for what is no
    Unicode text."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise GradebookError(
            key="text", expected="Unicode characters", found=ascii(value)[:60]
        ) from None
    return '"' + "".join(map(_toml_letter, value)) + '"'


def _toml_letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    return letter if letter.isprintable() else f"\\U{ord(letter):08X}"
