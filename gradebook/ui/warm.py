"""Warm: what the first learner would wait for, done while the server starts."""

from __future__ import annotations

from gradebook.bugs import bug
from gradebook.compare import compare
from gradebook.figures import RowPicture, rows_figure
from gradebook.scenario import load, names
from gradebook.ui.pictures import panels
from gradebook.ui.shell import freeze


def warm() -> None:
    """Computes and draws one case: the first time costs most."""
    scenario = load(names()[0])
    found = compare(bug(scenario.bug), scenario.batch())
    prompts = [str(p) for p in found.batch.prompt.tolist()]
    kind = scenario.telltale.kind
    rows_figure(RowPicture(panels(found, kind), prompts))
    freeze()
