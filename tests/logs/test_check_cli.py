"""python -m gradebook check, as a shell runs it: exit codes, and the verdict as JSON,
annotations and a JUnit report."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from logs.made import made

from gradebook.__main__ import main
from gradebook.core.errors import GradebookError
from gradebook.logs.log import options_of

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
    path = tmp_path / "run,1.csv"
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
        "check nofile.csv",
        "check README.md",
        "",
        "check",
        "frobnicate",
        f"check {TRL} --weights 1,x",
        f"check {TRL} --weights 1",
        f"check {TRL} --weights inf,1",
        f"check {TRL} --group-size 0",
        f"check {TRL} --column reward",
        f"check {TRL} --column reward=nothing",
        f"check {TRL} --column colour=vowels",
        f"check {TRL} --html /no/such/folder/out.html",
    ],
)
def test_bad_input_is_one_line_and_exits_2(run, arguments):
    code, _, err = run(*arguments.split())
    assert code == 2
    assert len(err.strip().splitlines()) == 1 and "Traceback" not in err
    assert "weights" in err or "--weights" not in arguments


def test_options_are_read_as_typed():
    columns, declared = ("reward = score", "", "prompt=uid"), "estimator=grpo, ddof = 0"
    assert options_of(columns, declared, "1, 0.5", "8") == {
        "columns": {"reward": "score", "prompt": "uid"},
        "declared": {"estimator": "grpo", "ddof": "0"},
        "weights": [1.0, 0.5],
        "group_size": 8,
    }
    assert not any(options_of((), "", "", "").values())
    with pytest.raises(GradebookError, match="'declared': expected name = value"):
        options_of((), "grpo", "", "")
    with pytest.raises(GradebookError, match="one value of ddof.*ddof=0 and ddof=1"):
        options_of((), "ddof=0,ddof=1", "", "")
    with pytest.raises(GradebookError, match="weights.*below 1e300"):
        options_of((), "", "1,-1e301", "")  # their sums and squares are infinite
    with pytest.raises(GradebookError, match="'column': expected name = value"):
        options_of(("reward",), "", "", "")


def test_declarations_are_joined_and_may_not_contradict_each_other(run):
    once = run("check", str(TRL), "--declared", "estimator=dr_grpo,ddof=0")
    apart = ["--declared", "estimator=dr_grpo", "--declared", "ddof=0"]
    assert run("check", str(TRL), *apart) == once
    assert "estimator=dr_grpo" in once[1] and "ddof=0" in once[1]
    code, _, err = run("check", str(TRL), *apart, "--declared", "ddof=1")
    assert code == 2 and "one value of ddof" in err


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
    assert code == 0 and "match GRPO (ddof 1, eps 0.0001)" in out
    assert run("check", TRL, "--weights", "1,0.5")[0] == 0
    assert run("check", TRL, "--weights", "1,0")[0] == 2


def test_a_log_of_which_no_row_can_be_read_is_judged(run, tmp_path):
    path, page = tmp_path / "run.csv", tmp_path / "out.html"
    path.write_text("step,prompt,reward,advantage\n1,a,x,1\n1,a,y,2\n")
    for form in ("text", "json", "github", "junit"):
        code, out, err = run("check", path, "--format", form, "--html", page)
        assert (code, err) == (2, "") and "no step of this log could be judged" in out


def test_the_report_and_the_test_file_are_written(run, faulty, tmp_path):
    page, test = tmp_path / "out.html", tmp_path / "test_out.py"
    code, _, err = run("check", TRL, "--weights", "1,0.5", "--test", test)
    assert code == 0 and "no suspect" in err and not test.exists()
    assert run("check", faulty, "--html", page, "--test", test)[0] == 1
    assert page.read_text().lower().startswith("<!doctype html>")
    compile(test.read_text(), str(test), "exec")


def test_a_suspect_is_an_error_with_its_worst_steps(faulty, run):
    plain = run("check", faulty)[1].splitlines()[0]
    code, text, _ = run("check", faulty, "--format", "github")
    first, *steps = text.splitlines()
    assert code == 1
    title = str(faulty).replace(":", "%3A").replace(",", "%2C")
    assert first == f"::error title=gradebook%3A {title}::{plain}"
    assert steps[0].startswith("::error title=gradebook%3A")
    assert ", row " in steps[0] and "off by" in steps[0]


def test_a_correct_log_is_a_notice_beside_its_signal(run, tmp_path):
    made().to_csv(tmp_path / "run.csv", index=False)
    code, text, _ = run("check", tmp_path, "--format", "github")
    verdict, signal = text.splitlines()
    assert code == 0 and verdict.startswith("::notice title=gradebook%3A ")
    assert signal.startswith("::notice title=gradebook::Is the run still learning?")


def test_a_log_cannot_move_the_cursor_or_end_an_annotation(tmp_path, run):
    frame = made(steps=3)
    frame["step"] = frame["step"].map(lambda s: f"\x1b[2J50%\n::error::{s}")
    frame["advantage"] = frame["advantage"] + 1
    frame.to_parquet(tmp_path / "log.parquet")
    assert "\x1b" not in run("check", tmp_path)[1]
    code, text, _ = run("check", tmp_path, "--format", "github")
    assert code == 2
    assert "50%25%0A::error::1" in text
    assert not any(line.startswith("::error::") for line in text.splitlines())


@pytest.mark.parametrize(
    "bug, lacking, code, tag",
    [
        ("", "", 0, None),
        ("partial_groups", "", 1, "failure"),
        ("", "advantages", 2, "skipped"),
        ("", "a number", 2, "error"),
    ],
)
def test_a_junit_report_has_one_test(tmp_path, run, bug, lacking, code, tag):
    frame = made(bug).astype({"reward": object})
    if lacking == "a number":
        frame.loc[0, "reward"] = "much"
    if lacking == "advantages":
        frame = frame.drop(columns="advantage")
    path = str(tmp_path / "run.csv")
    frame.to_csv(path, index=False)
    plain = run("check", path)[1].splitlines()[0]
    exit_code, text, _ = run("check", path, "--format", "junit")
    assert exit_code == code
    (suite,) = ElementTree.fromstring(text)
    names = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for kind, count in names.items():
        assert int(suite.get(count)) == (kind == tag)
    (case,) = suite
    assert case.get("name") == path
    assert [e.tag for e in case] == ([tag] if tag else []) + ["system-out"]
    assert not tag or case[0].get("message") == plain
