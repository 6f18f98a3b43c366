"""A row's advantage worked out, and the code that computes it, for both engines."""

import ast
import inspect
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison, voters
from gradebook.analysis.laws import listed
from gradebook.core import formatting
from gradebook.core.batch import Batch
from gradebook.core.formatting import DUST, digits_apart, plain, settled, short, signed
from gradebook.core.settings import Settings
from gradebook.core.tolerance import EXACT
from gradebook.core.vocabulary import BASELINES, SCALES
from gradebook.engine.advantages import baseline, scale
from gradebook.engine.grouping import has_tokens
from gradebook.engine.pipeline import Trace


class Part(NamedTuple):
    """A piece of a formula, and whether it differs from the other engine's.

    stage  whose number it is, if it is one
    rows   from which it comes, if they are not the formula's own row
    """

    text: str
    differs: bool = False
    stage: str = ""
    rows: tuple[int, ...] = ()


Line: TypeAlias = tuple[Part, ...]


def worked(comparison: Comparison, row: int) -> list[list[Line]]:
    """The formula of `row` with its numbers, correct and faulty: lines of parts."""
    batch, sides = comparison.batch, []
    for trace in (comparison.correct, comparison.faulty):
        lines: list[Line] = [(Part(_no_advantage(batch, trace, row)),)]
        if bool(trace.credited[row]):
            lines = [_quotient(comparison, trace, row), *_divided(batch, trace, row)]
        second = not formatting.same(
            float(trace.advantage[row]), float(trace.standardized[row])
        )
        if batch.settings.whiten_tokens or second:
            lines += _advantage(comparison, trace, row)
        sides.append(lines)
    return sides


def _number(
    comparison: Comparison, trace: Trace, stage: str, row: int, least: int = 3
) -> Part:
    """A stage's number, with the digits that tell it from the other engine's."""
    a = float(getattr(comparison.correct, stage)[row])
    b = float(getattr(comparison.faulty, stage)[row])
    value, digits = float(getattr(trace, stage)[row]), digits_apart(a, b, least)
    differs = not bool(formatting.same(a, b))
    if stage in ("standardized", "advantage"):
        return Part(signed(settled(value), digits), differs, stage)
    text = plain(value if stage == "scale" else settled(value), digits)
    return Part(text, differs, stage)


def _quotient(comparison: Comparison, trace: Trace, row: int) -> Line:
    """(score - baseline) / scale = standardized."""
    stages = ("score", "baseline", "scale", "standardized")
    score, mean, divisor, result = (float(getattr(trace, s)[row]) for s in stages)
    # As many decimals as keep the distance, as printed, right to a tenth.
    far, least = score - mean, 3
    # Three are printed at least; float32 has no ninth.
    for digits in range(8, 2, -1):
        printed = round(score, digits) - round(mean, digits)
        if abs(printed - far) <= abs(far) / 10:
            least = digits
    # A faulty stage may combine the three in another way.
    around = ("score ", ", baseline ", ", scale ", " give ")
    if divisor and bool(formatting.same(far / divisor, result)):
        opening, close = ("(", ")") if mean < 0 else ("", "")
        around = ("(", f" − {opening}", f"{close}) / ", " = ")
    parts = [
        _number(comparison, trace, stage, row, digits)
        for stage, digits in zip(stages, (least, least, 3, 3))
    ]
    return tuple(x for pair in zip(map(Part, around), parts) for x in pair)


def _no_advantage(batch: Batch, trace: Trace, row: int) -> str:
    if bool(trace.score[row].isnan()):
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


def _divided(batch: Batch, trace: Trace, row: int) -> Iterator[Line]:
    """Baseline and scale in words; if a faulty stage gives something else, also what
    the settings would give."""
    score, counted, group = trace.score, trace.counted, trace.group
    for stage, sentence, by_setting in (
        ("baseline", _baseline, baseline(batch, score, counted, group)),
        ("scale", _scale, scale(batch, score, counted, group, trace.baseline)),
    ):
        due = float(by_setting[row])
        differs = not formatting.same(float(getattr(trace, stage)[row]), due)
        text = sentence(batch, trace, row)
        if differs:
            text = (
                f"computed by the faulty stage; correct for this setting: {plain(due)}"
            )
        heard = tuple(voters(batch, trace, row))
        yield (Part(f"{stage}: {text}", differs, stage, heard),)


def _baseline(batch: Batch, trace: Trace, row: int) -> str:
    record, heard = BASELINES[batch.settings.baseline], voters(batch, trace, row)
    lone_rows = "lone_row" in record.reads
    if lone_rows and int(trace.group[row]) < 0:
        return "0, the row is in no group"
    alone = len(heard) == (0 if record.others else 1)
    if lone_rows and alone and batch.settings.lone_row == "raw":
        return f"0, {listed(heard or [row])} is alone and keeps its raw score"
    sentence = record.formula.format(rows=listed(heard))
    if record.is_mean and 1 < len(heard) <= MOST_TERMS:
        scores = [short(float(trace.score[r])) for r in heard]
        total = " + ".join(f"({x})" if x[0] == "−" else x for x in scores)
        sentence += f" = ({total}) / {len(heard)}"
    return sentence


EPS = {
    "after": " + {}",
    "inside": ", with {} added to its square",
    "least": ", at least {}",
}
"""How eps changes a spread, by `eps_at`."""


def _scale(batch: Batch, trace: Trace, row: int) -> str:
    s, group = batch.settings, trace.group
    record = SCALES[s.scale]
    eps = EPS[s.eps_at].format(short(s.eps))
    if s.scale == "group_std" and int(group[row]) < 0:
        return f"0, the row is in no group,{eps.removeprefix(',')}"
    alone = int(((group == group[row]) & trace.counted).sum()) == 1
    if s.scale == "group_std" and alone and s.ddof == 1:
        return f"1 (one counted row has no deviation){eps}"
    is_mean = BASELINES[s.baseline].is_mean and _same_rows(s)
    about_mean = s.spread_about == "mean" or is_mean
    about = "" if about_mean else " about the baseline"
    return record.formula.format(eps=eps, ddof=s.ddof, about=about)


def _same_rows(s: Settings) -> bool:
    """The baseline and the scale are statistics of the same rows."""
    return BASELINES[s.baseline].compares == SCALES[s.scale].compares


def _advantage(comparison: Comparison, trace: Trace, row: int) -> list[Line]:
    """The second step: the straight line (standardized - m) / s of the row's rank, read
    off its two rows that are farthest apart, if they determine it; and from which rows
    m and s come, if they are a mean and a deviation of a known kind."""
    batch = comparison.batch
    before = _number(comparison, trace, "standardized", row)
    after = _number(comparison, trace, "advantage", row)
    rows = (batch.step_index == batch.step_index[row]) & (batch.rank == batch.rank[row])
    rows &= trace.credited & trace.advantage.isfinite()
    x, y = trace.standardized[rows].double(), trace.advantage[rows].double()
    if not rows[row] or float(y.max() - y.min()) <= EXACT:
        return [(Part("then "), before, Part(" becomes "), after)]
    low, high = int(y.argmin()), int(y.argmax())
    s = float((x[high] - x[low]) / (y[high] - y[low]))
    m = float(x[high]) - s * float(y[high])
    if abs(s) < DUST:  # it divides by rounding
        before = before._replace(text=signed(float(trace.standardized[row])))
    less = f"− {plain(m)}" if m >= 0 else f"− ({plain(m)})"
    line = (Part("then ("), before, Part(f" {less}) / {plain(s)} = "), after)
    second = _second(batch, trace, row, m, s)
    return [line, (Part(second),)] if second else [line]


class Weighted(NamedTuple):
    """A way to take a mean over rows: the rows, how much each counts, and over how many
    parts the sum is divided.

    what  what is counted, in words
    """

    what: str
    rows: Tensor
    weight: Tensor
    parts: float


def _ways(batch: Batch, row: int) -> Iterator[Weighted]:
    """Means that a second step may take, of the step's rows and of the rank's."""
    step = batch.step_index == batch.step_index[row]
    rank = step & (batch.rank == batch.rank[row])
    for rows, where in ((step, "the step"), (rank, f"rank {int(batch.rank[row])}")):
        cells = int(rows.sum()) * batch.mask.shape[1]
        for what, weight in (
            ("unmasked tokens", batch.tokens),
            ("rows", torch.ones_like(batch.tokens)),
            ("transitions", batch.steps),
            ("kept transitions", batch.kept_steps),
        ):
            count = float(weight[rows].sum())
            yield Weighted(f"{what} of {where}", rows, weight, count)
        yield Weighted(f"tokens and padding of {where}", rows, batch.tokens, cells)


def _second(batch: Batch, trace: Trace, row: int, m: float, s: float) -> str:
    """The mean m and the deviation s taken apart, in words; '' if no known mean and
    deviation give them."""
    for way in _ways(batch, row):
        rows = way.rows & trace.credited & trace.standardized.isfinite()
        x, n = trace.standardized[rows].double(), way.weight[rows].double()
        if not way.parts or abs(float((n * x).sum()) / way.parts - m) > NEAR:
            continue
        for spread, under in _spreads(way, x, n, m):
            if abs(spread - s) < NEAR:
                return (
                    f"{_mean_in_words(way, x, n, m)}; {plain(s)} is the deviation about"
                    f" it, √(sum of squares / {short(under)})"
                )
    return ""


MOST_TERMS = 6
"""A longer sum is not written out: it would be longer than a line of the page."""
NEAR = 2e-4
"""How far a mean or a deviation that is read off may be from the one worked out: less
than half of the third decimal, which is the last that is printed."""


def _spreads(
    way: Weighted, x: Tensor, n: Tensor, m: float
) -> Iterator[tuple[float, float]]:
    """Deviations about m, and what each divides the sum of squares by: with and without
    the cells of padding, which hold 0, and with ddof 0 and 1."""
    squares, size = float((n * (x - m) ** 2).sum()), float(n.sum())
    padding = (way.parts - size) * m * m
    for total in (squares + padding, squares):
        for under in (way.parts, way.parts - 1, size, size - 1):
            if under > 0:
                yield (total / under) ** 0.5, under


def _mean_in_words(way: Weighted, x: Tensor, n: Tensor, m: float) -> str:
    """'0.625 is the mean over the 16 unmasked tokens of rank 1:
    (8 × 1 + 8 × 0.25) / 16'; equal numbers are one term."""
    sizes: dict[str, float] = {}
    for value, size in zip(x.tolist(), n.tolist()):
        text = short(settled(value), 4)
        text = f"({text})" if value < 0 else text
        sizes[text] = sizes.get(text, 0.0) + size
    terms = [f"{short(size)} × {text}" for text, size in sizes.items() if size]
    count = short(way.parts)
    worked = f": ({' + '.join(terms)}) / {count}" if len(terms) <= MOST_TERMS else ""
    return f"{plain(m)} is the mean over the {count} {way.what}{worked}"


# Two functions as they are in their files, line beside line


class CodeLine(NamedTuple):
    """A line of source; its number in the file is 0 for a gap."""

    number: int
    text: str
    differs: bool


class Listing(NamedTuple):
    """A function's code without its docstring."""

    file: str
    lines: tuple[CodeLine, ...]


def first_sentence(function: Callable[..., object]) -> str:
    """The first sentence of the docstring, without the shape.

    It is the docstring's summary, which PEP 257 says tools may take. A field of its own
    would say the same twice, away from the code that it describes.
    """
    text = " ".join((function.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".") + "."


@lru_cache
def beside(
    correct: Callable[..., object], faulty: Callable[..., object]
) -> tuple[Listing, Listing]:
    """Both functions with the lines that differ marked, aligned by gaps."""
    codes = _code(correct), _code(faulty)
    a, b = ([text for _, text in code] for code in codes)
    left: list[CodeLine] = []
    right: list[CodeLine] = []
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        differs = tag != "equal"
        left += [CodeLine(n, text, differs) for n, text in codes[0][i:j]]
        right += [CodeLine(n, text, differs) for n, text in codes[1][k:m]]
        height = max(len(left), len(right))
        for side in (left, right):
            side += [CodeLine(0, "", True)] * (height - len(side))
    files = [f"{f.__module__.replace('.', '/')}.py" for f in (correct, faulty)]
    return Listing(files[0], tuple(left)), Listing(files[1], tuple(right))


def _code(function: Callable[..., object]) -> list[tuple[int, str]]:
    lines, start = inspect.getsourcelines(function)
    tree = ast.parse("".join(lines)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    numbered = [(start + n, line.rstrip()) for n, line in enumerate(lines)]
    if ast.get_docstring(tree) is not None:
        doc = tree.body[0]
        del numbered[doc.lineno - 1 : doc.end_lineno]
    return numbered
