"""The verdict as a build server reads it: GitHub's annotations and JUnit."""

from __future__ import annotations

from xml.etree import ElementTree

from gradebook.logs.explore import worst_steps
from gradebook.logs.judging.verdict import Verdict

LEVELS = {0: "notice", 1: "error", 2: "warning"}
"""How grave GitHub shows a verdict, by its exit code."""

WORST = 5
"""So many steps are annotated."""


def github(verdict: Verdict, place: str) -> str:
    """Workflow commands that GitHub shows as annotations: one for the
    verdict, one for each of the worst steps, and one for all notes. `place`
    is what was checked.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    level = LEVELS[verdict.exit_code]
    lines = [_command(level, f"gradebook: {place}", verdict.sentence)]
    for said in _steps(verdict):
        lines.append(_command(level, f"gradebook: {place}", said))
    notes = [*verdict.broken, *verdict.notes]
    if verdict.exit_code and notes:
        lines.append(_command("notice", "gradebook", "\n".join(notes)))
    return "\n".join(lines)


def _command(level: str, title: str, text: str) -> str:
    return f"::{level} title={_property(title)}::{_data(text)}"


def _data(text: str) -> str:
    for sign, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(sign, code)
    return text


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _steps(verdict: Verdict) -> list[str]:
    """The worst steps, a sentence each."""
    return [
        f"Step {step['step']}, row {step['row']}: off by"
        f" {step['correct_residual']:.3g}; rows with another sign:"
        f" {step['flips']}."
        for _, step in worst_steps(verdict, WORST).iterrows()
    ]


def junit(verdict: Verdict, place: str) -> str:
    """A JUnit report with one test, which fails with exit code 1, is skipped
    where the log asks or cannot tell, and is an error where it was only
    partly read."""
    suites = ElementTree.Element("testsuites", name="gradebook")
    failed = verdict.verdict in ("suspect", "other")
    partly = verdict.verdict == "correct" and verdict.exit_code != 0
    skipped = verdict.verdict in ("asks", "cannot tell", "none fits")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name="gradebook check",
        tests="1",
        failures=str(int(failed)),
        errors=str(int(partly)),
        skipped=str(int(skipped)),
    )
    case = ElementTree.SubElement(
        suite, "testcase", classname="gradebook.check", name=_xml(place)
    )
    kind = "failure" if failed else "error" if partly else "skipped"
    if failed or partly or skipped:
        told = ElementTree.SubElement(case, kind, message=_xml(verdict.sentence))
        told.text = _xml("\n".join(_steps(verdict)))
    notes = ElementTree.SubElement(case, "system-out")
    notes.text = _xml("\n".join([verdict.sentence, *verdict.notes, *verdict.broken]))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'


def _xml(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
