"""Where the project's own files stand: app.py, pages/ and scenarios/.

In a checkout they stand beside the package, in an installed wheel inside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "_project"
"""The wheel's copy; pyproject.toml says what goes into it."""

PROJECT = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent
"""The folder that has app.py, pages/, scenarios/ and .streamlit/."""
