"""What the board draws: a draft and its comparison as plain data.

Pure functions, without Streamlit. All numbers come from the engines' traces;
the browser draws them and computes nothing. While the faulty engine is
covered, no number of it is in the data.

The data, in the order of `View`'s fields; the engines are correct, faulty,
and while covered only the first of them is there:

columns   name, title, kind, help of each column of the table
rows      the cells as typed, in the columns' order; a mask as '101'
rewards   each reward as a number
stood     the rewards of the case as it came, where rows are the same
lists     the selected row's lists of numbers, by column
refused   {"3 reward": (text that cannot be read, why)}; it changed nothing
panels    one axis each: title, engines (values), text, flips, differ, reach
          (of the axis before the answer, and now), and ghosts (values of the
          case as it came) where there are some
causes    by engine: group labels, `at` (the baseline in units of the reward),
          `say` ('1' where the row has a say), `counts` ('1' where it counts
          in the statistics, where that is another thing), `scale` (the
          divisor)
second    by engine the values before the second normalization
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from gradebook.analysis.comparison import same
from gradebook.cases.record import bug
from gradebook.core.batch import Batch
from gradebook.core.columns import COLUMNS, number
from gradebook.core.differences import flips
from gradebook.core.formatting import pair, settled
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import Trace
from gradebook.output.panels import Pair, in_words, results
from gradebook.ui.parts.drafts import Draft


@dataclass(frozen=True)
class Drawing:
    """How the board draws the cause of a bug in one stage.

    say     the trace's field that is false for rows drawn hollow
    hollow  what such a row is called
    scale   the divisor is drawn as a bar
    second  the way from `standardized` to `advantage` is drawn as an arrow
    """

    say: str = "counted"
    hollow: str = "row that does not count"
    scale: bool = False
    second: bool = False


UNTRAINED = Drawing("trained", "row whose tokens are not trained")

DRAWINGS = {
    "score": Drawing(scale=True),
    "credited": Drawing("credited", "row that earns no advantage"),
    "scale": Drawing(scale=True),
    "standardized": Drawing(scale=True),
    "advantage": Drawing(second=True),
    "trained": UNTRAINED,
    "loss": UNTRAINED,
}
"""By stage. The other stages need only what every board draws: the groups
with their baselines, and which rows count."""

BASELINES = {
    "group_mean": "group's mean",
    "batch_mean": "batch's mean",
    "leave_one_out": "mean of the others",
    "length_weighted_mean": "mean weighted by tokens",
    "second_best": "second best reward",
}


def drawing(bugs: Sequence[str]) -> Drawing:
    """How the causes of these bugs are drawn together."""
    found = [DRAWINGS.get(bug(name).stage, Drawing()) for name in bugs]
    say = next((d for d in found if d.say != Drawing.say), Drawing())
    return Drawing(
        say=say.say,
        hollow=say.hollow,
        scale=any(d.scale for d in found),
        second=any(d.second for d in found),
    )


def view(
    draft: Draft,
    *,
    kind: str,
    covered: bool,
    names: tuple[str, str] | None = None,
    invite: int | None = None,
    places: Sequence[float] = (),
) -> dict[str, Any]:
    """The board's data, from the draft as it stands.

    kind     the tell-tale: GRADIENT shows the gradient's parts
    covered  True keeps everything faulty out
    names    what the two engines are called, where the case says otherwise
    invite   the row whose handle moves a little until the first edit
    places   where the question's choices lie on the axis of the result
    """
    state, table = draft.state, draft.table
    comparison, wrong = draft.comparison, draft.faults
    names = names or state.engine_names
    rows = len(table)
    drawn = drawing(state.bugs)
    shown = [comparison.correct, comparison.faulty][: 1 if covered else 2]
    good = comparison.batch
    if good.rows == rows:
        causes = [_cause(good, trace, drawn) for trace in shown]
        panels = [_panel(*one, covered) for one in results(comparison, kind)]
    else:
        causes = [no_cause(rows) for _ in shown]
        panels = [
            {
                "title": title,
                "engines": [[None] * rows for _ in shown],
                "text": [[""] * rows for _ in shown],
                "differ": [],
                "flips": [],
            }
            for title, _ in results(comparison, kind)
        ]
    # The panel whose numbers stand beside the picture: the first that differs.
    numbered = next((at for at, panel in enumerate(panels) if panel["differ"]), 0)
    stood: list[float | int | None] = []
    before = draft.original
    if draft.edited and before.batch.rows == rows:
        for panel, (_, values) in zip(panels, results(before, kind)):
            panel["ghosts"] = [_values(one) for one in values[: len(shown)]]
        stood = [_short(x) for x in before.batch.reward.tolist()]
    for panel, (_, values) in zip(panels, results(before, kind)):
        start = covered_reach(
            map(settled, values[0].tolist()),
            places if panel is panels[numbered] else (),
        )
        sides = [panel.get(key, ()) for key in ("engines", "ghosts")]
        numbers = [x for side in chain(*sides) for x in side if x is not None]
        panel["reach"] = [start, widened(start, numbers)]
    data = {
        "name": draft.scenario.name,
        "title": draft.scenario.title,
        "epoch": draft.epoch,
        "ack": draft.ack,
        "row": draft.row,
        "invite": None if draft.edited else invite,
        "history": [draft.at, len(draft.states)],
        "edited": draft.edited,
        "notes": list(
            dict.fromkeys([*draft.notes, *(why for _, why in draft.refused.values())])
        ),
        "covered": covered,
        "names": list(names),
        "stale": _stale(wrong),
        "tokens": table.width,
        "locked": ["eos"] if state.get("eos_by_width") else [],
        "columns": [
            [c.name, c.title, c.kind, c.help]
            for c in (COLUMNS[name] for name in table.columns)
        ],
        "rows": _rows(draft),
        "lists": {
            name: table[name][draft.row]
            for name in table.columns
            if COLUMNS[name].kind == "list" and draft.row < rows
        },
        "refused": dict(draft.refused),
        "rewards": [_short(number(cell)) for cell in table["reward"]],
        "stood": stood,
        "panels": panels,
        "numbers": numbered,
        "baseline": BASELINES.get(good.settings.baseline, ""),
        "hollow": drawn.hollow,
        "causes": causes,
        "summary": summary(panels[numbered], names, covered, draft.edited),
    }
    if drawn.second and good.rows == rows:
        data["second"] = [_values(trace.standardized) for trace in shown]
    return data


def summary(
    panel: dict[str, Any],
    names: tuple[str, str],
    covered: bool,
    edited: bool,
) -> str:
    """The picture in one sentence."""
    count = len(panel["engines"][0])
    if not count:
        return "The batch has no rows."
    if covered:
        said = f"Shown: {names[0]}. Hidden: {names[1]}."
        asked = " The question is about the original batch."
        return said + asked if edited else said
    return in_words(panel["title"], count, panel["differ"], panel["flips"])


def _panel(title: str, values: Pair, covered: bool) -> dict[str, Any]:
    correct, faulty = values
    texts = [
        pair(a, a if covered else b) for a, b in zip(correct.tolist(), faulty.tolist())
    ]
    sides = 1 if covered else 2
    differ, flipped = (
        [] if covered else found.nonzero().flatten().tolist()
        for found in (~same(*values), flips(*values))
    )
    return {
        "title": title,
        "engines": [_values(one) for one in values[:sides]],
        "text": [[both[side] for both in texts] for side in range(sides)],
        "differ": differ,
        "flips": flipped,
    }


def _values(values: Tensor) -> list[float | int | None]:
    """Numbers for the browser, no value as None."""
    return [_short(settled(x)) for x in values.tolist()]


def _short(x: float) -> float | int | None:
    """Seven significant digits: more than a screen shows, in few bytes."""
    if not math.isfinite(x):
        return None
    short = float(f"{x:.7g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short


def no_cause(rows: int) -> dict[str, Any]:
    """Nothing is drawn at the reward axis."""
    return {"group": [-1] * rows, "at": [None] * rows, "say": "1" * rows}


def _cause(batch: Batch, trace: Trace, drawn: Drawing) -> dict[str, Any]:
    """One engine's groups, baselines and rows with a say."""
    settings = batch.settings
    group = trace.group
    if settings.baseline == "batch_mean":
        group = batch.step_index
    at: list[float | int | None] = [None] * batch.rows
    if settings.baseline != "none" and settings.reward_scaling:
        reward = trace.baseline / settings.reward_scaling
        at = [_short(x) for x in (reward - settings.reward_bias).tolist()]
    found = {
        "group": group.tolist(),
        "at": at,
        "say": _flags(getattr(trace, drawn.say)),
    }
    if drawn.say != Drawing.say:
        found["counts"] = _flags(trace.counted)
    if drawn.scale and settings.reward_scaling:
        size = trace.scale / abs(settings.reward_scaling)
        found["scale"] = [_short(x) for x in size.tolist()]
    return found


def _flags(values: Tensor) -> str:
    return "".join("01"[x] for x in values.tolist())


def _rows(draft: Draft) -> list[list[Any]]:
    """The cells as typed; lists of numbers are left out."""
    table = draft.table
    columns: list[Sequence[Any]] = []
    for name in table.columns:
        kind = COLUMNS[name].kind
        if kind == "tokens":
            columns.append([_bits(mask) for mask in table[name]])
        elif kind == "list":
            columns.append([None] * len(table))
        elif name == "eos" and draft.state.get("eos_by_width"):
            columns.append(_detected(table["mask"]))
        else:
            columns.append(table[name])
    return [list(row) for row in zip(*columns)]


def _bits(mask: Sequence[Any]) -> str:
    return "".join("1" if bit is True else "0" for bit in mask)


def _detected(masks: Sequence[Sequence[Any]]) -> list[bool]:
    """Whether EOS is found by the padded width, row by row."""
    flags = torch.tensor([[bit is True for bit in mask] for mask in masks])
    batch = Batch(
        prompt=torch.zeros(len(flags), dtype=torch.long),
        reward=torch.zeros(len(flags)),
        mask=flags,
        settings=Settings(eos_by_width=True),
    )
    return batch.eos.tolist()


def _stale(said: Sequence[str]) -> str:
    """What is wrong, in one line; '' where nothing is."""
    more = f" And {len(said) - 3} more." if len(said) > 3 else ""
    return " ".join(said[:3]) + more


# How far the axis of a result reaches: as far to the left as to the right of 0


ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10)
"""An axis ends at one of these times a power of ten."""
HEADROOM = 1.5
"""The reach before the answer, in sizes of the largest correct value."""
FAR = 5
"""A choice beyond so many reaches does not widen the axis."""


def round_up(size: float) -> float:
    """The least end of an axis that holds this size."""
    if not size > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(size))
    return next(
        float(f"{end * power:.3g}") for end in ROUND if end * power >= size * (1 - 1e-9)
    )


def covered_reach(correct: Iterable[float], places: Iterable[float] = ()) -> float:
    """The reach before the answer.

    places  where the choices lie on this axis
    """
    reach = round_up(HEADROOM * _largest(correct))
    return widened(reach, (place for place in places if abs(place) <= FAR * reach))


def widened(reach: float, values: Iterable[float]) -> float:
    """The reach that holds these values, too."""
    largest = _largest(values)
    return reach if largest <= reach * (1 + 1e-9) else round_up(largest)


def _largest(values: Iterable[float]) -> float:
    return max((abs(x) for x in values if math.isfinite(x)), default=0.0)
