"""Both engines of a bug trained while one watches, from the shipped weights."""

from collections.abc import Generator
from datetime import UTC, datetime
from functools import cache

import torch

from gradebook.training.transformer import model
from gradebook.training.transformer.experiments import experiment
from gradebook.training.transformer.grpo import PROMPTS, TransformerTraining
from gradebook.training.transformer.model import Shape
from gradebook.training.transformer.pretraining import SHIPPED_SEEDS, shipped_weights
from gradebook.training.transformer.results import (
    CurveRecorder,
    Pair,
    Provenance,
    processor,
)

UPDATES, LOOK, HELD_OUT, WORDS = 50, 5, 128, 24
"""Of a live run: its updates, those from one point to the next, the held-out prompts
of a point, and how many of their answers are shown. Five updates and a point take 3.8 s
of one core, so the whole run takes about 40 s (2026-11-28). The share of 4 * 128
answers has a standard error of at most 2.2 points."""


@cache
def size() -> str:
    """How much a live run is, in words."""
    run = live_run()
    return f"{run.parameters:,} parameters, {run.seeds} seeds"


def live_run() -> Provenance:
    """How a live run of today is made."""
    return Provenance(
        parameters=model.parameters(model.initial(Shape(), [0])),
        layers=Shape.layers,
        width=Shape.width,
        seeds=len(SHIPPED_SEEDS),
        prompts=PROMPTS,
        updates=UPDATES,
        device=processor(),
        precision="float32",
        torch=torch.__version__,
        date=datetime.now(UTC).date().isoformat(),
    )


def live(bug: str, dose: str) -> Generator[Pair, None, Pair]:
    """Yields both curves as they grow, with the words at every point, and returns them
    when they are whole. Raises GradebookError for an unknown bug or dose."""
    trial = experiment(bug)
    arms = [trial.correct_arm(dose), trial.arm(dose)]
    weights = shipped_weights(SHIPPED_SEEDS)
    training = TransformerTraining(arms, weights, Shape(), SHIPPED_SEEDS)
    record = CurveRecorder(training, HELD_OUT, WORDS)
    record.look(keeps_words=True)
    while training.updates < UPDATES:
        yield Pair(*record.trained())
        for _ in range(LOOK):
            training.advance()
        record.look(keeps_words=True)
    return Pair(*record.trained())
