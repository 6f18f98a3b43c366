"""A state as a regression test for a trainer of one's own.

It asks for the laws of the bug's record, with the source of gradebook.analysis.laws.
Everything that a learner typed is a Python literal.
"""

import inspect
import math
from itertools import chain
from typing import Any

from gradebook.analysis import laws
from gradebook.analysis.comparison import compare
from gradebook.analysis.law_check import convention, kind_of, on_engine, steps_of, words
from gradebook.analysis.laws import LAWS, Law, Step, worst
from gradebook.cases.scenario import Bug, Scenario, bug, load
from gradebook.cases.state import State, start
from gradebook.core.batch import PER_TOKEN, Batch
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, choice
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.rendering import rendered

WHOLE = ("generation", "extent")
"""Columns of whole numbers that only a test by token hands over."""
LOOSE = 1e-4
"""The tolerance for a correct trainer in float32: ten times the distance that the check
of a log always allows (`tolerance.BASE`)."""


def pytest_file(state: State, link: str) -> str:
    """A test file that passes on a trainer without the bug and fails on one with it.

    It asks for laws, which hold whatever a trainer's conventions; if none shows the bug
    on this batch, it asks for the correct numbers. If no test catches the bug, the rows
    of the bug's own case are added. Raises GradebookError if the batch cannot be read,
    and unless the faulty engine has exactly one bug.
    """
    record = bug(state.bug)
    main = load(record.name)
    kind = _kind(record)
    cases = [_case("edited", state, record, kind)]
    if not cases[0]["tells"]:
        cases.append(_case(main.name, start(main), record, kind))
    cases = [case for case in cases if case["steps"]]
    names = {name for case in cases for name in case["names"]}
    more = names if kind != "advantage" else set()
    return rendered(
        "pytest_file.py.jinja",
        bug=record.name,
        link=_text(link),
        rule=_text(_rule(state, main)),
        kind=kind,
        by_token=[name for name in PER_TOKEN if name in more],
        by_row=[name for name in WHOLE if name in more],
        says={name: COLUMNS[name].help for name in (*PER_TOKEN, *WHOLE)},
        sources=_sources({test["name"] for case in cases for test in case["tests"]}),
        cases=cases,
    )


def _rule(state: State, main: Scenario) -> str:
    """The rule of the state's case, if it is one of this bug, else of its main case."""
    case = state.scenario
    if isinstance(case, Scenario) and case.bug == main.bug:
        return case.rule
    return main.rule


def _kind(record: Bug) -> str:
    """What the trainer's function must return: the gradient or the advantages of
    tokens, if a law of the bug is about them, else the advantages of rows."""
    kinds = [kind_of(choice(name, LAWS, "laws")) for name in record.laws]
    return next((kind for kind in kinds if kind != "advantage"), "advantage")


def _sources(test_names: set[str]) -> str:
    """The source of the laws with these names, and of everything that laws use."""
    sources = []
    for name, value in vars(laws).items():
        if getattr(value, "__module__", "") != laws.__name__:
            continue
        if name in test_names or value not in LAWS.values():
            sources.append(inspect.getsource(value))
    return "\n\n".join(sources).strip()


def _case(case: str, state: State, record: Bug, kind: str) -> dict[str, Any]:
    """A batch, step by step, with its tests, for the template. Its key `tells` is true
    if the batch shows the bug and a test catches it."""
    batch, prompts = state.batch(), state.table.values()["prompt"]
    settings = batch.settings
    steps = steps_of(batch)
    for row in chain.from_iterable(steps):
        row["prompt"] = prompts[row["row"]]
    tests: list[dict[str, Any]] = []
    caught = False
    if batch.rows and (batch.logp is not None or kind != "gradient"):
        tests, caught = _tests(batch, steps, record, kind)
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


def _tests(
    batch: Batch, steps: list[Step], record: Bug, kind: str
) -> tuple[list[dict[str, Any]], bool]:
    """The tests of the bug's laws, and if none catches the bug, that of the correct
    numbers. And whether one catches it."""
    settings = batch.settings
    correct, faulty = (on_engine(e, batch, kind) for e in (CORRECT, record.engine))
    tests: list[dict[str, Any]] = []

    def ask(name: str, says: str, law: Law, call: str = "") -> bool:
        """Adds a test, with a tolerance between the two engines, unless the correct
        engine's own rounding would break it. Returns whether a test was added that
        catches the bug."""
        try:
            right = worst(law, correct, steps, settings)[0]
            wrong = worst(law, faulty, steps, settings)[0]
        except GradebookError:
            return False
        # The tolerance is a tenth of the bug's violation, and at least a hundred times
        # the correct engine's. float32's own spacing at 1 is 1.2e-7: a smaller
        # violation is no number to test a trainer with.
        catches = wrong > 1e-7 and right <= wrong / 1000
        tolerance = min(LOOSE, wrong / 10) if catches else LOOSE
        is_rounding_small = right <= tolerance / 10
        is_law = not call
        if not is_rounding_small or not (catches or is_law):
            return False
        test = {"name": name, "says": says, "law": call or name}
        tests.append(test | {"tolerance": float(f"{tolerance:.0e}")})
        return catches

    laws_of_bug = [law for law in record.laws if not convention(law, settings)]
    catching = [law for law in laws_of_bug if ask(law, words(law), LAWS[law])]
    if catching:
        return tests, True
    expected = _correct_numbers(batch, kind)
    says = "The numbers of the correct engine, under the batch's settings."
    call = f"the_correct_numbers({literal(expected)})"
    law = laws.the_correct_numbers(expected)
    return tests, ask("the_correct_numbers", says, law, call)


def _correct_numbers(batch: Batch, kind: str) -> list[Any]:
    """What the correct engine gives each row; by token, the numbers of its unmasked
    tokens."""
    numbers = getattr(run(CORRECT, batch), kind).tolist()
    if kind == "advantage":
        return numbers
    rows = [{"mask": mask} for mask in batch.mask.tolist()]
    return [laws.unmasked(row, x) for row, x in zip(rows, numbers)]


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
