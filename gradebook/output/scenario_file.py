"""A state as a scenario file, which a page opens as one of its cases.

Every text passes through `_toml_text`, which escapes it.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from gradebook.analysis.comparison import Comparison, compare
from gradebook.cases.columns import COLUMNS
from gradebook.cases.record import bug
from gradebook.cases.rows import MOST_ROWS, MOST_TOKENS
from gradebook.cases.state import State
from gradebook.cases.toml_file import LARGEST_FILE, MOST_DOTS
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import Settings
from gradebook.output.panels import GRADIENT, summary


def scenario_file(state: State) -> str:
    """The batch as a scenario file: a page variant when it stands in
    scenarios/ as <bug>-<name>.toml.

    It holds no page switch but the EOS detector. Raises GradebookError
    where the batch cannot be read, no file can hold it, or the faulty
    engine has not exactly one bug.
    """
    batch = state.batch()
    if not 1 <= batch.rows <= MOST_ROWS:
        raise refuse(f"1 to {MOST_ROWS}", batch.rows, "rows")
    tokens = batch.mask.shape[1]
    if not 1 <= tokens <= MOST_TOKENS:
        raise refuse(f"1 to {MOST_TOKENS} tokens", tokens, "mask")
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
        raise refuse(
            f"a batch of at most {LARGEST_FILE} bytes",
            len(text.encode()),
            "rows",
        )
    return text


def _toml_head(state: State, found: Comparison, mark: str) -> str:
    own = state.scenario
    agree = "agree" if found.agree else "differ"
    same_rows = not bool(found.differs("advantage").any())
    kind = GRADIENT if same_rows else "advantage"
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
        f"lesson = {_toml_text(summary(found, kind))}",
        f"focus = {min(state.row, found.batch.rows - 1)}",
    ]
    if state.detector:
        lines.append("eos_by_width = true")
    return "\n".join(lines)


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
        for name in settings
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
    if isinstance(value, (list, tuple)):
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
