"""Both engines of a bug trained while one watches, from the shipped weights."""

from collections.abc import Generator
from functools import cache

from gradebook.training.transformer import model
from gradebook.training.transformer.experiments import experiment
from gradebook.training.transformer.grpo import Training
from gradebook.training.transformer.model import Shape
from gradebook.training.transformer.pretraining import SHIPPED_SEEDS, shipped_weights
from gradebook.training.transformer.results import Pair, Record

UPDATES, LOOK, PROMPTS = 50, 5, 128
"""Of a live run: its updates, those from one point to the next, and held-out prompts
of a point."""


@cache
def size() -> str:
    """How much a live run is, in words."""
    count = model.parameters(model.initial(Shape(), [0]))
    return f"{count:,} parameters, {len(SHIPPED_SEEDS)} seeds"


def live(bug: str, dose: str) -> Generator[Pair, None, Pair]:
    """Yields both curves as they grow, with the words at every point, and returns them
    when they are whole. Raises GradebookError for an unknown bug or dose."""
    trial = experiment(bug)
    arms = [trial.correct_arm(dose), trial.arm(dose)]
    weights = shipped_weights(SHIPPED_SEEDS)
    training = Training(arms, weights, Shape(), SHIPPED_SEEDS)
    record = Record(training, PROMPTS)
    record.look(keeps_words=True)
    while training.updates < UPDATES:
        yield Pair(*record.trained())
        for _ in range(LOOK):
            training.advance()
        record.look(keeps_words=True)
    return Pair(*record.trained())
