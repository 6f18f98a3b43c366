"""The verdict as a build server reads it: GitHub's annotations and JUnit."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gradebook.core.formatting import short
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
    level, title = LEVELS[verdict.exit_code], f"gradebook: {place}"
    lines = [(level, title, text) for text in (verdict.sentence, *_steps(verdict))]
    notes = [*verdict.broken, *verdict.notes]
    if verdict.exit_code and notes:
        lines.append(("notice", "gradebook", "\n".join(notes)))
    return "\n".join(
        f"::{level} title={_escaped(title, ':,')}::{_escaped(text)}"
        for level, title, text in lines
    )


def _escaped(text: str, more: str = "") -> str:
    """The text with the signs that end an annotation, and `more`, in hex."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in text)


def _steps(verdict: Verdict) -> list[str]:
    """The worst steps, a sentence each."""
    return [
        f"Step {step['step']}, row {step['row']}: off by"
        f" {short(step['correct_residual'], 3)}; rows with another sign:"
        f" {step['flips']}."
        for _, step in worst_steps(verdict, WORST).iterrows()
    ]


def junit(verdict: Verdict, place: str) -> str:
    """A JUnit report with one test, which fails with exit code 1, is skipped
    where the log asks or cannot tell, and is an error where it was only
    partly read."""
    partly = "error" if verdict.verdict == "correct" else "skipped"
    kind = {0: "", 1: "failure", 2: partly}[verdict.exit_code]
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: str(int(kind == tag)) for name, tag in names.items()}
    suites = Element("testsuites", name="gradebook")
    suite = SubElement(
        suites, "testsuite", {"name": "gradebook check", "tests": "1", **counts}
    )
    case = SubElement(suite, "testcase", classname="gradebook.check", name=_xml(place))
    if kind:
        result = SubElement(case, kind, message=_xml(verdict.sentence))
        result.text = _xml("\n".join(_steps(verdict)))
    notes = [verdict.sentence, *verdict.notes, *verdict.broken]
    SubElement(case, "system-out").text = _xml("\n".join(notes))
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, "unicode")}'


def _xml(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
