"""The training runs of a server, one at a time in a process beside it.

Equal requests are one run, and its result is kept for whoever asks next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from gradebook.core.errors import GradebookError
from gradebook.core.project import PACKAGE
from gradebook.training.study import Run

WAITING = 100
"""Runs that may wait at most."""
KEPT = 200
"""Results that are kept."""


@dataclass(frozen=True)
class Task:
    """A run, or with an update the batch of this update for one seed."""

    run: Run
    seed: int = 0
    update: int = 0


class Runs:
    """Trains what is asked for, in the order of asking."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "training")
        self._futures: dict[Task, Future[dict[str, Any]]] = {}
        self._visitors: dict[Task, set[str]] = {}
        self._process: subprocess.Popen[str] | None = None
        self._running: Task | None = None

    def ask(self, task: Task, visitor: str) -> Future[dict[str, Any]]:
        """The answer of gradebook.training.__main__, when it is there. Its
        `result` raises GradebookError where there is none.

        Raises GradebookError where too many runs wait already.
        """
        with self._lock:
            future = self._futures.get(task)
            if future is None:
                if sum(not f.done() for f in self._futures.values()) > WAITING:
                    raise GradebookError(
                        f"{WAITING} training runs are waiting already. Try again"
                        " in a minute"
                    )
                future = self._thread.submit(self._answer, task)
                self._futures[task] = future
                done = [t for t, future in self._futures.items() if future.done()]
                for old in done[:-KEPT]:
                    del self._futures[old], self._visitors[old]
            self._visitors.setdefault(task, set()).add(visitor)
            return future

    def place(self, task: Task) -> int:
        """How many runs come before this one; 0 where it runs or is done."""
        with self._lock:
            waiting = [t for t, future in self._futures.items() if not future.done()]
            return waiting.index(task) if task in waiting else 0

    def cancel(self, task: Task, visitor: str) -> None:
        """The visitor wants the task no longer. It ends where nobody else
        does."""
        with self._lock:
            visitors = self._visitors.get(task, set())
            visitors.discard(visitor)
            future = self._futures.get(task)
            if visitors or future is None or future.done():
                return
            if not future.cancel() and self._running == task and self._process:
                self._process.kill()
            del self._futures[task], self._visitors[task]

    def close(self) -> None:
        """Ends the process; what waits is cancelled."""
        with self._lock:
            if self._process:
                self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        if self._process:
            _ended(self._process)

    def _answer(self, task: Task) -> dict[str, Any]:
        with self._lock:
            if task not in self._futures:
                raise GradebookError("This run was cancelled")
            self._running = task
            if self._process is None or self._process.poll() is not None:
                self._process = _started()
            process = self._process
        assert process.stdin and process.stdout  # both are pipes
        try:
            process.stdin.write(json.dumps(asdict(task)) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        with self._lock:
            self._running = None
        if not line:
            _ended(process)
            with self._lock:  # whoever asks next trains anew
                self._futures.pop(task, None)
                self._visitors.pop(task, None)
            raise GradebookError("The process that trains has ended. Start again")
        answer = json.loads(line)
        if "error" in answer:
            raise GradebookError(answer["error"])
        return answer


def _started() -> subprocess.Popen[str]:
    """The process. It ends when its input does, so it does not outlive its
    server."""
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        (sys.executable, "-m", "gradebook.training"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
    )


def _ended(process: subprocess.Popen[str]) -> None:
    with suppress(BrokenPipeError), process:
        pass
