"""What gives a bug away, as panels of numbers a row: the advantage, or the
parts of the gradient."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gradebook.analysis.comparison import Comparison
from gradebook.core.differences import flips, same
from gradebook.output.figures import Panel

GRADIENT = "gradient"
"""The tell-tale of a case whose advantages agree."""


def panels(comparison: Comparison, kind: str) -> list[Panel]:
    """The panels of a tell-tale. The gradient has a KL part only where
    there is a reference policy."""
    correct, faulty = comparison.correct, comparison.faulty
    if kind != GRADIENT or correct.gradient is None:
        return [_panel("advantage", correct.advantage, faulty.advantage)]
    parts = [("policy_gradient", "policy part")]
    if comparison.batch.ref_logp is not None:
        parts.append(("kl_gradient", "KL part"))
    return [
        _panel(
            f"gradient, {title} (sum over tokens)",
            getattr(correct, part).sum(-1),
            getattr(faulty, part).sum(-1),
        )
        for part, title in parts
    ]


def telling(shown: Sequence[Panel]) -> Panel:
    """The first panel in which the engines differ, else the last."""
    for panel in shown:
        if not all(map(same, panel.correct, panel.faulty)):
            return panel
    return shown[-1]


def _panel(title: str, correct: Tensor, faulty: Tensor) -> Panel:
    return Panel(
        title=title,
        correct=correct.tolist(),
        faulty=faulty.tolist(),
        flips=flips(correct, faulty).tolist(),
    )
