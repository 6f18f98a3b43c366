"""Cells as people type them: what is read, what is refused, and the way from
rows to a table and back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from gradebook import Batch, GradebookError, Settings
from gradebook.cases.table import Table

NUMBER, EMPTY = "a number", "an empty cell"
COMMA, HUGE = "a number with a decimal point", "a number below 1.8e308"
WHOLE, FLAG = "a whole number of 0 or more", "true or false"


def table(**cells):
    columns = {"prompt": ["a", "a"], "reward": ["1", "2"], **cells}
    return Table.of_columns(columns)


READ = {
    "reward": [
        *(("2", 2), (" 2 ", 2), ("\t-2.5\n", -2.5), ("+1", 1), (".5", 0.5), ("5.", 5)),
        *(("1e-3", 0.001), ("1E6", 1e6), ("007", 7), (3, 3), (np.int64(4), 4)),
        ("\u22123", -3),  # the minus sign of a word processor
        (np.float64(0.25), 0.25),
    ],
    "step": [("3", 3), (" 2.0 ", 2)],
    "eos": [
        *((True, True), (np.True_, True), ("TRUE", True), ("yes", True), (1, True)),
        *((" false ", False), ("no", False), (0, False), ("1.0", True), ("0", False)),
    ],
    "prompt": [(" 7 ", "7"), (7, "7")],
    "logp": [("-1 -2.5", (-1, -2.5)), (" -3;\u22124 ", (-3, -4))],
}


@pytest.mark.parametrize("column", READ)
def test_a_cell_is_read(column):
    kinds = {"reward": float, "step": int, "eos": bool, "prompt": str, "logp": tuple}
    for cell, value in READ[column]:
        read = table(**{column: [cell, cell]}).values()[column]
        assert read == [value, value] and type(read[0]) is kinds[column]
        if column == "eos":
            assert table(t1=[cell, cell])["mask"] == ((value,), (value,))


NO_NUMBERS = {
    NUMBER: [
        *("x", "1_000", "nan", "-Infinity", math.inf, "1 2", "--1", "1e"),
        *(".", "0x10", "=1+1", "50%", True, "\u2212-1"),
        "\uff11",  # a full-width 1
        "\u0663",  # an Arabic-Indic 3
    ],
    COMMA: ["1,500", "1,000.5"],
    HUGE: ["1e400", "-1e400"],
}
NOTHING = ("", "   ", None)
LISTED = "2 numbers separated by spaces, one per token"
REFUSED = [
    *(("reward", cell, why, None) for why in NO_NUMBERS for cell in NO_NUMBERS[why]),
    *(("reward", cell, NUMBER, EMPTY) for cell in NOTHING),
    ("prompt", "  ", "text", EMPTY),
    *(("step", cell, WHOLE, None) for cell in ("2.5", "-1", "3000000000")),
    ("kept_steps", "two", NUMBER, None),
    *((name, "maybe", FLAG, None) for name in ("eos", "t1")),
    *((name, None, FLAG, EMPTY) for name in ("eos", "t1")),
    *(("logp", cell, LISTED, count) for cell, count in (("-1", "1"), ("", "0"))),
    ("logp", "-1 -2 -3", LISTED, "3"),
    ("ref_logp", "-1 x", NUMBER, "'x'"),
]


@pytest.mark.parametrize("column, cell, expected, found", REFUSED)
def test_a_cell_that_cannot_be_read_is_refused(column, cell, expected, found):
    tokens = {"t1": [True, True], "t2": [True, False]}
    first = {"prompt": "a", "reward": "1", "logp": "-1 -1", "ref_logp": "-1 -1"}
    cells = {column: [first.get(column, "1"), cell]}
    with pytest.raises(GradebookError) as caught:
        table(**{**tokens, **cells})
    error, found = caught.value, found or repr(str(cell))
    place = (error.key, error.row, error.expected, error.found)
    assert place == (column, 1, expected, found)


def test_columns_that_make_no_table_are_refused():
    with pytest.raises(GradebookError, match="'colour': expected a column of a batch"):
        table(colour=["red", "blue"])
    for name, other in (("prompt", "reward"), ("reward", "prompt")):
        with pytest.raises(GradebookError, match=f"key '{name}': expected a column"):
            Table.of_columns({other: ["1"]})


def test_the_batch_names_the_row_of_what_only_it_can_see():
    # Each cell is a number; only together they cannot be.
    cells = table(steps=["2", "2"], kept_steps=["1", "3"])
    with pytest.raises(GradebookError) as caught:
        cells.batch(Settings())
    assert (caught.value.key, caught.value.row) == ("kept_steps", 1)


def test_token_columns_are_ordered_by_number():
    tokens = {f"t{n}": [n == 10, False] for n in (10, *range(1, 10))}
    mask = table(**tokens)["mask"]
    assert mask == ((False,) * 9 + (True,), (False,) * 10)


NUMBERS = some.floats(allow_nan=False, allow_infinity=False)
ROW = some.fixed_dictionaries(
    {
        "prompt": some.sampled_from("ab"),
        "reward": NUMBERS,
        "eos": some.booleans(),
        "step": some.integers(0, 3),
        "steps": some.integers(3, 9),
        "kept_steps": some.integers(0, 3),
        "mask": some.tuples(some.booleans(), some.booleans()),
        "logp": some.tuples(NUMBERS, NUMBERS),
        "ref_logp": some.tuples(NUMBERS, NUMBERS),
    }
)


@given(some.lists(ROW, min_size=1, max_size=5))
def test_a_table_returns_its_rows_and_makes_the_same_batch_as_they_do(rows):
    cells = Table.of(rows)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert cells.values() == columns
    assert Table.of_columns(cells.cells) == cells
    through = cells.batch(Settings(beta=0.1))
    direct = Batch(**columns, settings=Settings(beta=0.1))
    for name in columns:
        a, b = getattr(through, name), getattr(direct, name)
        assert a.equal(b) and a.dtype == b.dtype


def test_numbers_become_the_text_that_a_person_types_and_typed_text_is_kept():
    cells = Table.of([{"prompt": 3, "reward": 2.0, "mask": [1, 1, 0]}])
    assert cells.headers == ("prompt", "reward", "t1", "t2", "t3")
    assert [cells[header][0] for header in cells.headers[:2]] == ["3", "2"]
    cells = table(reward=[" 1 ", "\u22122"], eos=["yes", "0"])
    assert cells["reward"] == (" 1 ", "\u22122")
    assert cells["eos"] == (True, False)


def test_a_wider_batch_has_a_log_probability_for_its_new_tokens():
    cells = {"t1": [True, True], "t2": [True, False]}
    two = table(**cells, logp=["-1 -2", "-3; -4"])
    wide = two.resized(3)
    assert wide["mask"] == ((True, True, False), (True, False, False))
    assert wide["logp"] == ("-1 -2 -1", "-3 -4 -1")
    assert two.resized(1)["logp"] == ("-1", "-3")


def test_a_token_that_is_taken_out_moves_the_later_ones_up():
    cells = {"t1": [True, True], "t2": [True, False], "t3": [False, True]}
    without = table(**cells, logp=["-1 -2 -3", "-4; -5; -6"]).without_token(1)
    assert without["mask"] == ((True, False), (True, True))
    assert without["logp"] == ("-1 -3", "-4 -6")


def test_what_a_missing_column_says_follows_its_neighbour():
    wide = table(steps=["3", "4"]).with_every_column()
    assert wide["kept_steps"] == ("3", "4")
    wide = table(kept_steps=["0", "2"]).with_every_column()
    assert wide["steps"] == ("1", "2")
    wide = table(logp=["-1 -1 -1"] * 2).with_every_column()
    assert wide["mask"] == ((True,) * 3,) * 2
    assert wide["ref_logp"] == ("-1 -1 -1",) * 2
