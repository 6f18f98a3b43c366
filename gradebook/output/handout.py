"""A bug on paper: one standalone HTML page from scenario and engines."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from gradebook.analysis.comparison import Comparison, compare, row_weight
from gradebook.analysis.formula import Worked, worked
from gradebook.analysis.source import Listing, beside, first_sentence
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core import differences
from gradebook.core.formatting import digits_apart, minus, settled, signed
from gradebook.engine.pipeline import Trace
from gradebook.output.figures import CORRECT, FAULTY, Panel, squashes, symlog

NAMES = ("correct", "faulty")
MARKS = ("●", "◇")
GREY = "#767676"

STYLE = f"""
@page {{ size: A4; margin: 14mm; }}
* {{ box-sizing: border-box; }}
body {{ font: 9.5pt/1.38 system-ui, sans-serif; color: #111;
  background: #fff; max-width: 182mm; margin: 0 auto; padding: 4mm; }}
h1 {{ font-size: 17pt; margin: 0; }}
h2 {{ font-size: 11.5pt; margin: 3.5mm 0 .5mm; break-after: avoid; }}
p {{ margin: .8mm 0; }}
ul {{ margin: 1mm 0; padding-left: 5mm; }}
li, p, code {{ overflow-wrap: anywhere; }}
.claim {{ font-size: 11.5pt; font-weight: 600; margin: 2mm 0; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 9pt; }}
th, td {{ text-align: left; padding: .25mm 3mm .25mm 0;
  border-bottom: .2mm solid #bbb; white-space: nowrap; }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
.at td {{ font-weight: 700; }}
svg {{ display: block; width: 100%; height: auto; }}
.two {{ display: grid; grid-template-columns: 1fr 1fr; gap: 5mm; }}
.two > div {{ min-width: 0; }}
.off {{ font-weight: 700; border-bottom: .7mm double currentColor; }}
pre {{ font-size: 7.5pt; line-height: 1.45; margin: 1mm 0; padding: 1mm 0;
  border: .2mm solid #bbb; white-space: pre-wrap; }}
pre span {{ display: block; padding: 0 1mm 0 9mm; text-indent: -8mm;
  min-height: 1.45em; }}
pre .c {{ border-left: 1.2mm solid {CORRECT}; font-weight: 700; }}
pre .f {{ border-left: 1.2mm solid {FAULTY}; font-weight: 700; }}
.rule {{ border: .5mm solid #111; padding: 2mm 3mm; font-weight: 600; }}
.keep {{ break-inside: avoid; }}
@media (max-width: 640px) {{ .two {{ grid-template-columns: 1fr; }} }}
@media print {{ body {{ max-width: none; padding: 0; }}
  .wide {{ overflow: visible; }} }}
"""


def handout(bug_name: str) -> str:
    """The bug's page as HTML, with nothing from elsewhere.

    Raises GradebookError for a name not in BUGS.
    """
    swapped = bug(bug_name)
    scenario = load(bug_name)
    comparison = compare(swapped, scenario.batch())
    listings = beside(swapped.correct, swapped.faulty)
    heard = worked(comparison, scenario.focus)
    traces = (comparison.correct, comparison.faulty)
    parts = [
        _head(scenario, swapped.stage),
        _section("The batch", _batch(scenario, comparison)),
        _section("The picture", _pictures(scenario, comparison)),
        _section(
            f"Why: row {scenario.focus}",
            _two(
                _formula(side) + _gradient(comparison, trace, scenario.focus)
                for side, trace in zip(heard, traces)
            ),
        ),
        _section(
            "The line",
            _said(*map(first_sentence, (swapped.correct, swapped.faulty)))
            + _two(map(_listing, listings, "cf")),
        ),
        f'<p class="rule keep">{_text(scenario.rule)}</p>',
        _dispute(scenario),
        _section("Am I affected?", _affected(scenario)),
        _section("Sources", _sources(scenario)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_text(scenario.title)}</title><style>{STYLE}</style>"
        "</head><body>" + "\n".join(parts) + "</body></html>\n"
    )


# Text


def _text(text: object) -> str:
    return html.escape(" ".join(str(text).split()))


def _rich(text: str) -> str:
    """Escaped text; what stands between backticks as code."""
    parts = _text(minus(text)).split("`")
    whole = len(parts) % 2
    return "".join(
        f"<code>{part}</code>" if at % 2 and whole else part
        for at, part in enumerate(parts)
    )


def _section(title: str, body: str) -> str:
    return f'<section class="keep"><h2>{_text(title)}</h2>{body}</section>'


def _two(sides: Iterable[str]) -> str:
    named = "".join(
        f"<div><b>{name} {mark}</b>{side}</div>"
        for name, mark, side in zip(NAMES, MARKS, sides, strict=True)
    )
    return f'<div class="two">{named}</div>'


def _head(scenario: Scenario, stage: str) -> str:
    return (
        f"<h1>{_text(scenario.title)}</h1>"
        f"<p>{_text(scenario.trainer)}, {_text(scenario.status)}; it breaks"
        f" the stage <code>{_text(stage)}</code></p>"
        f'<p class="claim">{_rich(scenario.claim)}</p>'
        f"<p>{_rich(scenario.story)}</p>"
    )


def _said(correct: str, faulty: str) -> str:
    return (
        f"<p>{NAMES[0]}: {_rich(correct)}<br>{NAMES[1]}: {_rich(faulty)}</p>"
    )


def _dispute(scenario: Scenario) -> str:
    found = scenario.dispute
    if found is None:
        return ""
    views = (
        ("The maintainer", found.maintainer),
        ("The other view", found.other_view),
        ("The trap in the fix", found.trap),
    )
    body = "".join(f"<p><b>{t}.</b> {_rich(v)}</p>" for t, v in views)
    return _section("Is it a bug? That is disputed", body)


def _affected(scenario: Scenario) -> str:
    told = scenario.affected
    keys = "".join(f"<li><code>{_text(k)}</code></li>" for k in told.keys)
    return (
        f"<p><b>Status.</b> {_rich(scenario.status_note)}</p>"
        f"<p><b>Trainer.</b> {_rich(told.trainer)}</p>"
        f"<p><b>Versions.</b> {_rich(told.versions)}</p>"
        f"<p><b>Switched on by</b></p><ul>{keys}</ul>"
        f"<p><b>Where to look in your code.</b> {_rich(told.look)}</p>"
        f"<p><b>Workaround.</b> {_rich(told.workaround)}</p>"
        f"<p><b>Tell-tale.</b> {_rich(scenario.telltale.text)}</p>"
    )


def _sources(scenario: Scenario) -> str:
    lines = []
    for source in scenario.sources:
        commit = f", commit {_text(source.commit)}" if source.commit else ""
        note = f": {_rich(source.note)}" if source.note else ""
        lines.append(
            f"<li>{_text(source.label)}{commit}{note} {_link(source.url)}</li>"
        )
    return f"<ul>{''.join(lines)}</ul>"


def _link(url: str) -> str:
    """The address as text, since paper has no links."""
    if not url.startswith(("https://", "http://")):
        return _text(url)
    return f'<a href="{html.escape(url)}">{_text(url)}</a>'


# The batch


def _batch(scenario: Scenario, comparison: Comparison) -> str:
    """The scenario's rows, and the panel's number of both engines."""
    panel = _panels(scenario, comparison)[-1]
    names = list(scenario.rows[0])
    pairs = [_pair(*ab) for ab in zip(panel.correct, panel.faulty)]
    body = [
        [str(r), *(_cell(row[name]) for name in names), *pair]
        for r, (row, pair) in enumerate(zip(scenario.rows, pairs))
    ]
    head = ["row", *names, *NAMES]
    last = len(head) - 2
    lines = [_line("th", head, last)]
    for r, cells in enumerate(body):
        at = ' class="at"' if r == scenario.focus else ""
        lines.append(_line("td", cells, last, at))
    return (
        '<div class="wide"><table><thead>'
        + lines[0]
        + "</thead><tbody>"
        + "".join(lines[1:])
        + f"</tbody></table></div><p>correct and faulty: {_text(panel.title)}"
        f"; row {scenario.focus} is worked out below.</p>"
    )


def _line(tag: str, cells: Sequence[str], last: int, at: str = "") -> str:
    inner = "".join(
        f"<{tag}{' class=n' if c >= last else ''}>{_text(cell)}</{tag}>"
        for c, cell in enumerate(cells)
    )
    return f"<tr{at}>{inner}</tr>"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        if len({*value}) == 1 and isinstance(value[0], float):
            return f"{len(value)} × {_cell(value[0])}"
        return " ".join(_cell(v) for v in value)
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    return str(value)


def _pair(a: float, b: float) -> tuple[str, str]:
    a, b = settled(a), settled(b)
    digits = digits_apart(a, b)
    return signed(a, digits), signed(b, digits)


# The picture


def _panels(scenario: Scenario, comparison: Comparison) -> list[Panel]:
    """What gives the bug away: the gradient's parts, or the advantage."""
    traces = (comparison.correct, comparison.faulty)
    if scenario.telltale.kind != "gradient" or traces[0].gradient is None:
        sides = [trace.advantage for trace in traces]
        return [_panel("advantage", sides)]
    return [
        _panel(
            f"gradient, {title} part, summed over tokens",
            [getattr(trace, part).sum(-1) for trace in traces],
        )
        for part, title in (
            ("policy_gradient", "policy"),
            ("kl_gradient", "KL"),
        )
    ]


def _panel(title: str, sides: Sequence[Any]) -> Panel:
    flips = differences.flips(*sides).tolist()
    return Panel(title, sides[0].tolist(), sides[1].tolist(), flips)


def _pictures(scenario: Scenario, comparison: Comparison) -> str:
    panels = _panels(scenario, comparison)
    log = squashes(panels) is not None
    prompts = [str(row["prompt"]) for row in scenario.rows]
    said = "● correct, ◇ faulty, on each row; the vertical line is 0."
    if log:
        said += " The axis is logarithmic beyond 1."
    drawn = "".join(
        f"<div>{picture(panel, prompts, log)}</div>" for panel in panels
    )
    return f"<p>{said}</p>{drawn}"


ROW, LEFT, WIDTH, ROOM = 20, 70, 560, 60
"""Pixels: a row's height, left of the plot, the plot, right of it."""


def picture(panel: Panel, prompts: Sequence[str], log: bool = False) -> str:
    """A panel as inline SVG: a circle and a diamond on each row over a
    zero line, with a thick connector and the word FLIP on a flip."""
    axis = symlog if log else float
    sides = [
        [axis(settled(v)) for v in side]
        for side in (panel.correct, panel.faulty)
    ]
    seen = [v for side in sides for v in side if math.isfinite(v)] + [0.0]
    low, high = min(seen), max(seen)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return round(LEFT + 12 + (WIDTH - 24) * (value - low) / span, 1)

    rows = len(prompts)
    bottom = ROW * rows + 6
    parts = [*_bands(prompts), _rule(x(0.0), bottom)]
    for row, (a, b) in enumerate(zip(*sides)):
        flip = bool(panel.flips[row])
        parts += _row(row, prompts[row], _at(x, a), _at(x, b), flip)
    parts.append(_scale(panel, x, bottom, axis))
    said = f"{panel.title} of {rows} rows, correct and faulty"
    return (
        f'<svg viewBox="0 0 {LEFT + WIDTH + ROOM} {bottom + 36}" role="img"'
        f' aria-label="{_text(said)}" font-size="12" fill="#111">'
        + "".join(parts)
        + "</svg>"
    )


def _at(x: Any, value: float) -> float | None:
    return x(value) if math.isfinite(value) else None


def _rule(x: float, bottom: float) -> str:
    return (
        f'<line class="zero" x1="{x}" x2="{x}" y1="0" y2="{bottom}"'
        f' stroke="{GREY}" stroke-width="1.5"/>'
    )


def _bands(prompts: Sequence[str]) -> list[str]:
    """Every second run of rows of one prompt is shaded."""
    bands, odd = [], False
    for row, prompt in enumerate(prompts):
        if row and prompt != prompts[row - 1]:
            odd = not odd
        if odd:
            bands.append(
                f'<rect x="0" y="{row * ROW}" width="{LEFT + WIDTH + ROOM}"'
                f' height="{ROW}" fill="#eee"/>'
            )
    return bands


def _row(
    row: int, prompt: str, a: float | None, b: float | None, flip: bool
) -> list[str]:
    y = row * ROW + ROW / 2
    named = prompt if len(prompt) < 7 else prompt[:5] + "…"
    parts = [f'<text x="2" y="{y + 4}">{row}  {_text(named)}</text>']
    if a is not None and b is not None and a != b:
        width, colour = (5, FAULTY) if flip else (1.5, GREY)
        parts.append(
            f'<line x1="{a}" x2="{b}" y1="{y}" y2="{y}" stroke="{colour}"'
            f' stroke-width="{width}"/>'
        )
    if a is not None:
        parts.append(f'<circle cx="{a}" cy="{y}" r="5" fill="{CORRECT}"/>')
    if b is not None:
        parts.append(
            f'<path d="M{b} {y - 7}l7 7l-7 7l-7 -7z" fill="none"'
            f' stroke="{FAULTY}" stroke-width="2"/>'
        )
    if flip:
        right = max(v for v in (a, b) if v is not None) + 12
        parts.append(
            f'<text x="{right}" y="{y + 4}" font-weight="700">FLIP</text>'
        )
    return parts


def _scale(panel: Panel, x: Any, bottom: float, axis: Any) -> str:
    """The least and the greatest value and 0, and what is measured."""
    values = [
        settled(v) for v in (*panel.correct, *panel.faulty) if math.isfinite(v)
    ]
    ticks, parts = [0.0], []
    for end in (min(values, default=0.0), max(values, default=0.0)):
        if all(abs(x(axis(end)) - x(axis(t))) > 45 for t in ticks):
            ticks.append(end)
    for tick in ticks:
        at = x(axis(tick))
        parts.append(
            f'<text x="{at}" y="{bottom + 12}" text-anchor="middle">'
            f"{signed(tick) if tick else '0'}</text>"
        )
    middle = LEFT + WIDTH / 2
    parts.append(
        f'<text x="{middle}" y="{bottom + 30}" text-anchor="middle">'
        f"{_text(panel.title)}</text>"
    )
    return "".join(parts)


# Formula and code


def _formula(side: Worked) -> str:
    lines = []
    for line in side.lines:
        parts = (
            f'<span class="off">{_text(p.text)}</span>'
            if p.differs
            else html.escape(p.text)
            for p in line
        )
        lines.append(f"<p>{''.join(parts)}</p>")
    return "".join(lines)


def _gradient(comparison: Comparison, trace: Trace, row: int) -> str:
    """The KL part at the row's first unmasked token, worked out."""
    batch = comparison.batch
    if trace.kl_gradient is None or batch.ref_logp is None:
        return ""
    if not bool(trace.trained[row]):
        return "<p>KL part: 0, the row is not trained</p>"
    token = int(batch.mask[row].int().argmax())
    gap = float(batch.ref_logp[row, token] - batch.logp[row, token])
    weight = row_weight(batch, trace, row)
    value = settled(float(trace.kl_gradient[row, token]))
    return (
        f"<p>KL part at a token: β (1 − exp(ref − logp)) × weight ="
        f" {batch.settings.beta:g} × (1 − exp({signed(gap)})) ×"
        f' {weight:.3f} = <span class="off">{signed(value, 5)}</span></p>'
    )


def _listing(listing: Listing, mark: str) -> str:
    lines = []
    for line in listing.lines:
        sign_ = "≠" if line.differs else " "
        style = f' class="{mark}"' if line.differs else ""
        number = f"{line.number:4d}" if line.number else "    "
        text = html.escape(line.text)
        lines.append(f"<span{style}>{number} {sign_} {text}</span>")
    return f"<div>{_text(listing.file)}</div><pre>{''.join(lines)}</pre>"
