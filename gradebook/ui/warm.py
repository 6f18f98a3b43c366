"""Warm: what the first learner would wait for, done while the server starts."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator


@asynccontextmanager
async def warmed(_server: Any) -> AsyncIterator[dict[str, Any]]:
    """For the life of a server: the engine is imported beside its start."""
    threading.Thread(target=_warm, name="warm", daemon=True).start()
    yield {}


def _warm() -> None:
    """Imports torch and the pages, and computes each case once."""
    from gradebook.bugs import bug
    from gradebook.compare import compare
    from gradebook.figures import RowPicture, rows_figure
    from gradebook.scenario import load, names
    from gradebook.ui.pictures import panels
    from gradebook.ui.shell import freeze

    for name in names():
        scenario = load(name)
        found = compare(bug(scenario.bug), scenario.batch())
        prompts = [str(p) for p in found.batch.prompt.tolist()]
        kind = scenario.telltale.kind
        rows_figure(RowPicture(panels(found, kind), prompts)).to_dict()
    freeze()
