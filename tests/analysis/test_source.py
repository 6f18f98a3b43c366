"""Two functions as they stand in their files, line beside line."""

from pathlib import Path

import pytest

import gradebook
from gradebook.analysis.formula import beside, first_sentence

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


def test_the_docstring_is_left_out_and_its_first_sentence_is_for_readers():
    a, _ = beside(right, wrong)
    assert not any("sum" in line.text for line in a.lines)
    assert a.file == "tests/analysis/test_source.py"
    assert first_sentence(right) == "The sum of it."
    assert first_sentence(wrong) == "The sum, wrongly."


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_every_line_stands_in_its_file_under_its_number(name):
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
