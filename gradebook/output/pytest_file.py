"""A state as a regression test for a trainer of one's own.

The test asks for the laws of the bug's record, with the source of
gradebook.analysis.laws; everything that a learner typed is a Python literal.
"""

from __future__ import annotations

import inspect
import math
import re
from typing import Any, NamedTuple

from gradebook.analysis import laws
from gradebook.analysis.comparison import compare
from gradebook.analysis.law_check import convention, on_engine, steps_of, words
from gradebook.analysis.laws import GRADIENT, LAWS, Law, worst
from gradebook.cases.scenario import Bug, bug, load
from gradebook.cases.state import State, start
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.rendering import rendered

HIDES = "hides the bug: both engines agree on it"
LOOSE = 1e-4
"""A correct trainer in float32 stays within this."""


class PytestFile(NamedTuple):
    """A test file, and what to say beside it."""

    text: str
    note: str


def pytest_file(state: State, link: str) -> PytestFile:
    """A test file that passes on a trainer without the bug and fails on one
    that has it.

    It asks for laws, which hold whatever a trainer's conventions; where none
    of them shows the bug on this batch, it asks for the correct numbers.
    Where the batch hides the bug, a case's own rows are added, and the note
    says so. Raises GradebookError where the batch cannot be read, and where
    the faulty engine has not exactly one bug.
    """
    record = bug(state.bug)
    main = load(record.name)
    gradient = any(LAWS[name] in GRADIENT for name in record.laws)
    cases, note = [_case("edited", state, record, gradient)], ""
    if not cases[0]["tells"]:
        shipped = state.scenario
        case = _case(shipped.name, start(shipped), record, gradient)
        if not case["tells"]:
            case = _case(main.name, start(main), record, gradient)
        why = HIDES if cases[0]["agree"] else "cannot tell a faulty trainer"
        note = f"This batch {why}. The rows of the case '{case['name']}' are"
        note += " in the test as well."
        cases.append(case)
    cases = [case for case in cases if case["steps"]]
    asked = {test["name"] for case in cases for test in case["tests"]}
    parts = [
        value
        for name, value in vars(laws).items()
        if getattr(value, "__module__", "") == laws.__name__
        and (name in asked or value not in LAWS.values())
    ]
    rule = state.scenario.rule if state.scenario.bug == state.bug else main.rule
    policies = {"logp", "ref_logp"} & {name for case in cases for name in case["names"]}
    text = rendered(
        "pytest_file.py.jinja",
        bug=record.name,
        link=_text(link),
        rule=_text(rule),
        gradient=gradient,
        policies=sorted(policies),
        sources="\n\n".join(map(inspect.getsource, parts)).strip(),
        cases=cases,
    )
    return PytestFile(text, note)


def _case(name: str, state: State, record: Bug, gradient: bool) -> dict[str, Any]:
    """A batch, step by step, with its tests: what the template writes of it. It
    `tells` where it shows the bug and a test catches it; `agree` is as in
    Comparison."""
    batch, labels = state.batch(), state.table.values()["prompt"]
    steps = [
        {**step, "prompt": [labels[row] for row in step["row"]]}
        for step in steps_of(batch)
    ]
    engines = [on_engine(e, batch, gradient) for e in (CORRECT, record.engine)]
    tests: list[dict[str, Any]] = []

    def ask(name: str, says: str, call: str, law: Law) -> bool:
        """Adds a test, with a tolerance that tells the engines apart, unless the
        correct engine's own rounding would break it. Whether it catches the bug."""
        try:
            right, wrong = (worst(law, e, steps, batch.settings)[0] for e in engines)
        except GradebookError:
            return False
        catches = wrong > 1e-7 and right <= wrong / 1000
        tolerance = min(LOOSE, wrong / 10) if catches else LOOSE
        if right <= tolerance / 10:
            test = {"name": name, "says": says, "law": call}
            tests.append(test | {"tolerance": float(f"{tolerance:.0e}")})
        return catches

    testable = batch.rows and (batch.logp is not None or not gradient)
    asked = [law for law in record.laws if not convention(law, batch.settings)]
    caught = testable and sum(ask(n, words(n), n, LAWS[n]) for n in asked) > 0
    if testable and not caught:
        trace = run(CORRECT, batch)
        values = trace.gradient if gradient else trace.advantage
        expected = [] if values is None else values.tolist()
        says = "The numbers of the correct engine, under the batch's settings."
        call = f"the_correct_numbers({literal(expected)})"
        law = laws.the_correct_numbers(expected)
        caught = ask("the_correct_numbers", says, call, law)
        if not caught:
            tests = [test for test in tests if test["law"] != call]
    agree = compare(record, batch).agree
    return {
        "name": name,
        "label": re.sub(r"\W", "_", name),
        "settings": [(repr(n), literal(batch.settings[n])) for n in batch.settings],
        "names": list(steps[0]) if steps else [],
        "steps": [
            [", ".join(map(literal, cells)) for cells in zip(*step.values())]
            for step in steps
        ],
        "tests": tests,
        "agree": agree,
        "tells": caught and not agree,
    }


def _text(value: str) -> str:
    """A Python literal, in pieces that fit a line; `repr` lets no control
    or direction mark through."""
    pieces = [value[start : start + 60] for start in range(0, len(value), 60)]
    return "\n    ".join(("(", *map(repr, pieces or [""]))) + "\n)"


def literal(value: Any) -> str:
    """A Python literal; NAN and INF stand at the head of the file."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value).replace("nan", "NAN").replace("inf", "INF")
    return repr(value)
