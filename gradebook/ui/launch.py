"""Starts the app from an installed package, in any folder."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from gradebook.core.errors import GradebookError
from gradebook.core.project import PROJECT


def start_app(options: Sequence[str] = ()) -> NoReturn:
    """Becomes `streamlit run app.py`, so that a signal that ends the process ends
    the server. Streamlit reads the project's settings, which stand beside app.py.

    options  more of Streamlit's own options; they win over the project's

    Raises GradebookError where Streamlit or Plotly is not installed.
    """
    for name in ("streamlit", "plotly"):
        if importlib.util.find_spec(name) is None:
            raise GradebookError(
                f"{name} is not installed: pip install 'gradebook[app]'"
            )
    run = [sys.executable, "-m", "streamlit", "run", str(PROJECT / "app.py")]
    os.execv(run[0], [*run, *options])
