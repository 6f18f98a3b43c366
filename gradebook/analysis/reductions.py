"""Smaller and rounder batches: each function yields states that have a little
less than the one given, with a sentence that says what went."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from gradebook.cases.columns import as_text, number, parts, whole
from gradebook.cases.state import State
from gradebook.cases.table import LISTS, Table
from gradebook.core.formatting import counted

Candidates: TypeAlias = Iterator[tuple[State, str]]


def labels_of(table: Table, column: str) -> list[str]:
    return [str(cell).strip() for cell in table[column]]


def narrower(state: State) -> Candidates:
    """Fewer token columns."""
    width = state.table.width
    for tokens in sorted({1, 2, 3, width // 2, width - 1}):
        if 0 < tokens < width:
            said = f"The response mask narrows to {counted(tokens, 'token')}."
            yield _narrowed(state, tokens), said


def _narrowed(state: State, width: int) -> State:
    """`width` mask columns; each row keeps as many of its tokens as fit,
    with their log-probabilities."""
    table, masks = state.table, state.table["mask"]
    lists = {
        name: [_taken(c, m, width) for c, m in zip(table[name], masks)]
        for name in LISTS
        if name in table
    }
    kept = [tuple(sum(mask) > t for t in range(width)) for mask in masks]
    table = table.with_column("mask", kept)
    for name, cells in lists.items():
        table = table.with_column(name, cells)
    return replace(state, table=table)


def _taken(cell: str, mask: tuple[bool, ...], width: int) -> str:
    """The numbers at unmasked tokens first, then the others."""
    typed = parts(cell)
    order = sorted(range(len(typed)), key=lambda t: not mask[t])
    return " ".join(typed[t] for t in order[:width])


def shorter(state: State) -> Candidates:
    """One token for a row that has several, then one token less."""
    for row, mask in enumerate(state.table.get("mask", ())):
        tokens = [t for t, on in enumerate(mask) if on]
        for left in sorted({1, len(tokens) - 1}):
            if 0 < left < len(tokens):
                cells = {(row, f"t{t + 1}"): False for t in tokens[left:]}
                said = f"Row {row} is cut to {counted(left, 'token')}."
                table = state.table.with_cells(cells)
                yield replace(state, table=table), said


def plainer(state: State) -> Candidates:
    """One training step, and every row finished."""
    table = state.table
    if "step" in table and len(set(labels_of(table, "step"))) > 1:
        one = table.with_column("step", ["0"] * len(table))
        yield replace(state, table=one), "All rows fall into one step."
    for row, ended in enumerate(table.get("eos", ())):
        if not ended:
            said = f"Row {row} ends with EOS."
            yield _with(state, row, eos=True), said


def _with(state: State, row: int, **cells: str | bool) -> State:
    """The state with other cells in a row."""
    changes = {(row, name): cell for name, cell in cells.items()}
    return replace(state, table=state.table.with_cells(changes))


def briefer(state: State) -> Candidates:
    """Fewer transitions: all kept, then from 1 up."""
    table = state.table
    names = [n for n in ("steps", "kept_steps") if n in table]
    for row in range(len(table) if names else 0):
        at = [whole(table[name][row]) for name in names]
        choices = [[n] * len(at) for n in (1, 2, 3)]
        choices += [[min(at)] * len(at), [n // 2 for n in at]]
        for choice in choices:
            if choice != at and _is_briefer(choice, at):
                new = dict(zip(names, map(str, choice)))
                many = counted(max(choice), "transition")
                said = f"Row {row} has {many}."
                yield _with(state, row, **new), said


def _is_briefer(choice: list[int], at: list[int]) -> bool:
    """Fewer in all, or as many and all of them kept."""
    return max(choice) >= 1 and sum(choice) < sum(at)


ROUND = ("0", "1", "-1", "2", "-2", "3", "-3", "4", "-4", "5", "-5")
HALVES = ("0.5", "-0.5", "1.5", "-1.5")


def _roundness(text: str) -> tuple[float, ...]:
    """Smaller is rounder: 0, 1, -1, 2, small whole numbers, halves, few
    digits."""
    value = number(text)
    if value.is_integer() and abs(value) < 1e6:
        return (0, abs(value), value < 0)
    if (2 * value).is_integer() and abs(value) < 1e6:
        return (1, abs(value), value < 0)
    return (2, len(text.strip().lstrip("+-")), abs(value), value < 0)


def _rounded(value: float) -> list[str]:
    """Rounder numbers near `value`: whole, half, one and two digits."""
    near = [float(f"{value:.0e}"), float(f"{value:.1e}")]
    near += [round(value * 2) / 2, round(value, 1)]
    if abs(value) < 1e15:
        near.append(float(round(value)))
    return [as_text(v) for v in near if math.isfinite(v)]


def rounder_rewards(state: State) -> Candidates:
    """Rewards as round as can be."""
    for row, text in enumerate(state.table["reward"]):
        value = number(text)
        choices = {*ROUND, *HALVES, *_rounded(value)}
        at = _roundness(text)
        for choice in sorted(choices, key=lambda c: (_roundness(c), c)):
            if _roundness(choice) < at:
                said = f"The reward of row {row} becomes {choice}."
                yield _with(state, row, reward=choice), said


def rounder_logp(state: State, name: str) -> Candidates:
    """One number for every token of a row."""
    for row, cell in enumerate(state.table.get(name, ())):
        typed = parts(cell)
        if not typed:
            continue
        at = max(map(_roundness, typed)), len(set(typed))
        choices = {"-1", "-2", "-3", "-0.5", *_rounded(float(typed[0]))}
        for choice in sorted(choices, key=lambda c: (_roundness(c), c)):
            if (_roundness(choice), 1) < at:
                new = " ".join([choice] * len(typed))
                said = f"Every {name} of row {row} becomes {choice}."
                yield _with(state, row, **{name: new}), said


REDUCTIONS = (
    narrower,
    shorter,
    plainer,
    briefer,
    rounder_rewards,
    partial(rounder_logp, name="logp"),
    partial(rounder_logp, name="ref_logp"),
)
"""The reductions that leave the rows as many as they are, in order."""
