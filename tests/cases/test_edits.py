"""What a learner does: each act, where it cannot be done, and the draft's history."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

import gradebook
from gradebook import GradebookError
from gradebook.cases import edits, link
from gradebook.cases.draft import Draft
from gradebook.cases.edits import ACTS
from gradebook.cases.history import MOST_STATES
from gradebook.cases.scenario import case, names, starts
from gradebook.cases.state import State, start
from gradebook.cases.table import MOST_ROWS, WIDEST

CASE = gradebook.load("rejected_rows")  # one prompt, rewards 100, 1, 2


def state(*rewards, row=0):
    """Rows of the case with these rewards, and `row` selected."""
    block = "\n".join(map(str, rewards or (100, 1, 2)))
    return edits.select(edits.replace_rows(start(CASE), block), row)


def typed(state):
    return list(state.table["reward"])


def test_flags_and_tokens_are_set():
    blank = start(case("sandbox"))
    assert blank.table["eos"][0] is True
    off = edits.set_cell(blank, 0, "eos", False)
    assert edits.set_cell(off, 0, "eos", "yes").table["eos"][0] is True
    now = edits.set_mask(blank, 2, 1, 3, False)
    assert now.table["mask"][1:3] == ((True,) * 3, (True, False, False))
    assert edits.set_mask(now, 2, 0, 3, True).table["mask"][2] == (True,) * 3


def test_the_selection_stays_on_its_row():
    for selected, removed, then in ((2, 0, 1), (0, 2, 0), (1, 1, 1), (2, 2, 1)):
        now = edits.remove_row(state(5, 6, 7, row=selected), removed)
        assert now.row == then and now.rows == 2


@pytest.mark.parametrize(
    "row, to, order", [(0, 2, "675"), (2, 0, "756"), (1, 0, "657"), (1, 1, "567")]
)
def test_a_row_moves_and_the_selection_with_it(row, to, order):
    now = edits.move_row(state(5, 6, 7, row=1), row, to)
    assert typed(now) == [*order] and typed(now)[now.row] == "6"


def test_a_block_is_laid_at_a_cell_and_adds_rows():
    now = edits.paste(state(5, 6), 1, "prompt", "B\t1\nC\t2\r\nD\t3\n\n")
    assert typed(now) == ["5", "1", "2", "3"]
    assert now.table["prompt"][1:] == ("B", "C", "D")


def test_a_block_may_begin_at_the_mask_have_gaps_and_cells_in_quotes():
    now = edits.paste(start(case("sandbox")), 0, "mask", "0\t1\n\nFALSE")
    cut, whole = (False, True, True), (True, True, True)
    assert now.table["mask"][:3] == (cut, whole, cut)
    now = edits.paste(state(5, 6), 0, "prompt", '"a\tb"\t1\n"c ""d"""\t2')
    assert now.table["prompt"] == ("a\tb", 'c "d"') and typed(now) == ["1", "2"]


def test_a_block_replaces_the_rewards_of_all_rows_or_the_columns_that_it_names():
    before = edits.set_cell(state(5, 6, row=1), 0, "prompt", "B")
    now = edits.replace_rows(before, "7\n8\n\n9")
    assert typed(now) == ["7", "8", "9"] and now.row == 1
    assert now.table["prompt"][0] == "B"
    now = edits.replace_rows(state(5), "reward\tprompt\n1\tB\n2\tC")
    assert typed(now) == ["1", "2"] and now.table["prompt"] == ("B", "C")


def test_the_width_grows_and_shrinks_by_masked_tokens():
    wide = edits.set_width(state(5, 6), 6)
    assert wide.table.width == 6 and wide.batch().mask.shape == (2, 6)
    own = state(5, 6).table
    assert edits.set_width(wide, own.width).table == own


@pytest.mark.parametrize("name", names())
def test_every_column_comes_with_cells_that_change_nothing(name):
    before = start(gradebook.load(name))
    now = edits.show_every_column(before)
    old, new = before.batch(), now.batch()
    for part in ("prompt", "reward", "mask", "eos", "step", "steps", "kept_steps"):
        assert getattr(old, part).equal(getattr(new, part)), part
    assert old.logp is None or old.logp.equal(new.logp)
    engine = gradebook.bug(before.bug).engine
    for run in (gradebook.CORRECT, engine):
        left, right = (gradebook.run(run, batch).advantage for batch in (old, new))
        assert left.allclose(right, rtol=0, atol=0, equal_nan=True)


IMPOSSIBLE = {
    "table full": lambda s: edits.add_row(edits.replace_rows(s, "1\n" * MOST_ROWS), 0),
    "table empty": lambda s: edits.remove_row(state(5), 0),
    "row": lambda s: edits.set_cell(s, 3, "reward", "1"),
    "column": lambda s: edits.set_cell(s, 0, "colour", "1"),
    "mask": lambda s: edits.set_mask(s, 0, 0, 99, True),
    "row to": lambda s: edits.move_row(s, 0, 3),
    "paste wide": lambda s: edits.paste(s, 0, "reward", "1\t" * 99),
    "table long": lambda s: edits.paste(s, 0, "reward", "1\n" * (MOST_ROWS + 1)),
    "paste empty": lambda s: edits.replace_rows(s, " \n\n"),
    "paste uneven": lambda s: edits.replace_rows(s, "A\t1\nB"),
    "paste unknown": lambda s: edits.replace_rows(s, "reward\tcolour\n1\tred"),
    "width": lambda s: edits.set_width(s, WIDEST + 1),
    "width cut": lambda s: edits.set_width(
        edits.set_cell(edits.set_width(s, 3), 0, "t3", True), 2
    ),
    "width 0": lambda s: edits.set_width(edits.set_width(s, 5), 0),
    "setting": lambda s: edits.set_setting(s, "colour", "red"),
    "eps": lambda s: edits.set_setting(s, "eps", "1,500"),
    "reward": lambda s: edits.paste(s, 0, "reward", "7\nx"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_done_is_said_with_its_place(name):
    with pytest.raises(GradebookError) as caught:
        IMPOSSIBLE[name](state())
    error = caught.value
    assert error.key == name.split()[0]
    assert error.expected and error.found


# Drafts


def send(draft, *edits):
    for edit in edits:
        draft.take(edit)


def cell(value, **more):
    return {"do": "cell", "row": 0, "column": "reward", "value": value, **more}


def rewards(draft):
    return [state.table["reward"][0] for state in draft.history.states]


def test_a_long_history_begins_with_the_case_as_it_came():
    draft = Draft(CASE)
    for number in range(MOST_STATES + 5):
        send(draft, cell(str(1000 + number)))
    assert len(draft.history.states) == MOST_STATES
    draft.go(1)
    assert draft.state.table["reward"][0] == "1006"
    draft.go(0)
    assert not draft.edited


def test_undo_and_redo_stop_at_the_ends_and_an_edit_discards_what_was_undone():
    draft = Draft(CASE)
    send(draft, cell("7"), cell("8"), cell("9"))
    draft.redo()
    assert draft.history.at == 3
    for _ in range(5):
        draft.undo()
    assert draft.history.at == 0 and draft.state is draft.origin
    draft.go(1)
    send(draft, cell("5"))
    assert rewards(draft) == ["100", "7", "5"]


def test_a_drag_is_one_step():
    draft = Draft(CASE)
    send(draft, cell("1"))
    for value in ("2", "3", "4"):
        send(draft, cell(value, gesture=1))
    assert draft.state.table["reward"][0] == "4"
    send(draft, cell("5", gesture=1))
    assert rewards(draft) == ["100", "1", "5"]
    send(draft, cell("6", gesture=2), cell("7", gesture=2))
    assert rewards(draft) == ["100", "1", "5", "7"]


def test_a_drag_back_to_its_start_adds_no_undo_step_and_an_undo_ends_a_drag():
    draft = Draft(CASE)
    send(draft, cell("7", gesture=1), cell("100", gesture=1))
    assert rewards(draft) == ["100"]
    send(draft, cell("8", gesture=1))
    assert rewards(draft) == ["100", "8"]
    send(draft, {"do": "undo"}, cell("9", gesture=1))
    assert rewards(draft) == ["100", "9"]


def test_every_act_does_what_it_says():
    draft = Draft(CASE)
    send(draft, {"do": "mask", "row": 0, "start": 0, "stop": 2, "value": False})
    assert draft.state.table["mask"][0][:2] == (False, False)
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
        assert (draft.state.table["reward"], draft.state.row) == (rewards, row), edit
    assert not draft.notes


# What is refused

BAD = {
    "unknown act": {"do": "explode"},
    "row missing": {"do": "add"},
    "row of another type": {"do": "remove", "row": "0"},
    "value of no cell": {**cell("1"), "value": 7},
    "paste": {"do": "paste", "row": 0, "column": "reward", "text": "7\nx"},
}


@pytest.mark.parametrize("name", BAD)
def test_an_edit_that_cannot_be_done_is_named_and_changes_nothing(name):
    draft = Draft(CASE)
    send(draft, BAD[name])
    assert draft.history.states == [draft.origin]
    assert len(draft.notes) == 1
    send(draft, cell("7"))
    assert draft.notes == [] and rewards(draft) == ["100", "7"]


def test_unreadable_text_is_kept_with_the_last_valid_value():
    draft = Draft(CASE)
    send(draft, cell("7"), cell("7,", gesture=1), cell("7,500", gesture=1))
    (said,) = draft.notes
    assert draft.refused == {"0 reward": ("7,500", said)} and "'7,500'" in said
    assert rewards(draft) == ["100", "7"] and draft.history.at == 1
    send(draft, {**cell("3"), "row": 1})
    assert list(draft.refused) == ["0 reward"]  # another cell changes
    send(draft, cell("7.5", gesture=1))
    assert draft.refused == {} and draft.state.table["reward"][0] == "7.5"
    draft.do(edits.set_setting, "eps", "-1")
    assert draft.refused["eps"][0] == "-1" and draft.state.settings.eps == 1e-6


def test_refused_text_goes_when_rows_move():
    draft = Draft(CASE)
    for act in ({"do": "add", "row": 0}, {"do": "undo"}, {"do": "reset"}):
        send(draft, cell("x"))
        assert draft.refused
        send(draft, act)
        assert not draft.refused


def test_cells_that_make_no_batch_together_are_refused():
    """Of 2 transitions, none can leave 3."""
    draft = Draft(gradebook.load("double_normalization"))
    assert draft.state.table["steps"][0] == "2"
    send(draft, {**cell("3"), "column": "kept_steps"})
    assert draft.history.states == [draft.origin]
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
    assert not back.problem and back.state == draft.state


# Gestures, and pieces of a rollout


def test_an_edit_of_a_gesture_is_committed_by_its_last_one():
    draft = Draft(CASE)
    send(draft, cell("1", gesture=1), cell("10", gesture=1))
    assert draft.typing
    send(draft, {**cell("100", gesture=1), "commit": True})
    assert not draft.typing
    send(draft, cell("7", gesture=2))
    assert draft.typing
    send(draft, {"do": "commit"})
    assert not draft.typing and rewards(draft) == ["100", "7"]


def test_pieces_of_a_rollout_share_its_reward():
    # Rows 0 and 1 are rollout 0, rows 2 and 3 rollout 1.
    state = edits.set_cell(start(case("sharded_whitening")), 3, "reward", "2")
    assert list(state.table["reward"]) == ["1", "1", "2", "2", "-0.5", "-0.75"]
    # Pieces that have different rewards keep them.
    apart = state.table.with_cells({(1, "reward"): "5"})
    state = edits.set_cell(replace(state, table=apart), 0, "reward", "3")
    assert list(state.table["reward"])[:2] == ["3", "5"]


@pytest.mark.parametrize(
    "block",
    [
        "reward\tmask\n1\t110\n0\t1 1 1",
        'prompt,reward,response_mask\nA,1,"[1, 1, 0]"\nA,0,111',
        "prompt;reward;mask\nA;1,0;110\nA;0;1 1 1",
    ],
)
def test_a_pasted_mask_is_understood(block):
    table = edits.replace_rows(start(CASE), block).table
    assert table["mask"] == ((True, True, False), (True, True, True))
    assert [float(cell) for cell in table["reward"]] == [1, 0]


def pasted_groups(name, block):
    """A draft of the case with all its rows replaced."""
    draft = Draft(gradebook.load(name))
    send(draft, {"do": "replace", "text": block})
    assert not draft.notes
    return draft


def rows_of(*groups):
    """A block with so many rows of each prompt."""
    lines = [f"p{n}\t{r % 2}" for n, rows in enumerate(groups) for r in range(rows)]
    return "prompt\treward\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "groups, asks",
    [((8, 8), (8, 4, True)), ((3, 2), (3, 4, False)), ((4, 3), None), ((4, 4), None)],
)
def test_pasted_groups_of_another_size_than_the_setting_ask_once(groups, asks):
    draft = pasted_groups("partial_groups", rows_of(*groups))  # it is set to 4
    assert draft.regrouped == asks
    send(draft, {"do": "cell", "row": 0, "column": "reward", "value": "5"})
    assert draft.regrouped is None


def test_the_size_of_the_pasted_groups_is_one_undo_and_the_old_one_can_be_kept():
    draft = pasted_groups("partial_groups", rows_of(8, 8))
    send(draft, {"do": "select", "row": 3})
    assert draft.regrouped  # a look at another row answers nothing
    send(draft, {"do": "setting", "name": "group_size", "value": "8"})
    assert draft.state.settings.group_size == 8 and draft.regrouped is None
    send(draft, {"do": "undo"})
    assert (draft.state.settings.group_size, draft.state.rows) == (4, 16)
    draft = pasted_groups("partial_groups", rows_of(8, 8))
    send(draft, {"do": "keep_group_size"})
    assert draft.regrouped is None and draft.state.settings.group_size == 4


def test_a_paste_asks_for_no_group_size_if_none_is_set_or_no_group_changed():
    assert pasted_groups("rejected_rows", rows_of(8, 8)).regrouped is None
    draft = Draft(gradebook.load("partial_groups"))
    send(draft, {"do": "setting", "name": "group_size", "value": "2"})
    send(draft, {"do": "paste", "row": 0, "column": "reward", "text": "7\n8"})
    assert draft.state.table["reward"][:2] == ("7", "8") and draft.regrouped is None


def test_the_batch_of_an_edit_is_made_once(monkeypatch):
    draft, made = Draft(gradebook.load("partial_groups")), []
    make = State.batch
    monkeypatch.setattr(State, "batch", lambda s: made.append(s) or make(s))
    draft.take({"do": "cell", "row": 0, "column": "reward", "value": "7"})
    assert float(draft.batch.reward[0]) == 7 and made == [draft.state]
    draft.undo()
    assert float(draft.batch.reward[0]) == 0.5
