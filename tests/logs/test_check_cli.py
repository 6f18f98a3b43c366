"""python -m gradebook check, as a shell runs it, and the exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from logs.made import made

from gradebook.__main__ import main

ROOT = Path(__file__).parents[2]
MODULE = (sys.executable, "-W", "error", "-m", "gradebook")
TRL = Path(__file__).parents[1] / "logs" / "trl-group"


@pytest.fixture
def run(capsys):
    """The command in this process: exit code, output, errors."""

    def inner(*arguments):
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
        told = capsys.readouterr()
        return code, told.out, told.err

    return inner


@pytest.fixture
def faulty(tmp_path):
    path = tmp_path / "run.csv"
    made("partial_groups").to_csv(path, index=False)
    return path


def test_a_shell_gets_1_for_a_suspect_and_machines_can_read_it(faulty):
    done = subprocess.run(
        [*MODULE, "check", faulty, "--format", "json"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")
    answer = json.loads(done.stdout)
    assert (answer["verdict"], answer["bug"]) == ("suspect", "partial_groups")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "no such file.csv"),
        ("check", "README.md"),
        (),
        ("check",),
        ("frobnicate",),
        ("check", str(TRL), "--weights", "1,x"),
        ("check", str(TRL), "--weights", "1"),
        ("check", str(TRL), "--group-size", "0"),
        ("check", str(TRL), "--column", "reward"),
        ("check", str(TRL), "--column", "reward=nothing"),
        ("check", str(TRL), "--column", "colour=vowels"),
        ("check", str(TRL), "--html", "/no/such/folder/out.html"),
    ],
)
def test_bad_input_is_one_line_and_exits_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1 and "Traceback" not in err


def test_columns_weights_and_group_size_can_be_said(run, tmp_path):
    path = tmp_path / "odd.csv"
    log = made(steps=3).drop(columns=["eos", "response_length"])
    log = log.rename(columns={"reward": "gold", "advantage": "edge", "prompt": "who"})
    log.to_csv(path, index=False)
    assert run("check", path)[0] == 2
    pairs = ("reward=gold", "advantage=edge", "prompt=who")
    columns = [word for pair in pairs for word in ("--column", pair)]
    code, out, _ = run("check", path, *columns, "--group-size", 4)
    assert code == 0 and "reward = gold" in out
    code, out, _ = run("check", TRL)
    assert code == 2 and "Give them with --weights" in out
    assert run("check", TRL, "--weights", "1,0.5")[0] == 0
    assert run("check", TRL, "--weights", "1,0")[0] == 2


def test_the_report_and_the_test_file_are_written(run, faulty, tmp_path):
    page, test = tmp_path / "out.html", tmp_path / "test_out.py"
    code, _, err = run("check", TRL, "--weights", "1,0.5", "--test", test)
    assert code == 0 and "no suspect" in err and not test.exists()
    assert run("check", faulty, "--html", page, "--test", test)[0] == 1
    assert page.read_text().lower().startswith("<!doctype html>")
    compile(test.read_text(), str(test), "exec")


def test_a_log_cannot_move_the_cursor(run, tmp_path):
    path = tmp_path / "run.csv"
    log = made(steps=2)
    log["step"] = ["\x1b[2J" + str(s) for s in log["step"]]
    log["advantage"] += 1
    log.to_csv(path, index=False)
    _, out, _ = run("check", path)
    assert "\x1b" not in out
