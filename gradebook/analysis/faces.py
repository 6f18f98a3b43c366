"""How a bug shows itself on a batch: its face, which a reduction keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradebook.analysis.comparison import Comparison
from gradebook.cases.state import State
from gradebook.core.differences import DUST

VISIBLE = 0.01
"""Differences below this share are seen only where none is larger."""
EXPLOSION = 100.0


@dataclass(frozen=True)
class Face:
    """What a batch shows, and what its reduction has to keep.

    kind     how the two engines differ, see `kinds_of`
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


def face_of(state: State, found: Comparison) -> Face | None:
    """What the selected row shows, or else the most striking kind."""
    for visible in (VISIBLE, 0.0):
        kinds = kinds_of(found, visible)
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
        even=is_even(found),
        fitting=is_fitting(found),
        pinned=bool(own),
        company=any(has_company(found, row) for row in rows),
    )


def has_company(found: Comparison, row: int) -> bool:
    """Two rows or more have a say in the row's own prompt."""
    peers = found.correct.group == found.correct.group[row]
    return int((peers & found.correct.counted).sum()) > 1


def kinds_of(found: Comparison, visible: float) -> dict[tuple[str, int], list[int]]:
    """The rows that show each kind, by kind and side.

    flip: the other sign. explosion: EXPLOSION times too large, or not
    finite. zero: nothing on one side only. larger and smaller: as the
    faulty one is. With the same advantages, pull: a gradient that the
    correct engine has not. rescaled: another gradient. loss: only that.
    """
    kinds: dict[tuple[str, int], list[int]] = {}
    pairs = zip(found.correct.advantage.tolist(), found.faulty.advantage.tolist())
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


def is_even(found: Comparison) -> bool:
    batch = found.batch
    return bool((batch.step_rows % batch.group_size == 0).all())


def is_fitting(found: Comparison) -> bool:
    sizes = found.batch.group_size[found.batch.step_index]
    return bool((found.batch.prompt_rows <= sizes).all())
