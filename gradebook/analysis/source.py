"""Two functions as they stand in their files, line beside line."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """A line of source: its number in the file, 0 for a gap."""

    number: int
    text: str
    differs: bool


@dataclass(frozen=True)
class Listing:
    """A function's code without its docstring, from its own file."""

    file: str
    lines: tuple[Line, ...]


def first_sentence(function: Callable[..., object]) -> str:
    """The first sentence of the docstring, without the shape."""
    text = " ".join((function.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".") + "."


@lru_cache
def beside(
    correct: Callable[..., object], faulty: Callable[..., object]
) -> tuple[Listing, Listing]:
    """Both functions with the lines that differ marked, aligned by gaps."""
    codes = _code(correct), _code(faulty)
    a, b = ([text for _, text in code] for code in codes)
    left: list[Line] = []
    right: list[Line] = []
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        differs = tag != "equal"
        left += [Line(n, text, differs) for n, text in codes[0][i:j]]
        right += [Line(n, text, differs) for n, text in codes[1][k:m]]
        height = max(len(left), len(right))
        for side in (left, right):
            side += [Line(0, "", True)] * (height - len(side))
    return Listing(_file(correct), tuple(left)), Listing(_file(faulty), tuple(right))


def _code(function: Callable[..., object]) -> list[tuple[int, str]]:
    """Numbered lines of the function, the docstring left out."""
    lines, start = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(lines))
    body = ast.parse(text).body[0]
    assert isinstance(body, ast.FunctionDef)
    skip = range(0)
    if ast.get_docstring(body) is not None:
        doc = body.body[0]
        skip = range(doc.lineno, (doc.end_lineno or doc.lineno) + 1)
    return [
        (start + n - 1, line)
        for n, line in enumerate(text.splitlines(), 1)
        if n not in skip
    ]


def _file(function: Callable[..., object]) -> str:
    path = Path(inspect.getsourcefile(function) or "")
    return path.relative_to(Path(__file__).parents[2]).as_posix()
