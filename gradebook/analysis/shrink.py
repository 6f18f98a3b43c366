"""A batch reduced to the smallest one that still shows its bug.

Greedy delta debugging in a fixed order: whole steps and prompts, rows (with
a smaller group size where the bug reads it), the response masks, the other
columns, then the numbers. A candidate counts only where both engines run
and the same face of the bug is still there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.state_comparison import compared
from gradebook.bugs import Swap
from gradebook.cases.columns import as_text, number, parts, whole
from gradebook.cases.state import State
from gradebook.cases.table import LISTS, Table
from gradebook.core.differences import DUST
from gradebook.core.errors import GradebookError

MOST_RUNS = 3000
"""Candidates tried at most; a run of both engines takes about a
millisecond on a dozen rows."""
MOST_SUBSETS = 1200
"""Of those, subsets of rows looked through for the smallest batch."""
VISIBLE = 0.01
"""Differences below this share are seen only where none is larger."""
EXPLOSION = 100.0


@dataclass(frozen=True, eq=False)
class Step:
    """One accepted reduction: the state after it, what was done in a
    sentence, and how many candidates were tried so far."""

    state: State
    sentence: str
    runs: int


@dataclass(frozen=True)
class Face:
    """What a batch shows, and what its reduction has to keep.

    kind     how the two engines differ, see `_kinds`
    side     the sign of what they differ about, 0 for none
    visible  a difference counts from this size on
    even     the rows of every step divide by the group size
    fitting  no prompt has more rows than the group size
    pinned   the selected row shows the face
    company  a row that shows it is compared with another row
    """

    kind: str
    side: int
    visible: float
    even: bool
    fitting: bool
    pinned: bool
    company: bool


KINDS = (
    *("flip", "explosion", "zero", "larger", "smaller"),
    *("pull", "rescaled", "loss"),
)
"""From the most to the least striking; a batch's face is its first."""


def shrink(bug: Swap, state: State) -> Iterator[Step]:
    """Reductions of `state`, each smaller or rounder than the last, that
    keep the face of the bug. None where the batch does not show it.

    Deterministic, of at most MOST_RUNS candidates. Raises GradebookError
    where the batch itself cannot be read.
    """
    comparison = compared(state)
    face = _face(state, comparison)
    if face is None:
        return
    search = _Search(bug, face, state)
    for phase in (_parts, _rows, _masks, _columns, _numbers) * 2:
        yield from phase(search)


# What is shown


def _face(state: State, found: Comparison) -> Face | None:
    """What the selected row shows, or else the most striking kind."""
    for visible in (VISIBLE, 0.0):
        kinds = _kinds(found, visible)
        if kinds:
            break
    else:
        return None
    order = sorted(kinds, key=lambda k: (KINDS.index(k[0]), -k[1]))
    own = [kind for kind in order if state.row in kinds[kind]]
    kind = (*own, *order)[0]
    rows = [state.row] if own else kinds[kind]
    return Face(
        *kind,
        visible,
        even=_is_even(found),
        fitting=_is_fitting(found),
        pinned=bool(own),
        company=any(_has_company(found, row) for row in rows),
    )


def _has_company(found: Comparison, row: int) -> bool:
    """Two rows or more have a say in the row's own prompt."""
    peers = found.correct.group == found.correct.group[row]
    return int((peers & found.correct.counted).sum()) > 1


def _kinds(
    found: Comparison, visible: float
) -> dict[tuple[str, int], list[int]]:
    """The rows that show each kind, by kind and side.

    flip: the other sign. explosion: EXPLOSION times too large, or not
    finite. zero: nothing on one side only. larger and smaller: as the
    faulty one is. With the same advantages, pull: a gradient that the
    correct engine has not. rescaled: another gradient. loss: only that.
    """
    kinds: dict[tuple[str, int], list[int]] = {}
    pairs = zip(
        found.correct.advantage.tolist(), found.faulty.advantage.tolist()
    )
    for row, (correct, faulty) in enumerate(pairs):
        kind = _kind(correct, faulty, visible)
        if kind:
            tiny = abs(correct) <= DUST or math.isnan(correct)
            side = _sign(faulty if tiny else correct)
            kinds.setdefault((kind, side), []).append(row)
    if not kinds and found.correct.gradient is not None:
        apart = found.gradient_differs
        nothing = (found.correct.gradient.abs() <= 1e-9).all(-1)
        kinds["pull", 0] = (apart & nothing).nonzero().flatten().tolist()
        scaled = apart & ~nothing
        kinds["rescaled", 0] = scaled.nonzero().flatten().tolist()
        if not bool(apart.any()) and bool(found.differs("loss")):
            kinds["loss", 0] = list(range(found.batch.rows))
    return {kind: rows for kind, rows in kinds.items() if rows}


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _kind(correct: float, faulty: float, visible: float) -> str:
    """How two advantages of one row differ; '' for not visibly."""
    if math.isnan(correct) and math.isnan(faulty):
        return ""
    if not math.isfinite(faulty - correct):
        return "explosion"
    least = max(visible, DUST)
    size = max(1.0, abs(correct), abs(faulty))
    if abs(correct - faulty) <= least * size:
        return ""
    if correct * faulty < 0 and min(abs(correct), abs(faulty)) > least:
        return "flip"
    if abs(faulty) > EXPLOSION * max(1.0, abs(correct)):
        return "explosion"
    nothing = [abs(value) <= DUST for value in (correct, faulty)]
    if any(nothing):
        return "zero"
    return "larger" if abs(faulty) > abs(correct) else "smaller"


def _is_even(found: Comparison) -> bool:
    batch = found.batch
    return bool((batch.step_rows % batch.group_size == 0).all())


def _is_fitting(found: Comparison) -> bool:
    sizes = found.batch.group_size[found.batch.step_index]
    return bool((found.batch.prompt_rows <= sizes).all())


def _has_full_group(found: Comparison) -> bool:
    sizes = found.batch.group_size[found.batch.step_index]
    return bool((found.batch.prompt_rows >= sizes.clamp(min=2)).any())


# The search


class _Search:
    """The best state so far, and the count of candidates tried."""

    def __init__(self, bug: Swap, face: Face, state: State) -> None:
        self.face = face
        self.state = state
        self.runs = 0
        self.by_position = bug.stage == "group"
        grouped = "group_size" in state.scenario.controls
        self.resizes = self.by_position and grouped

    def takes(self, state: State) -> State | None:
        """The candidate, taken over where it shows the face too. A
        selected row that left, -1, is replaced by one that shows it."""
        if self.face.pinned and state.row < 0:
            return None
        self.runs += 1
        try:
            found = compared(state)
        except GradebookError:
            return None
        rows = self._showing(found, state.row)
        if not rows or not self._in_shape(found):
            return None
        row = state.row if state.row >= 0 else rows[0]
        self.state = replace(state, row=row)
        return self.state

    def _showing(self, found: Comparison, row: int) -> list[int]:
        """The rows that show the face."""
        face = self.face
        rows = _kinds(found, face.visible).get((face.kind, face.side), [])
        if self.face.pinned:
            rows = [r for r in rows if r == row]
        if self.face.company:
            rows = [r for r in rows if _has_company(found, r)]
        return rows

    def _in_shape(self, found: Comparison) -> bool:
        """Only the bug that cuts by position reads the group size."""
        return not self.by_position or (
            _has_full_group(found)
            and (not self.face.even or _is_even(found))
            and (not self.face.fitting or _is_fitting(found))
        )

    def first(self, candidates: Iterable[tuple[State, str]]) -> Step | None:
        """The first candidate that keeps the face, taken over."""
        for candidate, sentence in candidates:
            if self.runs >= MOST_RUNS:
                return None
            if state := self.takes(candidate):
                return Step(state, sentence, self.runs)
        return None

    def repeat(
        self, candidates: Callable[[State], Iterable[tuple[State, str]]]
    ) -> Iterator[Step]:
        """Candidates of the state at hand until none is taken."""
        while step := self.first(candidates(self.state)):
            yield step


Candidates = Iterator[tuple[State, str]]


# Rows


def _parts(search: _Search) -> Iterator[Step]:
    """Whole training steps, then whole prompts, from the last on."""
    yield from search.repeat(lambda state: _without(state, "step"))
    yield from search.repeat(lambda state: _without(state, "prompt"))


def _without(state: State, column: str) -> Candidates:
    if column not in state.table:
        return
    labels = _labels(state.table, column)
    names = list(dict.fromkeys(labels))
    for block in _blocks(len(names)):
        gone = {names[at] for at in block}
        kept = [r for r, label in enumerate(labels) if label not in gone]
        if kept:
            said = ", ".join(names[at] for at in block)
            if len(block) > 3:
                said = f"{len(block)} {column}s"
            rows = _rows_of(len(labels) - len(kept))
            leave = "leaves" if len(block) == 1 else "leave"
            many = "" if len(block) == 1 else "s"
            if len(block) <= 3:
                said = f"{column.capitalize()}{many} {said}"
            yield _with_rows(state, kept), f"{said} {leave} with {rows}."


def _blocks(count: int) -> Iterator[range]:
    """Neighbours among `count`: halves, quarters, .. single ones, each
    from the end."""
    size = count // 2
    while size:
        for start in reversed(range(0, count, size)):
            yield range(start, min(start + size, count))
        size //= 2


def _labels(table: Table, column: str) -> list[str]:
    return [str(cell).strip() for cell in table[column]]


def _rows_of(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _with_rows(state: State, kept: list[int]) -> State:
    """Only the rows `kept`; the selected row moves along, to -1 where it
    left."""
    row = kept.index(state.row) if state.row in kept else -1
    return replace(state, table=state.table.take(kept), row=row)


def _rows(search: _Search) -> Iterator[Step]:
    """Blocks of rows, then the smallest subset of what is left, with a
    smaller group size where one is read."""
    yield from search.repeat(lambda state: _thinned(search, state))
    yield from _smallest(search)


def _sizes(search: _Search, state: State, rows: int) -> list[str]:
    """Group sizes to try, as typed: the one at hand, then smaller ones."""
    typed = str(state.typed.get("group_size", ""))
    if not search.resizes or not typed.strip():
        return [typed]
    size = whole(typed)
    smaller = range(min(size - 1, rows), 1, -1)
    return [typed, *map(str, smaller)]


def _resized(state: State, size: str) -> State:
    if size == str(state.typed.get("group_size", "")):
        return state
    return replace(state, typed={**state.typed, "group_size": size})


def _thinned(search: _Search, state: State) -> Candidates:
    """A block of rows fewer, at each group size."""
    every = range(state.rows)
    for dropped in _blocks(len(every)):
        kept = [row for row in every if row not in dropped]
        for size in _sizes(search, state, len(kept)):
            thinner = _resized(_with_rows(state, kept), size)
            yield thinner, _left(state, thinner)


def _left(before: State, after: State) -> str:
    gone = before.rows - after.rows
    said = f"{_rows_of(gone).capitalize()} less"
    size = after.typed.get("group_size", "")
    if size != before.typed.get("group_size", ""):
        said += f", in groups of {size}"
    return f"{said}: {after.rows} are enough."


def _smallest(search: _Search) -> Iterator[Step]:
    """The smallest subset of the rows, looked for from 2 rows up."""
    stop = min(search.runs + MOST_SUBSETS, MOST_RUNS)
    state = search.state
    for count in range(1, state.rows):
        for candidate in _subsets(search, state, count):
            if search.runs >= stop:
                return
            if smaller := search.takes(candidate):
                yield Step(smaller, _left(state, smaller), search.runs)
                return


def _subsets(search: _Search, state: State, count: int) -> Iterator[State]:
    """The subsets of `count` rows in the shape that the face asks for,
    judged without an engine."""
    rows = state.rows
    others = [r for r in range(rows) if r != state.row]
    pinned = search.face.pinned
    chosen = combinations(others if pinned else range(rows), count - pinned)
    chosen = islice(chosen, MOST_SUBSETS * 10)
    labels = list(zip(*(_labels(state.table, c) for c in _keys(state))))
    sizes = _sizes(search, state, count)
    for rest in chosen:
        kept = sorted((*rest, state.row) if pinned else rest)
        for size in sizes:
            if _could_show(search, [labels[r] for r in kept], size):
                yield _resized(_with_rows(state, kept), size)


def _keys(state: State) -> list[str]:
    return [c for c in ("step", "prompt") if c in state.table]


def _could_show(
    search: _Search, labels: list[tuple[str, ...]], size: str
) -> bool:
    """The cheap half of `_in_shape`, for one step and a typed size."""
    if not search.by_position or not size.strip():
        return True
    most = whole(size)
    counts = [labels.count(label) for label in set(labels)]
    even = len(labels) % most == 0 or len(labels[0]) > 1
    return (
        (even or not search.face.even)
        and (max(counts) <= most or not search.face.fitting)
        and max(counts) >= max(most, 2)
    )


# Masks


def _masks(search: _Search) -> Iterator[Step]:
    """Fewer token columns, then fewer tokens a row."""
    if not search.state.table.width:
        return
    yield from search.repeat(_narrower)
    yield from search.repeat(_shorter)


def _narrower(state: State) -> Candidates:
    width = state.table.width
    for tokens in sorted({1, 2, 3, width // 2, width - 1} - {0}):
        if tokens < width:
            said = f"The response mask narrows to {tokens}"
            said += " token." if tokens == 1 else " tokens."
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


def _shorter(state: State) -> Candidates:
    """One token for a row that has several, then one token less."""
    for row, mask in enumerate(state.table["mask"]):
        tokens = [t for t, on in enumerate(mask) if on]
        for left in sorted({1, len(tokens) - 1}):
            if 0 < left < len(tokens):
                cells = {(row, f"t{t + 1}"): False for t in tokens[left:]}
                said = f"Row {row} is cut to {_tokens_of(left)}."
                table = state.table.with_cells(cells)
                yield replace(state, table=table), said


def _tokens_of(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


# Other columns


def _columns(search: _Search) -> Iterator[Step]:
    """One training step, every row finished, episodes as short as can
    be."""
    yield from search.repeat(_plainer)
    yield from search.repeat(_briefer)


def _plainer(state: State) -> Candidates:
    table = state.table
    if "step" in table and len(set(_labels(table, "step"))) > 1:
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


def _briefer(state: State) -> Candidates:
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
                said = f"Row {row} has {_transitions_of(max(choice))}."
                yield _with(state, row, **new), said


def _is_briefer(choice: list[int], at: list[int]) -> bool:
    """Fewer in all, or as many and all of them kept."""
    return max(choice) >= 1 and sum(choice) < sum(at)


def _transitions_of(count: int) -> str:
    return "1 transition" if count == 1 else f"{count} transitions"


# Numbers


ROUND = ("0", "1", "-1", "2", "-2", "3", "-3", "4", "-4", "5", "-5")
HALVES = ("0.5", "-0.5", "1.5", "-1.5")


def _numbers(search: _Search) -> Iterator[Step]:
    """Rewards, then log-probabilities, as round as can be."""
    yield from search.repeat(_rounder_rewards)
    for name in ("logp", "ref_logp"):
        if name in search.state.table:
            yield from search.repeat(lambda s, n=name: _rounder_logp(s, n))


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


def _rounder_rewards(state: State) -> Candidates:
    for row, text in enumerate(state.table["reward"]):
        value = number(text)
        choices = {*ROUND, *HALVES, *_rounded(value)}
        at = _roundness(text)
        for choice in sorted(choices, key=lambda c: (_roundness(c), c)):
            if _roundness(choice) < at:
                said = f"The reward of row {row} becomes {choice}."
                yield _with(state, row, reward=choice), said


def _rounder_logp(state: State, name: str) -> Candidates:
    """One number for every token of a row."""
    for row, cell in enumerate(state.table[name]):
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
