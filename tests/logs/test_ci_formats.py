"""The verdict as annotations and as a JUnit report."""

from xml.etree import ElementTree

import pytest
from logs.made import made

from gradebook.__main__ import main


@pytest.fixture
def log(tmp_path):
    def written(**kind):
        path = tmp_path / "run,1.csv"
        made(**kind).to_csv(path, index=False)
        return str(path)

    return written


def printed(capsys, *arguments):
    code = main(["check", *arguments])
    return code, capsys.readouterr().out


def test_a_suspect_is_an_error_with_its_worst_steps(log, capsys):
    path = log(bug="partial_groups")
    plain = printed(capsys, path)[1].splitlines()[0]
    code, text = printed(capsys, path, "--format", "github")
    first, *steps = text.splitlines()
    assert code == 1
    title = path.replace(":", "%3A").replace(",", "%2C")
    assert first == f"::error title=gradebook%3A {title}::{plain}"
    assert steps[0].startswith("::error title=gradebook%3A")
    assert ", row " in steps[0] and "off by" in steps[0]


def test_a_correct_log_is_one_notice(log, capsys):
    code, text = printed(capsys, log(), "--format", "github")
    (only,) = text.splitlines()
    assert code == 0 and only.startswith("::notice title=gradebook%3A ")


def test_signs_that_end_an_annotation_are_escaped(tmp_path, capsys):
    frame = made(steps=3)
    frame["step"] = frame["step"].map(lambda s: f"50%\n::error::{s}")
    frame["advantage"] = frame["advantage"] + 1
    frame.to_parquet(tmp_path / "log.parquet")
    code, text = printed(capsys, str(tmp_path), "--format", "github")
    assert code == 2
    assert "50%25%0A::error::1" in text
    lines = text.splitlines()
    assert not any(line.startswith("::error::") for line in lines)


@pytest.mark.parametrize(
    "bug, lacking, code, tag",
    [
        ("", "", 0, None),
        ("partial_groups", "", 1, "failure"),
        ("", "advantages", 2, "skipped"),
        ("", "a number", 2, "error"),
    ],
)
def test_a_junit_report_has_one_test(tmp_path, capsys, bug, lacking, code, tag):
    frame = made(bug).astype({"reward": object})
    if lacking == "a number":
        frame.loc[0, "reward"] = "much"
    if lacking == "advantages":
        frame = frame.drop(columns="advantage")
    path = str(tmp_path / "run.csv")
    frame.to_csv(path, index=False)
    plain = printed(capsys, path)[1].splitlines()[0]
    exit_code, text = printed(capsys, path, "--format", "junit")
    assert exit_code == code
    (suite,) = ElementTree.fromstring(text)
    names = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for kind, count in names.items():
        assert int(suite.get(count)) == (kind == tag)
    (case,) = suite
    assert case.get("name") == path
    assert [e.tag for e in case] == ([tag] if tag else []) + ["system-out"]
    assert not tag or case[0].get("message") == plain
