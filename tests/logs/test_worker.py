"""Strangers' files are checked in a process of their own, which ends at its limits."""

import os
import threading
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from logs import hostile

from gradebook.core.errors import GradebookError
from gradebook.logs import worker
from gradebook.logs.explore import step_rows
from gradebook.logs.log import check_log
from gradebook.logs.read.files import LogFile
from gradebook.logs.read.rows import pasted
from gradebook.logs.worker import TOO_BIG, TOO_LONG, Checks

LOG = "step,prompt,reward,advantage\n" + "".join(
    f"{step},a,{reward},{reward - 2}\n" for step in (1, 2, 3) for reward in (1, 2, 3)
)


@pytest.fixture(scope="module")
def checks():
    checks = Checks()
    yield checks
    checks.close()


def verdict(checks, source, **options):
    return checks.ask([source], options).future.result(300)


def held(process):
    """Bytes that the process holds."""
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_the_verdict_comes_back_as_a_value_and_the_files_stay_behind(checks):
    source = pasted(LOG)
    here, there = check_log([source]), verdict(checks, source)
    assert there.to_json() == here.to_json()
    assert there.frame.equals(here.frame)
    assert [file.data for file in there.log.sources] == [b""]
    rows = step_rows(there, 2)
    assert rows.correct.tolist() == pytest.approx([-1, 0, 1])  # less their mean


def test_an_error_comes_back_with_its_place(checks):
    with pytest.raises(GradebookError, match="expected a column of rewards"):
        verdict(checks, pasted("x,y\n1,2\n"))
    assert verdict(checks, pasted(LOG)).verdict == "correct"


def eats(monkeypatch, code, **limits):
    """The process of the next checks runs this before each check, with such limits."""
    program = (
        "from gradebook.logs import log, worker\n"
        + "".join(f"worker.{name} = {value}\n" for name, value in limits.items())
        + "check = log.check_log\n"
        "def eats(files, **options):\n"
        "    if files[0].name == 'hungry.csv':\n"
        f"        {code}\n"
        "    return check(files, **options)\n"
        "log.check_log = eats\n"
        "worker.serve()\n"
    )
    monkeypatch.setattr(worker, "COMMAND", (worker.sys.executable, "-c", program))


HUNGRY = LogFile("hungry.csv", data=LOG.encode())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    "code",
    [
        "x = [bytes(2**20) for _ in range(10**6)]",
        pytest.param(
            "import numpy; x = [numpy.ones(2**20) for _ in range(10**6)]",
            marks=pytest.mark.long,
        ),
        "import torch; x = [torch.ones(2**20) for _ in range(10**6)]",
        pytest.param(
            "import pyarrow as pa; x = [pa.array([1.5]*2**18) for _ in range(10**6)]",
            marks=pytest.mark.long,
        ),
    ],
    ids=["Python", "numpy", "torch", "Arrow"],
)
def test_a_check_that_takes_too_much_memory_ends_and_gives_it_back(code, monkeypatch):
    most = 512 * worker.MB
    eats(monkeypatch, code, MEMORY=most)
    checks = Checks()
    try:
        assert verdict(checks, pasted(LOG)).verdict == "correct"
        idle = held(checks._process)
        peak, over = [0], threading.Event()

        def look():
            while not over.wait(0.01):
                process = checks._process
                if process is not None and process.poll() is None:
                    peak[0] = max(peak[0], held(process))

        looking = threading.Thread(target=look)
        looking.start()
        with pytest.raises(GradebookError) as raised:
            verdict(checks, HUNGRY)
        over.set()
        looking.join()
        assert str(raised.value) == TOO_BIG
        # What the idle process had reserved and not used comes on top.
        assert peak[0] < idle + 2 * most
        assert verdict(checks, pasted(LOG)).verdict == "correct"
        assert held(checks._process) < idle + worker.SPARE
    finally:
        checks.close()


def test_a_check_that_computes_too_long_ends(monkeypatch):
    eats(monkeypatch, "while True: pass", SECONDS=5)
    checks = Checks()
    try:
        with pytest.raises(GradebookError) as raised:
            verdict(checks, HUNGRY)
        assert str(raised.value) == TOO_LONG
        assert verdict(checks, pasted(LOG)).verdict == "correct"
    finally:
        checks.close()


def test_checks_wait_in_a_queue_and_can_be_cancelled_in_it_and_while_they_run(
    monkeypatch,
):
    eats(monkeypatch, "while True: pass")
    checks = Checks()
    try:
        runs, waits, last = (
            checks.ask([source], {}) for source in (HUNGRY, HUNGRY, pasted(LOG))
        )
        assert [checks.place(check) for check in (runs, waits, last)] == [0, 1, 2]
        checks.cancel(waits)
        assert checks.place(last) == 1
        with pytest.raises(CancelledError):
            waits.future.result(0)
        checks.cancel(runs)
        with pytest.raises(GradebookError, match="The check was cancelled"):
            runs.future.result(60)
        assert last.future.result(300).verdict == "correct"
        assert checks.place(last) == 0 and last.is_done(0)
    finally:
        checks.close()


def test_too_many_checks_in_the_queue_are_refused(monkeypatch):
    eats(monkeypatch, "while True: pass")
    monkeypatch.setattr(worker, "WAITING", 1)
    checks = Checks()
    try:
        asked = [checks.ask([HUNGRY], {}) for _ in range(2)]
        with pytest.raises(GradebookError, match="waiting already"):
            checks.ask([HUNGRY], {})
        for check in reversed(asked):
            checks.cancel(check)
    finally:
        checks.close()


def test_no_process_is_started_after_the_end():
    # A thread that is slow to begin its check asks for the process after `close`.
    checks = Checks()
    checks.close()
    checks.warm()
    assert checks._process is None


def test_a_hostile_file_ends_in_the_process_and_not_in_the_server(checks):
    with pytest.raises(GradebookError, match="compressed buffers"):
        verdict(checks, hostile.compressed_recording(10**6))
    assert verdict(checks, pasted(LOG)).verdict == "correct"
