"""A picture's numbers, as tables that are made when they are asked for."""

import pytest

import gradebook
from gradebook.analysis.influence import influences
from gradebook.ui.parts import deeper


def test_the_map_stands_as_two_tables(visit):
    page = visit("partial_groups").end("deeper").open("influence")
    assert not page.app.dataframe
    page.put("numbers-map-partial_groups", True)
    batch = gradebook.load("partial_groups").batch()
    maps = influences(gradebook.bug("partial_groups").engine, batch)
    correct, faulty = (frame.value for frame in page.app.dataframe)
    for shown, matrix in ((correct, maps.correct), (faulty, maps.faulty)):
        assert list(shown.index[9:]) == ["9 C", "10 C", "11 D"]
        assert shown.columns[11] == "by 11 D"
        assert shown.to_numpy() == pytest.approx(matrix.numpy(), abs=1e-9)
    # TRUTH: row 11's reward moves row 10 by -1.79, faulty.
    assert faulty.loc["10 C", "by 11 D"] == pytest.approx(-1.785, abs=1e-3)


def test_no_table_is_made_before_it_is_asked_for(visit, monkeypatch):
    monkeypatch.setattr(deeper, "frames_of", pytest.fail)
    visit("partial_groups").end("deeper").open("influence")
