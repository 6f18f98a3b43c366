"""Cells as people type them: what is read, what is refused, and the way from
rows to a table and back."""

import math

import numpy as np
import pandas as pd
import pytest

from gradebook import Batch, GradebookError, Settings
from gradebook.cases.table import Table

NUMBER, EMPTY = "a number", "an empty cell"
COMMA, HUGE = "a number with a decimal point", "a number below 1.8e308"
WHOLE, FLAG = "a whole number of 0 or more", "true or false"


def table(**cells):
    columns = {"prompt": ["a", "a"], "reward": ["1", "2"], **cells}
    return Table.of_frame(pd.DataFrame(columns, dtype="object"))


@pytest.mark.parametrize(
    "cell, value",
    [
        ("2", 2),
        (" 2 ", 2),
        ("\t-2.5\n", -2.5),
        ("+1", 1),
        (".5", 0.5),
        ("5.", 5),
        ("1e-3", 0.001),
        ("1E6", 1e6),
        ("\u22123", -3),  # the minus sign of a word processor
        ("007", 7),
        (3, 3),
        (0.1, 0.1),
        (np.float64(0.25), 0.25),
        (np.int64(4), 4),
    ],
)
def test_a_number_is_read(cell, value):
    found = table(reward=[cell, "2"]).values()["reward"]
    assert found == [value, 2]
    assert isinstance(found[0], float)


NO_NUMBERS = {
    NUMBER: [
        *("x", "1_000", "nan", "inf", "-Infinity", math.inf, "1 2", "--1", "1e"),
        *(".", "0x10", "=1+1", "50%", True, "\u2212-1"),
        "\uff11",  # a full-width 1
        "\u0663",  # an Arabic-Indic 3
    ],
    COMMA: ["1,5", "1,000.5"],
    HUGE: ["1e400", "-1e400"],
}
NOTHING = ("", "   ", None, math.nan, pd.NA)
LISTED = "2 numbers separated by spaces, one a token"
REFUSED = [
    *(("reward", cell, why, None) for why in NO_NUMBERS for cell in NO_NUMBERS[why]),
    *(("reward", cell, NUMBER, EMPTY) for cell in NOTHING),
    *(("prompt", cell, "text", EMPTY) for cell in NOTHING),
    *(("step", cell, WHOLE, None) for cell in ("2.5", "-1", "3000000000")),
    ("kept_steps", "two", NUMBER, None),
    ("steps", "1,0", COMMA, None),
    ("rank", "", NUMBER, EMPTY),
    *((name, cell, FLAG, None) for name in ("eos", "t1") for cell in ("2", "maybe")),
    *((name, cell, FLAG, EMPTY) for name in ("eos", "t1") for cell in ("", None)),
    *(("logp", cell, LISTED, count) for cell, count in (("-1", "1"), ("", "0"))),
    ("logp", "-1 -2 -3", LISTED, "3"),
    ("ref_logp", "-1 x", NUMBER, "'x'"),
    ("ref_logp", "-1 -1,5", COMMA, "'-1,5'"),
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


@pytest.mark.parametrize("column", ["step", "steps", "kept_steps"])
def test_whole_numbers_are_read(column):
    found = table(**{column: ["3", " 2.0 "]}).values()[column]
    assert found == [3, 2]
    assert all(isinstance(value, int) for value in found)


@pytest.mark.parametrize("column", ["eos", "t1"])
@pytest.mark.parametrize(
    "cell, flag",
    [
        (True, True),
        (False, False),
        (np.True_, True),
        ("TRUE", True),
        (" false ", False),
        ("yes", True),
        ("no", False),
        (1, True),
        (0, False),
        ("1.0", True),
        ("0", False),
    ],
)
def test_a_flag_is_read(column, cell, flag):
    found = table(**{column: [cell, True]}).values()
    if column == "eos":
        assert found["eos"] == [flag, True]
    else:
        assert found["mask"] == [(flag,), (True,)]


def test_prompts_are_text_without_the_space_around_it():
    assert table(prompt=[" 7 ", 7]).values()["prompt"] == ["7", "7"]


def test_log_probabilities_stand_one_a_token():
    cells = {"t1": [True, True], "t2": [True, False]}
    found = table(**cells, logp=["-1 -2.5", " -3;\u22124 "]).values()
    assert found["logp"] == [(-1, -2.5), (-3, -4)]


def test_an_unknown_column_is_refused():
    with pytest.raises(GradebookError) as caught:
        table(colour=["red", "blue"])
    assert caught.value.key == "colour"
    assert caught.value.expected == "a column of a batch"


@pytest.mark.parametrize("name", ["prompt", "reward"])
def test_a_missing_column_is_refused(name):
    left = {"prompt": ["a"], "reward": ["1"]}
    del left[name]
    with pytest.raises(GradebookError) as caught:
        Table.of_columns(left)
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == (name, None, "a column", "none")


def test_token_columns_are_ordered_by_number():
    tokens = {f"t{n}": [n == 10, False] for n in (10, *range(1, 10))}
    mask = table(**tokens).values()["mask"]
    assert mask == [(False,) * 9 + (True,), (False,) * 10]


def test_an_emptied_table_is_an_empty_batch():
    emptied = table(t1=[True, True], eos=[True, True]).take([])
    assert emptied.batch(Settings()).rows == 0
    assert (
        emptied.width == 1
        and emptied.headers == table(t1=[True, True], eos=[True, True]).headers
    )


ROWS = [
    {
        "prompt": "a",
        "reward": 0.1,
        "eos": True,
        "step": 0,
        "steps": 3,
        "kept_steps": 2,
        "mask": [1, 0],
        "logp": [-1.5, -2e-20],
        "ref_logp": [-1, 0],
    },
    {
        "prompt": "b",
        "reward": -1e6,
        "eos": False,
        "step": 1,
        "steps": 1,
        "kept_steps": 0,
        "mask": [0, 0],
        "logp": [-3, -4.25],
        "ref_logp": [-0.125, -7],
    },
]


def to_columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_rows_come_back_as_they_went_into_the_table():
    found = Table.of(ROWS).values()
    assert list(found) == list(to_columns(ROWS))
    for name, values in to_columns(ROWS).items():
        lists = name in ("mask", "logp", "ref_logp")
        assert found[name] == (list(map(tuple, values)) if lists else values)


@pytest.mark.parametrize(
    "value",
    [
        *(0.0, -0.0, 1.0, 0.1, 1 / 3, 1e15, 1e16, 1e-300, 1.7e308),
        *(-5e-324, 123456789.125, 2**53 + 2.0, 100.1),
    ],
)
def test_no_digit_of_a_reward_is_lost(value):
    rows = [{"prompt": 0, "reward": value}]
    assert Table.of(rows).values()["reward"] == [value]


def test_whole_numbers_stand_without_a_point():
    cells = Table.of([{"prompt": 3, "reward": 2.0, "step": 4}])
    assert [cells[h][0] for h in cells.headers] == ["3", "2", "4"]


def test_only_the_columns_that_rows_name_are_there():
    cells = Table.of([{"prompt": 0, "reward": 1, "mask": [1, 1, 0]}])
    assert cells.headers == ("prompt", "reward", "t1", "t2", "t3")
    assert cells["mask"] == ((True, True, False),)


def test_a_table_and_its_rows_make_the_same_batch():
    settings = Settings(beta=0.1)
    through = Table.of(ROWS).batch(settings)
    direct = Batch(**to_columns(ROWS), settings=settings)
    for name in to_columns(ROWS):
        a, b = getattr(through, name), getattr(direct, name)
        assert a.equal(b) and a.dtype == b.dtype


def test_a_table_comes_back_from_a_data_frame():
    cells = Table.of(ROWS)
    frame = cells.frame()
    assert list(frame.columns) == list(cells.headers)
    assert {str(frame.dtypes[n]) for n in ("eos", "t1")} == {"bool"}
    assert Table.of_frame(frame) == cells


def test_the_batch_names_the_row_of_what_only_it_can_see():
    # Each cell is a number; only together they cannot be.
    cells = table(steps=["2", "2"], kept_steps=["1", "3"])
    with pytest.raises(GradebookError) as caught:
        cells.batch(Settings())
    assert (caught.value.key, caught.value.row) == ("kept_steps", 1)


def test_cells_stay_as_typed():
    cells = table(reward=[" 1 ", "\u22122"], eos=["yes", "0"])
    assert cells["reward"] == (" 1 ", "\u22122")
    assert cells["eos"] == (True, False)


def test_a_wider_batch_has_a_log_probability_for_its_new_tokens():
    cells = {"t1": [True, True], "t2": [True, False]}
    given = table(**cells, logp=["-1 -2", "-3; -4"])
    wide = given.with_width(3)
    assert wide["mask"] == ((True, True, False), (True, False, False))
    assert wide["logp"] == ("-1 -2 -1", "-3 -4 -1")
    narrow = given.with_cell(0, "t2", False).with_width(1)
    assert narrow["logp"] == ("-1", "-3")
    with pytest.raises(GradebookError) as caught:
        given.with_width(1)
    assert caught.value.key == "t2" and caught.value.found == "a token"
