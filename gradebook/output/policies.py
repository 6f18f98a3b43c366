"""What a page shows of trained policies, as plain data for the browser: curves, and
what both policies say.

A share is in thousandths. An answer is a list of [text, whether it is a mistake], and
what is wrong in words.
"""

from collections.abc import Sequence
from typing import Any

from gradebook.cases.scenario import load
from gradebook.training.transformer import outcome
from gradebook.training.transformer.experiments import experiment
from gradebook.training.transformer.language import Problem, judged, problems
from gradebook.training.transformer.results import Pair, Trained, measured, read_run

PROMPTS = (0, 2, 4, 1, 3, 5)
"""The first held-out prompts in the order in which they are seen: the first three
have no carry, a carry, and a carry and three digits."""


def curves(pair: Pair) -> dict[str, Any]:
    """Both engines' success: each seed's curve, and their mean."""
    both = pair.correct, pair.faulty
    return {
        "updates": pair.updates,
        "means": [thousandths(trained.mean) for trained in both],
        "seeds": [_seeds(trained) for trained in both],
    }


def _seeds(trained: Trained) -> list[list[int]]:
    return [thousandths([n / trained.prompts for n in s]) for s in trained.success]


def thousandths(shares: Sequence[float]) -> list[int]:
    return [round(1000 * share) for share in shares]


def asked(count: int = len(PROMPTS)) -> list[int]:
    """So many of the held-out prompts, by number, in the order in which they are
    seen."""
    return [*PROMPTS, *range(len(PROMPTS), count)]


def prompts(numbers: Sequence[int]) -> list[dict[str, str]]:
    """These held-out prompts, with what is expected."""
    _, held_out = problems()
    return [
        {"text": held_out[n].text, "expected": _expected(held_out[n])} for n in numbers
    ]


def _expected(problem: Problem) -> str:
    total = problem.left + problem.right
    carries = problem.left % 10 + problem.right % 10 >= 10
    kind = "a carry" if carries else "no carry"
    more = ", three digits" if total >= 100 else ""
    ones = problem.left % 10 + problem.right % 10
    return f"expected {ones}+{total - ones}={total}, {kind}{more}"


def answers(trained: Trained, update: int) -> list[dict[str, Any]]:
    """What the first seed's policy says to each of the prompts after this update."""
    texts, (_, held_out) = trained.words[str(update)], problems()
    judgements = [judged(held_out[n], texts[n]) for n in asked(len(texts))]
    return [
        {
            "pieces": [list(piece) for piece in judgement.pieces],
            "faults": judgement.faults,
        }
        for judgement in judgements
    ]


def words(pair: Pair) -> dict[str, list[list[dict[str, Any]]]]:
    """update -> engine -> answers, for the updates whose answers were kept."""
    both = pair.correct, pair.faulty
    return {
        update: [answers(trained, int(update)) for trained in both]
        for update in pair.correct.words
    }


def home(bug: str, stops: Sequence[float], prompt: int = 1) -> dict[str, Any]:
    """Home's right half: both engines' curves at each stop, a dose of the tables'
    slider; and after the last update the answer to one of the prompts. The correct run
    of the bug must serve every dose."""
    trial, names = experiment(bug), load(bug).engine_names
    assert trial.shares_correct, "one correct curve is drawn"
    doses = {dose.tables: dose.name for dose in trial.doses}
    courses = []
    for stop in stops:
        pair = measured(bug, doses[stop])
        last = pair.updates[-1]
        courses.append(
            {
                "mean": thousandths(pair.faulty.mean),
                "seeds": _seeds(pair.faulty),
                "answer": answers(pair.faulty, last)[prompt],
                "says": outcome.learnt(trial, pair, names, outcome.comparisons()),
            }
        )
    run = read_run()
    return {
        "updates": pair.updates,
        "correct": thousandths(pair.correct.mean),
        "stops": courses,
        "prompt": prompts(asked())[prompt],
        "names": list(names),
        "solved": f"of held-out sums solved after {last} updates, if unfinished answers"
        " earn",
        "axis": f"A transformer with {run.parameters:,} parameters that learned"
        f" two-digit sums: share of {pair.correct.prompts} held-out sums that it"
        f" solves, mean of {run.seeds} seeds",
    }
