"""`python -m gradebook.training transformer`: trains everything anew.

It writes a file for each bug, and may be stopped at any time: what is finished is
not trained again.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import torch
from torch import Tensor

from gradebook.core.errors import GradebookError
from gradebook.training.transformer import model
from gradebook.training.transformer.experiments import experiment, experimented
from gradebook.training.transformer.grpo import PROMPTS, Arm, TransformerTraining
from gradebook.training.transformer.model import Shape
from gradebook.training.transformer.pretraining import (
    SHIPPED_SEEDS,
    pretrained,
    ship,
    shipped_weights,
)
from gradebook.training.transformer.results import (
    WORDS_AT,
    CurveRecorder,
    Provenance,
    processor,
    read_arm,
    read_pair,
    write,
    write_arm,
)

LOOK = 10
"""Updates from one point of a curve to the next. A point samples 256 answers of each
model, as many as two updates do."""
TOGETHER = 16
"""Models that train as one at most. More save no time on a CPU, and a training that is
stopped must begin anew. (On one core an update took 90 ms a model of 4 and of 8, 99 of
16 and 102 of 32; 2026-11-28.)"""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        "python -m gradebook.training transformer",
        description="Trains a transformer with both engines of each bug. On one core"
        " of an AMD EPYC, eight seeds took about five minutes of processor time before"
        " the first arm and about two and a half for each arm. A run that was stopped"
        " goes on with what is missing.",
    )
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--width", type=int, default=Shape.width)
    parser.add_argument("--folder", type=Path, default=Path("transformer"))
    parser.add_argument("--device", default=_device())
    parser.add_argument(
        "--ship",
        action="store_true",
        help="put the pretrained weights into the package",
    )
    parser.add_argument(
        "--shipped",
        action="store_true",
        help="start from the pretrained weights of the package: four seeds",
    )
    parser.add_argument("--prompts", type=int, default=PROMPTS, help="of an update")
    about = "BUG, or BUG=DOSE, in this order; default all"
    parser.add_argument("chosen", nargs="*", metavar="BUG[=DOSE]", help=about)
    options = parser.parse_args(arguments)
    chosen = [*map(_chosen, options.chosen or experimented())]
    options.folder.mkdir(parents=True, exist_ok=True)
    shape = Shape(options.layers, options.width)
    if options.shipped:
        options.seeds, shape = len(SHIPPED_SEEDS), Shape()
        weights = shipped_weights(SHIPPED_SEEDS).items()
        start = {name: weight.to(options.device) for name, weight in weights}
    else:
        start = _start(options.folder, shape, options.seeds, options.device)
    if options.ship:
        ship(start)
    run = Provenance(
        parameters=model.parameters(start),
        layers=shape.layers,
        width=shape.width,
        seeds=options.seeds,
        prompts=options.prompts,
        updates=options.updates,
        device=_device_name(options.device),
        precision="float32",
        torch=torch.__version__,
        date=datetime.now(UTC).date().isoformat(),
    )
    write(options.folder / "run.json", asdict(run))
    for bug, doses in chosen:
        _train(bug, doses, options, shape, start)
    for bug, doses in chosen:
        _report(bug, doses, options)


def _chosen(text: str) -> tuple[str, tuple[str, ...]]:
    """A bug, and which of its doses. Raises GradebookError if there is none."""
    bug, _, dose = text.partition("=")
    trial = experiment(bug)
    return bug, (trial.dose(dose).name,) if dose else trial.names


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _device_name(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return processor()


def _start(folder: Path, shape: Shape, seeds: int, device: str) -> dict[str, Tensor]:
    """The pretrained weights of the folder, or new ones."""
    path = folder / f"pretrained-{shape.layers}x{shape.width}-{seeds}.pt"
    if not path.exists():
        begun = time.monotonic()

        def progress(step: int, rates: list[float]) -> None:
            share = " ".join(f"{rate:.2f}" for rate in rates)
            took = time.monotonic() - begun
            print(f"pretraining, step {step}, {took:.0f} s: {share}", flush=True)

        torch.save(pretrained(shape, range(seeds), device, progress), path)
    return torch.load(path, map_location=device)


Missing = tuple[str, str, str, Arm]
"""The bug, the dose's name, the engine's name, and what is trained."""


def arms_of(bug: str, doses: Sequence[str]) -> Iterator[Missing]:
    """Each arm of the doses once, a correct run before the first that needs it."""
    trial, seen = experiment(bug), set()
    for dose in doses:
        owner, name = trial.correct_of or bug, trial.correct_name(dose)
        if (owner, name) not in seen:
            seen.add((owner, name))
            shown = dose if owner == bug else experiment(owner).shown
            arm = experiment(owner).correct_arm(shown)
            yield owner, name, "correct", arm
        yield bug, dose, "faulty", trial.arm(dose)


def _train(
    bug: str,
    doses: Sequence[str],
    options: argparse.Namespace,
    shape: Shape,
    start: dict[str, Tensor],
) -> None:
    missing = [
        missing
        for missing in arms_of(bug, doses)
        if read_arm(options.folder, *missing[:3]) is None
    ]
    seeds = range(options.seeds)
    size = max(1, TOGETHER // options.seeds)
    while missing:
        # All arms that train as one are given the same luck, the noise included.
        now, missing = missing[:size], missing[size:]
        noisy = max(arm.conditions.sampler for *_, arm in now)
        assert all(arm.conditions.sampler == noisy for *_, arm in now)
        arms = [arm for *_, arm in now]
        training = TransformerTraining(arms, start, shape, seeds, options.prompts)
        record = CurveRecorder(training)
        title = ", ".join(f"{owner} {engine} {name}" for owner, name, engine, _ in now)
        for update in range(options.updates + 1):
            if update:
                training.advance()
            if update % LOOK == 0 or update == options.updates:
                record.look(update in WORDS_AT)
            _bar(title, update, options.updates)
        for (owner, name, engine, _), trained in zip(now, record.trained()):
            write_arm(options.folder, owner, name, engine, trained)


def _bar(title: str, update: int, updates: int) -> None:
    done = 20 * update // updates
    end = "\n" if update == updates else ""
    bar = "#" * done + "." * (20 - done)
    print(f"\r[{bar}] {update} of {updates}: {title}", end=end, flush=True)


def _report(bug: str, doses: Sequence[str], options: argparse.Namespace) -> None:
    for dose in doses:
        pair = read_pair(bug, dose, options.folder)
        if pair is None:
            continue
        effect = pair.effect(options.updates)
        print(
            f"{bug} {dose}: correct {effect.correct:.3f}, faulty {effect.faulty:.3f},"
            f" difference {effect.difference:+.3f} ± {effect.half_width:.3f};"
            f" faulty unfinished {pair.faulty.unfinished[-1]:.2f}"
        )


def run(arguments: Sequence[str]) -> int:
    """The command, with an error in one line."""
    try:
        main(arguments)
    except GradebookError as error:
        print(error)
        return 1
    return 0
