"""A row's advantage as a sum worked out, for both engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch

from gradebook.analysis.comparison import Comparison, same, voters
from gradebook.core.batch import Batch
from gradebook.core.differences import DUST
from gradebook.core.formatting import digits_apart, plain, settled, short, signed
from gradebook.engine.baselines import baseline
from gradebook.engine.grouping import has_tokens
from gradebook.engine.pipeline import Trace
from gradebook.engine.scales import SCALES as DIVISORS
from gradebook.engine.segments import by_group


@dataclass(frozen=True)
class Part:
    """A piece of a formula; `differs` from the other engine's."""

    text: str
    differs: bool = False


Line: TypeAlias = tuple[Part, ...]


def worked(
    comparison: Comparison, row: int
) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """The formula of `row` with its numbers, correct and faulty: lines of
    parts."""
    return (
        _side(comparison, comparison.correct, row),
        _side(comparison, comparison.faulty, row),
    )


def _side(comparison: Comparison, trace: Trace, row: int) -> tuple[Line, ...]:
    batch = comparison.batch
    lines = [_standardized(comparison, trace, row)]
    if bool(trace.credited[row]):
        heard = voters(batch, trace, row)
        lines.append(_baseline(comparison, trace, heard, row))
        lines.append(_scale(comparison, trace, row))
    if batch.settings.whiten_tokens or not bool(
        same(trace.advantage, trace.standardized)[row]
    ):
        lines.append(_advantage(comparison, trace, row))
    return tuple(lines)


def _number(
    comparison: Comparison,
    trace: Trace,
    stage: str,
    row: int,
    lead: str = "",
    least: int = 3,
) -> Part:
    a = float(getattr(comparison.correct, stage)[row])
    b = float(getattr(comparison.faulty, stage)[row])
    value = float(getattr(trace, stage)[row])
    if stage != "scale":
        value = settled(value)
    digits = digits_apart(a, b, least)
    text = signed(value, digits) if lead else plain(value, digits)
    differs = not bool(same(torch.tensor(a), torch.tensor(b)))
    return Part(text, differs)


def _standardized(comparison: Comparison, trace: Trace, row: int) -> Line:
    batch = comparison.batch
    if not bool(trace.credited[row]):
        return (Part(_no_advantage(batch, trace, row)),)
    score, baseline, scale, standardized = (
        float(getattr(trace, stage)[row])
        for stage in ("score", "baseline", "scale", "standardized")
    )
    least = _decimals(score, baseline)
    parts = [
        _number(comparison, trace, "score", row, least=least),
        _number(comparison, trace, "baseline", row, least=least),
        _number(comparison, trace, "scale", row),
        _number(comparison, trace, "standardized", row, lead="+"),
    ]
    # A faulty stage may combine the three in another way.
    if scale and bool(same(*torch.tensor([(score - baseline) / scale, standardized]))):
        opening, close = ("(", ")") if baseline < 0 else ("", "")
        around = ("(", f" − {opening}", f"{close}) / ", " = ")
    else:
        around = ("score ", ", baseline ", ", scale ", " give ")
    return tuple(x for pair in zip(map(Part, around), parts) for x in pair)


def _decimals(score: float, baseline: float) -> int:
    """Decimals with which the distance of the two, as printed, is right to a
    tenth; 3 where no number of decimals would do."""
    far = score - baseline
    for digits in range(3, 9):
        printed = round(score, digits) - round(baseline, digits)
        if abs(printed - far) <= abs(far) / 10:
            return digits
    return 3


def _no_advantage(batch: Batch, trace: Trace, row: int) -> str:
    """Why an uncredited row has no advantage."""
    if bool(trace.advantage[row].isnan()):
        least = batch.settings.min_group_size
        why = f"its prompt has fewer than {least} rows"
        if int(batch.prompt_rows[row]) >= least:
            why = "only a prompt's first row is generated"
        return f"no value: the row is not in the batch, since {why}"
    why = "it did not end with EOS"
    if not bool(batch.scored[row]):
        why = "no reward function scored it"
    if not bool(has_tokens(batch)[row]):
        why = "its response mask is empty"
    return f"0: the row earns no advantage, since {why}"


BASELINES = {
    "group_mean": "mean of {rows}",
    "batch_mean": "mean of {rows}",
    "leave_one_out": "mean of the others, {rows}",
    "length_weighted_mean": "mean of {rows}, weighted by tokens",
    "second_best": "the runner-up for the best of {rows}, else the row itself",
    "none": "none",
}

SCALES = {
    "group_std": "standard deviation (ddof {ddof}) of the group's rows + {eps}",
    "batch_std": "standard deviation (ddof {ddof}) of the batch's rows + {eps}",
    "others_std": "standard deviation (ddof {ddof}) of the other rows + {eps}, or 1 if"
    " they are equal",
    "nonzero_share": "share of non-zero scores among the counted rows",
    "none": "1 (no division)",
}


def _baseline(comparison: Comparison, trace: Trace, heard: list[int], row: int) -> Line:
    batch = comparison.batch
    by_setting = baseline(batch, trace.score, trace.counted, trace.group)
    if not bool(same(trace.baseline, by_setting)[row]):
        value = signed(settled(float(by_setting[row])))
        text = f"baseline: from the faulty stage; the setting would give {value}"
        return (Part(text, True),)
    kind = batch.settings.baseline
    sentence = BASELINES[kind].format(rows=_rows(heard))
    if kind == "group_mean" and not heard:
        sentence = "0, the row is in no group"
    if kind in ("group_mean", "batch_mean") and 1 < len(heard) <= 6:
        scores = [short(float(trace.score[r])) for r in heard]
        total = " + ".join(f"({x})" if x[0] == "−" else x for x in scores)
        sentence += f" = ({total}) / {len(heard)}"
    lone = kind in ("group_mean", "leave_one_out") and len(heard) <= 1
    raw = batch.settings.lone_row == "raw"
    if lone and heard and raw and kind == "group_mean":
        sentence = f"0, {_rows(heard)} is alone and keeps its raw score"
    return (Part(f"baseline: {sentence}"),)


def _scale(comparison: Comparison, trace: Trace, row: int) -> Line:
    """The divisor in words, true of a faulty stage, too: it may compute the
    divisor of another setting, or none that a setting stands for."""
    batch = comparison.batch
    eps = short(batch.settings.eps)
    asked = batch.settings.scale
    divisor = _divisor(batch, trace, asked)
    kinds = [asked, *(kind for kind in SCALES if kind != asked)]
    for kind in kinds:
        if bool(same(_divisor(batch, trace, kind), trace.scale)[row]):
            sentence = SCALES[kind].format(eps=eps, ddof=batch.settings.ddof)
            groups = by_group(trace.group, trace.counted)
            single = int(groups.n[groups.of[row]]) == 1
            if kind == "group_std" and single and batch.settings.ddof == 1:
                sentence = f"1 (one counted row has no deviation) + {eps}"
            break
    else:
        usual = SCALES[asked].format(eps=eps, ddof=batch.settings.ddof)
        sentence = f"not the {usual}, which is {plain(float(divisor[row]))}"
    if asked == "group_std" and int(trace.group[row]) < 0:
        sentence = f"0, the row is in no group, + {eps}"
    return (Part(f"scale: {sentence}"),)


def _divisor(batch: Batch, trace: Trace, kind: str) -> torch.Tensor:
    groups = by_group(trace.group, trace.counted)
    return DIVISORS[kind](batch, trace.score, groups, trace.baseline)


def _advantage(comparison: Comparison, trace: Trace, row: int) -> Line:
    """The second step from standardized to advantage, which is the same
    straight line for every row of the step."""
    line = _straight_line(comparison.batch, trace, row)
    before = _number(comparison, trace, "standardized", row, lead="+")
    after = _number(comparison, trace, "advantage", row, lead="+")
    if line is None:
        return (Part("then "), before, Part(" becomes "), after)
    m, s = line
    if abs(s) < DUST:  # then it divides dust, which it is all about
        before = Part(signed(float(trace.standardized[row])), before.differs)
    less = f"− {plain(m)}" if m >= 0 else f"− ({plain(m)})"
    return (
        Part("then ("),
        before,
        Part(f" {less}) / {plain(s)} = "),
        after,
    )


def _straight_line(batch: Batch, trace: Trace, row: int) -> tuple[float, float] | None:
    """m and s with advantage = (standardized - m) / s over the row's step,
    read off the two rows farthest apart; None where rows do not tell."""
    rows = (batch.step_index == batch.step_index[row]) & trace.credited
    rows &= trace.advantage.isfinite()
    x, y = trace.standardized[rows].double(), trace.advantage[rows].double()
    if not len(x) or float(y.max() - y.min()) <= 1e-9:
        return None
    low, high = int(y.argmin()), int(y.argmax())
    s = float((x[high] - x[low]) / (y[high] - y[low]))
    return float(x[high] - s * y[high]), s


def _rows(rows: list[int]) -> str:
    if len(rows) < 2:
        return f"row {rows[0]}" if rows else "no row"
    shown = [str(r) for r in rows]
    if len(shown) > 8:
        shown = shown[:7] + [f"{len(rows) - 7} more"]
    return "rows " + ", ".join(shown[:-1]) + " and " + shown[-1]
