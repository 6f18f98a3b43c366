"""Runs a stranger's function in a process of its own, with time limits."""

import copy
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from multiprocessing import get_context
from typing import Any

A_CALL, STARTING = 5.0, 60.0
"""Seconds for a call, and for importing what the function needs."""
HERE = (
    "The function cannot be loaded in another process, so it ran in this one,"
    " without a time limit."
)


class Unusable(Exception):
    """What a function did that is no answer."""


@contextmanager
def apart(function: Any) -> Iterator[tuple[Callable[[Any], Any], tuple[str, ...]]]:
    """The function as it answers from another process, or from this one where it
    cannot be loaded there, with notes that say so. It raises Unusable, and is not
    called again once its process is lost."""
    if getattr(function, "__module__", "") == "__mp_main__":
        # A child imports a script that probes without `__name__ == "__main__"`.
        sys.exit()
    lost, process = "", 0
    pool = ProcessPoolExecutor(1, get_context("spawn"))

    def call(rewards: Any) -> Any:
        nonlocal lost
        if lost:
            raise Unusable(f"not called: {lost}")
        try:
            return pool.submit(_answer, function, rewards).result(A_CALL)
        except TimeoutError:
            trouble = f"took longer than {A_CALL:g} seconds"
        except BrokenProcessPool:
            trouble = "ended its process"
        lost = f"an earlier call {trouble}"
        raise Unusable(trouble)

    try:
        try:
            pickled = pickle.dumps(function)
            process = pool.submit(os.getpid).result(STARTING)
            # Imports what the function needs, before a call is timed.
            pool.submit(pickle.loads, pickled).result(STARTING)
        except TimeoutError:
            lost = f"no process in {STARTING:g} seconds"
        except Exception:
            yield partial(_answer, function), (HERE,)
            return
        yield call, ()
    finally:
        if process:  # which may be in the middle of a call
            with suppress(ProcessLookupError):
                os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        pool.shutdown(wait=bool(process))


def _answer(function: Any, rewards: Any) -> Any:
    """What it returns for a copy, in plain lists where it gives arrays."""
    argument, process = copy.deepcopy(rewards), os.getpid()
    try:
        with redirect_stdout(sys.stderr):  # standard output is the probe's
            answer = function(argument)
    except (Exception, SystemExit) as error:
        raise Unusable(f"{type(error).__name__}: {error}") from None
    if os.getpid() != process:  # the function forked, and this is the copy
        os._exit(0)
    if argument != rewards:
        raise Unusable("changed its argument")
    groups = answer if isinstance(answer, (list, tuple)) else [answer]
    plain = [g.tolist() if hasattr(g, "tolist") else g for g in groups]
    return plain if groups is answer else plain[0]
