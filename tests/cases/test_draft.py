"""A draft: what stands, what stood before, and the browser's messages."""

import random
import sys

import pytest

import gradebook
from gradebook.cases import edits, link
from gradebook.cases.draft import ACTS, HISTORY, Draft
from gradebook.cases.scenario import Scenario
from gradebook.cases.state import start
from gradebook.cases.table import Row, Table

CASE = gradebook.load("rejected_rows")  # rewards 100, 1, 2


def edited(draft, reward):
    draft.edit(table=draft.table.with_cell(0, "reward", reward))


def send(draft, *edits, epoch=None):
    """A message with these edits, numbered on from the last one taken."""
    numbered = [{"n": draft.ack + 1 + at, **edit} for at, edit in enumerate(edits)]
    draft.apply({"epoch": epoch or draft.epoch, "edits": numbered})


def cell(value, **more):
    return {
        "do": "cell",
        "row": 0,
        "column": "reward",
        "value": value,
        **more,
    }


def rewards(draft):
    return [state.table["reward"][0] for state in draft.states]


# History


def test_a_long_history_begins_with_the_case_as_it_came():
    draft = Draft(CASE)
    for number in range(HISTORY + 5):
        edited(draft, str(1000 + number))
    assert len(draft.states) == HISTORY
    draft.go(1)
    assert draft.table["reward"][0] == "1006"
    draft.go(0)
    assert not draft.edited


def test_an_edit_after_undo_takes_the_place_of_what_was_undone():
    draft = Draft(CASE)
    for reward in ("7", "8", "9"):
        edited(draft, reward)
    draft.go(1)
    edited(draft, "5")
    assert rewards(draft) == ["100", "7", "5"]


def test_undo_and_redo_stop_at_the_ends():
    draft = Draft(CASE)
    edited(draft, "7")
    draft.redo()
    assert draft.at == 1
    draft.undo()
    draft.undo()
    assert draft.at == 0 and draft.state is draft.origin


def test_a_selection_is_no_step():
    draft = Draft(CASE)
    draft.select(2)
    draft.select(99)
    assert (draft.row, len(draft.states)) == (2, 1)


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


def large(chance):
    """128 rows of 64 tokens, with log-probabilities."""
    return Table.of(
        [
            {
                "prompt": f"prompt {row // 8}",
                "reward": chance.random(),
                "mask": [chance.random() < 0.7 for _ in range(64)],
                "logp": [-chance.random() for _ in range(64)],
                "ref_logp": [-chance.random() for _ in range(64)],
            }
            for row in range(128)
        ]
    )


def bytes_of(thing, seen=None):
    """Bytes of everything that a list of states holds, each object once,
    save the case itself."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, Scenario):
        return 0
    seen.add(id(thing))
    parts = list(thing) if isinstance(thing, (list, tuple)) else []
    if isinstance(thing, dict):
        parts = [*thing, *thing.values()]
    elif isinstance(thing, Row):
        parts = [thing.cells, thing.values]
    elif hasattr(thing, "__dict__"):
        parts = [vars(thing)]
    own = sys.getsizeof(thing)
    return own + sum(bytes_of(part, seen) for part in parts)


def one_cell(draft, chance):
    row = chance.randrange(128)
    name = chance.choice(["reward", "logp", "t1", "t64"])
    cell = not draft.table[name][row]
    if name == "reward":
        cell = repr(chance.random())
    if name == "logp":
        cell = " ".join(f"{-chance.random():.6f}" for _ in range(64))
    draft.do(edits.set_cell, row, name, cell)


def every_reward(draft, chance):
    block = "\n".join(repr(chance.random()) for _ in range(128))
    draft.do(edits.paste, 0, "reward", block)


def every_cell(draft, chance):
    draft.do(edits.set_width, 64 + len(draft.states) % 3)


@pytest.mark.parametrize(
    "edit, times, least",
    [(one_cell, 200, 200), (every_reward, 200, 200), (every_cell, 20, 4)],
)
def test_the_undo_steps_of_a_large_batch_take_less_than_10_mb(edit, times, least):
    """Only where each edit replaces every cell of 128 rows by 64 tokens are
    there fewer steps than 200."""
    chance = random.Random(0)
    draft = Draft(gradebook.load("zero_std_kl"))
    draft.edit(table=large(chance))
    for _ in range(times):
        edit(draft, chance)
    assert draft.notes == [] and least <= len(draft.states) <= HISTORY
    assert draft.states[0] is draft.origin
    assert 1_000_000 < bytes_of(draft.states[1:]) < 10_000_000


# Messages


def test_an_edit_is_taken_once():
    draft = Draft(CASE)
    message = {"epoch": draft.epoch, "edits": [{"n": 1, **cell("7")}]}
    draft.apply(message)
    assert (draft.ack, rewards(draft)) == (1, ["100", "7"])
    draft.undo()
    draft.apply(message)  # sent again after a time-out
    assert draft.at == 0
    late = {"epoch": draft.epoch, "edits": [{"n": 0, **cell("8")}]}
    draft.apply(late)
    assert rewards(draft) == ["100", "7"]


def test_numbers_may_have_gaps():
    draft = Draft(CASE)
    given = [{"n": 3, **cell("7")}, {"n": 9, **cell("8")}]
    draft.apply({"epoch": draft.epoch, "edits": given})
    assert (draft.ack, rewards(draft)) == (9, ["100", "7", "8"])


def test_a_message_about_another_draft_changes_nothing():
    draft, other = Draft(CASE), Draft(CASE)
    assert draft.epoch != other.epoch
    send(draft, cell("7"), epoch=other.epoch)
    assert (draft.ack, rewards(draft)) == (0, ["100"])


def test_a_drag_is_one_step():
    draft = Draft(CASE)
    edited(draft, "1")
    for value in ("2", "3", "4"):
        send(draft, cell(value, gesture=1))
    assert draft.table["reward"][0] == "4"
    send(draft, cell("5", gesture=1))
    assert rewards(draft) == ["100", "1", "5"]
    send(draft, cell("6", gesture=2), cell("7", gesture=2))
    assert rewards(draft) == ["100", "1", "5", "7"]
    draft.undo()
    draft.undo()
    assert draft.table["reward"][0] == "1"


def test_a_drag_back_to_where_it_began_is_no_step():
    draft = Draft(CASE)
    send(draft, cell("7", gesture=1), cell("100", gesture=1))
    assert rewards(draft) == ["100"]
    send(draft, cell("8", gesture=1))
    assert rewards(draft) == ["100", "8"]


def test_an_undo_ends_a_drag():
    draft = Draft(CASE)
    send(draft, cell("7", gesture=1), {"do": "undo"})
    assert draft.at == 0
    send(draft, cell("9", gesture=1))
    assert rewards(draft) == ["100", "9"]
    send(draft, cell("10", gesture=1))
    assert rewards(draft) == ["100", "10"]


def test_a_drag_after_an_undo_drops_what_was_undone():
    draft = Draft(CASE)
    for value in ("7", "8"):
        send(draft, cell(value))
    send(draft, {"do": "undo"}, cell("9", gesture=4))
    assert rewards(draft) == ["100", "7", "9"]


def test_every_act_does_what_it_says():
    draft = Draft(CASE)
    none = {"do": "mask", "row": 0, "start": 0, "stop": 2, "value": False}
    send(draft, none)
    assert draft.table["mask"][0][:2] == (False, False)
    send(draft, {"do": "add", "row": 0})
    assert draft.table["reward"] == ("100", "100", "1", "2")
    assert draft.row == 1
    send(draft, {"do": "remove", "row": 0})
    assert draft.table["reward"] == ("100", "1", "2") and draft.row == 0
    send(draft, {"do": "move", "row": 0, "to": 2})
    assert draft.table["reward"] == ("1", "2", "100") and draft.row == 2
    paste = {"do": "paste", "row": 2, "column": "reward", "text": "5\n6"}
    send(draft, paste)
    assert draft.table["reward"] == ("1", "2", "5", "6")
    send(draft, {"do": "replace", "text": "8\n9"})
    assert draft.table["reward"] == ("8", "9") and draft.row == 1
    send(draft, {"do": "width", "tokens": 5})
    assert draft.table.width == 5
    send(draft, {"do": "select", "row": 0})
    assert draft.row == 0
    steps = len(draft.states)
    send(draft, {"do": "reset"})
    assert not draft.edited and len(draft.states) == steps + 1
    send(draft, {"do": "undo"})
    assert draft.table["reward"] == ("8", "9")
    send(draft, {"do": "redo"}, {"do": "go", "at": 1})
    assert draft.at == 1 and draft.ack == 12


BAD = {
    "unknown act": {"do": "explode"},
    "no act": {"row": 1},
    "act of no text": {"do": ["cell"]},
    "row missing": {"do": "add"},
    "row of another type": {"do": "remove", "row": "0"},
    "row true": {"do": "remove", "row": True},
    "row outside": {"do": "remove", "row": 99},
    "row negative": {"do": "remove", "row": -1},
    "column unknown": {**cell("1"), "column": "colour"},
    "column mask": {**cell("1"), "column": "mask"},
    "value of no cell": {**cell("1"), "value": 7},
    "tokens outside": {
        "do": "mask",
        "row": 0,
        "start": 1,
        "stop": 99,
        "value": True,
    },
    "tokens too many": {"do": "width", "tokens": 10**9},
    "tokens none": {"do": "width", "tokens": 0},
    "paste too wide": {
        "do": "paste",
        "row": 0,
        "column": "reward",
        "text": "\t" * 99 + "1",
    },
    "paste too long": {
        "do": "paste",
        "row": 0,
        "column": "reward",
        "text": "1\n" * 2000,
    },
    "paste of nothing": {"do": "replace", "text": " \n"},
    "move outside": {"do": "move", "row": 0, "to": 3},
}


@pytest.mark.parametrize("name", BAD)
def test_an_edit_that_cannot_be_done_is_taken_and_named(name):
    draft = Draft(CASE)
    send(draft, BAD[name])
    assert draft.ack == 1 and draft.states == [draft.origin]
    (note,) = draft.notes
    assert "expected" in note and "found" in note
    send(draft, cell("7"))
    assert draft.notes == [] and rewards(draft) == ["100", "7"]


@pytest.mark.parametrize(
    "message",
    [
        *(None, "x", 7, [], {}, {"epoch": None}),
        {"edits": [{"n": 1, **cell("7")}]},
        {"epoch": "?", "edits": None},
        {"epoch": "?", "edits": [None, 7, {"do": "undo"}, {"n": "1"}]},
        {"epoch": "?", "edits": [{"n": True, **cell("7")}]},
    ],
)
def test_what_is_no_message_changes_nothing(message):
    draft = Draft(CASE)
    if isinstance(message, dict) and message.get("epoch") == "?":
        message = {**message, "epoch": draft.epoch}
    draft.apply(message)
    assert (draft.ack, draft.states) == (0, [draft.origin])


def test_bad_text_is_kept_and_named_and_can_be_mended():
    draft = Draft(CASE)
    for text in ("1e400", "1,5", "abc", ""):
        send(draft, cell(text))
        assert draft.table["reward"][0] == text
        (error,) = draft.state.problems()
        assert (error.key, error.row) == ("reward", 0)
    send(draft, cell("2"))
    assert draft.state.problems() == []
    assert draft.state.batch().reward.tolist() == [2, 1, 2]


def test_an_act_of_the_page_that_cannot_be_done_is_said():
    draft = Draft(CASE)
    draft.do(edits.set_width, 4)
    draft.do(edits.set_width, 0)
    assert draft.table.width == 4 and len(draft.states) == 2
    assert draft.notes == [
        "width: expected 1 to 256 tokens, in a table with a mask, found 0"
    ]


def anything(chance, rows, at):
    """A random edit, sometimes one that cannot be done."""
    act = chance.choice([*ACTS, *["cell"] * 6])
    row = chance.randrange(-1, rows + 2)
    return {
        "do": act,
        "row": row,
        "to": chance.randrange(rows + 1),
        "column": chance.choice(["reward", "prompt", "t1", "eos", "x"]),
        "value": chance.choice(["1", "1,5", "", "B", True, False]),
        "start": 0,
        "stop": chance.randrange(4),
        "text": chance.choice(["1\n2\n3", "B\t4", "", "x"]),
        "tokens": chance.randrange(1, 6),
        "at": chance.randrange(at + 2),
        **chance.choice([{}, {"gesture": chance.randrange(3)}]),
    }


@pytest.mark.parametrize("seed", range(40))
def test_a_browser_that_repeats_itself_ends_where_one_that_does_not(seed):
    """The same edits, once one a message, once in overlapping messages that
    come twice and late; and the link brings the same state back."""
    chance = random.Random(seed)
    once, again = Draft(CASE), Draft(CASE)
    sent = []
    for number in range(1, 41):
        edit = anything(chance, once.state.rows, len(once.states))
        sent.append({"n": number, **edit})
        once.apply({"epoch": once.epoch, "edits": sent[-1:]})
    at = 0
    while at < len(sent):
        at = min(at + chance.randrange(1, 5), len(sent))
        first = chance.randrange(at)
        lead = sent[min(first, again.ack) : at]
        for message in (lead, lead, sent[:first]):
            again.apply({"epoch": again.epoch, "edits": message})
    assert again.ack == once.ack == 40
    assert again.at == once.at
    assert len(again.states) == len(once.states)
    for mine, other in zip(again.states, once.states):
        assert mine.same(other)
    back = link.decode(link.encode(once.state, False))
    assert back.problems == () and back.state.same(once.state)
