"""The verdict to take home: one HTML file that needs nothing else, GitHub's
annotations, and JUnit."""

import math
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gradebook.core.formatting import short
from gradebook.logs.explore import sentences, worst_steps
from gradebook.logs.judging.verdict import Verdict
from gradebook.output.rendering import rendered

WORST = {
    "step": "Step",
    "bug": "Named",
    "correct_residual": "Off by",
    "row": "at row",
    "flips": "Flips",
    "groups_affected": "Groups affected",
    "groups": "of",
}
"""Columns of the table of the worst steps, with their titles."""


def facts(verdict: Verdict) -> list[tuple[str, str]]:
    """What was read and what it came to, in short; what there is nothing of is
    left out."""
    files, columns = list(verdict.files), verdict.columns.items()
    residuals = verdict.residual, verdict.correct_residual
    distance, correct = (short(x, 3) if math.isfinite(x) else "" for x in residuals)
    where = f"step {verdict.step}, row {verdict.row}"
    none_fits = verdict.verdict == "none fits"
    facts = {
        "Declared": ", ".join(f"{k}={v}" for k, v in verdict.declared.items()),
        "Convention": verdict.convention,
        "Steps judged": f"{verdict.steps_judged:,} of {verdict.steps_read:,}",
        "Steps that it fits": "" if none_fits else f"{verdict.steps_fitted:,}",
        "Rows": f"{verdict.log.rows:,}",
        "Largest distance from this computation": distance,
        "Largest distance from the correct one": correct,
        "Rows with another sign": f"{verdict.flips:,}",
        "First off, and where most": "" if verdict.step is None else where,
        "Weights of the rewards": ", ".join(f"{w:g}" for w in verdict.weights),
        "Files": f"{len(files)}: {', '.join(files[:3])}" + " …" * (len(files) > 3),
        "Columns": ", ".join(f"{role} = {name}" for role, name in columns),
    }
    return [(name, value) for name, value in facts.items() if value]


def report(verdict: Verdict) -> str:
    """A short HTML page; all text in it is escaped."""
    steps = verdict.frame["verdict"].value_counts() if len(verdict.frame) else {}
    counts = ", ".join(f"{n:,} {name}" for name, n in steps.items())
    worst = worst_steps(verdict).astype(object)
    worst["correct_residual"] = [short(n, 3) for n in worst["correct_residual"]]
    return rendered(
        "report.html.jinja",
        sentence=verdict.sentence,
        facts=[
            ("Verdict", verdict.verdict),
            ("Step by step", counts or "none"),
            *facts(verdict),
        ],
        worst_head=list(WORST.values()),
        worst=worst[list(WORST)].astype(str).to_numpy().tolist(),
        lists=[
            ("What each engine would compute", sentences(verdict.what_if)),
            ("What this log cannot tell", [*verdict.ties.values()]),
            ("Notes", list(verdict.notes)),
            ("Left out", list(verdict.broken)),
        ],
    )


def github(verdict: Verdict, place: str) -> str:
    """Workflow commands that GitHub shows as annotations: one for the
    verdict, one for each of the worst steps, and one for all notes. `place`
    is what was checked.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    level = ("notice", "error", "warning")[verdict.exit_code]
    title = f"gradebook: {place}"
    lines = [(level, title, text) for text in (verdict.sentence, *worst_lines(verdict))]
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


def worst_lines(verdict: Verdict, most: int = 5) -> list[str]:
    """The worst steps, a sentence each."""
    return [
        f"Step {step['step']}, row {step['row']}: off by"
        f" {short(step['correct_residual'], 3)}; flips: {step['flips']}, groups"
        f" affected: {step['groups_affected']} of {step['groups']}."
        for step in worst_steps(verdict, most).to_dict("records")
        if step["correct_residual"] > 1e-9
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
        result.text = _xml("\n".join(worst_lines(verdict)))
    notes = [verdict.sentence, *verdict.notes, *verdict.broken]
    SubElement(case, "system-out").text = _xml("\n".join(notes))
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, "unicode")}'


def _xml(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
