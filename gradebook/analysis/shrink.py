"""A batch reduced to the smallest one that still shows its bug, by greedy delta
debugging: rows in ever smaller blocks, then tokens and flags, then rounder numbers."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import torch

from gradebook.analysis.comparison import Comparison, compared, push
from gradebook.cases.state import State
from gradebook.cases.table import LISTS
from gradebook.core.columns import as_text, number, parts
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import DUST

MOST_RUNS = 2000
"""The most candidates that are tried, so that a batch of somebody's own ends, too. One
of a shipped case takes 1.5 ms, and no case needs more than 163 (2026-11-28)."""
EXPLOSION = 100.0
"""A faulty advantage that is this many times the correct one, or 1, has exploded. A
distance of 0.1 and more that is divided by a usual eps alone, 1e-3 at most, has."""


def shrink(state: State) -> Iterator[State]:
    """Reductions of `state`, each smaller or rounder than the last, in which the
    selected row shows the bug in the same way; if it shows none, the row with the
    largest difference does. Raises GradebookError if the batch cannot be read."""
    comparison = compared(state)
    telling = [r for r in range(state.rows) if way(comparison, r) is not None]
    if not telling:
        return
    gap = comparison.correct.advantage - comparison.faulty.advantage
    sizes = gap.abs().nan_to_num(0).tolist()
    row = state.row if state.row in telling else max(telling, key=sizes.__getitem__)
    state, direction = replace(state, row=row), way(comparison, row)
    runs = iter(range(MOST_RUNS))

    def shows(candidate: State) -> bool:
        try:
            return way(compared(candidate), candidate.row) == direction
        except GradebookError:
            return False

    def smaller() -> State | None:
        steps = (fewer_rows, plainer_rows, rounder_numbers)
        reductions = chain.from_iterable(step(state) for step in steps)
        return next((c for c, _ in zip(reductions, runs) if shows(c)), None)

    while reduced := smaller():
        state = reduced
        yield state


def way(comparison: Comparison, row: int) -> tuple[object, ...] | None:
    """How a row shows the bug: the signs of both advantages, whether the faulty one
    explodes or is the larger, and whether the row is compared with another one. If the
    advantages agree, the same of the token whose pushes are furthest apart. None if
    everything agrees."""
    traces = comparison.correct, comparison.faulty
    group = comparison.correct.group
    company = int(((group == group[row]) & comparison.correct.counted).sum()) > 1
    if bool(comparison.differs("advantage")[row]):
        correct, faulty = (float(trace.advantage[row]) for trace in traces)
        return *_contrast(correct, faulty), company
    of_tokens = ("token_advantage", "gradient")
    if not any(bool(comparison.differs(name)[row]) for name in of_tokens):
        return None
    pushes = torch.stack([push(comparison.batch, trace)[row] for trace in traces])
    token = int((pushes[0] - pushes[1]).abs().argmax())
    return *_contrast(*pushes[:, token].tolist()), company


def _contrast(correct: float, faulty: float) -> tuple[object, ...]:
    signs = [(x > DUST) - (x < -DUST) for x in (correct, faulty)]
    explodes = not abs(faulty) <= EXPLOSION * max(1.0, abs(correct))
    return *signs, explodes, abs(faulty) > abs(correct)


def fewer_rows(state: State) -> Iterator[State]:
    """Without a prompt; then without half of the rows, a quarter, .. a single one.
    If fewer rows are left than a group has, also with groups of that many rows."""
    rows, labels = range(state.rows), state.table["prompt"]
    blocks = [
        [row for row in rows if labels[row] == label]
        for label in reversed(dict.fromkeys(labels))
    ]
    size = len(rows)
    while size := size // 2:
        blocks += [list(rows[start : start + size]) for start in reversed(rows[::size])]
    for block in blocks:
        kept = [row for row in rows if row not in block]
        if state.row not in kept:
            continue
        table, row = state.table.take(kept), kept.index(state.row)
        left = replace(state, table=table, row=row)
        yield left
        if 1 < len(kept) < (state.settings.group_size or 0):
            settings = replace(state.settings, group_size=len(kept))
            yield replace(left, settings=settings)


def plainer_rows(state: State) -> Iterator[State]:
    table, width = state.table, state.table.width
    for tokens in sorted({1, width // 2, width - 1} & set(range(1, width))):
        token = min(state.token, tokens - 1)
        yield replace(state, table=table.resized(tokens), token=token)
    for place in reversed(range(width)) if width > 1 else ():
        token = min(state.token - (state.token > place), width - 2)
        yield replace(state, table=table.without_token(place), token=token)
    for row in range(len(table)):
        mask = table["mask"][row] if width else ()
        for tokens in sorted({1, sum(mask) - 1} & set(range(1, sum(mask) + 1))):
            cut = tuple(t < tokens for t in range(width))
            if cut != mask:
                yield _with(state, row, mask=cut)
        if "eos" in table.cells and not table["eos"][row]:
            yield _with(state, row, eos=True)


def rounder_numbers(state: State) -> Iterator[State]:
    """Rounder rewards, and one log-probability for all tokens of a row."""
    # What a person would write: -5 to 5 in halves, and as log-probabilities -0.5 to -3.
    halves = [sign * n / 2 for n in range(11) for sign in (1, -1)]
    for name in ("reward", *LISTS):
        for row, cell in enumerate(state.table.cells.get(name, ())):
            numbers = parts(str(cell))
            if not numbers:
                continue
            now = max(map(roundness, numbers)), len(set(numbers))
            rounded = float(f"{number(numbers[0]):.0e}")
            values = [rounded, *(halves if name == "reward" else (-1, -2, -3, -0.5))]
            texts = {as_text(v + 0.0) for v in values if math.isfinite(v)}
            for choice in sorted(texts, key=roundness):
                if (roundness(choice), 1) < now:
                    yield _with(state, row, **{name: " ".join([choice] * len(numbers))})


def roundness(text: str) -> tuple[float, ...]:
    """A sort key: smaller means rounder (few digits, a small size, no sign)."""
    value = number(text)
    return len(text.strip().lstrip("+-")), abs(value), value < 0


def _with(state: State, row: int, **cells: object) -> State:
    changes = {(row, name): cell for name, cell in cells.items()}
    return replace(state, table=state.table.with_cells(changes))
