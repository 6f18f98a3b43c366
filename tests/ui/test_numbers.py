"""Every picture's numbers, as a table that is made when asked for."""

import csv
import io
import re

import pytest

import gradebook
from gradebook.analysis.influence import influences
from gradebook.output.charts import MapPicture, Timeline
from gradebook.output.tables import table_csv
from gradebook.ui.parts import tables


def shown_tables(page):
    """label -> the rows of cells of each table that names its rows."""
    found = {}
    for html in page.app.html:
        label = re.search(r'aria-label="Numbers: ([^"]*)"', html.value)
        if label and 'scope="row"' in html.value:
            lines = html.value.partition("<tbody>")[2].split("<tr")[1:]
            cells = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", line) for line in lines]
            found[label[1]] = cells
    return found


def number(text):
    return float(text.replace("\u2212", "-").replace("\u2009", ""))


def test_no_table_is_made_before_it_is_asked_for(visit, monkeypatch):
    def refused(*_):
        raise AssertionError("made without being asked for")

    for name in ("of_map", "of_timeline"):
        monkeypatch.setattr(tables, name, refused)
    assert shown_tables(visit("partial_groups").end("deeper")) == {}
    # Home's table of bugs by release is no picture's.
    assert shown_tables(visit("")).keys() <= {"bugs"}


def test_the_map_stands_as_two_tables(visit):
    page = visit("partial_groups")
    page.end("deeper").open("influence").put("numbers-map-partial_groups", True)
    batch = gradebook.load("partial_groups").batch()
    found = influences(gradebook.bug("partial_groups").engine, batch)
    shown = shown_tables(page)
    for side in ("correct", "faulty"):
        lines = shown[f"{side}: row moved, by row"]
        assert [line[0] for line in lines][9:] == ["9 C", "10 C", "11 D"]
        values = [[number(cell) for cell in line[1:]] for line in lines]
        for line, wanted in zip(values, getattr(found, side).tolist()):
            assert line == pytest.approx(wanted, abs=6e-4)
    # TRUTH: row 11's reward moves row 10 by -1.79, faulty.
    assert shown["faulty: row moved, by row"][10][12] == "\u22121.785"


def test_many_rows_are_a_file(visit):
    page = visit("partial_groups").paste("\n".join(["0", "1"] * 17))
    page.end("deeper").open("influence").put("numbers-map-partial_groups", True)
    assert shown_tables(page) == {}
    labels = [b.proto.label for b in page.app.get("download_button")]
    assert labels.count("34 rows as CSV") == 2


def test_a_map_in_numbers_keeps_every_digit_in_its_file():
    drawn = MapPicture([[1 / 3]], [[-2.0]], [[False]], ["=1+1"])
    correct, faulty = tables.of_map(drawn)
    lines = list(csv.reader(io.StringIO(table_csv(correct.head, correct.body))))
    assert lines == [["row moved", "by 0 =1+1"], ["0 =1+1", repr(1 / 3)]]
    assert faulty.body == [["0 =1+1", -2.0]]


def test_no_cell_of_a_file_is_a_formula():
    text = table_csv(["=a"], [["=1+1"], ["@x"]])
    assert text.split() == ["'=a", "'=1+1", "'@x"]


def test_the_timeline_is_a_line_for_each_step():
    drawn = Timeline(["7"], ["suspect"], [0.25], [3])
    (shown,) = tables.of_timeline(drawn)
    assert shown.body == [["7", "suspect", 0.25, 3]]
