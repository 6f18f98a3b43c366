"""What a training gave: curves, and the words of both policies.

`measured/` has a run that was made in advance on a GPU, one file a bug, with the
card, the versions and the date in run.json; `measured/small/` has one of the smaller
model, made on a CPU. `python -m gradebook.training transformer` writes the same files.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradebook.core.errors import GradebookError
from gradebook.training.study import Effect, effect
from gradebook.training.transformer import model
from gradebook.training.transformer.experiments import experiment
from gradebook.training.transformer.grpo import TransformerTraining
from gradebook.training.transformer.language import (
    END,
    SHOWN,
    ends,
    is_success,
    problems,
)

MEASURED = Path(__file__).with_name("measured")
SMALL = MEASURED / "small"
HELD_OUT = 256
"""Held-out prompts of a point of a curve, the shown ones among them: the share of one
seed has a standard error of at most 3.1 points."""
WORDS_AT = (0, 50, 100, 200)
"""The updates at which answers are kept."""


@dataclass(frozen=True)
class Trained:
    """One engine's runs, of all seeds. A point of a curve is an update; its answers are
    sampled with the same luck at every point, for every engine.

    updates     the points
    prompts     held-out prompts of a point
    success     [seed][point] how many answers say the sum and end
    unfinished  [point] the share of answers that do not end, mean over seeds
    length      [point] tokens of an answer, mean over seeds
    words       update -> the first seed's answers to the first held-out prompts, as
                tokens up to their end
    """

    updates: list[int]
    prompts: int
    success: list[list[int]]
    unfinished: list[float]
    length: list[float]
    words: Mapping[str, list[list[int]]]

    def shares(self, update: int) -> list[float]:
        """The success rate of each seed after so many updates."""
        at = self.updates.index(update)
        return [seed[at] / self.prompts for seed in self.success]

    @property
    def mean(self) -> list[float]:
        """The success rate at each point, mean over seeds."""
        total = self.prompts * len(self.success)
        return [sum(seeds) / total for seeds in zip(*self.success)]


@dataclass(frozen=True)
class Pair:
    """Both engines at one dose, correct and faulty."""

    correct: Trained
    faulty: Trained

    @property
    def updates(self) -> list[int]:
        return self.correct.updates

    def effect(self, update: int) -> Effect:
        """The paired difference of the success rates, and its 95 % interval."""
        return effect(self.correct.shares(update), self.faulty.shares(update))


@dataclass(frozen=True)
class Provenance:
    """How all of a folder's results were made."""

    parameters: int
    layers: int
    width: int
    seeds: int
    prompts: int  # of an update
    updates: int
    device: str
    precision: str  # the float type that the device computed in
    torch: str
    date: str


def processor() -> str:
    """What a provenance calls this machine's CPU."""
    return f"CPU, {platform.machine()}"


def read_run(folder: Path = MEASURED) -> Provenance:
    return Provenance(**_read(folder / "run.json"))


def folder_of(bug: str) -> Path:
    """The folder of the run that is shipped for a bug."""
    return MEASURED if (MEASURED / f"{bug}.json").exists() else SMALL


@lru_cache(maxsize=64)
def measured(bug: str, dose: str) -> Pair:
    """The run that is shipped. Raises GradebookError for an unknown bug or dose."""
    pair = read_pair(bug, dose, folder_of(bug))
    assert pair is not None, "every experiment's every dose is shipped"
    return pair


def read_pair(bug: str, dose: str, folder: Path) -> Pair | None:
    """Both engines at this dose; None unless the folder has both."""
    trial = experiment(bug)
    trial.dose(dose)
    correct = read_arm(
        folder, trial.correct_of or bug, trial.correct_name(dose), "correct"
    )
    faulty = read_arm(folder, bug, dose, "faulty")
    return Pair(correct, faulty) if correct and faulty else None


def read_arm(folder: Path, bug: str, name: str, engine: str) -> Trained | None:
    path = folder / f"{bug}.json"
    for arm in _read(path)["arms"] if path.exists() else ():
        if (arm["dose"], arm["engine"]) == (name, engine):
            return Trained(**arm["trained"])
    return None


def write_arm(folder: Path, bug: str, name: str, engine: str, trained: Trained) -> None:
    """Adds an arm to the bug's file."""
    path = folder / f"{bug}.json"
    arms = _read(path)["arms"] if path.exists() else []
    arms.append({"dose": name, "engine": engine, "trained": asdict(trained)})
    write(path, {"bug": bug, "arms": arms})


def write(path: Path, content: Mapping[str, Any]) -> None:
    """A file that is there is whole: it is written beside its place, then moved."""
    aside = path.with_suffix(".part")
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    aside.write_text(text + "\n", "utf-8")
    aside.replace(path)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise GradebookError(f"{path.name} cannot be read: {error}") from None


class CurveRecorder:
    """The curves of a training while it runs, an arm each."""

    def __init__(
        self,
        training: TransformerTraining,
        prompts: int | None = None,
        words: int = len(SHOWN),
    ) -> None:
        """Asks so many held-out prompts, and keeps the words of the first few."""
        self.training, self.with_words = training, words
        _, held_out = problems()
        self.asked = held_out[: prompts or HELD_OUT]
        self.updates: list[int] = []
        arms = range(len(training.arms))
        self.success: list[list[list[int]]] = [[] for _ in arms]  # [arm][point][S]
        self.unfinished: list[list[float]] = [[] for _ in arms]
        self.length: list[list[float]] = [[] for _ in arms]
        self.words: list[dict[str, list[list[int]]]] = [{} for _ in arms]

    def look(self, keeps_words: bool) -> None:
        """Adds a point to every curve."""
        training = self.training
        seeds = len(training.seeds)
        self.updates.append(training.updates)
        sampled = held_out_answers(training, len(self.asked))
        answers = sampled.tokens.view(-1, seeds, *sampled.tokens.shape[1:]).tolist()
        lengths = sampled.mask.sum(-1).double().view(len(answers), -1).mean(-1)
        for arm, of_seeds in enumerate(answers):
            self.success[arm].append(
                [sum(map(is_success, self.asked, of_seed)) for of_seed in of_seeds]
            )
            finished = [ends(answer) for of_seed in of_seeds for answer in of_seed]
            share = 1 - sum(finished) / len(finished)
            self.unfinished[arm].append(round(share, 4))
            self.length[arm].append(round(float(lengths[arm]), 3))
            if keeps_words:
                shown = of_seeds[0][: self.with_words]
                self.words[arm][str(training.updates)] = [*map(_to_end, shown)]

    def trained(self) -> list[Trained]:
        """What there is, an arm each."""
        return [
            Trained(
                list(self.updates),
                len(self.asked),
                [list(seed) for seed in zip(*success)],
                list(unfinished),
                list(length),
                dict(words),
            )
            for success, unfinished, length, words in zip(
                self.success, self.unfinished, self.length, self.words
            )
        ]


def _to_end(answer: list[int]) -> list[int]:
    return answer[: answer.index(END) + 1] if END in answer else answer


def held_out_answers(training: TransformerTraining, prompts: int) -> model.Answers:
    """Answers to the first held-out prompts, with the same luck at every call. They are
    sampled from the policy itself, without a sampler's noise."""
    questions = torch.tensor([problem.tokens for problem in problems()[1][:prompts]])
    questions = questions.to(training.device).expand(
        training.weights["words"].shape[0], -1, -1
    )
    noise = torch.stack([luck(seed, prompts) for seed in training.seeds], 1)
    noise = noise.repeat(1, len(training.arms), 1, 1).to(training.device)
    return model.sampled(training.weights, training.shape, questions, noise)


def luck(seed: int, prompts: int) -> Tensor:
    """What decides the words of the answers to held-out prompts."""
    # The generators of training have the seeds 3 * seed to 3 * seed + 2 (grpo.Chances).
    generator = torch.Generator().manual_seed(10**6 + seed)
    return model.gumbel_noise(generator, prompts)
