"""The verdict in words: for a terminal, as one HTML file that needs nothing else, as
GitHub's annotations, and as JUnit."""

import math
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gradebook.core.formatting import counted, short
from gradebook.core.tolerance import EXACT
from gradebook.logs.explore import sentences, shown_steps, worst_steps
from gradebook.logs.judging.verdict import Verdict
from gradebook.output.rendering import rendered

LEARNING = "Is the run still learning?"
SHORT = 6
"""Number of lines after the verdict in a terminal without --verbose, and of worst steps
with it: what a person reads at one look."""


def facts(verdict: Verdict) -> list[tuple[str, str]]:
    """The facts of a verdict as pairs of name and value, without empty ones."""
    files, columns = list(verdict.files), verdict.columns.items()
    residuals = verdict.residual, verdict.correct_residual
    distance, correct = (short(x, 3) if math.isfinite(x) else "" for x in residuals)
    worst = [f"step {s['step']}, row {s['row']}" for s in worst_first(verdict)]
    none_fits = verdict.verdict == "none fits"
    counts = shown_steps(verdict)["verdict"].value_counts().items()
    facts = {
        "Declared": ", ".join(f"{k}={v}" for k, v in verdict.declared.items()),
        "Convention": verdict.convention,
        "Steps judged": f"{verdict.steps_judged:,} of {verdict.steps_read:,}",
        "Steps that it explains": "" if none_fits else f"{verdict.steps_fitted:,}",
        "Step by step": ", ".join(f"{count:,} {name}" for name, count in counts),
        "Rows": f"{verdict.log.rows:,}",
        "Largest distance from this computation": distance,
        "Largest distance from the correct one": correct,
        "Rows with another sign": f"{verdict.flips:,}",
        "Groups that are off": f"{verdict.frame['groups_affected'].sum():,}",
        "First step that is off": "" if verdict.step is None else f"{verdict.step}",
        "Row that is furthest off": next(iter(worst), ""),
        "Weights of the rewards": ", ".join(f"{w:g}" for w in verdict.weights),
        "Files": f"{len(files)}: {', '.join(files[:3])}" + " …" * (len(files) > 3),
        "Columns": ", ".join(f"{role} = {name}" for role, name in columns),
    }
    return [(name, value) for name, value in facts.items() if value]


def worst_first(verdict: Verdict) -> list[dict[str, Any]]:
    """The step whose worst row is furthest off, if one is off."""
    steps: list[dict[str, Any]] = worst_steps(verdict, 1).to_dict("records")
    return [step for step in steps if step["correct_residual"] > EXACT]


def judged(verdict: Verdict) -> str:
    """ "Judged 1 of 6 steps."; "" if all that were read were judged."""
    if verdict.steps_judged == verdict.steps_read:
        return ""
    steps = counted(verdict.steps_read, "step")
    return f"Judged {verdict.steps_judged:,} of {steps}."


def lists(verdict: Verdict) -> dict[str, list[str]]:
    """Title -> sentences of that section; a section may be empty."""
    return {
        "What this log cannot tell": [*verdict.ties.values()],
        "Notes, and what was not checked": [*verdict.notes],
        "Left out or missing": [*verdict.broken],
    }


def report(verdict: Verdict) -> str:
    """A short HTML page; all text in it is escaped."""
    return rendered(
        "report.html.jinja",
        sentence=f"{verdict.sentence} {judged(verdict)}".strip(),
        facts=[("Verdict", verdict.verdict), *facts(verdict)],
        lists={
            LEARNING: signal_lines(verdict),
            "The worst steps": worst_lines(verdict, 10),
            "What each engine would compute": sentences(verdict.what_if),
            **lists(verdict),
        },
    )


def text(verdict: Verdict, verbose: bool) -> str:
    """The verdict for a terminal, with at most SHORT more lines unless `verbose`."""
    chosen = verdict.columns
    if verdict.log.named_steps:
        chosen = {"step": "the number in a file's or folder's name", **chosen}
    columns = ", ".join(f"{role} = {name}" for role, name in chosen.items())
    learning = signal_lines(verdict)
    lines = [verdict.near, judged(verdict)]
    lines += worst_lines(verdict, SHORT if verbose else 1)
    lines += [f"{LEARNING} {text}" for text in learning[: None if verbose else 1]]
    lines += sentences(verdict.what_if) if verbose else []
    if len(verdict.weights) > 1:
        columns += f"; weights {', '.join(f'{w:g}' for w in verdict.weights)}"
    lines += [f"Columns: {columns}."] if any(verdict.columns.values()) else []
    if verbose:
        lines += [f"Not told apart: {tie}" for tie in verdict.ties.values()]
        lines += [*verdict.notes, *verdict.broken]
    else:
        lines += [f"Left out: {b} (--verbose shows all)" for b in verdict.broken[:1]]
        why = verdict.unchecked and " --verbose says what each is for."
        lines.append(verdict.unchecked + why)
    lines = list(filter(None, lines))[: None if verbose else SHORT]
    return "\n".join(map(printable, [verdict.sentence, *lines]))


def github(verdict: Verdict, place: str) -> str:
    """Workflow commands that GitHub shows as annotations: one for the
    verdict, one for each of the worst steps, and one for all notes. `place`
    is what was checked.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    level = ("notice", "error", "warning")[verdict.exit_code]
    title = f"gradebook: {place}"
    lines = [(level, title, text) for text in (verdict.sentence, *worst_lines(verdict))]
    if learning := signal_lines(verdict):
        lines.append(("notice", "gradebook", "\n".join([LEARNING, *learning])))
    notes = [*verdict.broken, *verdict.notes]
    if verdict.exit_code and notes:
        lines.append(("notice", "gradebook", "\n".join(notes)))
    return "\n".join(
        f"::{level} title={escaped(title, ':,')}::{escaped(text)}"
        for level, title, text in lines
    )


def escaped(text: str, more: str = "") -> str:
    """The text with the signs that end an annotation, and `more`, in hex."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in text)


def signal_lines(verdict: Verdict) -> list[str]:
    """What the rewards can still teach, a sentence each."""
    return [*verdict.signal.sentences] if verdict.signal else []


def worst_lines(verdict: Verdict, most: int = SHORT) -> list[str]:
    """The worst steps, each in words."""
    reference = _reference(verdict)
    return [
        f"Step {step['step']}, row {step['row']}: off by"
        f" {short(step['correct_residual'], 3)}{reference}. {_turned(step['flips'])};"
        f" {step['groups_affected']} of its {counted(step['groups'], 'group')} are off."
        for step in worst_steps(verdict, most).to_dict("records")
        if step["correct_residual"] > EXACT
    ]


def _reference(verdict: Verdict) -> str:
    """From what the rows of a log that no computation fits are off; "" if one fits."""
    if verdict.verdict != "none fits" or verdict.judgement is None:
        return ""
    is_declared = verdict.judgement.declaration.decides
    return f" from the {'declared' if is_declared else 'closest'} computation"


def _turned(flips: int) -> str:
    if not flips:
        return "No row of the step has the opposite sign"
    have = "has" if flips == 1 else "have"
    return f"{counted(flips, 'row')} of the step {have} the opposite sign"


def junit(verdict: Verdict, place: str) -> str:
    """A JUnit report with one test, which fails with exit code 1, is skipped
    if the log asks or cannot tell, and is an error if it was only
    partly read."""
    partly = "error" if verdict.verdict == "correct" else "skipped"
    kind = {0: "", 1: "failure", 2: partly}[verdict.exit_code]
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: str(int(kind == tag)) for name, tag in names.items()}
    suites = Element("testsuites", name="gradebook")
    suite = SubElement(
        suites, "testsuite", {"name": "gradebook check", "tests": "1", **counts}
    )
    case = SubElement(suite, "testcase", classname="gradebook.check", name=place)
    if kind:
        result = SubElement(case, kind, message=printable(verdict.sentence))
        result.text = printable("\n".join(worst_lines(verdict)), "\n")
    sentences = [verdict.sentence, *signal_lines(verdict), *verdict.notes]
    notes = "\n".join([*sentences, *verdict.broken])
    SubElement(case, "system-out").text = printable(notes, "\n")
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, "unicode")}'


def printable(text: str, more: str = "") -> str:
    """The text without what moves a cursor or XML bars; thin spaces and `more` stay."""
    return "".join(c if c.isprintable() or c in f"\u2009{more}" else "�" for c in text)
