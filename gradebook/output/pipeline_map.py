"""The pipeline as a map (SVG): its stages in order, and at each stage the
bugs that break it, every one a link.

A filled circle is a stage of the correct engine, as everywhere; an open
diamond is a bug. Numbers under the stages are one rollout's, live.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from gradebook.cases.catalogue import choices
from gradebook.cases.record import BUGS, Bug, bug
from gradebook.core.batch import Batch
from gradebook.core.formatting import plain, signed
from gradebook.engine.pipeline import CORRECT, STAGES, run
from gradebook.output.figures.base import CORRECT as BLUE
from gradebook.output.figures.base import FAULTY

SANS = "Source Sans, Source Sans Pro, Helvetica, Arial, sans-serif"
MONO = "Source Code Pro, Menlo, Consolas, monospace"
TITLE = "Where advantage normalization goes wrong"
REWARDS = (1.0, 0.0, 0.0, 1.0)
"""Four answers to one prompt. The numbers under the stages are the first
answer's."""

ASKS = {
    "score": "the reward, after bias, scaling and clip",
    "credited": "may the row earn an advantage?",
    "counted": "does it count in its group's mean?",
    "group": "which rows are compared?",
    "baseline": "the mean of the rows that count",
    "scale": "their standard deviation",
    "standardized": "(score − baseline) / scale",
    "advantage": "the weight of the row's tokens",
    "trained": "do its tokens enter the loss?",
    "loss": "summed over the tokens that are trained",
}
"""Stage -> what it computes, in a few words."""

COLUMN, EDGE, HEAD, FLOOR = 120, 36, 108, 34
"""Pixels of the wide map: a stage's width, the left edge, the heading's
height, and the space between the pipe and the lowest bug."""
NARROW = 380
"""Pixels: the width of the tall map."""


@dataclass(frozen=True)
class Picture:
    """The map as it stands on a page.

    href  bug -> the address of its page
    done  bugs whose question the reader has answered
    """

    href: Callable[[str], str]
    done: Collection[str] = ()


def stops() -> dict[str, list[Bug]]:
    """Stage -> the bugs that break it, in the order of the stages."""
    records = [bug(name) for name in BUGS]
    return {
        stage: [one for one in records if one.stage == stage]
        for stage in STAGES
    }


def subtitle() -> str:
    """How many bugs of how many trainers the map shows."""
    return (
        f"{len(BUGS)} bugs that were found in {len(choices('trainer'))}"
        " trainers for language models, each at the stage that it breaks"
    )


def wide_map(picture: Picture) -> str:
    """The stages from left to right, for a screen or a slide."""
    found = stops()
    tallest = max(
        (sum(_tile_height(one) for one in bugs) for bugs in found.values()),
        default=0,
    )
    pipe = HEAD + tallest + FLOOR
    width, height = 2 * EDGE + COLUMN * len(found), pipe + 162
    parts = [_heading(EDGE, width)]
    first, last = EDGE + 8, EDGE + COLUMN * (len(found) - 1) + 8
    parts.append(
        f'<path d="M{first} {pipe}H{last + 78}" stroke="{BLUE}"'
        ' stroke-width="5"/>'
        f'<path d="M{last + 76} {pipe - 9}l15 9l-15 9z" fill="{BLUE}"/>'
    )
    numbers = _numbers()
    for at, (stage, bugs) in enumerate(found.items()):
        x = EDGE + COLUMN * at
        parts += _column(picture, bugs, x, pipe)
        parts.append(_circle(x + 8, pipe))
        parts.append(_text(x, pipe + 34, [stage], 14, MONO, bold=True))
        lines = textwrap.wrap(ASKS[stage], 17)
        parts.append(_text(x, pipe + 53, lines, 12.5, opacity=0.85))
        parts.append(_text(x, pipe + 107, [numbers[stage]], 15, MONO))
    parts.append(_legend(EDGE, height - 14))
    return _svg("wide", parts, width, height)


def tall_map(picture: Picture) -> str:
    """The stages from top to bottom, for a phone."""
    parts, y = [_heading(8, NARROW)], 160
    numbers, first, pipe = _numbers(), y, 20
    for stage, bugs in stops().items():
        parts.append(_circle(pipe, y))
        parts.append(_text(40, y + 5, [stage], 16, MONO, bold=True))
        parts.append(
            _text(NARROW - 8, y + 5, [numbers[stage]], 15, MONO, anchor="end")
        )
        parts.append(_text(40, y + 24, [ASKS[stage]], 13.5, opacity=0.85))
        y += 50
        for one in bugs:
            parts.append(_tall_tile(picture, one, pipe, y))
            y += 46
        y += 16
    last = y - 30
    parts.insert(
        1,
        f'<path d="M{pipe} {first}V{last}" stroke="{BLUE}" stroke-width="5"/>'
        f'<path d="M{pipe - 9} {last - 2}l9 15l9 -15z" fill="{BLUE}"/>',
    )
    for line in _legend_lines():
        parts.append(_text(8, y + 12, textwrap.wrap(line, 54), 13))
        y += 18 * len(textwrap.wrap(line, 54))
    return _svg("tall", parts, NARROW, y + 12)


def map_file(base: str) -> str:
    """The wide map as a file of its own, dark ink on white, with addresses
    that begin with `base`."""
    drawn = wide_map(Picture(lambda name: f"{base}/{name}"))
    opening, rest = drawn.split(">", 1)
    opening = opening.replace(' style="width:100%;height:auto"', "")
    size = opening.split('viewBox="0 0 ')[1].split('"')[0]
    width, height = size.split()
    return (
        f'{opening} width="{width}" height="{height}" color="#1A1A1A">'
        f"<title>{escape(TITLE)}</title>"
        f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>{rest}\n'
    )


@lru_cache
def _numbers() -> dict[str, str]:
    """Stage -> its result for the first of the answers."""
    rows = len(REWARDS)
    logp = [[-0.5]] * rows
    trace = run(CORRECT, Batch([0] * rows, REWARDS, logp=logp))
    said = {}
    for stage in STAGES:
        value = getattr(trace, stage)
        value = value if value.ndim == 0 else value[0]
        if value.dtype.is_floating_point:
            show = signed if stage in ("standardized", "advantage") else plain
            said[stage] = show(float(value))
        elif stage == "group":
            said[stage] = "rows 0 to 3"
        else:
            said[stage] = "yes" if value else "no"
    return said


def _column(
    picture: Picture, bugs: Sequence[Bug], x: float, pipe: float
) -> list[str]:
    """The bugs of a stage above it, and the stem that they hang on."""
    if not bugs:
        return []
    parts, bottom = [], pipe - FLOOR
    for one in reversed(bugs):
        top = bottom - _tile_height(one)
        parts.append(_tile(picture, one, x, top))
        bottom = top
    stem = (
        f'<path d="M{x + 8} {pipe}V{bottom + 16}" stroke="{FAULTY}"'
        ' stroke-width="1.5"/>'
    )
    return [stem, *parts]


def _tile_lines(one: Bug) -> tuple[list[str], list[str]]:
    """A bug's title and its trainers with the status, in lines."""
    facts = [one.standing]
    if len(one.standing) > 17:
        facts = one.standing.split(" · ")
    title = textwrap.wrap(one.title, 12, break_long_words=False)
    return title, facts


def _tile_height(one: Bug) -> int:
    title, facts = _tile_lines(one)
    return 17 * len(title) + 15 * len(facts) + 17


def _tile(picture: Picture, one: Bug, x: float, top: float) -> str:
    title, facts = _tile_lines(one)
    if one.name in picture.done:
        facts = [*facts[:-1], f"{facts[-1]} ✓"]
    below = top + 5 + 17 * len(title)
    inner = (
        _ground(x - 2, top, COLUMN - 2, _tile_height(one))
        + _diamond(x + 8, top + 11)
        + _text(x + 21, top + 16, title, 14, bold=True, line=17)
        + _text(x + 21, below + 11, facts, 11.5, opacity=0.85, line=15)
    )
    return _link(picture, one, inner)


def _tall_tile(picture: Picture, one: Bug, pipe: float, y: float) -> str:
    done = " ✓" if one.name in picture.done else ""
    branch = f'<path d="M{pipe} {y}H44" stroke="{FAULTY}" stroke-width="1.5"/>'
    facts = f"{one.standing}{done}"
    inner = (
        _ground(36, y - 20, NARROW - 44, 44)
        + _diamond(48, y)
        + _text(64, y + 1, [one.title], 16, bold=True)
        + _text(64, y + 18, [facts], 13, opacity=0.85)
    )
    return branch + _link(picture, one, inner)


def _link(picture: Picture, one: Bug, inner: str) -> str:
    said = f"{one.title}, {one.standing}: breaks {one.stage}"
    return (
        f'<a href="{escape(picture.href(one.name))}" data-name="{one.name}"'
        f' aria-label="{escape(said)}">{inner}</a>'
    )


def _heading(x: float, width: float) -> str:
    room = int((width - 2 * x) / 14.5)
    title = textwrap.wrap(TITLE, room)
    below = 38 + 30 * len(title)
    said = textwrap.wrap(subtitle(), int((width - 2 * x) / 7.8))
    return _text(x, 40, title, 27, bold=True, line=30) + _text(
        x, below, said, 15.5, opacity=0.85, line=20
    )


def _legend_lines() -> list[str]:
    rewards = ", ".join(f"{reward:g}" for reward in REWARDS[:-1])
    return [
        "● a stage of the correct computation, the same on every page",
        "◇ a bug: the trainer computed this stage otherwise, silently",
        "Numbers: the first of four answers with rewards"
        f" {rewards} and {REWARDS[-1]:g}",
    ]


def _legend(x: float, y: float) -> str:
    """The legend in one line."""
    stage, fault, numbers = _legend_lines()
    return (
        _circle(x + 5, y - 4, 5.5)
        + _text(x + 16, y, [stage[2:]], 12.5)
        + _diamond(x + 395, y - 4, 6)
        + _text(x + 407, y, [fault[2:]], 12.5)
        + _text(x + 800, y, [numbers], 12.5)
    )


def _circle(x: float, y: float, r: float = 11) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{r}" fill="{BLUE}"/>'


def _diamond(x: float, y: float, r: float = 7.5) -> str:
    """A bug; its inside hides the stem behind it."""
    return (
        f'<path d="M{x} {y - r}l{r} {r}l{-r} {r}l{-r} {-r}z"'
        f' class="paper" stroke="{FAULTY}" stroke-width="2.4"/>'
    )


def _ground(x: float, y: float, width: float, height: float) -> str:
    """What a pointer can hit, and what lights up under it."""
    return (
        f'<rect class="ground" x="{x}" y="{y}" width="{width}"'
        f' height="{height}" rx="5"/>'
    )


def _text(
    x: float,
    y: float,
    lines: Sequence[str],
    size: float,
    font: str = SANS,
    *,
    bold: bool = False,
    opacity: float = 1,
    line: float | None = None,
    anchor: str = "start",
) -> str:
    weight = ' font-weight="650"' if bold else ""
    faint = f' opacity="{opacity}"' if opacity < 1 else ""
    spans = "".join(
        f'<tspan x="{x}" y="{y + at * (line or size * 1.25):.1f}">'
        f"{escape(one)}</tspan>"
        for at, one in enumerate(lines)
    )
    return (
        f'<text font-family="{font}" font-size="{size}" fill="currentColor"'
        f' text-anchor="{anchor}"{weight}{faint}>{spans}</text>'
    )


STYLE = (
    ".gb-map .paper{fill:var(--st-background-color,#FFF)}"
    ".gb-map .ground{fill:transparent}"
    ".gb-map a{text-decoration:none;color:inherit}"
    ".gb-map a:hover .ground,.gb-map a:focus-visible .ground"
    "{fill:rgba(128,128,128,.16)}"
    ".gb-map a:focus-visible .ground{stroke:#2F80C2;stroke-width:2}"
    ".gb-map a:focus-visible{outline:none}"
)


def _svg(shape: str, parts: Sequence[str], width: float, height: float) -> str:
    said = f"{TITLE}: {subtitle()}."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gb-map {shape}"'
        f' role="group" aria-label="{escape(said)}"'
        f' viewBox="0 0 {width} {height}"'
        ' style="width:100%;height:auto">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )
