"""A state as a regression test for a trainer of one's own.

The test asks for the laws of the bug's record, with the source of
gradebook.analysis.laws; everything a learner typed stands in it as a Python
literal.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradebook.analysis import law_steps
from gradebook.analysis.comparison import compare
from gradebook.analysis.law_check import columns_of, law
from gradebook.analysis.law_steps import Step, Values, worst
from gradebook.analysis.laws import GRADIENT_LAWS, LAWS
from gradebook.cases.record import Bug, bug
from gradebook.cases.scenario import load
from gradebook.cases.state import State, start
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT, Engine, run
from gradebook.output.rendering import rendered

HIDES = "hides the bug: both engines agree on it"
LOOSE = 1e-4
"""A correct trainer in float32 stays within this."""

ALWAYS = (
    *("prompt", "reward", "eos", "step", "steps", "kept_steps", "mask"),
    *("logp", "ref_logp"),
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
    """A law, as it is called, with the tolerance that tells the engines
    apart; `catches` says that the faulty engine breaks it."""

    name: str
    says: str
    law: str
    tolerance: float
    catches: bool


class _Case(NamedTuple):
    """A batch of the file; `given` names the EXTRA columns that are not at
    their defaults, `agree` is as in Comparison."""

    name: str
    given: list[str]
    columns: dict[str, list[Any]]
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
    says so. Page switches other than the EOS detector play no part. Raises
    GradebookError where the batch cannot be read, and where the faulty
    engine has not exactly one bug.
    """
    one = bug(state.bug)
    cases, note = [_case("edited", state, one)], ""
    if not cases[0].tells:
        cases.append(_telling_case(state, one))
        why = HIDES if cases[0].agree else "cannot tell a faulty trainer"
        note = (
            f"This batch {why}. The rows of the case '{cases[1].name}' are"
            " in the test as well."
        )
    notes = [text for text in (note, switches_note(state)) if text]
    cases = [case for case in cases if case.columns["reward"]]
    return PytestFile(_written(one, cases, link, _rule(state)), " ".join(notes))


def switches_note(state: State) -> str:
    """What a test cannot hold of the state, or ''."""
    own = start(state.scenario)
    if state.evaluation or state.normalization != own.normalization:
        return "The page's switches play no part in the test."
    return ""


def _rule(state: State) -> str:
    """The rule of the state's bug; the scenario's own says it best."""
    own = state.scenario
    return own.rule if own.bug == state.bug else load(state.bug).rule


def _telling_case(state: State, one: Bug) -> _Case:
    """The scenario's own rows, or the bug's main ones where those hide it
    too."""
    case = _case(state.scenario.name, start(state.scenario), one)
    if case.tells:
        return case
    return _case(one.name, start(load(one.name)), one)


def _is_about_gradients(one: Bug) -> bool:
    """The bug leaves the advantages as they are, so the rows need logp."""
    return any(LAWS[name] in GRADIENT_LAWS for name in one.laws)


def _case(name: str, state: State, one: Bug) -> _Case:
    batch = state.batch()
    columns = _columns(state, batch)
    labels = columns["prompt"]
    steps = [
        {**step, "prompt": [labels[row] for row in step["row"]]}
        for step in columns_of(batch)
    ]
    tests: list[_Test] = []
    if batch.rows and (batch.logp is not None or not _is_about_gradients(one)):
        tests = _tests(one, batch, steps)
    plain = Batch(**{n: getattr(batch, n) for n in ALWAYS})
    given = [
        name for name in EXTRA if not getattr(batch, name).equal(getattr(plain, name))
    ]
    agree = compare(one, batch).agree
    return _Case(name, given, columns, batch.settings, agree, tests)


def _columns(state: State, batch: Batch) -> dict[str, list[Any]]:
    """The batch as lists, with every default filled in."""
    columns = {
        name: getattr(batch, name).tolist()
        for name in (*ALWAYS, *EXTRA)
        if getattr(batch, name) is not None
    }
    columns["prompt"] = state.table.values()["prompt"]
    columns["mask"] = batch.mask.int().tolist()
    return columns


def _tests(one: Bug, batch: Batch, steps: list[Step]) -> list[_Test]:
    """The laws of the bug, and the numbers of the correct engine where no
    law tells the engines apart."""
    gradient = _is_about_gradients(one)
    call = [_caller(e, batch, gradient) for e in (CORRECT, one.engine)]
    found = []
    for name in one.laws:
        says, called = law(name).words, LAWS[name]
        found.append(_test(name, says, name, called, call, steps, batch.settings))
    kept = [test for test in found if test is not None]
    if any(test.catches for test in kept):
        return kept
    trace = run(CORRECT, batch)
    values = trace.gradient if gradient else trace.advantage
    expected = values.tolist() if values is not None else []
    numbers = _test(
        "the_correct_numbers",
        "The numbers of the correct engine, under the batch's settings.",
        f"the_correct_numbers({_literal(expected)})",
        law_steps.the_correct_numbers(expected),
        call,
        steps,
        batch.settings,
    )
    return kept + [numbers] if numbers and numbers.catches else kept


def _test(
    name: str,
    says: str,
    called: str,
    law: law_steps.Law,
    call: list[Values],
    steps: list[Step],
    settings: Settings,
) -> _Test | None:
    """The law with the tolerance that tells the two callers apart; none
    where the correct engine's own rounding would break it."""
    try:
        right, wrong = (worst(law, c, steps, settings)[0] for c in call)
    except GradebookError:
        return None
    catches = wrong > 1e-7 and right <= wrong / 1000
    tolerance = min(LOOSE, wrong / 10) if catches else LOOSE
    if right > tolerance / 10:
        return None
    return _Test(name, says, called, float(f"{tolerance:.0e}"), catches)


def _caller(engine: Engine, batch: Batch, gradient: bool) -> Values:
    """What a test file's `values` is to a trainer, to an engine."""

    def values(step: Step, settings: Mapping[str, Any]) -> list:
        columns = {name: cells for name, cells in step.items() if name != "row"}
        if not gradient:
            columns.pop("logp", None)
            columns.pop("ref_logp", None)
        trace = run(engine, Batch(**columns, settings=Settings(**settings)))
        found = trace.gradient if gradient else trace.advantage
        return found.tolist() if found is not None else []

    return values


# The file's text


def _written(one: Bug, cases: list[_Case], link: str, rule: str) -> str:
    gradient = _is_about_gradients(one)
    given = {name for case in cases for name in case.given}
    extra = [n for n in EXTRA if n in given or n in str(one.columns)]
    arguments = ["rewards", "prompt_ids", "response_mask", "eos", "steps"]
    arguments = [*arguments, "kept_steps", *extra, "settings"]
    held = {name for case in cases for name in case.columns}
    policies = [name for name in ("logp", "ref_logp") if name in held]
    if gradient:
        arguments = [*policies, *arguments]
    used = dict.fromkeys(test.name for case in cases for test in case.tests)
    laws = [LAWS[name] for name in LAWS if name in used]
    parts = [
        value
        for value in vars(law_steps).values()
        if getattr(value, "__module__", "") == law_steps.__name__
    ]
    return rendered(
        "pytest_file.py.jinja",
        bug=one.name,
        link=_text(link),
        rule=_text(rule),
        function="loss" if gradient else "advantages",
        gradient=gradient,
        arguments=arguments,
        policies=policies,
        extra=extra,
        sources="\n\n".join(map(inspect.getsource, [*parts, *laws])).strip(),
        cases=[_batch(number, case) for number, case in enumerate(cases, 1)],
    )


def _batch(number: int, case: _Case) -> dict[str, Any]:
    """What the template writes of a case: literals, row by row."""
    rows = zip(*case.columns.values())
    return {
        "number": number,
        "label": re.sub(r"\W", "_", case.name),
        "settings": [
            (repr(name), _literal(case.settings[name])) for name in case.settings
        ],
        "names": ", ".join(map(repr, case.columns)),
        "rows": [", ".join(map(_literal, cells)) for cells in rows],
        "tests": case.tests,
    }


def _text(value: str) -> str:
    """A Python literal, in pieces that fit a line; `repr` lets no control
    or direction mark through."""
    pieces = [value[at : at + 60] for at in range(0, len(value), 60)]
    if len(pieces) < 2:
        return repr(value)
    return "\n    ".join(("(", *map(repr, pieces))) + "\n)"


def _literal(value: Any) -> str:
    """A Python literal; NAN and INF stand at the head of the file."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        raise TypeError("no literal for a mapping")
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "NAN"
        return "INF" if value > 0 else "-INF"
    return repr(value)
