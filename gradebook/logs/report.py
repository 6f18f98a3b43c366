"""Report: the verdict as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from gradebook.core.lazy_pandas import pd
from gradebook.logs.verdict.explore import timeline, worst_steps
from gradebook.logs.verdict.verdict import Verdict
from gradebook.logs.verdict.what_if import sentences

BARS = 240
"""So many bars the timeline has at most; steps share one beyond that."""

ORDER = ("none fits", "suspect", "cannot tell", "correct")
"""Verdicts, the one that a shared bar shows first."""

MARKS = {"correct": "", "suspect": "◆", "none fits": "?", "cannot tell": "–"}

STYLE = """
:root { color-scheme: light dark; --ink: #111; --paper: #fff; --line: #ccc;
  --correct: #0072B2; --suspect: #D55E00; --none: #8a3ffc; --cannot: #767676 }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --paper: #141414;
  --line: #444; --correct: #56B4E9; --suspect: #F0803C; --none: #be95ff;
  --cannot: #a0a0a0 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem 1rem .2rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
td.number, th.number { text-align: right }
svg { width: 100%; height: auto } li { overflow-wrap: anywhere }
.correct { fill: var(--correct) } .suspect { fill: var(--suspect) }
.none-fits { fill: var(--none) } .cannot-tell { fill: var(--cannot) }
text { fill: var(--ink); font: 11px system-ui, sans-serif }
@media print { :root { --ink: #000; --paper: #fff } body { margin: 0 }
  table, svg, li { break-inside: avoid } }
"""


def report(verdict: Verdict) -> str:
    """A short HTML page; all text in it is escaped."""
    parts = [
        f"<h1>{escape(verdict.sentence)}</h1>",
        _facts(verdict),
        _section("Step by step", _picture(timeline(verdict))),
        _section("The worst steps", _worst(worst_steps(verdict))),
        _section(
            "What each engine would compute",
            _list(sentences(verdict.what_if)),
        ),
        _section(
            "What this log cannot tell",
            _list(f"{t.name}: {t.why}" for t in verdict.ties),
        ),
        _section("Notes", _list(verdict.notes)),
        _section("Left out", _list(verdict.broken)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src'
        " 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        "<title>Gradebook: check of a run</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}" if body else ""


def _list(items: Iterable[str]) -> str:
    lines = "".join(f"<li>{escape(str(item))}</li>\n" for item in items)
    return f"<ul>\n{lines}</ul>" if lines else ""


def _facts(verdict: Verdict) -> str:
    """What was checked."""
    columns = ", ".join(f"{k} = {v}" for k, v in verdict.columns.items())
    files = list(verdict.files)
    shown = ", ".join(files[:3]) + (" …" if len(files) > 3 else "")
    facts = {
        "Verdict": verdict.verdict,
        "Convention": verdict.convention,
        "Steps judged": f"{verdict.steps_judged:,} of {verdict.steps_read:,}",
        "Rows": f"{verdict.rows:,}",
        "Rows with another sign": f"{verdict.flips:,}",
        "Files": f"{len(files)}: {shown}",
        "Columns": columns,
    }
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>\n"
        for name, value in facts.items()
        if value
    )
    return f"<table>\n{rows}</table>"


def _picture(frame: pd.DataFrame) -> str:
    """A bar a step: how far the correct numbers are off, by verdict. A
    mark above says the verdict without colour."""
    if not len(frame):
        return ""
    share = -(-len(frame) // BARS)
    count = -(-len(frame) // share)
    width = 720 / count
    off = frame["correct_residual"].where(
        frame["correct_residual"].between(0, 1e300), 0
    )
    top = max(float(off.max()), 1e-12)
    bars = []
    for at in range(count):
        rows = slice(at * share, (at + 1) * share)
        told = frame["verdict"].iloc[rows].tolist()
        verdict = min(told, key=ORDER.index)
        bad = verdict in ("suspect", "none fits")
        tall = 6 + 74 * float(off.iloc[rows].max()) / top if bad else 6
        x, mark = at * width, MARKS[verdict]
        bars.append(
            f'<rect class="{verdict.replace(" ", "-")}" x="{x:.1f}"'
            f' y="{100 - tall:.1f}" width="{max(width - 0.6, 0.6):.1f}"'
            f' height="{tall:.1f}"/>'
        )
        if mark and count <= 60:
            middle = x + width / 2
            bars.append(
                f'<text x="{middle:.1f}" y="{96 - tall:.1f}"'
                f' text-anchor="middle">{mark}</text>'
            )
    counts = frame["verdict"].value_counts()
    words = ", ".join(f"{n} {name}" for name, n in counts.items())
    first, last = frame["step"].iloc[0], frame["step"].iloc[-1]
    return (
        f'<svg viewBox="0 0 720 118" role="img" aria-label="{escape(words)}">'
        + "".join(bars)
        + f'<text x="0" y="114">step {escape(str(first))}</text>'
        f'<text x="720" y="114" text-anchor="end">step {escape(str(last))}'
        f"</text></svg>\n<p>{escape(words)}. A bar's height is how far the"
        " correct computation is off.</p>"
    )


def _worst(frame: pd.DataFrame) -> str:
    if not len(frame):
        return ""
    names = {
        "step": "Step",
        "bug": "Named",
        "correct_residual": "Correct is off by",
        "row": "at row",
        "flips": "Flips",
        "groups_affected": "Groups affected",
        "groups": "of",
    }
    head = "".join(f"<th>{escape(title)}</th>" for title in names.values())
    body = ""
    for _, row in frame.iterrows():
        cells = [row[name] for name in names]
        cells[2] = f"{cells[2]:.3g}"
        body += "<tr>"
        body += "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        body += "</tr>\n"
    return f"<table>\n<tr>{head}</tr>\n{body}</table>"
