"""Runs a stranger's function in a process of its own, with time limits."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

A_CALL, IN_ALL = 5.0, 60.0
"""Seconds that a call, and that all calls, may take."""

STARTING = 60.0
"""Seconds that the process may take to import what the function needs."""


class Unusable(Exception):
    """What a function did that is no answer."""


class Child:
    """The function in another process, or in this one where it cannot be
    pickled: `notes` says so. It is not called again once its process is lost."""

    def __init__(self, function: Callable[[Any], Any] | None) -> None:
        self.function = function
        self.process: BaseProcess | None = None
        self.notes: list[str] = []
        self.left, self.lost = IN_ALL, ""
        try:
            self.pickled = pickle.dumps(function)
        except Exception:
            self._run_here("cannot be pickled")

    def __enter__(self) -> Child:
        if getattr(self.function, "__module__", "") == "__mp_main__":
            # A child imports a script that probes without `__name__ == "__main__"`.
            sys.exit()
        if self.pickled:
            spawn = multiprocessing.get_context("spawn")
            self.pipe, theirs = spawn.Pipe()
            arguments = (theirs, self.pickled)
            self.process = spawn.Process(target=_serve, args=arguments, daemon=True)
            self.process.start()
            theirs.close()
            kind, what = self._reply(STARTING)
            if what.startswith("took"):
                self.lost = f"no process in {STARTING:g} seconds"
            elif kind == "lost":
                self._run_here("cannot be loaded in another process")
        return self

    def __exit__(self, *error: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()

    def __call__(self, rewards: Any) -> Any:
        """The function's answer. Raises Unusable."""
        if self.lost:
            raise Unusable(f"not called: {self.lost}")
        if not self.pickled:
            return _answer(self.function, rewards)
        begun = time.monotonic()
        self.pipe.send(rewards)
        kind, value = self._reply(min(A_CALL, self.left))
        self.left -= time.monotonic() - begun
        if kind == "lost":
            self.lost = f"an earlier call {value}"
        elif self.left <= 0:
            self.lost = f"{IN_ALL:g} seconds were over"
        if kind == "answer":
            return value
        raise Unusable(value)

    def _reply(self, seconds: float) -> tuple[str, Any]:
        try:
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            return "lost", f"took longer than {A_CALL:g} seconds"
        except (EOFError, OSError):
            return "lost", "ended its process"

    def _run_here(self, why: str) -> None:
        self.pickled = b""
        self.notes.append(
            f"The function {why}, so it ran in this process, without a time limit."
        )


def _serve(pipe: Connection, pickled: bytes) -> None:
    function = pickle.loads(pickled)
    pipe.send(("ready", ""))
    while True:
        rewards = pipe.recv()
        try:
            reply = ("answer", _answer(function, rewards))
            pickle.dumps(reply)
        except Unusable as error:
            reply = ("raised", str(error))
        except BaseException as error:
            reply = ("raised", f"{type(error).__name__}: {error}")
        pipe.send(reply)


def _answer(function: Any, rewards: Any) -> Any:
    """What it returns for a copy, in plain lists where it gives arrays."""
    argument, process = copy.deepcopy(rewards), os.getpid()
    with redirect_stdout(sys.stderr):  # standard output is the probe's
        answer = function(argument)
    if os.getpid() != process:  # the function forked, and this is the copy
        os._exit(0)
    if argument != rewards:
        raise Unusable("changed its argument")
    if hasattr(answer, "tolist"):
        return answer.tolist()
    if isinstance(answer, (list, tuple)):
        return [g.tolist() if hasattr(g, "tolist") else g for g in answer]
    return answer
