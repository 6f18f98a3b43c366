"""What everything else is built on, and the folder of the project's own files."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "_project"
"""The wheel's part of PROJECT; pyproject.toml says what goes into it."""
PROJECT = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent
"""The folder that has app.py, pages/, scenarios/ and .streamlit/."""
