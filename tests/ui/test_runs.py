"""The processes that train: shared, in turn, stopped, and apart from the
app."""

import threading

import pytest

from gradebook.training.study import Run
from gradebook.training.train import frames
from gradebook.ui.runs import pool as pools
from gradebook.ui.runs.pool import DONE, ENDED, RUNNING, WAITING, Pool, Task


def task_of(lost):
    """A run that is longer than a test, on a busy machine too."""
    return Task(Run("partial_groups", lost, "adam", 32))


FIRST, SECOND, THIRD = map(task_of, (0.0, 0.5, 1.0))


@pytest.fixture(scope="module")
def monkeymodule():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def changed(monkeymodule):
    """Set with every message that a worker sends."""
    event = threading.Event()
    heard = Pool._heard

    def hear(self, worker, message):
        heard(self, worker, message)
        event.set()

    monkeymodule.setattr(Pool, "_heard", hear)
    return event


@pytest.fixture(scope="module")
def pool(changed, monkeymodule):
    """One worker, and watchers who stay until they leave."""
    monkeymodule.setattr(pools, "UNWATCHED", 1e9)
    made = Pool(size=1)
    yield made
    made.close()


def until(changed, holds):
    """Waits for messages until something holds."""
    for _ in range(1000):
        if holds():
            return
        changed.clear()
        changed.wait(0.5)
    raise AssertionError("it never holds")


def test_equal_runs_are_one_job_and_give_the_run_s_own_numbers(changed, pool):
    job = pool.watch(FIRST, "a")
    assert pool.watch(Task(Run("partial_groups", 0.0, "adam", 32)), "b") is job
    until(changed, lambda: len(job.frames) >= 3)
    pool.leave(FIRST, "a")
    assert job.state == RUNNING
    pool.leave(FIRST, "b")
    assert job.state == ENDED
    own = frames(FIRST.run)
    for got in job.frames[:3]:
        frame = next(own)
        assert got["update"] == frame.update
        assert got["values"] == frame.values


def test_runs_start_in_turn_and_each_is_told_its_place(changed, pool):
    jobs = [pool.watch(task, "a") for task in (FIRST, SECOND, THIRD)]
    until(changed, lambda: jobs[0].state == RUNNING)
    assert [pool.place(job) for job in jobs] == [0, 1, 2]
    pool.leave(SECOND, "a")
    assert jobs[1].state == ENDED
    assert [pool.place(job) for job in (jobs[0], jobs[2])] == [0, 1]
    pool.leave(FIRST, "a")
    until(changed, lambda: jobs[2].state == RUNNING)
    pool.leave(THIRD, "a")


def test_a_run_that_nobody_watches_any_more_ends(changed, pool, monkeypatch):
    task = task_of(2.0)
    job = pool.watch(task, "a")
    until(changed, lambda: len(job.frames) >= 2)
    monkeypatch.setattr(pools, "UNWATCHED", 0.0)
    until(changed, lambda: job.state == ENDED)
    assert len(job.frames) < 41
    monkeypatch.setattr(pools, "UNWATCHED", 1e9)
    again = pool.watch(task, "a")
    assert again is not job
    assert again.state in (WAITING, RUNNING)
    pool.leave(task, "a")


def test_an_update_s_batch_comes_as_rows(changed, pool):
    task = Task(FIRST.run, seed=1, update=2)
    job = pool.watch(task, "a")
    until(changed, lambda: job.state == DONE)
    assert len(job.rows) == 64
    assert {row["prompt"] for row in job.rows} == set("ABCDEFGH")
    assert {row["reward"] for row in job.rows} <= {0.0, 1.0}


@pytest.mark.long
def test_a_process_that_dies_is_told_and_replaced(changed, pool):
    job = pool.watch(task_of(3.0), "a")
    until(changed, lambda: len(job.frames) >= 2)
    pool.workers[0].process.kill()
    until(changed, lambda: job.state == DONE)
    assert "ended" in job.error
    later = pool.watch(task_of(4.0), "a")
    until(changed, lambda: len(later.frames) >= 1)
