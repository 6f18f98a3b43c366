"""Links that were written down long ago open as they did."""

import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from gradebook.cases import link
from gradebook.cases.link import RENAMED

FROZEN = json.loads((Path(__file__).parent / "links.json").read_text("utf-8"))


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda one: one["title"])
def test_an_old_link_opens_to_the_state_it_always_did(frozen):
    """The links and states were written down before cells and settings were
    kept as they are now."""
    query = dict(parse_qsl(frozen["link"], keep_blank_values=True))
    back = link.decode(query)
    state, kept = back.state, frozen["state"]
    assert list(back.problems) == frozen["problems"]
    assert back.covered is kept["covered"]
    assert state.scenario.name == kept["scenario"]
    assert list(state.bugs) == kept["bugs"]
    assert state.row == kept["row"]
    assert state.typed["evaluation"] == kept["evaluation"]
    for name, (setting, values) in RENAMED.items():
        was = str(kept[name]).removeprefix("twice, ").replace(" ", "-")
        if isinstance(kept[name], bool):
            was = str(int(kept[name]))
        assert state.typed[setting] == values.get(was, kept[name]), name
    for name, typed in kept["typed"].items():
        assert state.typed[name] == typed, name
    cells = {name: list(state.table[name]) for name in state.table.headers}
    assert cells == kept["cells"]
