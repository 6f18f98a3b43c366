"""What the board draws, as plain data, without Streamlit. All numbers come from the
engines' traces; the browser computes nothing. The engines are correct, faulty; while
covered only the first is there, and no number depends on the other.

columns   name, title, kind, help of each column of the table
rows      the cells as typed, in the columns' order; a mask as '101'
version   which of two is newer
handles   what is dragged, on the left axis: its column, values, those of the case as it
          came, if it has the same rows (before), and its axis
lists     the selected row's lists of numbers, by column
refused   {"3 reward": (text that cannot be read, why)}; it changed nothing
source    where the batch came from, if it is not the case's own
regrouped  the group size of pasted rows and that of the settings, if it is another,
          and both in a sentence
overflow  which numbers are too large, in a sentence
panels    one axis each: title, engines (values), text, flips, differ, reach and
          unit (of the axis before the answer, and now), and ghosts (values of
          the batch as it came) if there are some
causes    by engine, none for results of other rows: group labels, `at` (the
          baseline in units of the reward), `say` ('1' if the row has a say),
          `counts` ('1' if it counts in the statistics, if that differs), `scale`
          (the divisor)
second    by engine the values before the second normalization
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, compress
from typing import Any

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.laws import listed
from gradebook.cases.scenario import bug
from gradebook.cases.table import LISTS
from gradebook.core.batch import Batch
from gradebook.core.columns import COLUMNS, number
from gradebook.core.formatting import counted, pair, settled
from gradebook.core.vocabulary import BASELINES, NOTHING, STEP
from gradebook.engine.pipeline import CHAPTERS, Trace
from gradebook.output import panels
from gradebook.output.axes import of_inputs, result_axis
from gradebook.ui.board import token_board
from gradebook.ui.parts.drafts import PageDraft

HOLLOW = {
    "credited": "row that earns no advantage",
    "trained": "row whose tokens are not trained",
    "counted": "row that does not count",
}
"""The trace's field that is false for rows drawn hollow: what such a row is called."""
LARGE = ("score", "baseline", "scale", "standardized", "advantage")
"""Stages whose numbers can grow too large, in order."""
LATE = {"trained", *CHAPTERS["loss"]}
"""Stages after which a row has a say if it is trained."""
SCALED = {"score", "scale", "standardized"}
"""Stages for whose bugs the divisor is drawn as a bar. Every board draws the groups
with their baselines, and which rows count."""


def view(
    draft: PageDraft,
    *,
    kind: str,
    covered: bool,
    places: Sequence[float] | None = None,
) -> dict[str, Any]:
    """The board's data, from the draft as it is.

    kind     the tell-tale: GRADIENT shows the gradient's parts
    covered  True keeps everything faulty out
    places   the places of the question's choices on the axis of the result; None if
             nothing is asked. A question's reward axis does not move when the answer
             comes
    """
    state, table, names = draft.state, draft.state.table, draft.scenario.engine_names
    batch, columns = draft.comparison.batch, [COLUMNS[name] for name in table.columns]
    is_drawn = batch.rows == len(table)  # else these are the results of other rows
    if draft.scenario.lines == "row":
        drawn = _by_row(draft, kind, covered, places)
    else:
        drawn = token_board.board(draft, covered, places or ())
    if covered:
        drawn["summary"] = f"Shown: {names[0]}. Hidden: {names[1]}."
        if draft.edited and not draft.has_other_batch:
            drawn["summary"] += " The question is about the original batch."
    opened = state.opened
    refusals = [why for _, why in draft.refused.values()]
    return {
        "name": draft.scenario.name,
        "epoch": draft.channel.epoch,
        "ack": draft.channel.ack,
        "row": state.row,
        "history": [draft.history.at, len(draft.history.states)],
        "edited": draft.edited,
        "notes": [*dict.fromkeys([*draft.notes, *refusals])],
        "overflow": overflow(draft.comparison, names[: 2 - covered]),
        "regrouped": regrouped(draft),
        "source": opened.source if opened else "",
        "covered": covered,
        "names": list(names),
        "stale": draft.fault,
        "tokens": table.width,
        "locked": ["eos"] if state.settings.eos_by_width else [],
        "columns": [[c.name, c.title, c.kind, c.help] for c in columns],
        "rows": _rows(draft, batch if is_drawn else None),
        "lists": {n: table[n][state.row] for n in table.columns if n in LISTS},
        "refused": dict(draft.refused),
        "numbers": 0,
        "baseline": "",
        "hollow": "",
        **drawn,
    }


def _by_row(
    draft: PageDraft, kind: str, covered: bool, places: Sequence[float] | None
) -> dict[str, Any]:
    """The board's data if a line is a row."""
    state, both = draft.state, draft.comparison
    batch, came, rows = both.batch, draft.before.batch, len(state.table)
    traces = [both.correct] if covered else [both.correct, both.faulty]
    is_drawn = batch.rows == rows  # else these are the results of other rows
    stages = {bug(name).stage for name in state.bugs}
    say = _say(stages)
    scaled = _draws_divisor(stages, batch)
    axes = _axes(draft, kind, covered, places or ())
    # The panel whose numbers are shown beside the picture: the first that differs.
    numbered = next((n for n, panel in enumerate(axes) if panel["differ"]), 0)
    shown = axes[numbered]
    same_rows = draft.moved and came.rows == rows
    causes = [_cause(batch, t, say, scaled) for t in traces] if is_drawn else []
    before = came.reward.tolist() if same_rows else []
    data: dict[str, Any] = {
        "handles": _handles(
            state.table["reward"], before, causes if places is None else causes[:1]
        ),
        "panels": axes,
        "numbers": numbered,
        "baseline": BASELINES[batch.settings.baseline].short,
        "hollow": HOLLOW[say],
        "causes": causes,
        "summary": panels.in_words(
            shown["title"], rows, shown["differ"], shown["flips"]
        ),
    }
    if "advantage" in stages and is_drawn:
        data["second"] = [_settled(trace.standardized.tolist()) for trace in traces]
    return data


def _say(stages: set[str]) -> str:
    """The trace's field that says which rows have a say, if these stages are faulty."""
    if "credited" in stages:
        return "credited"
    return "trained" if stages & LATE else "counted"


def _draws_divisor(stages: set[str], batch: Batch) -> bool:
    divides = batch.settings.scale != "none" or "scale" in stages
    return divides and not stages.isdisjoint(SCALED)


def _axes(
    draft: PageDraft, kind: str, covered: bool, places: Sequence[float]
) -> list[dict[str, Any]]:
    """One axis each. There are no values if the last good batch had other rows."""
    rows, sides = len(draft.state.table), 1 if covered else 2
    both, came = draft.comparison, draft.before
    if covered:  # the correct engine beside itself
        both, came = (replace(c, faulty=c.correct) for c in (both, came))
    before = {panel.title: panel for panel in panels.panels(came, kind)}
    axes = []
    for now in panels.panels(both, kind):
        if len(now.correct) != rows:
            nothing = [math.nan] * rows
            now = replace(now, correct=nothing, faulty=nothing, flips=[False] * rows)
        then = before.get(now.title, now)
        engines = (now.correct, now.faulty)[:sides]
        texts = [pair(*values)[:sides] for values in zip(now.correct, now.faulty)]
        axis: dict[str, Any] = {
            "title": now.title,
            "engines": [_settled(side) for side in engines],
            "text": [list(side) for side in zip(*texts)],
            "differ": list(compress(range(rows), now.differs)),
            "flips": list(compress(range(rows), now.flips)),
        }
        if draft.moved and now.title in before and len(then.correct) == rows:
            ghosts = (then.correct, then.faulty)[:sides]
            axis["ghosts"] = [_settled(side) for side in ghosts]
        drawn = chain(*axis["engines"], *axis.get("ghosts", ()))
        axes.append(axis | result_axis(map(settled, then.correct), places, drawn))
    return axes


def overflow(both: Comparison, names: Sequence[str]) -> str:
    """Which numbers of a row are too large for a float64, though the rewards are not;
    '' for none. A number divided by such a one is shown as 0."""
    places = []
    for name, trace in zip(names, (both.correct, both.faulty)):
        for stage in LARGE:
            value = getattr(trace, stage)
            rows = value.isinf().nonzero().flatten().tolist()
            if rows:
                places.append(f"{stage} of {listed(rows)} in the {name} engine")
                break
    if not places:
        return ""
    return f"Too large for a number (above 1.8e308): {' and '.join(places)}."


def regrouped(draft: PageDraft) -> tuple[int, int, str] | None:
    """The size of the pasted groups, that of the setting, and both in a sentence; None
    if there is nothing to ask."""
    if draft.regrouped is None:
        return None
    size, setting, is_every = draft.regrouped
    groups = "The largest pasted group has"
    if is_every:
        groups = "The pasted groups have"
    return (
        size,
        setting,
        f"{groups} {counted(size, 'row')}; the setting says {setting}.",
    )


def _handles(
    typed: Sequence[str], before: Sequence[float], causes: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The rewards as handles. Their axis holds the baselines, and the divisors as bars
    from them."""
    values, drawn = [number(cell) for cell in typed], [*before]
    for cause in causes:
        drawn += (at for at in cause["at"] if at is not None)
        sizes = zip(cause["at"], cause.get("scale", ()))
        drawn += ((at or 0) + size for at, size in sizes if size is not None)
    axis = of_inputs(values, drawn)
    return {
        "column": "reward",
        "title": "reward",
        "columns": ["reward"],
        "values": browser_numbers(values),
        "before": browser_numbers(before),
        "axis": {"low": axis.low, "high": axis.high, "unit": axis.unit},
    }


def browser_numbers(values: Iterable[float]) -> list[float | None]:
    """Numbers for the browser, no value and infinity as None, with seven significant
    digits: more than a screen shows, in few bytes."""
    return [float(f"{x:.7g}") if math.isfinite(x) else None for x in values]


def _settled(values: Iterable[float]) -> list[float | None]:
    """Results, without rounding."""
    return browser_numbers(map(settled, values))


def _cause(batch: Batch, trace: Trace, say: str, scaled: bool) -> dict[str, Any]:
    """One engine's groups, baselines and rows with a say."""
    settings = batch.settings
    baseline = BASELINES[settings.baseline]
    group = batch.step_index if baseline.compares == STEP else trace.group
    cause = {"group": group.tolist(), "say": _bits(getattr(trace, say))}
    cause["at"] = [None] * batch.rows
    if baseline.compares != NOTHING and settings.reward_scaling:
        reward = trace.baseline / settings.reward_scaling - settings.reward_bias
        cause["at"] = browser_numbers(reward.tolist())
    if say != "counted":
        cause["counts"] = _bits(trace.counted)
    if scaled and settings.reward_scaling:
        size = trace.scale / abs(settings.reward_scaling)
        cause["scale"] = browser_numbers(size.tolist())
    return cause


def _bits(flags: Iterable[Any]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def _rows(draft: PageDraft, batch: Batch | None) -> list[list[Any]]:
    """The cells as typed; lists of numbers are left out, and EOS is taken from the
    batch if the padded width decides it."""
    columns: dict[str, Sequence[Any]] = {
        n: draft.state.table[n] for n in draft.state.table.columns
    }
    for name, cells in columns.items():
        if COLUMNS[name].kind == "tokens":
            columns[name] = [_bits(mask) for mask in cells]
        elif COLUMNS[name].kind == "list":
            columns[name] = [None] * len(cells)
        elif name == "eos" and draft.state.settings.eos_by_width and batch:
            columns[name] = batch.eos.tolist()
    return [list(row) for row in zip(*columns.values())]
