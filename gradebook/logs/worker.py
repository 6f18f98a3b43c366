"""Checks of strangers' files: one at a time, in a process beside the server, with
limits of memory and of computing.

`python -m gradebook.logs.worker` is that process. It waits with everything imported.
One that reaches a limit ends, and so does one that holds much memory after a check; the
next one starts at once.
"""

import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradebook.core import PACKAGE
from gradebook.core.errors import GradebookError
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.read.files import LogFile

MB = 2**20
MEMORY = 2048 * MB
"""Bytes of address space that a check may take over what its process has before.
Measured with torch 2.13.0 on Linux: numpy, Arrow, torch and Python itself all fail at
such a limit with an error. A check adds at most six tables to the one that it reads
(`tests/bench/check.py memory`), so the largest table has about 300 MB."""
SECONDS = 120
"""Seconds of CPU time for one check. One check runs at a time, so this is also the
longest that a log can hold up the next one. 100,000 rows took 2.6 s (2026-11-29)."""
ANSWER = 256 * MB
"""Bytes of a verdict at most, with the steps that a page opens: the server holds one
for each page. That of 100,000 rows has 9 MB."""
SPARE = 128 * MB
"""Bytes that the process may hold more than an idle one, of 325 MB, after a check: a
new process has to import everything again. A check of 100,000 rows left 84 MB."""
WAITING = 100
"""Checks that may wait. One of 3,000 rows takes half a second, so the last of them
waits for about a minute."""
COMMAND = (sys.executable, "-m", "gradebook.logs.worker")
"""Ends when its input does, so it does not outlive its server."""
# Arrow's own allocator reserves a gigabyte, which the limit would count as taken.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}

TOO_BIG = (
    f"This log needs more than {MEMORY // MB:,} MB of memory to check. Check a part of"
    " it here, or all of it on your own machine: python -m gradebook check"
)
TOO_LONG = (
    f"The check took more than {SECONDS} s of computing, and was ended. Check a part of"
    " the log here, or all of it on your own machine: python -m gradebook check"
)
FAILED = "The check ended without a verdict. The server's log says why"
CANCELLED = "The check was cancelled"


# In the server


class Check:
    """A check that was asked for."""

    def __init__(self, files: Sequence[LogFile], options: Mapping[str, Any]) -> None:
        self.files, self.options = files, options
        self.progress = 0.0, 0
        """The share of the files that is read, and the steps that are judged."""
        self.is_cancelled = False
        self.future: Future[Verdict] = Future()

    def is_done(self, seconds: float) -> bool:
        """It is done, now or within so many seconds."""
        return bool(wait([self.future], seconds).done)


class Checks:
    """The checks of a server, and the process that runs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "checks")
        self._process: subprocess.Popen[bytes] | None = None
        self._queue: list[Check] = []
        self._is_closed = False

    def warm(self) -> None:
        """Starts the process, so that the first check need not wait for imports."""
        with self._lock:
            if self._process is None and not self._is_closed:
                self._process = _started()

    def ask(self, files: Sequence[LogFile], options: Mapping[str, Any]) -> Check:
        """Begins a check of these files, or puts it into the queue. Raises
        GradebookError if too many wait already."""
        check = Check(files, options)
        with self._lock:
            if len(self._queue) > WAITING:
                message = f"{WAITING} checks are waiting already. Try again in a minute"
                raise GradebookError(message)
            self._queue.append(check)
            check.future = self._thread.submit(self._answer, check)
        return check

    def place(self, check: Check) -> int:
        """The number of checks that come before this one; 0 if it runs or is done."""
        with self._lock:
            return self._queue.index(check) if check in self._queue else 0

    def cancel(self, check: Check) -> None:
        """Ends the check, wherever it is. One that is done stays as it is."""
        with self._lock:
            if check not in self._queue:
                return
            check.is_cancelled = True
            if check.future.cancel():
                self._queue.remove(check)
            elif self._queue[0] is check and self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Ends the process; what waits is cancelled, and none is started any more."""
        with self._lock:
            self._is_closed = True
            process = self._process
            if process is not None:
                process.kill()
        self._thread.shutdown(cancel_futures=True)
        if process is not None:
            process.communicate()

    def _answer(self, check: Check) -> Verdict:
        self.warm()
        process = self._process
        if process is None:  # closed before the first check began
            raise GradebookError(CANCELLED)
        try:
            return self._told(check, process)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise GradebookError(_why(check, _ended(process))) from None
        finally:
            with self._lock:
                self._queue.remove(check)
                if process.poll() is not None and not self._is_closed:
                    self._process = _started()

    def _told(self, check: Check, process: subprocess.Popen[bytes]) -> Verdict:
        assert process.stdin and process.stdout  # both are pipes
        if check.is_cancelled:
            raise GradebookError(CANCELLED)
        pickle.dump((check.files, check.options), process.stdin)
        process.stdin.flush()
        while True:
            kind, value, *ends = pickle.load(process.stdout)
            if kind == "progress":
                check.progress = value
                continue
            if any(ends):
                _ended(process)
            if kind == "error":
                raise value
            verdict: Verdict = pickle.loads(value)
            return verdict


def _started() -> subprocess.Popen[bytes]:
    pipe, environment = subprocess.PIPE, os.environ | ENVIRONMENT
    return subprocess.Popen(
        COMMAND, stdin=pipe, stdout=pipe, cwd=PACKAGE.parent, env=environment
    )


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Its exit code; minus the signal that ended it."""
    with suppress(OSError):
        process.communicate()
    return process.wait()


def _why(check: Check, code: int) -> str:
    """The reason why there is no verdict, in a sentence."""
    import signal

    if check.is_cancelled:
        return CANCELLED
    if code == -getattr(signal, "SIGXCPU", 0):
        return TOO_LONG
    # An allocator that knows no error ends the process.
    return TOO_BIG if code < 0 else FAILED


# In the process


class Lean(pickle.Pickler):
    """Pickles a verdict without the bytes of the files that it was made of."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, LogFile) and value.data is not None:
            return LogFile, (value.name, value.path, b"")
        return NotImplemented


def serve() -> None:
    """Answers pickled files and options with a verdict or an error, until the input
    ends, or one check took much memory."""
    import torch

    from gradebook.logs.log import check_log
    from gradebook.logs.read.rows import pasted

    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(10)  # pages go before checks

    def tell(*message: Any) -> None:
        pickle.dump(message, answers)
        answers.flush()

    check_log([pasted("step,prompt,reward,advantage\n1,a,0,-1\n1,a,2,1\n")])
    idle, _ = _memory()

    def answer(files: Sequence[LogFile], options: Mapping[str, Any]) -> tuple[str, Any]:
        def progress(*done: Any) -> None:
            tell("progress", done)

        try:
            return "verdict", _pickled(check_log(files, progress=progress, **options))
        except GradebookError as error:
            return "error", error
        except (MemoryError, RuntimeError) as error:  # torch raises the latter
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            return "error", GradebookError(TOO_BIG)

    holds = 0
    while holds <= idle + SPARE:
        try:
            asked = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _limit()
        kind, value = answer(*asked)
        del asked
        holds = _memory()[0]
        tell(kind, value, holds > idle + SPARE)
        del value


def _pickled(verdict: Verdict) -> bytes:
    """Raises GradebookError for a verdict of too many steps and rows."""
    file = io.BytesIO()
    Lean(file, pickle.HIGHEST_PROTOCOL).dump(verdict)
    if file.tell() > ANSWER:
        raise GradebookError(TOO_BIG)
    return file.getvalue()


def _memory() -> tuple[int, int]:
    """Bytes that this process holds, and of its address space; 0 if the system does
    not say."""
    with suppress(OSError):
        sizes = Path("/proc/self/statm").read_text().split()
        page = os.sysconf("SC_PAGE_SIZE")
        return int(sizes[1]) * page, int(sizes[0]) * page
    return 0, 0


def _limit() -> None:
    """Limits what the next check may take, if the system knows limits."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        def at_most(kind: int, value: int) -> None:
            resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))

        at_most(resource.RLIMIT_CORE, 0)
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        at_most(resource.RLIMIT_CPU, int(used) + SECONDS)
        if space := _memory()[1]:
            at_most(resource.RLIMIT_AS, space + MEMORY)


if __name__ == "__main__":
    serve()
