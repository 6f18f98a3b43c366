"""A row's advantage as a sum worked out, and the code that computes it, for both
engines."""

from dataclasses import replace
from pathlib import Path

import pytest

import gradebook
from gradebook.analysis.comparison import compare, compared
from gradebook.analysis.formula import beside, first_sentence, worked
from gradebook.cases.state import start


def sides(name, row, **settings):
    """[correct, faulty] as lists of lines, minus signs as hyphens."""
    scenario = gradebook.load(name)
    batch = scenario.batch(settings=replace(scenario.settings, **settings))
    return written(compare(gradebook.bug(scenario.bug), batch), row)


def written(comparison, row):
    return [
        ["".join(part.text for part in line).replace("\u2212", "-") for line in side]
        for side in worked(comparison, row)
    ]


def test_the_report_worked_out():
    correct, faulty = sides("partial_groups", 10)
    assert correct == [
        "(2.000 - 1.000) / 1.000 = +1.000",
        "baseline: mean of rows 8, 9 and 10 = (0 + 1 + 2) / 3",
        "scale: standard deviation (ddof 1) of the group's rows + 1e-5",
    ]
    assert faulty[0] == "(2.000 - 25.750) / 49.507 = -0.480"
    assert faulty[1] == (
        "baseline: mean of rows 8, 9, 10 and 11 = (0 + 1 + 2 + 100) / 4"
    )


def test_the_numbers_that_differ_are_marked():
    comparison = compared(start(gradebook.load("partial_groups")))
    for side in worked(comparison, 10):
        marked = [part.text for part in side[0] if part.differs]
        assert len(marked) == 3 and "2.000" not in marked
    for side in worked(comparison, 0):
        assert not any(part.differs for line in side for part in line)


@pytest.mark.parametrize(
    "name, row, settings, correct, faulty",
    [
        # One ulp near 100 is 2^-17 = 7.629e-6, and 7.629e-6 / 0.826 = 9.24e-6.
        (
            *("float32_dust", 0, {}, None),
            "(100.099998 - 100.099991) / 9.24e-6 = +0.826",
        ),
        # 1 - 0.75 / 0.5 = -0.5, which is not (1 - 0.75) / 0.5.
        (
            *("missing_parentheses", 0, {}, "(1.000 - 0.750) / 0.500 = +0.500"),
            "score 1.000, baseline 0.750, scale 0.500 give -0.500",
        ),
        (
            *("partial_groups", 10, {"baseline": "leave_one_out", "scale": "none"}),
            "(2.000 - 0.500) / 1.000 = +1.500",
            "(2.000 - 33.667) / 1.000 = -31.667",
        ),
        # Ten of the twelve scores are not zero.
        (
            *("partial_groups", 10, {"scale": "nonzero_share"}),
            "(2.000 - 1.000) / 0.833 = +1.200",
            "(2.000 - 25.750) / 0.833 = -28.500",
        ),
    ],
)
def test_the_formula_has_enough_digits_under_any_setting(
    name, row, settings, correct, faulty
):
    first = [side[0] for side in sides(name, row, **settings)]
    assert correct in (None, first[0]) and faulty in (None, first[1])


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"baseline": "leave_one_out"}, "baseline: mean of the others, rows 8 and 9"),
        (
            {"baseline": "batch_mean"},
            "baseline: mean of rows 0, 1, 2, 3, 4, 5, 6 and 5 more",
        ),
        (
            {"scale": "batch_std", "eps": 0.5},
            "scale: standard deviation (ddof 1) of the batch's rows about the baseline"
            " + 0.5",
        ),
        ({"scale": "none"}, "scale: 1 (no division)"),
    ],
)
def test_a_baseline_and_a_scale_in_words(settings, line):
    assert line in sides("partial_groups", 10, **settings)[0][1:]


@pytest.mark.parametrize(
    "name, row, correct, faulty",
    [
        # Asked for the group's deviation, sqrt(64 / 3) = 4.619.
        ("swapped_scale", 4, "0.0001", "4.619"),
        # 1e-5 / sqrt(2) + 1e-6 = 8.08e-6; the root of 1e-6 is 0.001.
        ("variance_floor", 1, "1e-6", "8.08e-6"),
    ],
)
def test_a_faulty_divisor_is_not_named_as_the_correct_one(name, row, correct, faulty):
    assert [side[2] for side in sides(name, row)] == [
        f"scale: standard deviation (ddof 1) of the group's rows + {correct}",
        f"scale: computed by the faulty stage; correct for this setting: {faulty}",
    ]


def test_a_row_in_no_group_and_a_lone_row_that_keeps_its_raw_score():
    _, faulty = sides("partial_groups-tail", 10)
    assert faulty == [
        "(2.000 - 0.000) / 1e-5 = +200\u2009000.000",
        "baseline: 0, the row is in no group",
        "scale: 0, the row is in no group, + 1e-5",
    ]
    correct, faulty = sides("rejected_rows-lone_survivor", 0)
    assert correct == [
        "(0.500 - 0.000) / 1.000 = +0.500",
        "baseline: 0, row 0 is alone and keeps its raw score",
        "scale: 1 (one counted row has no deviation) + 1e-6",
    ]
    assert faulty[0] == "(0.500 - 6.125) / 3.838 = -1.466"


@pytest.mark.parametrize(
    "name, row, changes, why",
    [
        ("rejected_rows", 0, {}, "since its response mask is empty"),
        ("no_eos_outliers", 1, {}, "since it did not end with EOS"),
        ("unscored_rows", 3, {}, "since no reward function scored it"),
        ("partial_groups-dropped", 10, {}, "its prompt has fewer than 4 rows"),
        ("zero_std_kl", 1, {"evaluation": True}, "only a prompt's first row"),
    ],
)
def test_a_row_without_an_advantage_says_why(name, row, changes, why):
    state = start(gradebook.load(name))
    comparison = compared(replace(state, settings=replace(state.settings, **changes)))
    (line,) = written(comparison, row)[0]
    assert why in line


def then(side):
    return next(line for line in side if line.startswith("then"))


def test_the_second_mean_and_deviation_are_worked_out():
    faulty = sides("sharded_whitening", 3)[1][-1]
    assert faulty == (
        "0.625 is the mean over the 16 unmasked tokens of rank 1:"
        " (8 × 1 + 8 × 0.25) / 16; 0.387 is the deviation about it,"
        " √(sum of squares / 15)"
    )
    assert "(2 × 1 + 10 × (-1)) / 12" in sides("double_normalization", 0)[1][-1]
    assert "36 tokens and padding" in sides("padded_mean", 3)[1][-1]


def test_a_second_normalization_is_another_line():
    # m = -2/3 and s = sqrt(5) / 3 = 0.745 over transitions.
    correct, faulty = sides("double_normalization", 0)
    assert correct[0] == faulty[0] == "(4.000 - 3.000) / 1.000 = +1.000"
    assert len(correct) == 3
    assert faulty[3] == "then (+1.000 - (-0.667)) / 0.745 = +2.236"
    # Rank 1 alone: m = 5/8, and s is the root of 9/64 * 16/15.
    later = sides("sharded_whitening", 3)[1][3]
    assert later == "then (+0.250 - 0.625) / 0.387 = -0.968"
    # Rows 1 and 2 count, three tokens each: -0.5 and +0.5 of mean 0 and
    # variance 0.25 * 6 / 5 = 0.3; faulty -33.33 and -32.33, so mean -32.83.
    settings = gradebook.ESTIMATORS["reinforce_plus_plus_baseline"]
    assert [then(side) for side in sides("rejected_rows", 2, **settings)] == [
        "then (+0.500 - 0.000) / 0.548 = +0.913",
        "then (-32.333 - (-32.833)) / 0.548 = +0.913",
    ]
    # As printed: (-1.39 - 4.86) / 6.35 is -0.984.
    assert then(sides("double_normalization-manufactured", 0)[1]) == (
        "then (-1.39e-8 - 4.86e-8) / 6.35e-8 = -0.984"
    )


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_every_row_of_every_case_can_be_worked_out(name):
    comparison = compare(gradebook.bug(name), gradebook.load(name).batch())
    for row in range(comparison.batch.rows):
        assert all(side for side in worked(comparison, row))


# Two functions, line beside line


ROOT = Path(__file__).parents[2]


def right(batch):
    """The sum
    of it. float [R].

    More of it.
    """
    total = batch + 1
    kept = total * 2
    return kept


def wrong(batch):
    """The sum, wrongly."""
    total = batch + 1
    # A line more.
    extra = total
    kept = extra * 3
    return kept


def texts(listing, differs):
    return [line.text for line in listing.lines if line.differs is differs]


def test_lines_that_differ_are_side_by_side_without_the_docstring():
    a, b = beside(right, wrong)
    equal = ["    total = batch + 1", "    return kept"]
    assert texts(a, False) == texts(b, False) == equal
    assert texts(a, True)[1:] == ["    kept = total * 2", "", ""]
    assert texts(b, True)[1:] == [
        "    # A line more.",
        "    extra = total",
        "    kept = extra * 3",
    ]
    assert [line.number == 0 for line in a.lines].count(True) == 2
    assert first_sentence(right) == "The sum of it."


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_every_line_is_in_its_file_under_its_number(name):
    swapped = gradebook.bug(name)
    a, b = beside(swapped.correct, swapped.faulty)
    for listing in (a, b):
        file = (ROOT / listing.file).read_text().splitlines()
        for line in listing.lines:
            assert not line.number or file[line.number - 1] == line.text
    assert b.file == f"gradebook/bugs/{name}.py"
    assert len(a.lines) == len(b.lines)
    for left, other in zip(a.lines, b.lines):
        assert left.text == other.text or left.differs or other.differs
    assert texts(a, True) != texts(b, True)
