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
from gradebook.training.transformer.results import Pair, Run

SUCCESS = MEASURES["success"]


def question_of(
    trial: Experiment, dose: str, updates: int, names: Sequence[str]
) -> str:
    """The question before anything is shown."""
    return question(trial.in_words(dose), updates, SUCCESS, names)


def result_of(
    trial: Experiment, dose: str, pair: Pair, update: int, faulty: str
) -> str:
    """The result after this update, with its interval."""
    if update == 0:
        return "Before the first update both policies are the same."
    effect = pair.effect(update)
    text = sentence(trial.in_words(dose), update, SUCCESS, effect, faulty)
    if is_at_edge(effect):
        text += (
            f" Of {comparisons()} comparisons one or two are so far apart by chance,"
            " so this is no finding."
        )
    return text


def comparisons() -> int:
    """How many doses were compared, of all bugs."""
    return sum(len(experiment(bug).doses) for bug in experimented())


def is_at_edge(effect: Effect) -> bool:
    """The interval excludes 0, but it would not if it allowed for all comparisons
    (Bonferroni: 95 % for all of them together)."""
    if effect.kind == SAME or effect.exact:
        return False
    freedom = effect.seeds - 1
    single, every = (t_quantile(1 - 0.025 / n, freedom) for n in (1, comparisons()))
    return abs(effect.difference) <= effect.half_width * every / single


def kind(effect: Effect) -> str:
    """MORE or LESS if the difference is a finding, else SAME."""
    return SAME if is_at_edge(effect) else effect.kind


def verdict(guess: int | None, effect: Effect) -> str:
    """What was predicted, and whether it is right; '' for no prediction."""
    if guess is None or guess < 0:
        return ""
    right = " That is right." if KINDS[guess] == kind(effect) else ""
    return f"You said {SUCCESS.choices[guess]}.{right} "


def learnt(trial: Experiment, pair: Pair, names: Sequence[str]) -> str:
    """What the policies have learnt: in the experiment's own words; without them, how
    many answers do not end, if the engines differ in that; else ''."""
    shares = [trained.unfinished[-1] for trained in (pair.correct, pair.faulty)]
    correct, faulty = map(percent, shares)
    words = trial.says.get(kind(pair.effect(pair.updates[-1])), "")
    if words:
        return words.format(correct=correct, faulty=faulty)
    if abs(shares[0] - shares[1]) < 0.05:
        return ""
    first, second = map(run_name, names)
    return f"Answers that do not end: {correct} in {first}, {faulty} in {second}."


def percent(share: float) -> str:
    """'21 %'; '99.7 %', which is not all, and '0.1 %', which is not none."""
    whole = f"{100 * share:.0f}"
    rounds_off = whole in ("0", "100") and share not in (0, 1)
    return f"{100 * share:.1f} %" if rounds_off else f"{whole} %"


def trained_on(run: Run) -> str:
    """What was trained, for how long, and on what."""
    return (
        f"a transformer of {run.layers} layers and {run.parameters:,} parameters, first"
        f" on sums worked aloud, then for {run.updates} updates with each engine"
        f" ({run.prompts} prompts of 8 rollouts); {run.seeds} seeds with the same luck"
        f" for both engines; {run.device}, {run.precision}, torch {run.torch},"
        f" {run.date}."
    )


CLAIMED = (
    "this model, this task, these settings, this many updates and seeds. The intervals"
    " cover the chance in training and nothing else. No size is promised for large"
    " models, and nothing is said about convergence."
)
