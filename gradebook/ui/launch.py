"""Starts the app from an installed package, in any folder."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradebook.core.errors import GradebookError
from gradebook.core.project import PROJECT


def start_app(options: Sequence[str] = ()) -> int:
    """Runs `streamlit run app.py` with the project's settings.

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
    command = ["run", app, *project_flags(), *options]
    try:
        main(command, prog_name="streamlit")
    except SystemExit as ended:
        return int(ended.code or 0)
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
