"""The question about a dose, and what its result says."""

from collections.abc import Sequence

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
from gradebook.training.transformer.results import Pair, Provenance

SUCCESS = MEASURES["success"]


def question_of(
    trial: Experiment, dose: str, updates: int, names: Sequence[str]
) -> str:
    """The question before anything is shown."""
    return question(trial.in_words(dose), updates, SUCCESS, names)


def result_of(
    trial: Experiment, dose: str, pair: Pair, update: int, faulty: str, compared: int
) -> str:
    """The result after this update, with its interval. It is one of so many
    comparisons."""
    if update == 0:
        return "Before the first update both policies are the same."
    effect = pair.effect(update)
    text = sentence(trial.in_words(dose), update, SUCCESS, effect, faulty)
    if is_at_edge(effect, compared):
        text += (
            f" Of {compared} comparisons one or two are so far apart by chance,"
            " so this is no finding."
        )
    return text


def comparisons() -> int:
    """How many doses were compared in advance, of all bugs."""
    return sum(len(experiment(bug).doses) for bug in experimented())


def is_at_edge(effect: Effect, compared: int) -> bool:
    """The interval excludes 0, but it would not if it allowed for so many comparisons
    (Bonferroni: 95 % for all of them together)."""
    if effect.kind == SAME or effect.exact:
        return False
    freedom = effect.seeds - 1
    single, every = (t_quantile(1 - 0.025 / n, freedom) for n in (1, compared))
    return abs(effect.difference) <= effect.half_width * every / single


def kind(effect: Effect, compared: int) -> str:
    """MORE or LESS if the difference is a finding, else SAME."""
    return SAME if is_at_edge(effect, compared) else effect.kind


def verdict(guess: int | None, effect: Effect) -> str:
    """What was predicted of a run made in advance, and whether it is right; '' for no
    prediction."""
    if guess is None or guess < 0:
        return ""
    right = " That is right." if KINDS[guess] == kind(effect, comparisons()) else ""
    return f"You said {SUCCESS.choices[guess]}.{right} "


def learnt(trial: Experiment, pair: Pair, names: Sequence[str], compared: int) -> str:
    """What the policies have learnt: in the experiment's own words; without them, how
    many answers do not end, if the engines differ in that; else ''."""
    shares = [trained.unfinished[-1] for trained in (pair.correct, pair.faulty)]
    correct, faulty = map(percent, shares)
    effect = kind(pair.effect(pair.updates[-1]), compared)
    words = trial.says.get(effect, "")
    if words:
        return words.format(correct=correct, faulty=faulty)
    # Of 4 * 256 answers a share has a standard error of at most 1.6 points, so a
    # difference below 5 points, two errors of it, is no news.
    if abs(shares[0] - shares[1]) < 0.05:
        return ""
    first, second = map(run_name, names)
    return f"Answers that do not end: {correct} in {first}, {faulty} in {second}."


def endings_of(pair: Pair, update: int, names: Sequence[str]) -> str:
    """How many of all answers do not end after this update."""
    at, (first, second) = pair.updates.index(update), map(run_name, names)
    correct, faulty = (
        percent(trained.unfinished[at]) for trained in (pair.correct, pair.faulty)
    )
    count = pair.correct.prompts * len(pair.correct.success)
    return (
        f"Of all {count:,} answers, {correct} do not end in {first} and {faulty} in"
        f" {second}."
    )


def percent(share: float) -> str:
    """'21 %'; '99.7 %', which is not all, and '0.1 %', which is not none."""
    whole = f"{100 * share:.0f}"
    rounds_off = whole in ("0", "100") and share not in (0, 1)
    unit = "\u00a0%"  # which stays on the line of its number
    return f"{100 * share:.1f}{unit}" if rounds_off else whole + unit


def trained_on(run: Provenance, rollouts: int) -> str:
    """What was trained, for how long, with how many rollouts of a prompt, and on what:
    whole sentences."""
    return (
        f"A transformer of {run.layers} layers and {run.parameters:,} parameters"
        " learned two-digit sums, step by step. Then each engine trained it for"
        f" {run.updates} updates of {run.prompts} prompts with {rollouts} rollouts"
        f" each, with {run.seeds} seeds. For each seed, both engines have the same"
        f" start, prompts and random numbers. It ran on {run.device} in"
        f" {run.precision}, with torch {run.torch}, on {run.date}."
    )


CLAIMED = (
    "The result is about this model, this task, these settings, and this many updates"
    " and seeds. With a large model, the effect may differ in size and in direction."
    " Nothing is said about convergence."
)
INTERVALS = "The intervals cover training noise only."
