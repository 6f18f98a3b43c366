"""The training runs of a server: one at a time in a process beside it, and those
that were trained in advance.

`python -m gradebook.training.runs` is that process, without the app or Streamlit;
with `precompute` it writes the curves that are shipped.
"""

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch

from gradebook.core import PACKAGE
from gradebook.core.errors import GradebookError
from gradebook.training.study import Run, default_run, studied
from gradebook.training.train import TabularCurves, trained
from gradebook.training.transformer.experiments import experiment, experimented

WAITING, KEPT = 100, 200
"""Runs that may wait at most; results that are kept for whoever asks next. A run of 16
seeds takes 1.2 to 1.5 s of one core (2026-11-28), so the last of a full queue waits for
two and a half minutes; a result is a few ten kilobytes."""
COMMAND = (sys.executable, "-m", "gradebook.training.runs")
"""Ends when its input does, so it does not outlive its server."""
CANCELLED = "Cancelled."
TrainingCall = tuple[Any, ...]
"""A function that trains and its arguments, which can be hashed."""


PART, WHOLE = "part", "whole"
"""What an answer of the process is: after a part it waits for True to go on."""


def serve() -> None:
    """Answers pickled calls with a value, or a GradebookError, until the input ends.
    A function that yields is answered with a part each time, and last with the
    value that it returns."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if hasattr(os, "nice"):
        os.nice(19)  # pages go before training
    with suppress(EOFError):
        while True:
            function, *arguments = pickle.load(sys.stdin.buffer)
            try:
                value = function(*arguments)
                if isinstance(value, Iterator):
                    value = _in_parts(value)
            except GradebookError as error:
                value = error
            _put(WHOLE, value)


def _in_parts(parts: Iterator[Any]) -> Any:
    while True:
        try:
            _put(PART, next(parts))
        except StopIteration as end:
            return end.value
        if not pickle.load(sys.stdin.buffer):
            return GradebookError(CANCELLED)


def _put(kind: str, value: Any) -> None:
    pickle.dump((kind, value), sys.stdout.buffer)
    sys.stdout.buffer.flush()


class TrainingQueue:
    """Calls that are answered when they are asked for; equal ones are one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "training")
        self._process: subprocess.Popen[bytes] | None = None
        self._futures: dict[TrainingCall, Future[Any]] = {}
        self._parts: dict[TrainingCall, Any] = {}
        self._cancelled: set[TrainingCall] = set()

    def ask(self, *call: Any) -> Future[Any]:
        """The future value of a call. A failure is reported once; the next request
        trains anew.

        Raises GradebookError if too many runs wait already.
        """
        with self._lock:
            if call not in self._futures:
                done = [c for c, future in self._futures.items() if future.done()]
                if len(self._futures) - len(done) > WAITING:
                    raise GradebookError(
                        f"{WAITING} training runs are waiting already. Try again"
                        " in a minute"
                    )
                for old in done[:-KEPT]:
                    del self._futures[old]
                self._futures[call] = self._thread.submit(self._answer, call)
            future = self._futures[call]
            if future.done() and future.exception():
                del self._futures[call]
            return future

    def place(self, *call: Any) -> int:
        """How many calls come before this one; 0 if it runs or is done."""
        with self._lock:
            waiting = [c for c, future in self._futures.items() if not future.done()]
            return waiting.index(call) if call in waiting else 0

    def so_far(self, *call: Any) -> Any:
        """The last part of a call that yields them; None before the first."""
        with self._lock:
            return self._parts.get(call)

    def cancel(self, *call: Any) -> None:
        """Takes the call out of the queue; another session that waits for it must ask
        again. A call that has begun ends at its next part. One without parts goes on,
        and its result is kept."""
        with self._lock:
            if call not in self._futures:
                return
            if self._futures[call].cancel():
                del self._futures[call]
            elif not self._futures[call].done():
                self._cancelled.add(call)

    def close(self) -> None:
        """Ends the process; what waits is cancelled."""
        self._thread.shutdown(cancel_futures=True)
        if self._process:
            self._process.communicate()

    def _answer(self, call: TrainingCall) -> Any:
        if self._process is None:
            pipe, folder = subprocess.PIPE, PACKAGE.parent
            started = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, cwd=folder)
            self._process = started
        process = self._process
        assert process.stdin and process.stdout  # both are pipes
        try:
            pickle.dump(call, process.stdin)
            process.stdin.flush()
            kind, value = pickle.load(process.stdout)
            while kind == PART:
                with self._lock:
                    self._parts[call] = value
                    goes_on = call not in self._cancelled
                pickle.dump(goes_on, process.stdin)
                process.stdin.flush()
                kind, value = pickle.load(process.stdout)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            process.communicate()
            self._process = None
            message = "The process that trains has ended. Start again"
            raise GradebookError(message) from None
        finally:
            with self._lock:
                self._parts.pop(call, None)
                self._cancelled.discard(call)
        if isinstance(value, GradebookError):
            raise value
        return value


# Trained in advance: each study at its first setting, and at the doses that a
# transformer was trained with

SHIPPED = Path(__file__).with_name("shipped.json")


@cache
def shipped() -> dict[Run, TabularCurves]:
    """The runs that were trained in advance, with their curves to four decimals: a
    success rate from 0 to 1 is drawn over 244 pixels."""
    runs = {}
    for name, curves in json.loads(SHIPPED.read_text("utf-8")).items():
        bug, value = name.split()
        runs[Run(bug, float(value))] = TabularCurves(**curves)
    return runs


def in_advance() -> list[Run]:
    """What is trained in advance, each run once."""
    doses = [
        Run(bug, dose.tables)
        for bug in experimented()
        for dose in experiment(bug).doses
        if dose.tables is not None
    ]
    return [*dict.fromkeys([*map(default_run, studied()), *doses])]


def precompute() -> None:
    content = {}
    for run in in_advance():
        curves = asdict(trained(run))
        for name, values in curves["values"].items():
            exact = torch.tensor(values, dtype=torch.float64)
            curves["values"][name] = exact.round(decimals=4).tolist()
        content[f"{run.bug} {run.value:g}"] = curves
    SHIPPED.write_text(json.dumps(content, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    precompute() if sys.argv[1:] == ["precompute"] else serve()
