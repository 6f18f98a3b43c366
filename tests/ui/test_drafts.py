"""The states of a draft: what stands, and what stood before."""

import gradebook
from gradebook.cases.state import start
from gradebook.ui.parts import drafts
from gradebook.ui.parts.drafts import Draft

SCENARIO = gradebook.load("rejected_rows")


def edited(draft, reward):
    table = draft.table.copy()
    table.loc[0, "reward"] = reward
    draft.edit(cells=table)


def test_a_long_history_begins_with_the_scenario_as_it_came():
    draft = Draft(SCENARIO, [start(SCENARIO)])
    for number in range(drafts.HISTORY + 5):
        edited(draft, str(1000 + number))
    assert len(draft.states) == drafts.HISTORY
    draft.go(1)
    assert draft.table.loc[0, "reward"] == "1006"
    draft.go(0)
    assert not draft.edited


def test_an_edit_after_undo_takes_the_place_of_what_was_undone():
    draft = Draft(SCENARIO, [start(SCENARIO)])
    for reward in ("7", "8", "9"):
        edited(draft, reward)
    draft.go(1)
    edited(draft, "5")
    rewards = [state.table.loc[0, "reward"] for state in draft.states]
    assert rewards == ["100", "7", "5"]


def test_states_of_other_rows_are_no_same_batch(tmp_path):
    """Though neither is edited, and both cases have one name."""
    path = tmp_path / "partial_groups.toml"
    text = (gradebook.cases.scenario.FOLDER / path.name).read_text("utf-8")
    assert text.count("reward = 100.0") == 1
    path.write_text(text.replace("reward = 100.0", "reward = 99.0"), "utf-8")
    mine, own = gradebook.load(path), gradebook.load("partial_groups")
    assert mine.name == own.name
    assert not start(mine).same_batch(start(own))
    assert start(own).same_batch(start(own))
