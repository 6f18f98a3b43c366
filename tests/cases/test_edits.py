"""What a learner does to a batch: each act, and where it cannot be done."""

import pytest

import gradebook
from gradebook import GradebookError
from gradebook.cases import edits
from gradebook.cases.scenario import case, names
from gradebook.cases.state import start
from gradebook.cases.table import MOST_ROWS, WIDEST

REJECTED = gradebook.load("rejected_rows")  # one prompt, rewards 100, 1, 2


def state(*rewards, row=0):
    """Rows of the case with these rewards, and `row` selected."""
    block = "\n".join(map(str, rewards or (100, 1, 2)))
    return edits.select(edits.replace_rows(start(REJECTED), block), row)


def rewards(state):
    return list(state.table["reward"])


def test_flags_and_tokens_are_set():
    blank = start(case("sandbox"))
    assert blank.table["eos"][0] is True
    off = edits.set_cell(blank, 0, "eos", False)
    assert off.batch().eos.tolist()[:2] == [False, True]
    assert edits.set_cell(off, 0, "eos", "yes").table["eos"][0] is True
    now = edits.set_cell(blank, 1, "t2", False)
    assert now.batch().mask[1].tolist() == [True, False, True]
    now = edits.set_mask(blank, 2, 1, 3, False)
    assert now.table["mask"][1:3] == ((True,) * 3, (True, False, False))
    assert edits.set_mask(now, 2, 0, 3, True).table["mask"][2] == (True,) * 3


def test_a_row_is_added_as_a_copy_below_and_selected():
    now = edits.add_row(state(5, 6, 7), 1)
    assert rewards(now) == ["5", "6", "6", "7"] and now.row == 2


def test_into_an_empty_batch_comes_a_plain_row():
    empty = edits.remove_row(state(5), 0)
    assert empty.rows == 0 and empty.row == 0
    now = edits.add_row(empty, 0)
    assert now.rows == 1 and rewards(now) == ["0"]
    assert now.table["mask"] == ((True,) * now.table.width,)


@pytest.mark.parametrize(
    "selected, removed, then", [(2, 0, 1), (0, 2, 0), (1, 1, 1), (2, 2, 1)]
)
def test_the_selection_stays_on_its_row(selected, removed, then):
    now = edits.remove_row(state(5, 6, 7, row=selected), removed)
    assert now.row == then and now.rows == 2


@pytest.mark.parametrize(
    "row, to, order, selected",
    [
        (0, 2, ["6", "7", "5"], 0),
        (2, 0, ["7", "5", "6"], 2),
        (1, 0, ["6", "5", "7"], 0),
        (1, 1, ["5", "6", "7"], 1),
    ],
)
def test_a_row_moves_and_the_selection_with_it(row, to, order, selected):
    now = edits.move_row(state(5, 6, 7, row=1), row, to)
    assert rewards(now) == order
    assert now.row == selected and now.table["reward"][now.row] == "6"


def test_a_block_is_laid_at_a_cell_and_adds_rows():
    now = edits.paste(state(5, 6), 1, "prompt", "B\t1\nC\t2\r\nD\t3\n\n")
    assert rewards(now) == ["5", "1", "2", "3"]
    assert now.table["prompt"][1:] == ("B", "C", "D")


def test_a_block_may_begin_at_the_mask_and_have_gaps():
    blank = start(case("sandbox"))
    now = edits.paste(blank, 0, "mask", "0\t1\n\nFALSE")
    assert now.table["mask"][:3] == (
        (False, True, True),
        (True, True, True),
        (False, True, True),
    )


def test_a_cell_in_quotes_may_hold_tabs_and_lines():
    text = '"a\tb"\t1\n"c ""d"""\t2'
    now = edits.paste(state(5, 6), 0, "prompt", text)
    assert now.table["prompt"] == ("a\tb", 'c "d"')
    assert rewards(now) == ["1", "2"]


def test_one_column_replaces_the_rewards_of_all_rows():
    before = edits.set_cell(state(5, 6, row=1), 0, "prompt", "B")
    now = edits.replace_rows(before, "7\n8\n9")
    assert rewards(now) == ["7", "8", "9"] and now.row == 1
    assert now.table["prompt"][0] == "B"


def test_a_first_line_names_the_columns():
    now = edits.replace_rows(state(5), "reward\tprompt\n1\tB\n2\tC")
    assert rewards(now) == ["1", "2"]
    assert now.table["prompt"] == ("B", "C")


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


def test_a_setting_is_kept_as_typed():
    now = edits.set_setting(state(), "eps", " 5e-1")
    assert now.typed["eps"] == " 5e-1" and now.settings().eps == 0.5


def test_a_disputed_report_names_the_engines_for_what_they_do():
    assert start(gradebook.load("partial_groups")).engine_names[0] == "correct"
    disputed = start(gradebook.load("zero_std_kl-bnpo"))
    assert disputed.engine_names == ("with the guard", "as written")
    # Both engines believe the flags that the padded width gives.
    flagged = start(gradebook.load("no_eos_outliers-longest"))
    assert flagged.engine_names[0] == "correct by the flags"
    off = edits.set_setting(flagged, "eos_by_width", False)
    assert off.engine_names == ("correct", "faulty")


LONG = "1\n" * (MOST_ROWS + 1)

IMPOSSIBLE = {
    "table": lambda s: edits.add_row(edits.replace_rows(s, "1\n" * MOST_ROWS), 0),
    "row": lambda s: edits.set_cell(s, 3, "reward", "1"),
    "column": lambda s: edits.set_cell(s, 0, "colour", "1"),
    "mask": lambda s: edits.set_mask(s, 0, 0, 99, True),
    "row to": lambda s: edits.move_row(s, 0, 3),
    "paste wide": lambda s: edits.paste(s, 0, "reward", "1\t" * 99),
    "paste long": lambda s: edits.paste(s, 0, "reward", LONG),
    "paste empty": lambda s: edits.replace_rows(s, " \n\n"),
    "paste uneven": lambda s: edits.replace_rows(s, "A\t1\nB"),
    "paste unknown": lambda s: edits.replace_rows(s, "reward\tcolour\n1\tred"),
    "width": lambda s: edits.set_width(s, WIDEST + 1),
    "t3": lambda s: edits.set_width(
        edits.set_cell(edits.set_width(s, 3), 0, "t3", True), 2
    ),
    "t1": lambda s: edits.set_width(edits.set_width(s, 5), 0),
    "setting": lambda s: edits.set_setting(s, "colour", "red"),
    "eps": lambda s: edits.set_setting(s, "eps", "1,5"),
    "eps below 0": lambda s: edits.set_setting(s, "eps", "-1"),
    "reward": lambda s: edits.paste(s, 0, "reward", "7\nx"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_done_is_said_with_its_place(name):
    with pytest.raises(GradebookError) as caught:
        IMPOSSIBLE[name](state())
    error = caught.value
    assert error.key in (name.split()[0], "width")
    assert error.expected and error.found
