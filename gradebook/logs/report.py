"""Report: the verdict as one HTML file that needs nothing else."""

from __future__ import annotations

from typing import Any

from gradebook.core.lazy_pandas import pd
from gradebook.logs.explore import OFF, timeline, worst_steps
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.what_if import sentences
from gradebook.output.rendering import rendered

BARS = 240
"""So many bars the timeline has at most; steps share one beyond that."""

ORDER = ("suspect", "other", "asks", "none fits", "cannot tell", "correct")
"""Verdicts, the one that a shared bar shows first."""

MARKS = {
    "correct": "",
    "other": "◇",
    "suspect": "◆",
    "asks": "?",
    "none fits": "?",
    "cannot tell": "–",
}

WORST = {
    "step": "Step",
    "bug": "Named",
    "correct_residual": "Off by",
    "row": "at row",
    "flips": "Flips",
    "groups_affected": "Groups affected",
    "groups": "of",
}
"""Columns of the table of the worst steps, with their titles."""


def report(verdict: Verdict) -> str:
    """A short HTML page; all text in it is escaped."""
    frame = timeline(verdict)
    steps = frame["step"].tolist()
    found = frame["verdict"].value_counts() if steps else {}
    return rendered(
        "report.html.jinja",
        sentence=verdict.sentence,
        facts=[(name, value) for name, value in _facts(verdict) if value],
        bars=_bars(frame),
        counts=", ".join(f"{n} {name}" for name, n in found.items()),
        first=steps[0] if steps else "",
        last=steps[-1] if steps else "",
        worst_head=list(WORST.values()),
        worst=_worst(worst_steps(verdict)),
        lists=[
            ("What each engine would compute", sentences(verdict.what_if)),
            (
                "What this log cannot tell",
                [f"{tie.title}: {tie.why}" for tie in verdict.ties],
            ),
            ("Notes", list(verdict.notes)),
            ("Left out", list(verdict.broken)),
        ],
    )


def _facts(verdict: Verdict) -> list[tuple[str, str]]:
    """What was checked."""
    files = list(verdict.files)
    shown = ", ".join(files[:3]) + (" …" if len(files) > 3 else "")
    judged = f"{verdict.steps_judged:,} of {verdict.steps_read:,}"
    return [
        ("Verdict", verdict.verdict),
        ("Convention", verdict.convention),
        ("Steps judged", judged),
        ("Rows", f"{verdict.rows:,}"),
        ("Rows with another sign", f"{verdict.flips:,}"),
        ("Files", f"{len(files)}: {shown}"),
        (
            "Columns",
            ", ".join(f"{k} = {v}" for k, v in verdict.columns.items()),
        ),
    ]


def _bars(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A bar a step, as high as the correct numbers are far; steps share one
    where there are many. A mark says the verdict without colour."""
    if not len(frame):
        return []
    share = -(-len(frame) // BARS)
    count = -(-len(frame) // share)
    off = frame["correct_residual"].where(
        frame["correct_residual"].between(0, 1e300), 0
    )
    top = max(float(off.max()), 1e-12)
    bars = []
    for at in range(count):
        rows = slice(at * share, (at + 1) * share)
        verdict = min(frame["verdict"].iloc[rows].tolist(), key=ORDER.index)
        bad = verdict in OFF
        bars.append(
            {
                "kind": verdict.replace(" ", "-"),
                "x": at * 720 / count,
                "width": max(720 / count - 0.6, 0.6),
                "height": 6 + 74 * float(off.iloc[rows].max()) / top * bad,
                "mark": MARKS[verdict] if count <= 60 else "",
            }
        )
    return bars


def _worst(frame: pd.DataFrame) -> list[list[str]]:
    """The worst steps as rows of cells, under WORST."""
    return [
        [
            f"{row[name]:.3g}" if name == "correct_residual" else str(row[name])
            for name in WORST
        ]
        for _, row in frame.iterrows()
    ]
