"""Report: the verdict as one HTML file that needs nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradebook.core.formatting import short
from gradebook.core.lazy_pandas import pd
from gradebook.logs.explore import worst_steps
from gradebook.logs.judging.judge import OFF
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.what_if import sentences
from gradebook.output.rendering import rendered

BARS = 240
"""So many bars the timeline has at most; steps share one beyond that."""

MARKS = {
    "suspect": "◆",
    "other": "◇",
    "asks": "?",
    "none fits": "?",
    "cannot tell": "–",
    "correct": "",
}
"""Verdicts with their marks, the one that a shared bar shows first."""

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


def facts(verdict: Verdict) -> list[tuple[str, str]]:
    """What was read and what it came to, in short; what there is nothing of is
    left out."""
    files, columns = list(verdict.files), verdict.columns.items()
    residuals = verdict.residual, verdict.correct_residual
    distance, correct = (short(x, 3) if math.isfinite(x) else "" for x in residuals)
    where = f"step {verdict.step}, row {verdict.row}"
    none_fits = verdict.verdict == "none fits"
    facts = {
        "Declared": ", ".join(f"{k}={v}" for k, v in verdict.declared.items()),
        "Convention": verdict.convention,
        "Steps judged": f"{verdict.steps_judged:,} of {verdict.steps_read:,}",
        "Steps that it fits": "" if none_fits else f"{verdict.steps_fitted:,}",
        "Rows": f"{verdict.rows:,}",
        "Largest distance from this computation": distance,
        "Largest distance from the correct one": correct,
        "Rows with another sign": f"{verdict.flips:,}",
        "First off, and where most": "" if verdict.step is None else where,
        "Weights of the rewards": ", ".join(f"{w:g}" for w in verdict.weights),
        "Files": f"{len(files)}: {', '.join(files[:3])}" + " …" * (len(files) > 3),
        "Columns": ", ".join(f"{role} = {name}" for role, name in columns),
    }
    return [(name, value) for name, value in facts.items() if value]


def report(verdict: Verdict) -> str:
    """A short HTML page; all text in it is escaped."""
    frame = verdict.frame
    steps = frame["step"].tolist() if len(frame) else []
    counts = frame["verdict"].value_counts() if steps else {}
    worst = worst_steps(verdict).astype(object)
    worst["correct_residual"] = [short(n, 3) for n in worst["correct_residual"]]
    cannot_tell = [f"{tie.title}: {tie.why}" for tie in verdict.ties]
    return rendered(
        "report.html.jinja",
        sentence=verdict.sentence,
        facts=[("Verdict", verdict.verdict), *facts(verdict)],
        bars=_bars(frame) if steps else [],
        counts=", ".join(f"{n} {name}" for name, n in counts.items()),
        first=steps[0] if steps else "",
        last=steps[-1] if steps else "",
        worst_head=list(WORST.values()),
        worst=worst[list(WORST)].astype(str).to_numpy().tolist(),
        lists=[
            ("What each engine would compute", sentences(verdict.what_if)),
            ("What this log cannot tell", cannot_tell),
            ("Notes", list(verdict.notes)),
            ("Left out", list(verdict.broken)),
        ],
    )


def _bars(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A bar a step, as high as the correct numbers are far; steps share one
    where there are many. A mark says the verdict without colour."""
    share = -(-len(frame) // BARS)
    width = 720 / -(-len(frame) // share)
    far = frame["correct_residual"]
    far = far.where(frame["verdict"].isin(OFF) & far.between(0, 1e300), 0.0)
    bars = []
    for bar, (_, part) in enumerate(frame.groupby(np.arange(len(frame)) // share)):
        verdict = min(part["verdict"], key=[*MARKS].index)
        bars.append(
            {
                "kind": verdict.replace(" ", "-"),
                "x": bar * width,
                "width": max(width - 0.6, 0.6),
                "height": 6 + 74 * far[part.index].max() / max(far.max(), 1e-12),
                "mark": MARKS[verdict] if width >= 12 else "",
            }
        )
    return bars
