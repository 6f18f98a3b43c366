"""A small file that would take gigabytes is refused, or read in little memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PEAKS = """
import json, sys
from pathlib import Path
from logs import hostile
from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.logs.read.rows import pasted

def peak():
    "The most memory that this process held since the last `clear_refs`, in MB."
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(l.split()[1]) / 1024 for l in lines if l.startswith("VmHWM"))

def said(file):
    try:
        verdict = check_log([file])
    except GradebookError as error:
        return str(error)
    counted = f"{len(verdict.broken)} of {verdict.log.broken_cells} named"
    return " ".join([counted, verdict.sentence, *verdict.broken[:2]])

said(pasted("step,prompt,reward,advantage\\n1,a,0,-1\\n1,a,1,1\\n"))
found = {}
for name, count in json.loads(sys.argv[1]).items():
    file = getattr(hostile, name)(count)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    sentence = said(file)
    found[name] = sentence, peak() - before
print(json.dumps(found))
"""
FILES = {
    "wide_header": (10**6, "expected at most 512 columns, found 1000001"),
    "quoted_header": (10**6, "expected at most 512 columns, found 1000001"),
    "short_rows": (300_000, "short.csv, line 3: expected 4 cells, found 3"),
    "wrong_cells": (300_000, "words.csv, line 3, column reward: expected a number"),
    "empty_lists": (300_000, "one JSON object a line, found 300,001 others, the first"),
    "scalar_lines": (300_000, "found 300,000 others, the first on line 2"),
    "repeated_string": (60_000, "all advantages are 0"),
    "repeated_list": (60_000, "at most 67,108,864 bytes when it is decoded"),
    "compressed_recording": (10**7, "what a recorder wrote, found compressed buffers"),
}
"""File -> its rows or columns, and what is said of it."""
MOST = 150
"""MB that a check of one of them takes at most. Without the bounds they took between
210 (the lists) and 6,000 (the repeated list), measured on files of this size or in
proportion to a larger one."""


@pytest.fixture(scope="module")
def checked():
    """What was said of each file, and the MB that its check took."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the most memory of a process is read from Linux's /proc")
    counts = json.dumps({name: count for name, (count, _) in FILES.items()})
    environment = os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    run = [sys.executable, "-c", PEAKS, counts]
    given = {"env": environment, "stdout": subprocess.PIPE, "text": True}
    return json.loads(subprocess.run(run, check=True, **given).stdout)


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_ends_in_a_sentence_and_takes_little_memory(name, checked):
    sentence, megabytes = checked[name]
    assert FILES[name][1] in sentence
    assert megabytes < MOST


def test_broken_rows_are_named_up_to_a_hundred_and_all_are_counted(checked):
    for name in ("short_rows", "wrong_cells"):
        assert checked[name][0].startswith("100 of 300000 named")
