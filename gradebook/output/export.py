"""A state to take home: CSV, scenario file, pytest file.

Everything a learner typed reaches a file through one function that escapes
it for that file: `_cell`, `_toml_text`, or Python's own `repr`.
"""

from __future__ import annotations

import csv as csv_files
import hashlib
import inspect
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradebook.analysis.comparison import ROW_STAGES, Comparison, compare
from gradebook.analysis.state_comparison import compared
from gradebook.bugs import Swap
from gradebook.cases.columns import COLUMNS
from gradebook.cases.record import bug
from gradebook.cases.scenario import MOST_ROWS, MOST_TOKENS, load
from gradebook.cases.state import State, start
from gradebook.cases.toml_file import LARGEST_FILE, MOST_DOTS
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT, Engine, Trace, run
from gradebook.output import export_laws as laws
from gradebook.output import export_template as template

# CSV


FORMULA = re.compile(r"(^|[;\t\r\n])(\s*)([=+\-@\t\r＝＋－＠])")
"""Where a spreadsheet would begin to compute; after separators too, since
some read a semicolon as one."""


def csv(state: State) -> str:
    """The batch and every stage of both engines, one row a rollout.

    An empty cell is no value. A prompt that a spreadsheet would take for a
    formula has an apostrophe before it. Raises GradebookError where the
    batch cannot be read.
    """
    found = compared(state)
    columns = {"row": list(range(found.batch.rows))}
    columns |= _inputs(state, found.batch)
    for stage in ROW_STAGES:
        for side in ("correct", "faulty"):
            values = getattr(getattr(found, side), stage)
            columns[f"{side}_{stage}"] = values.tolist()
    for side in ("correct", "faulty"):
        columns |= _losses(side, getattr(found, side), found.batch.rows)
    return table_csv(columns, zip(*columns.values()))


def table_csv(head: Iterable[str], body: Iterable[Iterable[Any]]) -> str:
    """A table as CSV, no cell of which a spreadsheet computes."""
    out = io.StringIO()
    writer = csv_files.writer(out)
    writer.writerow(_cell(name) for name in head)
    writer.writerows([_cell(c) for c in row] for row in body)
    return out.getvalue()


def _inputs(state: State, batch: Batch) -> dict[str, list[Any]]:
    """What the engines were given, by the names of a table."""
    columns: dict[str, list[Any]] = {
        "prompt": state.table.values()["prompt"],
        "reward": batch.reward.tolist(),
    }
    for name in ("eos", "step", "steps", "kept_steps"):
        columns[name] = getattr(batch, name).tolist()
    columns |= _by_token("t", batch.mask)
    for name in ("logp", "ref_logp"):
        if getattr(batch, name) is not None:
            columns |= _by_token(f"{name}_t", getattr(batch, name))
    return columns


def _by_token(stem: str, values: Any) -> dict[str, list[Any]]:
    """One column a token, from [R, T]."""
    return {
        f"{stem}{t + 1}": values[:, t].tolist() for t in range(values.shape[1])
    }


def _losses(side: str, trace: Trace, rows: int) -> dict[str, list[Any]]:
    """Gradients by token, and the loss of the whole batch on each row."""
    if trace.loss is None:
        return {}
    columns: dict[str, list[Any]] = {}
    for part in ("policy_gradient", "kl_gradient"):
        columns |= _by_token(f"{side}_{part}_t", getattr(trace, part))
    columns[f"{side}_loss_of_the_batch"] = [float(trace.loss)] * rows
    return columns


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet computes."""
    if isinstance(value, str):
        safe = value.encode("utf-8", "replace").decode()
        return FORMULA.sub(r"\1\2'\3", safe)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isnan(value):
        return ""
    return value


# Scenario file


def scenario_file(state: State) -> str:
    """The batch as a scenario file: a page variant when it stands in
    scenarios/ as <bug>-<name>.toml.

    It holds no page switch but the EOS detector. Raises GradebookError
    where the batch cannot be read, no file can hold it, or the faulty
    engine has not exactly one bug.
    """
    batch = state.batch()
    if not 1 <= batch.rows <= MOST_ROWS:
        raise GradebookError(
            key="rows", expected=f"1 to {MOST_ROWS}", found=str(batch.rows)
        )
    tokens = batch.mask.shape[1]
    if not 1 <= tokens <= MOST_TOKENS:
        raise GradebookError(
            key="mask",
            expected=f"1 to {MOST_TOKENS} tokens",
            found=str(tokens),
        )
    found = compare(bug(state.bug), batch)
    rows = _toml_rows(state, batch)
    settings = _toml_settings(batch.settings)
    mark = hashlib.sha256((rows + settings).encode()).hexdigest()[:6]
    text = "\n".join(
        (
            _toml_head(state, found, mark),
            rows,
            settings,
            _toml_prediction(state, found),
            _toml_expected(found),
        )
    )
    if len(text.encode()) > LARGEST_FILE:
        raise GradebookError(
            key="rows",
            expected=f"a batch of at most {LARGEST_FILE} bytes",
            found=str(len(text.encode())),
        )
    return text


def _toml_head(state: State, found: Comparison, mark: str) -> str:
    own = state.scenario
    agree = "agree" if found.agree else "differ"
    lines = [
        "# Written by Gradebook from an edited batch. Nothing here was",
        "# measured on a trainer or worked out by hand.",
        f"title = {_toml_text(f'An edited batch ({mark})')}",
        f"bug = {_toml_text(state.bug)}",
        f"kind = {_toml_text('hides' if found.agree else 'face')}",
        f"claim = {_toml_text(f'The two engines {agree} on this batch.')}",
        "story = "
        + _toml_text(
            f"Somebody edited the case '{own.title}' in Gradebook and kept"
            " the result. The rows and settings below are theirs."
        ),
        f"lesson = {_toml_text(_lesson(found))}",
        f"focus = {min(state.row, found.batch.rows - 1)}",
    ]
    if state.detector:
        lines.append("eos_by_width = true")
    return "\n".join(lines)


def _lesson(found: Comparison) -> str:
    rows = found.differs("advantage").nonzero().flatten().tolist()
    if rows:
        flips = found.flips.nonzero().flatten().tolist()
        text = f"The engines differ in the advantage of {_row_list(rows)}"
        flip = "flips" if len(flips) == 1 else "flip"
        return text + (f"; {_row_list(flips)} {flip}." if flips else ".")
    rows = found.gradient_differs.nonzero().flatten().tolist()
    if rows:
        return f"Equal advantages; {_row_list(rows)} have another gradient."
    return "Both engines give every row the same numbers."


def _row_list(rows: list[int]) -> str:
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = ", ".join(map(str, rows[:8]))
    more = f" and {len(rows) - 8} more" if len(rows) > 8 else ""
    return f"rows {shown}{more}"


def _toml_rows(state: State, batch: Batch) -> str:
    """The rows; EOS as the detector found it, where it is on."""
    columns = state.table.values()
    if state.detector:
        columns["eos"] = batch.eos.tolist()
    names = [n for n in COLUMNS if n in columns]
    lines = []
    for cells in zip(*(columns[name] for name in names)):
        pairs = ", ".join(
            f"{name} = {_toml(_bits(name, cell))}"
            for name, cell in zip(names, cells)
        )
        lines.append(f"  {{ {pairs} }},")
    return "\n".join(("rows = [", *lines, "]\n"))


def _bits(name: str, cell: Any) -> Any:
    return [int(c) for c in cell] if name == "mask" else cell


def _toml_settings(settings: Settings) -> str:
    pairs = [
        f"{name} = {_toml(settings[name])}"
        for name in settings.keys()
        if settings[name] is not None
    ]
    return "\n".join(("[settings]", *pairs, ""))


def _toml_prediction(state: State, found: Comparison) -> str:
    row = min(state.row, found.batch.rows - 1)
    differs = bool(
        found.differs("advantage")[row] or found.gradient_differs[row]
    )
    a, b = (
        float(trace.advantage[row]) for trace in (found.correct, found.faulty)
    )
    why = f"The engines computed the advantages {a:.6g} and {b:.6g}."
    if differs and not bool(found.differs("advantage")[row]):
        why += " The gradient of its tokens differs."
    question = f"Do both engines treat row {row} of this batch alike?"
    return "\n".join(
        (
            "[prediction]",
            f"question = {_toml_text(question)}",
            'choices = ["Yes", "No"]',
            f"answer = {int(differs)}",
            f"why = {_toml_text(why)}",
            "",
        )
    )


def _toml_expected(found: Comparison) -> str:
    lines = [
        "[expected]",
        "# A record: computed by the two engines when this file was written,",
        "# not worked out by hand. It shows later changes of the engines and",
        '# proves nothing. "none" is a row without a finite value.',
    ]
    sides = {"correct": found.correct, "faulty": found.faulty}
    for side, trace in sides.items():
        values = [_toml_result(v) for v in trace.advantage.tolist()]
        lines.append(f"{side} = [{', '.join(values)}]")
    for side, trace in sides.items():
        if trace.loss is not None and math.isfinite(float(trace.loss)):
            lines.append(f"{side}_loss = {_toml(float(trace.loss))}")
    return "\n".join((*lines, ""))


def _toml_result(value: float) -> str:
    return _toml(value) if math.isfinite(value) else '"none"'


def _toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _toml_text(value) if isinstance(value, str) else repr(value)


def _toml_text(text: str) -> str:
    """A basic string. Raises GradebookError for what is no Unicode text.

    Dots are escaped where a reader that counts them would refuse the file.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise GradebookError(
            key="text", expected="Unicode characters", found=ascii(text)[:60]
        ) from None
    dots = text.count(".") > MOST_DOTS // 2
    return '"' + "".join(_toml_letter(c, dots) for c in text) + '"'


def _toml_letter(letter: str, dots: bool) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable() and not (dots and letter == "."):
        return letter
    return f"\\U{ord(letter):08X}"


# Pytest file


@dataclass(frozen=True)
class PytestFile:
    """A test file, and what to say beside it."""

    text: str
    note: str


class _Law(NamedTuple):
    """A law with its literals, and the tolerance that tells the engines
    apart; `catches` says that the faulty engine breaks it."""

    holds: Callable[..., tuple[float, str]]
    literals: tuple[Any, ...]
    tolerance: float
    catches: bool


class _Case(NamedTuple):
    """A batch of the file; `agree` as in Comparison."""

    name: str
    columns: dict[str, list[Any]]
    settings: Settings
    agree: bool
    laws: list[_Law]

    @property
    def tells(self) -> bool:
        """The batch shows the bug, and a law catches it."""
        return not self.agree and any(law.catches for law in self.laws)


LOOSE = 1e-4
"""A trainer in float32 stays within this."""


def pytest_file(state: State, link: str) -> PytestFile:
    """A test file that passes on a trainer without the bug and fails on
    one that has it.

    The assertions are laws that hold whatever a trainer's conventions;
    where none of them shows the bug on this batch, the correct numbers.
    Where the batch hides the bug, a case's own rows are added, and the
    note says so. Page switches other than the EOS detector play no part.
    Raises GradebookError where the batch cannot be read, and where the
    faulty engine has not exactly one bug.
    """
    swapped = bug(state.bug)
    cases, note = [_case("edited", state, swapped)], ""
    if not cases[0].tells:
        own = _telling_case(state, swapped)
        cases.append(own)
        why = "cannot tell a faulty trainer"
        if cases[0].agree:
            why = HIDES
        note = (
            f"This batch {why}. The rows of the case '{own.name}' are in"
            " the test as well."
        )
    notes = [text for text in (note, switches_note(state)) if text]
    cases = [case for case in cases if case.columns["reward"]]
    text = _written(swapped, cases, link, _rule(state))
    return PytestFile(text, " ".join(notes))


HIDES = "hides the bug: both engines agree on it"


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


def _telling_case(state: State, swapped: Swap) -> _Case:
    """The scenario's own rows, or the bug's main ones where those hide it
    too."""
    case = _case(state.scenario.name, start(state.scenario), swapped)
    if case.tells:
        return case
    return _case(swapped.name, start(load(swapped.name)), swapped)


def _case(name: str, state: State, swapped: Swap) -> _Case:
    batch = state.batch()
    found = compare(swapped, batch)
    columns = _columns(state, batch)
    kept: list[_Law] = []
    readable = swapped.stage not in GRADIENT or batch.logp is not None
    if batch.rows and readable:
        kept = _kept_laws(swapped, found, columns)
    return _Case(name, columns, batch.settings, found.agree, kept)


def _kept_laws(
    swapped: Swap, found: Comparison, columns: dict[str, list[Any]]
) -> list[_Law]:
    """The laws about the bug's stage, and the numbers of the correct
    engine where no law tells the engines apart."""
    gradient = swapped.stage in GRADIENT
    call = [
        _caller(engine, found.batch, gradient)
        for engine in (CORRECT, swapped.engine)
    ]

    def measured(candidates: list[tuple[Any, ...]]) -> list[_Law]:
        laws_or_none = [_law(call, columns, *one) for one in candidates]
        return [law for law in laws_or_none if law is not None]

    kept = measured(_laws_of(swapped.stage, found.batch, found.correct))
    if any(law.catches for law in kept):
        return kept
    trace = found.correct
    values = trace.gradient if gradient else trace.advantage
    numbers = measured([(laws.the_correct_numbers, values.tolist())])
    return kept + [law for law in numbers if law.catches]


def _law(
    call: list[Callable[..., Any]],
    columns: dict[str, list[Any]],
    holds: Callable[..., tuple[float, str]],
    *literals: Any,
) -> _Law | None:
    """The law with the tolerance that tells the two callers apart; none
    where the correct engine's own rounding would break it."""
    try:
        right, wrong = (holds(c, columns, *literals)[0] for c in call)
    except GradebookError:
        return None
    catches = wrong > 1e-7 and right <= wrong / 1000
    tolerance = min(LOOSE, wrong / 10) if catches else LOOSE
    if right > tolerance / 10:
        return None
    return _Law(holds, literals, float(f"{tolerance:.0e}"), catches)


GRADIENT = ("trained", "loss")
"""Stages whose fault shows in the gradient, so that the rows need logp."""


def _laws_of(
    stage: str, batch: Batch, correct: Trace
) -> list[tuple[Any, ...]]:
    """The laws about a stage that hold under the batch's settings, each
    with its literals."""
    if stage == "group":
        alone = (laws.each_prompt_alone,), (laws.rewards_of_another_prompt,)
        order = ((laws.order_of_the_rows,),)
        return [*order] if _couples(batch.settings) else [*alone, *order]
    silent = _rows_where(~correct.credited)
    if stage == "counted" and silent:
        found = [(laws.rewards_of_silent_rows, silent)]
        if batch.settings.min_group_size == 1:
            found.append((laws.silent_rows_left_out, silent))
        return found
    if stage == "advantage":
        return [(laws.lengths_of_episodes,)]
    untrained = ~correct.trained & batch.mask.any(-1) & batch.large_enough
    flat = _rows_where(untrained)
    if stage == "trained" and flat:
        return [(laws.gradient_of_flat_groups, flat)]
    return []


def _couples(settings: Settings) -> bool:
    """Prompts depend on each other by design."""
    return (
        settings.baseline == "batch_mean"
        or settings.scale in ("batch_std", "nonzero_share")
        or settings.whiten_tokens
    )


def _rows_where(flags: Any) -> list[int]:
    return flags.nonzero().flatten().tolist()


def _columns(state: State, batch: Batch) -> dict[str, list[Any]]:
    """The batch as lists, with every default filled in."""
    columns: dict[str, list[Any]] = {
        "prompt": state.table.values()["prompt"],
        "reward": batch.reward.tolist(),
        "eos": batch.eos.tolist(),
        "step": batch.step.tolist(),
        "steps": batch.steps.tolist(),
        "kept_steps": batch.kept_steps.tolist(),
        "mask": batch.mask.int().tolist(),
    }
    for name in ("logp", "ref_logp"):
        if getattr(batch, name) is not None:
            columns[name] = getattr(batch, name).tolist()
    return columns


def _caller(
    engine: Engine, batch: Batch, gradient: bool
) -> Callable[[dict[str, list[Any]]], list[Any]]:
    """What a test file's `values` is to a trainer, to an engine."""

    def call(columns: dict[str, list[Any]]) -> list[Any]:
        trace = run(engine, Batch(**columns, settings=batch.settings))
        return (trace.gradient if gradient else trace.advantage).tolist()

    return call


def _written(swapped: Swap, cases: list[_Case], link: str, rule: str) -> str:
    """The file's text."""
    head = template.HEAD.format(
        bug=swapped.name, link=_text(link), rule=_text(rule)
    )
    gradient = swapped.stage in GRADIENT
    used = {law.holds for case in cases for law in case.laws}
    helpers = (laws.gap, laws.worst, laws.picked, laws.prompts)
    functions = [
        *helpers,
        *sorted(used, key=lambda f: f.__code__.co_firstlineno),
    ]
    parts = [
        head + (template.LOSS if gradient else template.ADVANTAGES),
        template.INPUTS,
        "\n\n".join(inspect.getsource(f) for f in functions),
        "\n\n# The batches\n",
    ]
    for number, case in enumerate(cases, 1):
        parts += [_batch_text(case, number)]
        parts += [_test_text(law, case, number) for law in case.laws]
    return "".join(parts)


def _text(value: str) -> str:
    """A Python literal, in pieces that fit a line; `repr` lets no
    control or direction mark through."""
    pieces = [value[at : at + 60] for at in range(0, len(value), 60)]
    if len(pieces) < 2:
        return repr(value)
    return "\n    ".join(("(", *map(repr, pieces))) + "\n)"


def _batch_text(case: _Case, number: int) -> str:
    """Settings, names and rows as literals."""
    names = ", ".join(map(repr, case.columns))
    rows = [
        f"        ({', '.join(map(_literal, cells))}),"
        for cells in zip(*case.columns.values())
    ]
    pairs = [
        f"    {name!r}: {_literal(case.settings[name])},"
        for name in case.settings.keys()
    ]
    return "\n".join(
        (
            f"\nSETTINGS_{number} = {{",
            *pairs,
            "}",
            f"BATCH_{number} = by_column(",
            f"    ({names}),",
            "    [",
            *rows,
            "    ],",
            ")\n",
        )
    )


def _test_text(law: _Law, case: _Case, number: int) -> str:
    name = re.sub(r"\W", "_", case.name)
    literals = ",\n        ".join(map(_literal, law.literals))
    arguments = (
        f"\n        lambda columns: values(columns, SETTINGS_{number}),"
        f"\n        BATCH_{number},\n    "
    )
    if literals:
        arguments = arguments.rstrip() + f"\n        {literals},\n    "
    says = " ".join((law.holds.__doc__ or "").split())
    return template.TEST.format(
        law=law.holds.__name__,
        batch=f"{name}_{number}",
        says=says,
        arguments=arguments,
        tolerance=law.tolerance,
    )


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
