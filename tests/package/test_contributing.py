"""CONTRIBUTING's reading paths name files that exist, with their length."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SECTION = TEXT.partition("## Read the code\n")[2].partition("\n## ")[0]
PATHS = dict(
    re.findall(r"^\d\. \*\*(.*?)\*\* (.*?)(?=^\d\. |\Z)", SECTION, re.M | re.S)
)
"""The title of a path -> its text."""


@pytest.mark.parametrize("title", PATHS)
def test_a_reading_path_is_as_long_as_it_says(title):
    files = {*re.findall(r"`((?:\w+/)+\w+\.(?:py|toml))`", PATHS[title])}
    assert len(files) >= 5
    paths = [
        ROOT / ("" if f.startswith("scenarios/") else "gradebook") / f for f in files
    ]
    length = sum(len(path.read_text("utf-8").splitlines()) for path in paths)
    told = int(re.search(r"\(([\d,]+) lines\)", PATHS[title])[1].replace(",", ""))
    assert told == pytest.approx(length, rel=0.1)


def test_there_are_four_paths():
    assert len(PATHS) == 4
