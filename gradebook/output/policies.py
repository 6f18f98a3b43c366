"""What a page shows of trained policies, as plain data for the browser: curves, and
what both policies say.

A share is in thousandths. An answer is a list of [text, is it a mistake], and in
words what is wrong with it.
"""

from collections.abc import Sequence
from typing import Any

from gradebook.training.transformer.language import SHOWN, Problem, judged
from gradebook.training.transformer.results import Pair, Trained

PROMPTS = (0, 2, 4, 1, 3, 5)
"""The shown prompts, in the order in which they are seen: the first three have
no carry, a carry, and a carry and three digits."""


def curves(pair: Pair) -> dict[str, Any]:
    """Both engines' success: each seed's curve, and their mean."""
    both = pair.correct, pair.faulty
    return {
        "updates": pair.updates,
        "means": [thousandths(trained.mean) for trained in both],
        "seeds": [
            [
                thousandths([n / trained.prompts for n in seed])
                for seed in trained.success
            ]
            for trained in both
        ],
    }


def thousandths(shares: Sequence[float]) -> list[int]:
    return [round(1000 * share) for share in shares]


def prompts() -> list[dict[str, str]]:
    """The shown prompts, with what is expected."""
    asked = [Problem(*SHOWN[n]) for n in PROMPTS]
    return [{"text": each.text, "expected": _expected(each)} for each in asked]


def _expected(problem: Problem) -> str:
    total = problem.left + problem.right
    carries = problem.left % 10 + problem.right % 10 >= 10
    kind = "a carry" if carries else "no carry"
    more = ", three digits" if total >= 100 else ""
    return f"expected {total}, {kind}{more}"


def answers(trained: Trained, update: int) -> list[dict[str, Any]]:
    """What the first seed's policy says to each of the prompts after this update."""
    said = trained.words[str(update)]
    judgements = [judged(Problem(*SHOWN[n]), said[n]) for n in PROMPTS]
    return [
        {"pieces": [list(piece) for piece in one.pieces], "faults": one.faults}
        for one in judgements
    ]


def words(pair: Pair) -> dict[str, list[list[dict[str, Any]]]]:
    """update -> engine -> answers, where answers were kept."""
    both = pair.correct, pair.faulty
    return {
        update: [answers(trained, int(update)) for trained in both]
        for update in pair.correct.words
    }
