"""The commands `bugs`, `explain` and `app`, without their long parts."""

import os
import subprocess
import sys

import pytest

import gradebook
from gradebook.__main__ import main
from gradebook.cases.scenario import bug
from gradebook.core import PROJECT


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
    assert ["10", "C", "2", "+1.000", "−0.480"] in [line.split() for line in lines]
    assert "  (2.000 − 25.750) / 49.507 = −0.480" in lines


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_every_bug_can_be_explained(capsys, name):
    assert main(["explain", name]) == 0
    assert "Workaround: " in capsys.readouterr().out


def test_an_unknown_bug_is_an_error_that_lists_the_known_ones(capsys):
    assert main(["explain", "no_such_bug"]) == 2
    assert "partial_groups" in capsys.readouterr().err


SHOWN = """
import os
from streamlit import config
from streamlit.web import bootstrap, cli
from gradebook.__main__ import start_app

def shown(*_):
    for name in ("server.address", "theme.dark.primaryColor", "server.port"):
        print(config.get_option(name))

bootstrap.run = bootstrap.run_asgi_app = shown
os.execv = lambda _, command: cli.main(command[3:], prog_name="streamlit")
start_app(["--server.port", "8777"])
"""


@pytest.mark.long
def test_the_app_has_the_projects_settings_in_any_folder(tmp_path):
    (tmp_path / ".streamlit").mkdir()
    settings = tmp_path / ".streamlit" / "config.toml"
    settings.write_text('[server]\naddress = "0.0.0.0"\nport = 1\n')
    done = subprocess.run(
        [sys.executable, "-c", SHOWN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["localhost", "#E8E8E8", "8777"], done.stderr
