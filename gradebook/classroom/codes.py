"""Codes that people read out and type, of rooms and of games."""

from __future__ import annotations

import secrets

ALPHABET = "CDFGHJKMNPQRTVWX34679"
"""No two of these look alike, and they spell no words."""
LENGTH = 6
"""Characters of a room's code: 21 to the power of 6 is 86 million codes."""


def new_code(length: int = LENGTH) -> str:
    """A code that nobody can guess from another."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def normal(typed: str) -> str:
    """A code as people type it: any case, with spaces or hyphens."""
    return "".join(c for c in typed.upper() if c.isalnum())[:100]
