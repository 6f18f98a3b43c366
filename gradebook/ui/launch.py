"""Starts the app from an installed package, in any folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from gradebook.core.errors import GradebookError
from gradebook.core.project import PROJECT


def start_app(options: Sequence[str] = ()) -> int:
    """Runs `streamlit run app.py`. Streamlit reads the project's settings,
    which stand beside app.py.

    options  more of Streamlit's own options; they win over the project's

    Streamlit runs in this process, so that a signal that ends the process
    ends the server. Returns Streamlit's exit code. Raises
    GradebookError where Streamlit or Plotly is not installed.
    """
    for name in ("streamlit", "plotly"):
        if importlib.util.find_spec(name) is None:
            raise GradebookError(
                f"{name} is not installed: pip install 'gradebook[app]'"
            )
    from streamlit.web.cli import main

    app = str(PROJECT / "app.py")
    try:
        main(["run", app, *options], prog_name="streamlit")
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
