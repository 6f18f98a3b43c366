"""What a page shows of trained policies, as plain data for the browser: curves, and
what both policies say.

A share is in thousandths. An answer is a list of [text, is it a mistake], and in
words what is wrong with it.
"""

from collections.abc import Sequence
from typing import Any

from gradebook.training.environments import MEASURES
from gradebook.training.study import (
    KINDS,
    SAME,
    Effect,
    question,
    run_name,
    sentence,
    t_quantile,
)
from gradebook.training.transformer.experiments import (
    Experiment,
    experiment,
    experimented,
)
from gradebook.training.transformer.language import SHOWN, Problem, judged
from gradebook.training.transformer.results import Pair, Run, Trained

SUCCESS = MEASURES["success"]
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


# In words


def asked(its: Experiment, dose: str, updates: int, names: Sequence[str]) -> str:
    """The question before anything is shown."""
    return question(its.in_words(dose), updates, SUCCESS, names)


def said(its: Experiment, dose: str, pair: Pair, update: int, faulty: str) -> str:
    """The result after this update, with its interval."""
    if update == 0:
        return "Before the first update both policies are the same."
    found = pair.effect(update)
    text = sentence(its.in_words(dose), update, SUCCESS, found, faulty)
    if is_at_edge(found):
        text += (
            f" Of {comparisons()} comparisons one or two are so far apart by chance,"
            " so this is no finding."
        )
    return text


def comparisons() -> int:
    """How many doses were compared, of all bugs."""
    return sum(len(experiment(bug).doses) for bug in experimented())


def is_at_edge(found: Effect) -> bool:
    """The interval excludes 0, but it would not if it allowed for all comparisons
    (Bonferroni: 95 % for all of them together)."""
    if found.kind == SAME or found.exact:
        return False
    freedom = found.seeds - 1
    one, every = (t_quantile(1 - 0.025 / n, freedom) for n in (1, comparisons()))
    return abs(found.difference) <= found.half_width * every / one


def kind(found: Effect) -> str:
    """MORE or LESS where the difference is a finding, else SAME."""
    return SAME if is_at_edge(found) else found.kind


def verdict(guess: int | None, found: Effect) -> str:
    """What was predicted, and whether it is right; '' for no prediction."""
    if guess is None or guess < 0:
        return ""
    right = " That is right." if KINDS[guess] == kind(found) else ""
    return f"You said {SUCCESS.choices[guess]}.{right} "


def unfinished(pair: Pair, names: Sequence[str]) -> str:
    """How many answers do not end, where the engines differ in it."""
    correct, faulty = pair.correct.unfinished[-1], pair.faulty.unfinished[-1]
    if abs(correct - faulty) < 0.05:
        return ""
    shares = [f"{100 * share:.0f} %" for share in (correct, faulty)]
    first, second = map(run_name, names)
    return f"Answers that do not end: {shares[0]} in {first}, {shares[1]} in {second}."


def trained_on(run: Run) -> str:
    """What was trained, for how long, and on what."""
    return (
        f"a transformer of {run.layers} layers and {run.parameters:,} parameters, first"
        f" on sums worked aloud, then for {run.updates} updates with each engine"
        f" ({run.prompts} prompts of 8 rollouts); {run.seeds} seeds with the same luck"
        f" for both engines; {run.device}, torch {run.torch}, {run.date}."
    )


CLAIMED = (
    "this model, this task, these settings, this many updates and seeds. The intervals"
    " cover the chance in training and nothing else. No size is promised for large"
    " models, and nothing about convergence: the correct runs still rise."
)
