"""A state as a regression test for a trainer of one's own.

It asks for the laws of the bug's record, with the source of gradebook.analysis.laws.
Everything that a learner typed is a Python literal.
"""

import inspect
import math
from typing import Any

from gradebook.analysis import laws
from gradebook.analysis.comparison import compare
from gradebook.analysis.law_check import convention, kind_of, on_engine, steps_of, words
from gradebook.analysis.laws import LAWS, Law, worst
from gradebook.cases.scenario import Bug, Scenario, bug, load
from gradebook.cases.state import State, start
from gradebook.core.batch import PER_TOKEN
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, choice
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.rendering import rendered

WHOLE = ("generation", "extent")
"""Columns of whole numbers that only a test by token hands over."""
LOOSE = 1e-4
"""The tolerance for a correct trainer in float32."""


def pytest_file(state: State, link: str) -> str:
    """A test file that passes on a trainer without the bug and fails on one with it.

    It asks for laws, which hold whatever a trainer's conventions; if none shows the bug
    on this batch, it asks for the correct numbers. If no test catches the bug, the rows
    of the bug's own case are added. Raises GradebookError if the batch cannot be read,
    and unless the faulty engine has exactly one bug.
    """
    record = bug(state.bug)
    main = load(record.name)
    kinds = [kind_of(choice(name, LAWS, "laws")) for name in record.laws]
    kind = next((k for k in kinds if k != "advantage"), "advantage")
    cases = [_case("edited", state, record, kind)]
    if not cases[0]["tells"]:
        cases.append(_case(main.name, start(main), record, kind))
    cases = [case for case in cases if case["steps"]]
    test_names = {test["name"] for case in cases for test in case["tests"]}
    parts = [
        value
        for name, value in vars(laws).items()
        if getattr(value, "__module__", "") == laws.__name__
        and (name in test_names or value not in LAWS.values())
    ]
    rule, case = main.rule, state.scenario
    if isinstance(case, Scenario) and case.bug == record.name:
        rule = case.rule
    named = {name for case in cases for name in case["names"]}
    return rendered(
        "pytest_file.py.jinja",
        bug=record.name,
        link=_text(link),
        rule=_text(rule),
        kind=kind,
        by_token=[n for n in PER_TOKEN if n in named and kind != "advantage"],
        by_row=[n for n in WHOLE if n in named and kind != "advantage"],
        says={name: COLUMNS[name].help for name in (*PER_TOKEN, *WHOLE)},
        sources="\n\n".join(map(inspect.getsource, parts)).strip(),
        cases=cases,
    )


def _case(case: str, state: State, record: Bug, kind: str) -> dict[str, Any]:
    """A batch, step by step, with its tests, for the template. Its key `tells` is true
    if the batch shows the bug and a test catches it."""
    batch, labels = state.batch(), state.table.values()["prompt"]
    settings = batch.settings
    steps = [
        [{**row, "prompt": labels[row["row"]]} for row in step]
        for step in steps_of(batch)
    ]
    engines = [on_engine(e, batch, kind) for e in (CORRECT, record.engine)]
    testable = batch.rows and (batch.logp is not None or kind != "gradient")
    tests: list[dict[str, Any]] = []

    def ask(name: str, says: str, law: Law, call: str = "") -> bool:
        """Adds a test, with a tolerance between the two engines, unless the correct
        engine's own rounding would break it. Returns whether it catches the bug."""
        try:
            right, wrong = (worst(law, e, steps, settings)[0] for e in engines)
        except GradebookError:
            return False
        catches = wrong > 1e-7 and right <= wrong / 1000
        tolerance = min(LOOSE, wrong / 10) if catches else LOOSE
        if right <= tolerance / 10 and (catches or not call):
            test = {"name": name, "says": says, "law": call or name}
            tests.append(test | {"tolerance": float(f"{tolerance:.0e}")})
        return catches

    laws_of_bug = [law for law in record.laws if not convention(law, settings)]
    caught = (
        testable and sum([ask(law, words(law), LAWS[law]) for law in laws_of_bug]) > 0
    )
    if testable and not caught:
        trace = run(CORRECT, batch)
        expected = getattr(trace, kind).tolist()
        if kind != "advantage":
            masks = batch.mask.tolist()
            expected = [laws.unmasked({"mask": m}, x) for m, x in zip(masks, expected)]
        says = "The numbers of the correct engine, under the batch's settings."
        call = f"the_correct_numbers({literal(expected)})"
        law = laws.the_correct_numbers(expected)
        caught = ask("the_correct_numbers", says, law, call)
    return {
        "name": case,
        "settings": [(repr(n), literal(settings[n])) for n in settings],
        "names": list(steps[0][0]) if steps else [],
        "steps": [
            [", ".join(map(literal, row.values())) for row in step] for step in steps
        ],
        "tests": tests,
        "tells": caught and not compare(record, batch).agree,
    }


def _text(value: str) -> str:
    """A Python literal, in pieces that fit a line; `repr` lets no control
    or direction mark through."""
    pieces = [value[start : start + 60] for start in range(0, len(value), 60)]
    return "\n    ".join(("(", *map(repr, pieces or [""]))) + "\n)"


def literal(value: Any) -> str:
    """A Python literal. The head of the file defines NAN and INF."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value).replace("nan", "NAN").replace("inf", "INF")
    return repr(value)
