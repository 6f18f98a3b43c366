"""A TOML file as keys and values, and as a part of a scenario."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from gradebook.cases.schema import read
from gradebook.core.errors import GradebookError

T = TypeVar("T")

LARGEST_FILE = 1_000_000
"""Bytes of a file, at most."""


def read_toml(path: Path) -> dict[str, Any]:
    """The file's keys and values, as TOML reads them. Raises GradebookError
    where it cannot be read, is too large or is no TOML."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise GradebookError(expected=f"at most {LARGEST_FILE} bytes", found="more")
        return tomllib.loads(content.decode())
    except OSError as error:
        reason = error.strerror or str(error)
        raise GradebookError(
            expected="a file that can be read", found=reason.lower()
        ) from None
    except GradebookError:
        raise
    except (ValueError, RecursionError) as error:
        raise GradebookError(expected="TOML in UTF-8", found=str(error)) from None


def read_part(part: type[T], path: Path, **others: Any) -> T:
    """The file as a part; `others` are fields that no file has. Raises
    GradebookError with file, key and row."""
    try:
        return read_document(part, read_toml(path), **others)
    except GradebookError as error:
        raise error.inside(str(path)) from error.__cause__


def read_document(part: type[T], document: dict[str, Any], **others: Any) -> T:
    """The keys and values of a file as a part. Raises GradebookError."""
    for key in others:
        if key in document:
            raise GradebookError("Unexpected keyword argument", key=key)
    return read(part, document | others)
