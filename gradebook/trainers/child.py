"""Runs a stranger's function in a process of its own, with time limits."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

A_CALL, IN_ALL = 5.0, 60.0
"""Seconds that a call, and that all calls, may take."""

STARTING = 60.0
"""Seconds that the process may take to import what the function needs."""


MOST_LOST = 3
"""So many times the process is started again."""


class Unusable(Exception):
    """What a function did that is no answer."""


class Child:
    """The function in another process, or in this one where it cannot be
    pickled: `notes` says so."""

    def __init__(self, function: Callable[[Any], Any] | None) -> None:
        self.function = function
        self.process: BaseProcess | None = None
        self.notes: list[str] = []
        self.left, self.lost = IN_ALL, 0
        try:
            self.sent: bytes | None = pickle.dumps(function)
        except Exception:
            self.sent = None
            self.notes.append(
                "The function cannot be pickled, so it ran in this process,"
                " without a time limit."
            )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def __call__(self, rewards: Any) -> Any:
        """The function's answer. Raises Unusable, or what it raised."""
        if self.sent is None:
            return _answer(self.function, rewards)
        if self.left <= 0:
            raise Unusable(f"not called: {IN_ALL:g} seconds were over")
        if self.lost == MOST_LOST:
            raise Unusable(f"not called: its process was lost {MOST_LOST} times")
        if self.process is None and not self._start():
            return self(rewards)
        begun = time.monotonic()
        self.pipe.send(rewards)
        try:
            over = not self.pipe.poll(min(A_CALL, self.left))
            kind, value = ("late", None) if over else self.pipe.recv()
        except (EOFError, OSError):
            kind, value = "ended", None
        self.left -= time.monotonic() - begun
        if kind == "answer":
            return value
        if kind != "raised":
            self.lost += 1
            self._stop()
        raise Unusable(
            {
                "late": f"took longer than {A_CALL:g} seconds",
                "ended": "ended its process",
            }.get(kind, value)
        )

    def _start(self) -> bool:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(
            target=_serve, args=(theirs, self.sent), daemon=True
        )
        self.process.start()
        theirs.close()
        try:
            if not self.pipe.poll(STARTING):
                self._stop()
                self.left = 0.0
                raise Unusable(f"not called: no process in {STARTING:g} seconds")
            if self.pipe.recv() == "ready":
                return True
        except (EOFError, OSError):
            pass
        self._stop()
        self.sent = None
        self.notes.append(
            "The function cannot be loaded in another process, so it ran in this"
            " one, without a time limit."
        )
        return False

    def _stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _serve(pipe: Connection, sent: bytes) -> None:
    function = pickle.loads(sent)
    pipe.send("ready")
    while True:
        rewards = pipe.recv()
        try:
            reply = ("answer", _answer(function, rewards))
            pickle.dumps(reply)
        except BaseException as error:
            text = str(error)
            named = (
                text
                if isinstance(error, Unusable)
                else f"{type(error).__name__}: {text}"
            )
            reply = ("raised", named)
        pipe.send(reply)


def _answer(function: Any, rewards: Any) -> Any:
    """What it returns for a copy, in plain lists where it gives arrays."""
    own = copy.deepcopy(rewards)
    found = function(own)
    if own != rewards:
        raise Unusable("changed its argument")
    if hasattr(found, "tolist"):
        return found.tolist()
    if isinstance(found, (list, tuple)):
        return [one.tolist() if hasattr(one, "tolist") else one for one in found]
    return found
