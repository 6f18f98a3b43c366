"""The commands `bugs`, `explain` and `app`, without their long parts."""

import tomllib

import pytest

import gradebook
from gradebook.__main__ import main
from gradebook.cases.record import bug
from gradebook.core.project import PROJECT
from gradebook.ui.launch import project_flags


def test_the_list_names_every_bug_with_its_status(capsys):
    assert main(["bugs"]) == 0
    text = capsys.readouterr().out
    for name in gradebook.BUGS:
        own = bug(name)
        assert f"{name}: {own.title} ({own.standing})" in text


def test_a_bug_is_explained_by_its_own_numbers(capsys):
    assert main(["explain", "partial_groups"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Worked out by hand in the scenario file: row 10 is +1 and -0.480.
    assert " 10       C       2   +1.000  −0.480" in lines
    assert "  (2.000 − 25.750) / 49.507 = −0.480" in lines


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_every_bug_can_be_explained(capsys, name):
    assert main(["explain", name]) == 0
    assert "Workaround: " in capsys.readouterr().out


def test_an_unknown_bug_is_an_error_that_lists_the_known_ones(capsys):
    assert main(["explain", "no_such_bug"]) == 2
    assert "partial_groups" in capsys.readouterr().err


def test_the_app_is_started_with_every_setting_of_the_project():
    text = (PROJECT / ".streamlit/config.toml").read_text("utf-8")
    flags = project_flags()
    assert "--browser.gatherUsageStats=false" in flags
    assert "--theme.dark.primaryColor=#3D8FD1" in flags
    tables = tomllib.loads(text)
    settings = [
        value for section in tables.values() for value in section.values()
    ]
    nested = sum(len(v) - 1 for v in settings if isinstance(v, dict))
    assert len(flags) == len(settings) + nested
