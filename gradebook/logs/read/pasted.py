"""A pasted table as a log."""

from __future__ import annotations

from gradebook.core.errors import GradebookError
from gradebook.logs.read.sources import Source

LONGEST = 20_000_000
"""Characters of a pasted table."""


def pasted(text: str) -> Source:
    """Text copied from a spreadsheet, a CSV file or JSON Lines, as a source
    for `check_log`. Raises GradebookError for no text, or too much."""
    text = text.strip("\ufeff\r\n ")
    if not text:
        raise GradebookError(expected="a table with a header", found="nothing")
    if len(text) > LONGEST:
        raise GradebookError(
            expected=f"at most {LONGEST:,} characters", found=f"{len(text):,}"
        )
    ending = "jsonl" if text.startswith("{") else "csv"
    data = text.encode("utf-8", errors="replace")
    return Source(f"pasted.{ending}", data=data)
