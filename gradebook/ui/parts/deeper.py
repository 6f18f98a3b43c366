"""Go deeper: what is folded, and worked out only when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gradebook.analysis.law_check import BROKEN, HOLDS, Outcome, check
from gradebook.analysis.law_check import words as law_words
from gradebook.analysis.laws import EIGHT
from gradebook.cases.record import bug
from gradebook.core.formatting import minus
from gradebook.engine.pipeline import CORRECT
from gradebook.ui.parts import influence_map, shrinking
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.folding import folded
from gradebook.ui.parts.tables import table


def deeper(draft: Draft) -> None:
    """The section: its parts, folded."""
    parts: dict[str, tuple[str, Callable[[Draft], None]]] = {
        "shrink": ("The smallest batch that shows the bug", shrinking.shrinking),
        "influence": (
            "Which row's reward moves which row's advantage",
            influence_map.moves,
        ),
        "laws": ("Laws that must hold, tried on both engines", _laws),
    }
    for name, (title, part) in parts.items():
        folded(title, name, partial(part, draft))


def _laws(draft: Draft) -> None:
    """Each law in words, and what both engines make of it here."""
    one, batch = bug(draft.swap.name), draft.comparison.batch
    engines = (CORRECT, one.engine)
    note = " (disputed)" if one.status == "disputed" else ""
    body = [
        [law_words(name) + note * (name in one.laws), *map(_outcome, outcomes)]
        for name in dict.fromkeys([*one.laws, *(law.__name__ for law in EIGHT)])
        if (outcomes := [check(name, engine, batch) for engine in engines])
    ]
    table(["what must hold", *draft.state.engine_names], body)


def _outcome(outcome: Outcome) -> str:
    mark = {HOLDS: "✓ ", BROKEN: "✗ "}.get(outcome.answer, "")
    return f"{mark}{outcome.answer}. {minus(outcome.sentence)}"
