"""Cells as people type them: what is read, what is refused, and the way from
rows to a table and back."""

import math

import numpy as np
import pandas as pd
import pytest

from gradebook import Batch, GradebookError, Settings
from gradebook.cases.table import (
    columns_of,
    problems,
    to_batch,
    to_table,
    with_width,
)

NUMBER, EMPTY = "a number", "an empty cell"
COMMA, HUGE = "a number with a decimal point", "a number below 1.8e308"
WHOLE = "a whole number of 0 or more"


def table(**cells):
    columns = {"prompt": ["a", "a"], "reward": ["1", "2"], **cells}
    return pd.DataFrame(columns, dtype="object")


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
    found = columns_of(table(reward=[cell, "2"]))["reward"]
    assert found == [value, 2]
    assert isinstance(found[0], float)


@pytest.mark.parametrize(
    "cell, expected, found",
    [
        ("", NUMBER, EMPTY),
        ("   ", NUMBER, EMPTY),
        (None, NUMBER, EMPTY),
        (math.nan, NUMBER, EMPTY),
        (pd.NA, NUMBER, EMPTY),
        ("x", NUMBER, "'x'"),
        ("1,5", COMMA, "'1,5'"),
        ("1,000.5", COMMA, "'1,000.5'"),
        ("1e400", HUGE, "'1e400'"),
        ("-1e400", HUGE, "'-1e400'"),
        ("1_000", NUMBER, "'1_000'"),
        ("nan", NUMBER, "'nan'"),
        ("inf", NUMBER, "'inf'"),
        ("-Infinity", NUMBER, "'-Infinity'"),
        (math.inf, NUMBER, "'inf'"),
        ("\uff11", NUMBER, "'\uff11'"),  # a full-width 1
        ("\u0663", NUMBER, "'\u0663'"),  # an Arabic-Indic 3
        ("1 2", NUMBER, "'1 2'"),
        ("--1", NUMBER, "'--1'"),
        ("\u2212-1", NUMBER, "'\u2212-1'"),
        ("0x10", NUMBER, "'0x10'"),
        ("1e", NUMBER, "'1e'"),
        (".", NUMBER, "'.'"),
        ("=1+1", NUMBER, "'=1+1'"),
        ("50%", NUMBER, "'50%'"),
        (True, NUMBER, "'True'"),
    ],
)
def test_a_cell_that_is_no_number_is_refused(cell, expected, found):
    with pytest.raises(GradebookError) as caught:
        columns_of(table(reward=["1", cell]))
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == ("reward", 1, expected, found)


@pytest.mark.parametrize("column", ["step", "steps", "kept_steps"])
def test_whole_numbers_are_read(column):
    found = columns_of(table(**{column: ["3", " 2.0 "]}))[column]
    assert found == [3, 2]
    assert all(isinstance(value, int) for value in found)


@pytest.mark.parametrize("column", ["step", "steps", "kept_steps"])
@pytest.mark.parametrize(
    "cell, expected, found",
    [
        ("", NUMBER, EMPTY),
        ("2.5", WHOLE, "'2.5'"),
        ("-1", WHOLE, "'-1'"),
        ("3000000000", WHOLE, "'3000000000'"),
        ("two", NUMBER, "'two'"),
        ("1,0", COMMA, "'1,0'"),
        ("1e999", HUGE, "'1e999'"),
    ],
)
def test_a_cell_that_is_no_whole_number_is_refused(
    column, cell, expected, found
):
    with pytest.raises(GradebookError) as caught:
        columns_of(table(**{column: [cell, "1"]}))
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == (column, 0, expected, found)


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
    found = columns_of(table(**{column: [cell, True]}))
    if column == "eos":
        assert found["eos"] == [flag, True]
    else:
        assert found["mask"] == [[flag], [True]]


@pytest.mark.parametrize("column", ["eos", "t1"])
@pytest.mark.parametrize(
    "cell, found",
    [("", EMPTY), (None, EMPTY), ("2", "'2'"), ("maybe", "'maybe'")],
)
def test_a_cell_that_is_no_flag_is_refused(column, cell, found):
    with pytest.raises(GradebookError) as caught:
        columns_of(table(**{column: [True, cell]}))
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == (column, 1, "true or false", found)


@pytest.mark.parametrize("cell", ["", "  ", None, math.nan, pd.NA])
def test_an_empty_prompt_is_refused(cell):
    with pytest.raises(GradebookError) as caught:
        columns_of(table(prompt=["a", cell]))
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == ("prompt", 1, "a prompt", EMPTY)


def test_prompts_are_text_without_the_space_around_it():
    assert columns_of(table(prompt=[" 7 ", 7]))["prompt"] == ["7", "7"]


def test_log_probabilities_stand_one_a_token():
    cells = {"t1": [True, True], "t2": [True, False]}
    found = columns_of(table(**cells, logp=["-1 -2.5", " -3;\u22124 "]))
    assert found["logp"] == [[-1, -2.5], [-3, -4]]


@pytest.mark.parametrize(
    "cell, expected, found",
    [
        ("-1", "2 numbers separated by spaces, one a token", "1"),
        ("", "2 numbers separated by spaces, one a token", "0"),
        ("-1 -2 -3", "2 numbers separated by spaces, one a token", "3"),
        ("-1 x", NUMBER, "'x'"),
        ("-1 nan", NUMBER, "'nan'"),
        ("-1 -1,5", COMMA, "'-1,5'"),
    ],
)
def test_log_probabilities_that_cannot_be_read_are_refused(
    cell, expected, found
):
    cells = {"t1": [True, True], "t2": [True, False]}
    with pytest.raises(GradebookError) as caught:
        columns_of(table(**cells, ref_logp=["-1 -2", cell]))
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == ("ref_logp", 1, expected, found)


def test_every_problem_is_found_at_once():
    wrong = problems(
        table(
            prompt=["", "b"],
            reward=["1,5", "x"],
            eos=[True, "perhaps"],
            t1=[None, True],
        )
    )
    assert [(e.key, e.row) for e in wrong] == [
        ("prompt", 0),
        ("reward", 0),
        ("reward", 1),
        ("eos", 1),
        ("t1", 0),
    ]
    assert problems(table()) == []


def test_an_unknown_column_is_refused():
    with pytest.raises(GradebookError) as caught:
        columns_of(table(colour=["red", "blue"]))
    assert caught.value.key == "colour"
    assert caught.value.expected == "a column of a batch"


@pytest.mark.parametrize("name", ["prompt", "reward"])
def test_a_missing_column_is_refused(name):
    with pytest.raises(GradebookError) as caught:
        columns_of(table().drop(columns=name))
    error = caught.value
    place = (error.key, error.row, error.expected, error.found)
    assert place == (name, None, "a column", "none")


def test_token_columns_are_ordered_by_number():
    tokens = {f"t{n}": [n == 10, False] for n in (10, *range(1, 10))}
    mask = columns_of(table(**tokens))["mask"]
    assert mask == [[False] * 9 + [True], [False] * 10]


def test_an_emptied_table_is_an_empty_batch():
    emptied = table(t1=[True, True], eos=[True, True]).iloc[:0]
    batch = to_batch(emptied, Settings())
    assert batch.rows == 0


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


def test_rows_come_back_as_they_went_into_the_table():
    found = columns_of(to_table(ROWS))
    assert list(found) == list(to_columns(ROWS))
    for name, values in to_columns(ROWS).items():
        assert found[name] == values


def to_columns(rows):
    last = ("logp", "ref_logp", "mask")  # the mask is put in at the end
    names = [n for n in rows[0] if n not in last] + list(last)
    return {name: [row[name] for row in rows] for name in names}


@pytest.mark.parametrize(
    "value",
    [
        *(0.0, -0.0, 1.0, 0.1, 1 / 3, 1e15, 1e16, 1e-300, 1.7e308),
        *(-5e-324, 123456789.125, 2**53 + 2.0, 100.1),
    ],
)
def test_no_digit_of_a_reward_is_lost(value):
    rows = [{"prompt": 0, "reward": value}]
    assert columns_of(to_table(rows))["reward"] == [value]


def test_whole_numbers_stand_without_a_point():
    cells = to_table([{"prompt": 3, "reward": 2.0, "step": 4}])
    assert cells.iloc[0].tolist() == ["3", "2", "4"]


def test_very_large_numbers_stay_short():
    cells = to_table([{"prompt": 0, "reward": 1e300}])
    assert cells["reward"].tolist() == ["1e+300"]


def test_only_the_columns_that_rows_name_are_there():
    cells = to_table([{"prompt": 0, "reward": 1, "mask": [1, 1, 0]}])
    assert list(cells.columns) == ["prompt", "reward", "t1", "t2", "t3"]
    assert cells.dtypes.tolist()[2:] == [bool] * 3


def test_a_table_and_its_rows_make_the_same_batch():
    settings = Settings(beta=0.1)
    through = to_batch(to_table(ROWS), settings)
    direct = Batch(**to_columns(ROWS), settings=settings)
    for name in to_columns(ROWS):
        a, b = getattr(through, name), getattr(direct, name)
        assert a.equal(b) and a.dtype == b.dtype


def test_the_batch_names_the_row_of_what_only_it_can_see():
    # Each cell is a number; only together they cannot be.
    cells = table(steps=["2", "2"], kept_steps=["1", "3"])
    with pytest.raises(GradebookError) as caught:
        to_batch(cells, Settings())
    assert (caught.value.key, caught.value.row) == ("kept_steps", 1)


def test_reading_leaves_the_table_as_it_was():
    cells = table(reward=[" 1 ", "\u22122"])
    before = cells.copy(deep=True)
    columns_of(cells)
    pd.testing.assert_frame_equal(cells, before)


def test_a_wider_batch_has_a_log_probability_for_its_new_tokens():
    cells = {"t1": [True, True], "t2": [True, False]}
    given = table(**cells, logp=["-1 -2", "-3; -4"], ref_logp=["-1", ""])
    wide = with_width(given, 3)
    assert list(wide["logp"]) == ["-1 -2 -1", "-3 -4 -1"]
    assert list(wide["ref_logp"]) == ["-1", ""]  # still to be named
    assert list(with_width(given.assign(t2=False), 1)["logp"]) == ["-1", "-3"]
