"""The training runs of a server: one at a time in a process beside it, and those
that were trained in advance."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.project import PACKAGE
from gradebook.training.study import Run, default_run, studied
from gradebook.training.train import Curves, batch_at, trained

# Trained when they are asked for: equal requests are one run

WAITING, KEPT = 100, 200
"""Runs that may wait at most; results that are kept for whoever asks next."""
NICENESS = 19
"""Pages go before training, which takes the time that nobody else wants."""


@dataclass(frozen=True)
class Task:
    """A run, or with an update the batch of this update for one seed."""

    run: Run
    seed: int = 0
    update: int = 0


def rows_of(batch: Batch) -> list[dict[str, Any]]:
    """The rows as a scenario file has them; only columns that say more than their
    default. A prompt's name, A, B, .., is its place in the task."""
    columns: dict[str, list[Any]] = {
        "prompt": [chr(ord("A") + prompt) for prompt in batch.prompt.tolist()],
        "reward": [round(reward, 9) for reward in batch.reward.tolist()],
        "mask": batch.mask.long().tolist(),
    }
    if not batch.eos.all():
        columns["eos"] = batch.eos.tolist()
    if batch.settings.loss == "grpo" and not (batch.steps == 1).all():
        columns["steps"] = batch.steps.tolist()
        columns["kept_steps"] = batch.kept_steps.tolist()
    if not batch.scored.all():
        columns["scored"] = batch.scored.tolist()
    if (batch.rollout[1:] == batch.rollout[:-1]).any():
        columns["rollout"] = [f"r{rollout}" for rollout in batch.rollout.tolist()]
    if batch.settings.beta:
        for name in ("logp", "ref_logp"):
            values = getattr(batch, name).tolist()
            columns[name] = [[round(value, 6) for value in row] for row in values]
    return [dict(zip(columns, cells)) for cells in zip(*columns.values())]


def serve() -> None:
    """Answers one pickled task after the other, until the input ends: with a run's
    curves, the rows of a batch, or the GradebookError that tells why not."""
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(EOFError):
        while True:
            task = pickle.load(sys.stdin.buffer)
            value: Any
            try:
                if task.update:
                    value = rows_of(batch_at(task.run, task.seed, task.update))
                else:
                    value = trained(task.run)
            except GradebookError as error:
                value = error
            pickle.dump(value, sys.stdout.buffer)
            sys.stdout.buffer.flush()


class Ended(GradebookError):
    """The process ended before it had an answer."""


class Runs:
    """Trains what is asked for, in the order of asking."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "training")
        self._process: subprocess.Popen[bytes] | None = None
        self._futures: dict[Task, Future[Any]] = {}
        self._visitors: dict[Task, set[str]] = {}

    def ask(self, task: Task, visitor: str) -> Future[Any]:
        """The curves or the rows, when they are there. An answer that the process
        did not live to give is told once; whoever asks then trains anew.

        Raises GradebookError where too many runs wait already.
        """
        with self._lock:
            if task not in self._futures:
                if sum(not f.done() for f in self._futures.values()) > WAITING:
                    raise GradebookError(
                        f"{WAITING} training runs are waiting already. Try again"
                        " in a minute"
                    )
                done = [t for t, future in self._futures.items() if future.done()]
                for old in done[:-KEPT]:
                    self._forget(old)
                self._futures[task] = self._thread.submit(self._answer, task)
                self._visitors[task] = set()
            self._visitors[task].add(visitor)
            future = self._futures[task]
            if future.done() and isinstance(future.exception(), Ended):
                self._forget(task)
            return future

    def place(self, task: Task) -> int:
        """How many runs come before this one; 0 where it runs or is done."""
        with self._lock:
            waiting = [t for t, future in self._futures.items() if not future.done()]
            return waiting.index(task) if task in waiting else 0

    def cancel(self, task: Task, visitor: str) -> None:
        """The visitor wants the task no longer. If nobody does, it leaves the
        queue; a run that has begun goes on, and its result is kept."""
        with self._lock:
            visitors = self._visitors.get(task, set())
            visitors.discard(visitor)
            if not visitors and task in self._futures and self._futures[task].cancel():
                self._forget(task)

    def close(self) -> None:
        """Ends the process; what waits is cancelled."""
        self._thread.shutdown(cancel_futures=True)
        if self._process:
            self._process.communicate()

    def _forget(self, task: Task) -> None:
        del self._futures[task], self._visitors[task]

    def _answer(self, task: Task) -> Any:
        self._process = process = self._process or started()
        assert process.stdin and process.stdout  # both are pipes
        try:
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            value = pickle.load(process.stdout)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            process.communicate()
            self._process = None
            raise Ended("The process that trains has ended. Start again") from None
        if isinstance(value, GradebookError):
            raise value
        return value


def started() -> subprocess.Popen[bytes]:
    """The process. It ends when its input does, so it does not outlive its
    server."""
    return subprocess.Popen(
        (sys.executable, "-m", "gradebook.training"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PACKAGE.parent,
    )


# Trained in advance: each study at its first settings, and on Home at each of
# eleven rewards for an unfinished answer


SHIPPED = Path(__file__).with_name("shipped.json")
HOME = Path(__file__).with_name("home.json")
DIGITS = 4
HOME_BUG = studied()[0]
STOPS = (0, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2)
"""Home's bug, and its rewards of the unfinished answer."""


@cache
def shipped(run: Run) -> Curves | None:
    """The curves of a run that was trained in advance, to DIGITS decimals;
    None for any other run."""
    stored = json.loads(SHIPPED.read_text())
    if run.bug not in stored or run != default_run(run.bug):
        return None
    return Curves(**stored[run.bug])


@cache
def home_curves() -> dict[str, Any]:
    """Of Home: `updates`; the correct engine's `correct` curve, which is the same
    at every stop, as the mean over its seeds; and by stop the `faulty` seeds."""
    return json.loads(HOME.read_text("utf-8"))


def home_run(stop: float, seeds: int = 16) -> tuple[list[int], list[list[list[int]]]]:
    """The updates, and each engine's chance of success in thousandths, by
    seed and update, where the unfinished answer earns `stop`."""
    run = trained(Run(HOME_BUG, stop, seeds=seeds))
    by_engine = zip(*run.values["success"])
    return run.updates, [
        [[round(1000 * value) for value in seed] for seed in zip(*frames)]
        for frames in by_engine
    ]


def precompute() -> None:
    """Trains all of them and writes SHIPPED and HOME."""
    studies = {}
    for bug in studied():
        run = trained(default_run(bug))
        values = {
            name: [
                [[round(value, DIGITS) for value in seeds] for seeds in engines]
                for engines in frames
            ]
            for name, frames in run.values.items()
        }
        studies[bug] = {"updates": run.updates, "values": values}
    SHIPPED.write_text(json.dumps(studies, separators=(",", ":")) + "\n")
    faulty = {}
    for stop in STOPS:
        updates, (correct, faulty[f"{stop:g}"]) = home_run(stop)
    mean = [round(sum(values) / len(values)) for values in zip(*correct)]
    content = {"updates": updates, "correct": mean, "faulty": faulty}
    HOME.write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")
