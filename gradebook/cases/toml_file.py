"""A TOML file as keys and values, read within bounds.

What is too large, too deep or of too many parts is refused before it costs
time or memory.
"""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from gradebook.cases.schema import join, read
from gradebook.core.errors import GradebookError, shown

T = TypeVar("T")

LARGEST_FILE = 1_000_000
MOST_DOTS = 100


def read_toml(path: Path) -> dict[str, Any]:
    """The file's keys and values, as TOML reads them."""
    try:
        text = _content(path).decode()
        _refuse_long_keys(text)
        found = tomllib.loads(text)
        _refuse_huge(found, "")
        return found
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise GradebookError(
            expected="UTF-8 text",
            found=f"byte 0x{byte:02x} at offset {error.start}",
        ) from None
    except RecursionError:
        raise GradebookError(
            expected="TOML", found="values nested too deep to read"
        ) from None
    except GradebookError:
        raise
    except ValueError as error:
        raise GradebookError(
            expected="TOML", found=_lowered(str(error))
        ) from None


def read_part(part: type[T], path: Path) -> T:
    """The file as a part. Raises GradebookError with file, key, row,
    expected and found."""
    try:
        return read(part, read_toml(path))
    except GradebookError as error:
        raise error.inside(str(path)) from error.__cause__


def _content(path: Path) -> bytes:
    """The file's bytes; what is too large is refused unread."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            folder = stat.S_ISDIR(status.st_mode)
            raise GradebookError(
                expected="a file",
                found="a directory" if folder else "a device or a pipe",
            )
        _check_size(status.st_size)
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        _check_size(len(content))
        return content
    except GradebookError:
        raise
    except OSError as error:
        raise GradebookError(
            expected="a file that can be read",
            found=_lowered(error.strerror or str(error)),
        ) from None
    except ValueError as error:
        raise GradebookError(
            expected="a path", found=_lowered(str(error))
        ) from None


def _check_size(size: int) -> None:
    if size > LARGEST_FILE:
        raise GradebookError(
            expected=f"at most {LARGEST_FILE} bytes", found=str(size)
        )


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _refuse_long_keys(text: str) -> None:
    """Raises at a dotted key of very many parts, over which tomllib takes
    minutes: its time grows with the square."""
    for piece in re.split(r"[=\n,{}\[\]]", text):
        if piece.count(".") > MOST_DOTS:
            raise GradebookError(
                expected=f"at most {MOST_DOTS} dots in one piece of TOML",
                found=f"{piece.count('.')} in {shown(piece)}",
            )


def _refuse_huge(value: Any, key: str) -> None:
    """Raises at the first whole number that 64 bits cannot hold."""
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_huge(item, join(key, name))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _refuse_huge(item, f"{key}[{place}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        in_row = re.fullmatch(r"(?:rows|(.+\.rows))\[(\d+)\]\.(.+)", key)
        if in_row:
            key = join(in_row[1] or "", in_row[3])
        raise GradebookError(
            key=key,
            row=int(in_row[2]) if in_row else None,
            expected="a whole number of at most 64 bits",
            found=f"one of {value.bit_length()} bits",
        )
