"""A draft: what stands, what stood before, and the browser's messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

import gradebook
from gradebook.cases import edits, link
from gradebook.cases.edits import ACTS, HISTORY, Draft
from gradebook.cases.scenario import case, names, starts
from gradebook.cases.table import Table

CASE = gradebook.load("rejected_rows")  # rewards 100, 1, 2


def edited(draft, reward):
    draft.edit(table=draft.table.with_cell(0, "reward", reward))


def send(draft, *edits, epoch=None):
    """A message with these edits, numbered on from the last one taken."""
    numbered = [{"n": draft.ack + 1 + at, **edit} for at, edit in enumerate(edits)]
    draft.apply({"epoch": epoch or draft.epoch, "edits": numbered})


def cell(value, **more):
    return {"do": "cell", "row": 0, "column": "reward", "value": value, **more}


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


def test_a_large_batch_has_fewer_steps_of_undo():
    """1000 rows of 256 tokens are 258,000 cells: the case, and two states."""
    draft, row = Draft(CASE), {"prompt": "a", "reward": 1, "mask": [True] * 256}
    draft.edit(table=Table.of([row] * 1000))
    for number in range(9):
        edited(draft, str(2 + number))
    assert rewards(draft) == ["100", "9", "10"] and draft.at == 2


def test_undo_and_redo_stop_at_the_ends_and_an_edit_takes_the_place_of_the_undone():
    draft = Draft(CASE)
    for reward in ("7", "8", "9"):
        edited(draft, reward)
    draft.redo()
    assert draft.at == 3
    for _ in range(5):
        draft.undo()
    assert draft.at == 0 and draft.state is draft.origin
    draft.go(1)
    edited(draft, "5")
    assert rewards(draft) == ["100", "7", "5"]


def test_a_selection_is_no_step():
    draft = Draft(CASE)
    draft.select(99)
    assert (draft.row, len(draft.states)) == (2, 1)


# Gestures


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


def test_a_drag_back_to_where_it_began_is_no_step_and_an_undo_ends_one():
    draft = Draft(CASE)
    send(draft, cell("7", gesture=1), cell("100", gesture=1))
    assert rewards(draft) == ["100"]
    send(draft, cell("8", gesture=1))
    assert rewards(draft) == ["100", "8"]
    send(draft, {"do": "undo"}, cell("9", gesture=1))
    assert rewards(draft) == ["100", "9"]


# Messages


def test_an_edit_is_taken_once():
    draft = Draft(CASE)
    message = {"epoch": draft.epoch, "edits": [{"n": 3, **cell("7")}]}
    draft.apply(message)
    assert (draft.ack, rewards(draft)) == (3, ["100", "7"])
    draft.undo()
    draft.apply(message)  # sent again after a time-out
    assert draft.at == 0


def test_a_message_about_another_draft_changes_nothing():
    draft, other = Draft(CASE), Draft(CASE)
    assert draft.epoch != other.epoch
    send(draft, cell("7"), epoch=other.epoch)
    assert (draft.ack, rewards(draft)) == (0, ["100"])


def test_every_act_does_what_it_says():
    draft = Draft(CASE)
    send(draft, {"do": "mask", "row": 0, "start": 0, "stop": 2, "value": False})
    assert draft.table["mask"][0][:2] == (False, False)
    for edit, rewards, row in (
        ({"do": "add", "row": 0}, ("100", "100", "1", "2"), 1),
        ({"do": "remove", "row": 0}, ("100", "1", "2"), 0),
        ({"do": "move", "row": 0, "to": 2}, ("1", "2", "100"), 2),
        (
            {"do": "paste", "row": 2, "column": "reward", "text": "5\n6"},
            ("1", "2", "5", "6"),
            2,
        ),
        ({"do": "replace", "text": "8\n9"}, ("8", "9"), 1),
        ({"do": "select", "row": 0}, ("8", "9"), 0),
        ({"do": "reset"}, ("100", "1", "2"), CASE.focus),
        ({"do": "undo"}, ("8", "9"), 0),
        ({"do": "redo"}, ("100", "1", "2"), CASE.focus),
        ({"do": "go", "at": 0}, ("100", "1", "2"), CASE.focus),
    ):
        send(draft, edit)
        assert (draft.table["reward"], draft.row) == (rewards, row), edit
    assert not draft.notes


# What is refused

BAD = {
    "unknown act": {"do": "explode"},
    "row missing": {"do": "add"},
    "row of another type": {"do": "remove", "row": "0"},
    "value of no cell": {**cell("1"), "value": 7},
    "number": cell("1,5"),
    "paste": {"do": "paste", "row": 0, "column": "reward", "text": "7\nx"},
}


@pytest.mark.parametrize("name", BAD)
def test_an_edit_that_cannot_be_done_is_named_and_changes_nothing(name):
    draft = Draft(CASE)
    send(draft, BAD[name])
    assert draft.ack == 1 and draft.states == [draft.origin]
    assert len(draft.notes) == 1
    send(draft, cell("7"))
    assert draft.notes == [] and rewards(draft) == ["100", "7"]


@pytest.mark.parametrize(
    "message",
    [
        *(None, "x", 7, [], {}, {"epoch": None}),
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


def test_text_that_cannot_be_read_is_kept_beside_the_value_that_holds():
    draft = Draft(CASE)
    send(draft, cell("7"), cell("7,", gesture=1), cell("7,5", gesture=1))
    said = "reward, row 0: expected a number with a decimal point, found '7,5'"
    assert draft.refused == {"0 reward": ("7,5", said)} and draft.notes == [said]
    assert rewards(draft) == ["100", "7"] and draft.at == 1
    send(draft, {**cell("3"), "row": 1})
    assert list(draft.refused) == ["0 reward"]  # another cell changes
    send(draft, cell("7.5", gesture=1))
    assert draft.refused == {} and draft.table["reward"][0] == "7.5"
    draft.do(edits.set_setting, "eps", "-1")
    assert draft.refused["eps"][0] == "-1" and draft.state.settings().eps == 1e-6


def test_text_that_was_refused_goes_where_rows_move():
    draft = Draft(CASE)
    for act in ({"do": "add", "row": 0}, {"do": "undo"}, {"do": "reset"}):
        send(draft, cell("x"))
        assert draft.refused
        send(draft, act)
        assert not draft.refused


def test_cells_that_make_no_batch_together_are_refused():
    """Of 2 transitions, none can leave 3."""
    draft = Draft(gradebook.load("double_normalization"))
    assert draft.table["steps"][0] == "2"
    send(draft, {**cell("3"), "column": "kept_steps"})
    assert draft.states == [draft.origin]
    assert draft.refused["0 kept_steps"][0] == "3"


# Whatever a browser sends

ROWS = some.integers(-1, 4)
ANY_EDIT = some.fixed_dictionaries(
    {
        "do": some.sampled_from([*ACTS, *["cell"] * 6]),
        "row": ROWS,
        "to": ROWS,
        "column": some.sampled_from(["reward", "prompt", "t1", "eos", "logp", "x"]),
        "value": some.sampled_from(["1", "-2.5e-3", "1,5", "", True, False])
        | some.text(max_size=5),
        "start": some.just(0),
        "stop": ROWS,
        "text": some.sampled_from(["1\n2\n3", "B\t4", "", "x"]),
        "at": some.integers(0, 9),
    },
    optional={"gesture": some.integers(0, 2)},
)


@given(some.sampled_from([*names(), *starts()]), some.lists(ANY_EDIT, max_size=40))
def test_every_state_is_a_valid_batch_and_its_link_brings_it_back(name, sent):
    draft = Draft(case(name))
    for edit in sent:
        send(draft, edit)
        draft.state.batch()
    back = link.decode(link.encode(draft.state, False), default=name)
    assert back.problems == () and back.state.same(draft.state)


@given(some.data(), some.lists(ANY_EDIT, min_size=1, max_size=40))
def test_a_browser_that_repeats_itself_ends_where_one_that_does_not(data, sent):
    """The same edits, once one a message, once in overlapping messages that
    come twice and late."""
    once, again = Draft(CASE), Draft(CASE)
    sent = [{"n": number, **edit} for number, edit in enumerate(sent, 1)]
    for edit in sent:
        once.apply({"epoch": once.epoch, "edits": [edit]})
    while again.ack < len(sent):
        at = data.draw(some.integers(again.ack + 1, len(sent)))
        first = data.draw(some.integers(0, again.ack))
        for message in (sent[first:at], sent[first:at], sent[:first]):
            again.apply({"epoch": again.epoch, "edits": message})
    assert (again.ack, again.at) == (once.ack, once.at)
    assert len(again.states) == len(once.states)
    assert all(mine.same(other) for mine, other in zip(again.states, once.states))
