"""What is taken home: a state as CSV, as a scenario file or a pytest file; a bug on
paper, and in a terminal."""

import hashlib
import inspect
import math
import re
import textwrap
from typing import Any

from markupsafe import Markup
from torch import Tensor

from gradebook.analysis import laws
from gradebook.analysis.comparison import ROW_STAGES, compare, compared
from gradebook.analysis.formula import beside, first_sentence, worked
from gradebook.analysis.law_check import convention, on_engine, steps_of, words
from gradebook.analysis.laws import GRADIENT, LAWS, Law, worst
from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug, load
from gradebook.cases.state import State, start
from gradebook.core.columns import COLUMNS, of_kind
from gradebook.core.errors import GradebookError, choice
from gradebook.core.formatting import minus, pair, signed
from gradebook.core.lazy_pandas import pd
from gradebook.engine.pipeline import CORRECT, run
from gradebook.output.figures import picture
from gradebook.output.panels import panels, squashes, summary, telling
from gradebook.output.rendering import rendered

# A table, no cell of which a spreadsheet computes

FORMULA = re.compile(r"(^|[;\t\r\n])(\s*)([=+\-@\t\r＝＋－＠])")
"""Where a spreadsheet would begin to compute; after separators too, since
some read a semicolon as one."""


def csv(state: State) -> str:
    """The batch and every stage of both engines, one row a rollout. An empty cell is
    no value. Raises GradebookError where the batch cannot be read."""
    comparison, typed = compared(state), state.table.values()
    batch = comparison.batch
    columns: dict[str, Any] = {"row": range(batch.rows), "prompt": typed["prompt"]}
    for name in ("reward", "eos", "step", "steps", "kept_steps"):
        columns[name] = getattr(batch, name).tolist()
    per_token = of_kind("tokens", "list")
    columns |= {n: v for n, v in typed.items() if n not in (*columns, *per_token)}
    columns |= _by_token("t", batch.mask)
    columns |= _by_token("logp_t", batch.logp) | _by_token("ref_logp_t", batch.ref_logp)
    sides = {"correct": comparison.correct, "faulty": comparison.faulty}
    for stage in ROW_STAGES:
        for side, trace in sides.items():
            columns[f"{side}_{stage}"] = getattr(trace, stage).tolist()
    for side, trace in sides.items():
        columns |= _by_token(f"{side}_policy_gradient_t", trace.policy_gradient)
        columns |= _by_token(f"{side}_kl_gradient_t", trace.kl_gradient)
        if trace.loss is not None:
            columns[f"{side}_loss_of_the_batch"] = float(trace.loss)
    return pd.DataFrame(columns).map(_safe).to_csv(index=False)


def _by_token(stem: str, values: Tensor | None) -> dict[str, list[Any]]:
    lists = [] if values is None else values.T.tolist()
    return {f"{stem}{t + 1}": cells for t, cells in enumerate(lists)}


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode()
        return FORMULA.sub(r"\1\2'\3", text)
    return int(value) if isinstance(value, bool) else value


# A scenario file, which a page opens as one of its cases


def scenario_file(state: State) -> str:
    """The batch as a scenario file: a page variant when it stands in scenarios/ as
    <bug>-<name>.toml. Raises GradebookError where the batch cannot be read, no file
    can hold it, or the faulty engine has not exactly one bug."""
    batch = state.batch()
    comparison = compare(bug(state.bug), batch)
    columns = state.table.values()
    if not bool(batch.eos.all()):
        columns["eos"] = batch.eos.tolist()
    if "mask" in columns:
        columns["mask"] = batch.mask.int().tolist()
    names = [name for name in COLUMNS if name in columns]
    cells = zip(*(columns[name] for name in names))
    rows, settings = [dict(zip(names, row)) for row in cells], dict(batch.settings)
    sides = {"correct": comparison.correct, "faulty": comparison.faulty}
    expected: dict[str, Any] = {}
    for side, trace in sides.items():
        numbers = trace.advantage.tolist()
        expected[side] = [x if math.isfinite(x) else "none" for x in numbers]
        if trace.loss is not None and trace.loss.isfinite():
            expected[f"{side}_loss"] = float(trace.loss)
    # The question: whether both engines treat the selected row alike.
    row = min(state.row, batch.rows - 1)
    moved = bool(comparison.differs("advantage")[row])
    differs = moved or bool(comparison.differs("gradient")[row])
    a, b = (float(trace.advantage[row]) for trace in sides.values())
    why = f"The engines computed the advantages {a:.6g} and {b:.6g}."
    if differs and not moved:
        why += " The gradient of its tokens differs."
    right, wrong = f"Right: {why[:1].lower()}{why[1:]}", why
    return rendered(
        "scenario_file.toml.jinja",
        mark=hashlib.sha256(repr((rows, settings)).encode()).hexdigest()[:6],
        bug=state.bug,
        case=state.scenario.title,
        edited=not state.same_batch(start(state.scenario)),
        agree=comparison.agree,
        summary=summary(telling(comparison)),
        rows=rows,
        settings=settings,
        focus=row,
        differs=differs,
        why=why,
        said=[wrong, right] if differs else [right, wrong],
        expected=expected,
    )


# A regression test for a trainer of one's own: it asks for the laws of the bug's
# record, with the source of gradebook.analysis.laws; everything that a learner
# typed is a Python literal


LOOSE = 1e-4
"""A correct trainer in float32 stays within this."""


def pytest_file(state: State, link: str) -> str:
    """A test file that passes on a trainer without the bug and fails on one with it.

    It asks for laws, which hold whatever a trainer's conventions; where none shows
    the bug on this batch, for the correct numbers. Where no test catches the bug, the
    rows of the bug's own case are added. Raises GradebookError where the batch cannot
    be read, and where the faulty engine has not exactly one bug.
    """
    record = bug(state.bug)
    main = load(record.name)
    gradient = any(LAWS[choice(n, LAWS, "laws")] in GRADIENT for n in record.laws)
    cases = [_case("edited", state, record, gradient)]
    if not cases[0]["tells"]:
        cases.append(_case(main.name, start(main), record, gradient))
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
    return rendered(
        "pytest_file.py.jinja",
        bug=record.name,
        link=_text(link),
        rule=_text(rule),
        gradient=gradient,
        policies=sorted(policies),
        sources="\n\n".join(map(inspect.getsource, parts)).strip(),
        cases=cases,
    )


def _case(case: str, state: State, record: Bug, gradient: bool) -> dict[str, Any]:
    """A batch, step by step, with its tests: what the template writes of it. It
    `tells` where it shows the bug and a test catches it."""
    batch, labels = state.batch(), state.table.values()["prompt"]
    settings = batch.settings
    steps = [
        [{**row, "prompt": labels[row["row"]]} for row in step]
        for step in steps_of(batch)
    ]
    engines = [on_engine(e, batch, gradient) for e in (CORRECT, record.engine)]
    testable = batch.rows and (batch.logp is not None or not gradient)
    tests: list[dict[str, Any]] = []

    def ask(name: str, says: str, law: Law, call: str = "") -> bool:
        """Adds a test, with a tolerance that tells the engines apart, unless the
        correct engine's own rounding would break it. Whether it catches the bug."""
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

    asked = [law for law in record.laws if not convention(law, settings)]
    caught = testable and sum([ask(law, words(law), LAWS[law]) for law in asked]) > 0
    if testable and not caught:
        trace = run(CORRECT, batch)
        values = trace.gradient if gradient else trace.advantage
        expected = [] if values is None else values.tolist()
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
    """A Python literal; NAN and INF stand at the head of the file."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value).replace("nan", "NAN").replace("inf", "INF")
    return repr(value)


# A bug on paper, as one HTML page that needs nothing else


def handout(bug_name: str) -> str:
    """The bug's page for A4 paper. Raises GradebookError for a name not in BUGS."""
    record, scenario = bug(bug_name), load(bug_name)
    comparison, row = compare(record, scenario.batch()), scenario.focus
    shown = panels(comparison, scenario.telltale.kind)
    panel = telling(comparison, scenario.telltale.kind)
    columns = scenario.rows.values()
    if "mask" in columns:
        columns["mask"] = [list(map(int, mask)) for mask in columns["mask"]]
    results = map(pair, panel.correct, panel.faulty)
    body = [
        [str(number), *map(_cell, cells), *both]
        for number, (cells, both) in enumerate(zip(zip(*columns.values()), results))
    ]
    return rendered(
        "handout.html.jinja",
        scenario=scenario,
        names=scenario.engine_names,
        stage=record.stage,
        head=["row", *columns, *scenario.engine_names],
        body=body,
        numbers=[len(columns) + 1, len(columns) + 2],
        title=panel.title,
        symlog=any(map(squashes, shown)),
        pictures=[Markup(picture(panel, columns["prompt"])) for panel in shown],
        worked=worked(comparison, row),
        says=[first_sentence(f) for f in (record.correct, record.faulty)],
        listings=beside(record.correct, record.faulty),
    )


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        if len({*value}) == 1 and isinstance(value[0], float):
            return f"{len(value)} × {_cell(value[0])}"
        return " ".join(_cell(v) for v in value)
    return minus(f"{value:.4g}") if isinstance(value, float) else str(value)


# For a terminal


def bug_list() -> str:
    """Every bug: its name and title, and for each trainer the state of its report."""
    return "\n\n".join(
        f"{name}: {bug(name).title} ({bug(name).standing})\n"
        + "\n".join(
            _wrapped(f"{one.trainer} ({one.report}): {one.sentence}", "  ")
            for one in bug(name).status
        )
        for name in BUGS
    )


def explain(name: str) -> str:
    """One bug: its claim, its tell-tale on the report's own batch as both
    engines compute it, whom it affects and the workaround.

    Raises GradebookError for a name that is not in BUGS.
    """
    record, case = bug(name), load(name)
    comparison = compare(record, case.batch())
    panel = telling(comparison)
    right, wrong = case.engine_names
    columns = {
        "row": range(len(case.rows)),
        "prompt": case.rows["prompt"],
        "reward": [f"{value:g}" for value in comparison.batch.reward.tolist()],
        right: map(signed, panel.correct),
        wrong: map(signed, panel.faulty),
    }
    formula = []
    for engine, lines in zip(case.engine_names, worked(comparison, case.focus)):
        formula.append(f"Row {case.focus}, {engine}:")
        formula += ["  " + "".join(part.text for part in line) for line in lines]
    parts = [
        f"{record.title} ({record.standing})",
        _wrapped(case.claim),
        f"The {panel.title}:",
        pd.DataFrame(columns).to_string(index=False),
        "\n".join(formula),
        _wrapped(case.telltale.text, "Tell-tale: "),
        _wrapped(case.rule, "Rule: "),
        "\n".join(
            _wrapped(f"{one.trainer} ({one.report}): {one.sentence}", "Status: ")
            for one in case.status
        ),
        _wrapped(case.affected.look, "Look for: "),
        _wrapped(case.affected.workaround, "Workaround: "),
        "\n".join(f"{s.label}: {s.url}" for s in case.sources),
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, lead: str = "") -> str:
    return textwrap.fill(lead + text, 78, subsequent_indent=" " * len(lead))
