"""Starts the app from an installed package, in any folder."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradebook.core.errors import GradebookError
from gradebook.core.project import PROJECT


def start_app(options: Sequence[str] = ()) -> int:
    """Runs `streamlit run app.py` with the project's settings.

    options  more of Streamlit's own options; they win over the project's

    Returns Streamlit's exit code. Raises GradebookError where Streamlit or
    Plotly is not installed.
    """
    for name in ("streamlit", "plotly"):
        if importlib.util.find_spec(name) is None:
            raise GradebookError(
                f"{name} is not installed: pip install 'gradebook[app]'"
            )
    app = str(PROJECT / "app.py")
    flags = [*project_flags(), *options]
    command = [sys.executable, "-m", "streamlit", "run", app, *flags]
    try:
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        return 0


def project_flags() -> list[str]:
    """.streamlit/config.toml as options of Streamlit's command line.

    Streamlit itself reads that file only in the folder it is started in.
    """
    text = (PROJECT / ".streamlit" / "config.toml").read_text("utf-8")
    return [
        f"--{name}={str(value).lower() if value in (True, False) else value}"
        for name, value in _flat(tomllib.loads(text))
    ]


def _flat(
    table: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
