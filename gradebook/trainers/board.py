"""The page of the app that shows a batch beside both engines."""

from __future__ import annotations

from dataclasses import replace

from gradebook.cases.link import encode, query_string
from gradebook.cases.sandbox import blank
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.core.settings import Settings
from gradebook.trainers.batches import Rewards

TYPED = ("baseline", "scale", "ddof", "eps", "lone_row", "spread_about")
"""The settings that a link carries."""


def sandbox(rewards: Rewards, settings: Settings, bug: str = "") -> str:
    """The sandbox's address with the batch, the settings and the bug."""
    first = start(blank())
    cells = dict(blank().rows[0])
    rows = [
        cells
        | {"prompt": chr(65 + at), "reward": r or 0.0, "scored": r is not None}
        | {"rollout": f"{chr(65 + at)}{n}"}
        for at, group in enumerate(rewards)
        for n, r in enumerate(group)
    ]
    typed = {name: str(settings[name]) for name in TYPED}
    typed["group_size"] = str(max(map(len, rewards)))
    state = replace(
        first,
        table=Table.of(tuple(rows)),
        typed={**first.typed, **typed},
        bugs=(bug,) if bug else first.bugs,
    )
    return "sandbox?" + query_string(encode(state, covered=False))
