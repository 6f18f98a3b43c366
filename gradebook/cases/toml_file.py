"""A TOML file as keys and values, and as a part of a scenario."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from gradebook.cases.schema import check_keys, read
from gradebook.core.errors import GradebookError

T = TypeVar("T")

LARGEST_FILE = 1_000_000
"""Bytes of a file, at most."""


def read_toml(path: Path) -> dict[str, Any]:
    """The file's keys and values, as TOML reads them."""
    try:
        return tomllib.loads(_content(path).decode())
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
        raise GradebookError(expected="TOML", found=_lowered(str(error))) from None


def read_part(part: type[T], path: Path, **given: Any) -> T:
    """The file as a part; `given` are fields that no file has. Raises
    GradebookError with file, key, row, expected and found."""
    try:
        document = read_toml(path)
        keys = [field.name for field in fields(part)]  # type: ignore[arg-type]
        check_keys(document, [key for key in keys if key not in given])
        return read(part, document | given)
    except GradebookError as error:
        raise error.inside(str(path)) from error.__cause__


def _content(path: Path) -> bytes:
    """The file's bytes; of what is too large, no more than the limit is
    read."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise GradebookError(
            expected="a file that can be read",
            found=_lowered(error.strerror or str(error)),
        ) from None
    except ValueError as error:
        raise GradebookError(expected="a path", found=_lowered(str(error))) from None
    if len(content) > LARGEST_FILE:
        raise GradebookError(expected=f"at most {LARGEST_FILE} bytes", found="more")
    return content


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
