"""The README's Python runs as it stands there."""

import re
from pathlib import Path

import pytest

from gradebook.__main__ import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_library_example_prints_what_it_says(capsys):
    (block,) = [b for b in BLOCKS if "gradebook.load" in b]
    exec(block, {})
    printed = re.findall(r"-?[0-9]+\.[0-9]+", capsys.readouterr().out)
    assert [float(n) for n in printed[:2]] == pytest.approx([1.0, -0.48], abs=1e-3)


def test_the_recorded_example_is_correct(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = [b for b in BLOCKS if "gradebook.Recorder" in b]
    exec(block, {})
    assert main(["check", "run-7"]) == 0
    said = "The advantages match Dr. GRPO, as declared: estimator=dr_grpo."
    assert said in capsys.readouterr().out


def test_files_that_the_readme_names_are_there():
    named = re.findall(r"`([a-z_/]+\.(?:py|toml|md))`", README)
    assert len(named) > 15
    places = (ROOT, ROOT / "gradebook")
    gone = [n for n in named if not any((p / n).exists() for p in places)]
    assert gone == []


def test_the_checked_example_prints_what_it_says(capsys):
    command, shown = re.search(
        r"-m gradebook (check scenarios/\S+)\n```\n\n```\n(.*?)```", README, re.S
    ).groups()
    name, log = command.split()
    assert main([name, str(ROOT / log)]) == 1
    assert capsys.readouterr().out == shown
