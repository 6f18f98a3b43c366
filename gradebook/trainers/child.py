"""Runs a stranger's function in a process of its own, with time limits."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

A_CALL = 5.0
"""Seconds that a call may take."""

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
        self.lost = ""

    def __enter__(self) -> Child:
        if getattr(self.function, "__module__", "") == "__mp_main__":
            # A child imports a script that probes without `__name__ == "__main__"`.
            sys.exit()
        try:
            pickled = pickle.dumps(self.function)
        except Exception:
            return self._here("cannot be pickled")
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(theirs, pickled), daemon=True)
        self.process.start()
        theirs.close()
        try:
            if self.pipe.poll(STARTING):
                self.pipe.recv()
            else:
                self.lost = f"no process in {STARTING:g} seconds"
        except (EOFError, OSError):
            self.__exit__()
            return self._here("cannot be loaded in another process")
        return self

    def _here(self, why: str) -> Child:
        self.process = None
        self.notes.append(
            f"The function {why}, so it ran in this process, without a time limit."
        )
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
        if self.process is None:
            return _answer(self.function, rewards)
        try:
            self.pipe.send(rewards)
            if self.pipe.poll(A_CALL):
                value, trouble = self.pipe.recv()
                if trouble:
                    raise Unusable(trouble)
                return value
            what = f"took longer than {A_CALL:g} seconds"
        except (EOFError, OSError):
            what = "ended its process"
        self.lost = f"an earlier call {what}"
        raise Unusable(what)


def _serve(pipe: Connection, pickled: bytes) -> None:
    function = pickle.loads(pickled)
    pipe.send("ready")
    while True:
        rewards = pipe.recv()
        try:
            reply = _answer(function, rewards), ""
            pickle.dumps(reply)
        except Unusable as error:
            reply = None, str(error)
        except BaseException as error:
            reply = None, f"{type(error).__name__}: {error}"
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
