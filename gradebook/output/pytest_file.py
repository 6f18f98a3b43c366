"""A state as a regression test for a trainer of one's own.

The test asks for the laws of the bug's record, with the source of
gradebook.analysis.laws; everything that a learner typed is a Python literal.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradebook.analysis import laws
from gradebook.analysis.comparison import compare
from gradebook.analysis.law_check import convention, on_engine, steps_of, words
from gradebook.analysis.laws import GRADIENT, LAWS, Law, Step, worst
from gradebook.cases.record import Bug, bug
from gradebook.cases.scenario import load
from gradebook.cases.state import State, start
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.rendering import rendered

HIDES = "hides the bug: both engines agree on it"
LOOSE = 1e-4
"""A correct trainer in float32 stays within this."""

POLICIES = ("logp", "ref_logp")
ALWAYS = (
    *("prompt", "reward", "eos", "step", "steps", "kept_steps", "mask"),
    *POLICIES,
)
EXTRA = ("scored", "rollout", "rank", "text")
"""Columns that a trainer is given only where the batch or the bug needs
them."""


@dataclass(frozen=True)
class PytestFile:
    """A test file, and what to say beside it."""

    text: str
    note: str


class _Test(NamedTuple):
    """A law as it is called, with the tolerance that tells the engines apart;
    `catches` says that the faulty engine breaks it."""

    name: str
    says: str
    law: str
    tolerance: float
    catches: bool


class _Case(NamedTuple):
    """A batch of the file, step by step; `agree` is as in Comparison."""

    name: str
    extra: list[str]
    steps: list[Step]
    settings: Settings
    agree: bool
    tests: list[_Test]

    @property
    def tells(self) -> bool:
        """The batch shows the bug, and a test catches it."""
        return not self.agree and any(test.catches for test in self.tests)


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
    cases, note = [_case("edited", state, record)], ""
    if not cases[0].tells:
        shipped = _case(state.scenario.name, start(state.scenario), record)
        main = start(load(record.name))
        cases.append(shipped if shipped.tells else _case(record.name, main, record))
        why = HIDES if cases[0].agree else "cannot tell a faulty trainer"
        note = (
            f"This batch {why}. The rows of the case '{cases[1].name}' are"
            " in the test as well."
        )
    cases = [case for case in cases if case.steps]
    case = state.scenario if state.scenario.bug == state.bug else load(state.bug)
    return PytestFile(_written(record, cases, link, case.rule), note)


def _is_about_gradients(record: Bug) -> bool:
    return any(LAWS[name] in GRADIENT for name in record.laws)


def _case(name: str, state: State, record: Bug) -> _Case:
    batch, labels = state.batch(), state.table.values()["prompt"]
    plain = Batch(**{column: getattr(batch, column) for column in ALWAYS})
    extra = [
        column
        for column in EXTRA
        if not getattr(batch, column).equal(getattr(plain, column))
    ]
    steps = [
        {**step, "prompt": [labels[row] for row in step["row"]]}
        for step in steps_of(batch)
    ]
    gradient = _is_about_gradients(record)
    testable = batch.rows and (batch.logp is not None or not gradient)
    tests = _tests(record, batch, steps, gradient) if testable else []
    agree = compare(record, batch).agree
    return _Case(name, extra, steps, batch.settings, agree, tests)


def _tests(record: Bug, batch: Batch, steps: list[Step], gradient: bool) -> list[_Test]:
    """The laws of the bug, and the numbers of the correct engine where no
    law tells the engines apart."""
    engines = [on_engine(e, batch, gradient) for e in (CORRECT, record.engine)]
    settings = batch.settings

    def test(name: str, says: str, called: str, law: Law) -> list[_Test]:
        """None where the correct engine's own rounding would break it."""
        try:
            right, wrong = (worst(law, e, steps, settings)[0] for e in engines)
        except GradebookError:
            return []
        catches = wrong > 1e-7 and right <= wrong / 1000
        tolerance = min(LOOSE, wrong / 10) if catches else LOOSE
        if right > tolerance / 10:
            return []
        return [_Test(name, says, called, float(f"{tolerance:.0e}"), catches)]

    tests = [
        each
        for name in record.laws
        if not convention(name, settings)
        for each in test(name, words(name), name, LAWS[name])
    ]
    if any(each.catches for each in tests):
        return tests
    trace = run(CORRECT, batch)
    values = trace.gradient if gradient else trace.advantage
    expected = values.tolist() if values is not None else []
    numbers = test(
        "the_correct_numbers",
        "The numbers of the correct engine, under the batch's settings.",
        f"the_correct_numbers({_literal(expected)})",
        laws.the_correct_numbers(expected),
    )
    return tests + [each for each in numbers if each.catches]


# The file's text


def _written(record: Bug, cases: list[_Case], link: str, rule: str) -> str:
    gradient = _is_about_gradients(record)
    used = {name for case in cases for name in case.extra}
    extra = [n for n in EXTRA if n in used or n in str(record.columns)]
    arguments = ["rewards", "prompt_ids", "response_mask", "eos", "steps"]
    arguments = [*arguments, "kept_steps", *extra, "settings"]
    policies = [n for n in POLICIES if any(n in case.steps[0] for case in cases)]
    if gradient:
        arguments = [*policies, *arguments]
    asked = {test.name for case in cases for test in case.tests}
    parts = [
        value
        for name, value in vars(laws).items()
        if getattr(value, "__module__", "") == laws.__name__
        and (name in asked or value not in LAWS.values())
    ]
    return rendered(
        "pytest_file.py.jinja",
        bug=record.name,
        link=_text(link),
        rule=_text(rule),
        function="loss" if gradient else "advantages",
        gradient=gradient,
        arguments=arguments,
        policies=policies,
        extra=extra,
        sources="\n\n".join(map(inspect.getsource, parts)).strip(),
        cases=[_batch(number, case) for number, case in enumerate(cases, 1)],
    )


def _batch(number: int, case: _Case) -> dict[str, Any]:
    """What the template writes of a case: literals, row by row."""
    steps = [
        [", ".join(map(_literal, cells)) for cells in zip(*step.values())]
        for step in case.steps
    ]
    return {
        "number": number,
        "label": re.sub(r"\W", "_", case.name),
        "settings": [
            (repr(name), _literal(case.settings[name])) for name in case.settings
        ],
        "names": list(case.steps[0]),
        "steps": steps,
        "tests": case.tests,
    }


def _text(value: str) -> str:
    """A Python literal, in pieces that fit a line; `repr` lets no control
    or direction mark through."""
    pieces = [value[start : start + 60] for start in range(0, len(value), 60)]
    if len(pieces) < 2:
        return repr(value)
    return "\n    ".join(("(", *map(repr, pieces))) + "\n)"


def _literal(value: Any) -> str:
    """A Python literal; NAN and INF stand at the head of the file."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "NAN"
        return "INF" if value > 0 else "-INF"
    return repr(value)
