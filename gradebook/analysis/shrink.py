"""A batch reduced to the smallest one that still shows its bug.

Greedy delta debugging in a fixed order: rows in ever smaller blocks, then
tokens, transitions and flags, then rounder numbers, until nothing can go. A
candidate counts only where both engines run and the row in question still
shows the bug in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from gradebook.analysis.comparison import Comparison, compared
from gradebook.cases.state import State
from gradebook.cases.table import LISTS
from gradebook.core.columns import as_text, number, parts, whole
from gradebook.core.differences import DUST
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import counted

MOST_RUNS = 2000
"""Candidates tried at most; a run of both engines takes about a
millisecond on a dozen rows."""
EXPLOSION = 100.0
"""A faulty advantage so many times the correct one is a way of its own."""

Candidates: TypeAlias = Iterator[tuple[State, str]]


@dataclass(frozen=True, eq=False)
class Step:
    """One accepted reduction: the state after it, and what was done."""

    state: State
    sentence: str


def shrink(state: State) -> Iterator[Step]:
    """Reductions of `state`, each smaller or rounder than the last, in which
    the selected row shows the bug in the same way, or where it does not, the
    row with the largest difference. None where the batch hides the bug.

    Deterministic, of at most MOST_RUNS candidates. Raises GradebookError
    where the batch itself cannot be read.
    """
    comparison = compared(state)
    telling = [r for r in range(state.rows) if way(comparison, r) is not None]
    if not telling:
        return
    gap = comparison.correct.advantage - comparison.faulty.advantage
    sizes = gap.abs().nan_to_num(0).tolist()
    row = state.row if state.row in telling else max(telling, key=sizes.__getitem__)
    state, direction, runs = replace(state, row=row), way(comparison, row), 0

    def first(candidates: Candidates) -> Step | None:
        nonlocal runs
        for candidate, sentence in candidates:
            if runs >= MOST_RUNS:
                return None
            runs += 1
            try:
                if way(compared(candidate), candidate.row) == direction:
                    return Step(candidate, sentence)
            except GradebookError:
                pass
        return None

    smaller = True
    while smaller:
        smaller = False
        for reduction in REDUCTIONS:
            while step := first(reduction(state)):
                state, smaller = step.state, True
                yield step


def way(comparison: Comparison, row: int) -> tuple[object, ...] | None:
    """How a row shows the bug: the signs of both advantages, whether the
    faulty one explodes or is the larger, and whether the row is compared with
    another one. Where the advantages agree, whether each engine has a
    gradient there. None where the row does not show the bug."""
    correct, faulty = (
        float(trace.advantage[row]) for trace in (comparison.correct, comparison.faulty)
    )
    group = comparison.correct.group
    peers = (group == group[row]) & comparison.correct.counted
    company = int(peers.sum()) > 1
    if bool(comparison.differs("advantage")[row]):
        explodes = not abs(faulty) <= EXPLOSION * max(1.0, abs(correct))
        larger = abs(faulty) > abs(correct)
        return _sign(correct), _sign(faulty), explodes, larger, company
    if comparison.correct.gradient is None or not comparison.gradient_differs[row]:
        return None
    gradients = comparison.correct.gradient, comparison.faulty.gradient
    learns = [bool((g[row].abs() > 1e-9).any()) for g in gradients if g is not None]
    return *learns, company


def _sign(value: float) -> int:
    return 0 if abs(value) <= DUST or math.isnan(value) else 1 if value > 0 else -1


# Reductions: states that have a little less, with a sentence that says what


def fewer_rows(state: State) -> Candidates:
    """A training step or a prompt less; then blocks of rows: halves, quarters, ..
    single ones, from the end. Where fewer rows are left than a group has, groups
    of that many too."""
    for name in [name for name in ("step", "prompt") if name in state.table]:
        labels = [str(cell).strip() for cell in state.table[name]]
        for label in reversed(dict.fromkeys(labels)):
            kept = [row for row, other in enumerate(labels) if other != label]
            if label != labels[state.row]:
                rows = counted(state.rows - len(kept), "row")
                sentence = f"{name.capitalize()} {label} is removed, with {rows}."
                yield _with_rows(state, kept), sentence
    block = state.rows // 2
    while block:
        for start in reversed(range(0, state.rows, block)):
            kept = [r for r in range(state.rows) if not start <= r < start + block]
            if state.row not in kept:
                continue
            left, rows = _with_rows(state, kept), counted(state.rows - len(kept), "row")
            sentence = f"{rows.capitalize()} removed: {len(kept)} are enough."
            yield left, sentence
            size = str(state.typed.get("group_size", ""))
            if size.strip() and 1 < len(kept) < whole(size):
                typed = {**state.typed, "group_size": str(len(kept))}
                yield replace(left, typed=typed), f"{sentence[:-1]}, as one group."
        block //= 2


def _with_rows(state: State, kept: list[int]) -> State:
    table = state.table.take(kept)
    return replace(state, table=table, row=kept.index(state.row))


def plainer_rows(state: State) -> Candidates:
    """Fewer tokens, one training step, every row finished, and short episodes."""
    table, width = state.table, state.table.width
    for tokens in sorted({1, width // 2, width - 1} & set(range(1, width))):
        narrow = table.with_column("mask", [mask[:tokens] for mask in table["mask"]])
        sentence = f"The response mask narrows to {counted(tokens, 'token')}."
        yield replace(state, table=narrow), sentence
    if "step" in table and any(str(cell).strip() != "0" for cell in table["step"]):
        joined = table.with_column("step", ["0"] * len(table))
        yield replace(state, table=joined), "All rows are in one step."
    lengths = [name for name in ("steps", "kept_steps") if name in table]
    for row in range(len(table)):
        mask = table["mask"][row] if width else ()
        for tokens in sorted({1, sum(mask) - 1} & set(range(1, sum(mask) + 1))):
            cut = tuple(t < tokens for t in range(width))
            if cut != mask:
                sentence = f"Row {row} is cut to {counted(tokens, 'token')}."
                yield _with(state, row, mask=cut), sentence
        if "eos" in table and not table["eos"][row]:
            yield _with(state, row, eos=True), f"Row {row} ends with EOS."
        for most in (1, 2, 3):
            now = {name: whole(table[name][row]) for name in lengths}
            shorter = {name: min(length, most) for name, length in now.items()}
            if shorter != now:
                sentence = f"Row {row} has at most {counted(most, 'transition')}."
                cells = {name: str(length) for name, length in shorter.items()}
                yield _with(state, row, **cells), sentence


def rounder_numbers(state: State) -> Candidates:
    """Rewards as round as can be, and one log-probability for all tokens of
    a row."""
    for name in ("reward", *LISTS):
        for row, cell in enumerate(state.table.get(name, ())):
            numbers = parts(str(cell))
            if not numbers:
                continue
            now = max(map(_roundness, numbers)), len(set(numbers))
            value = number(numbers[0])
            values = [
                float(f"{value:.0e}"),
                float(f"{value:.1e}"),
                round(value * 2) / 2,
            ]
            if name == "reward":
                values += [sign * n / 2 for n in range(11) for sign in (1, -1)]
            else:
                values += [-1, -2, -3, -0.5]
            texts = {as_text(v + 0.0) for v in values if math.isfinite(v)}
            for choice in sorted(texts, key=lambda text: (_roundness(text), text)):
                if (_roundness(choice), 1) < now:
                    what = f"Every {name}" if name != "reward" else "The reward"
                    cells = {name: " ".join([choice] * len(numbers))}
                    sentence = f"{what} of row {row} becomes {choice}."
                    yield _with(state, row, **cells), sentence


def _roundness(text: str) -> tuple[float, ...]:
    """Smaller is rounder: 0, 1, -1, 2, small whole numbers, halves, few
    digits."""
    value = number(text)
    for decimals, times in enumerate((1, 2)):
        if (times * value).is_integer() and abs(value) < 1e6:
            return (decimals, abs(value), value < 0)
    return (2, len(text.strip().lstrip("+-")), abs(value), value < 0)


def _with(state: State, row: int, **cells: object) -> State:
    changes = {(row, name): cell for name, cell in cells.items()}
    return replace(state, table=state.table.with_cells(changes))


REDUCTIONS: tuple[Callable[[State], Candidates], ...] = (
    fewer_rows,
    plainer_rows,
    rounder_numbers,
)
"""In the order in which they are tried."""
