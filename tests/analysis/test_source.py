"""Two functions as they stand in their files, line beside line."""

from pathlib import Path

import pytest

import gradebook
from gradebook.analysis.source import beside, first_sentence

ROOT = Path(__file__).parents[2]


def both_sides(name):
    swapped = gradebook.bug(name)
    return beside(swapped.correct, swapped.faulty)


def right(batch):
    """The sum. float [R].

    More of it.
    """
    total = batch + 1
    kept = total * 2
    return kept


def wrong(batch):
    """The sum, wrongly. float [R]."""
    total = batch + 1
    # A line more.
    extra = total
    kept = extra * 3
    return kept


def texts(listing, differs):
    return [line.text for line in listing.lines if line.differs is differs]


def test_lines_that_differ_are_marked_and_stand_side_by_side():
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


def test_the_docstring_is_left_out():
    a, _ = beside(right, wrong)
    assert not any("sum" in line.text for line in a.lines)
    assert a.file == "tests/analysis/test_source.py"


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_every_line_stands_in_its_file_under_its_number(name):
    for listing in both_sides(name):
        file = (ROOT / listing.file).read_text().splitlines()
        for line in listing.lines:
            if line.number:
                assert file[line.number - 1] == line.text


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_both_sides_are_as_high_and_agree_where_unmarked(name):
    a, b = both_sides(name)
    assert len(a.lines) == len(b.lines)
    for left, other in zip(a.lines, b.lines):
        assert (left.text == other.text) or (left.differs or other.differs)
    assert texts(a, True) != texts(b, True)


def test_the_line_of_the_no_eos_bug():
    a, b = both_sides("no_eos_outliers")
    marked = [line for line in texts(a, True) if line]
    assert marked == ["    return is_first(batch.rollout_index, credited)"]
    assert texts(b, True) == [
        "    voters = has_tokens(batch) & batch.scored",
        "    return is_first(batch.rollout_index, voters)",
    ]
    assert b.file == "gradebook/bugs/no_eos_outliers.py"


@pytest.mark.parametrize(
    "doc, sentence",
    [
        ("The mean. float [R].", "The mean."),
        ("The mean\n    over rows. More.", "The mean over rows."),
        ("One only.", "One only."),
    ],
)
def test_the_first_sentence_of_a_docstring(doc, sentence):
    def stage():
        pass

    stage.__doc__ = doc
    assert first_sentence(stage) == sentence
