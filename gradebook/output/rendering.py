"""The templates of what a reader takes home: handout, report, pytest file, scenario
file. Values in HTML and SVG are escaped automatically."""

import json
import re
import textwrap
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from gradebook.core.errors import refuse
from gradebook.core.formatting import minus


@cache
def environment() -> Environment:
    """The templates. A name that a template uses must be passed to it."""
    templates = Environment(
        loader=PackageLoader("gradebook.output"),
        autoescape=select_autoescape(["html.jinja", "svg.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {
        "px": lambda value: f"{value:.1f}",
        "rich": rich,
        "toml": toml,
        "wrapped": lambda text, width: textwrap.wrap(text, int(width)),
    }
    return templates


def rendered(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def rich(text: object) -> Markup:
    """Text for HTML: spaces folded, true minus signs, and text between backticks as
    code."""
    escaped = str(escape(minus(" ".join(str(text).split()))))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))


def toml(value: Any) -> str:
    """A value as TOML writes it: as JSON does, but with escapes for what cannot be
    seen. Raises GradebookError for what is no Unicode text."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refuse("Unicode characters", ascii(value)[:60], "text") from None
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in text)
