"""Training runs, shared by all learners, in processes beside the server.

A job is a run, or one batch of a run. Equal jobs are one job. It is trained
while somebody watches it. A watcher says so again with every drawing; one
that has not for UNWATCHED seconds has gone, and a job without watchers ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradebook.core.project import PACKAGE
from gradebook.training.study import Run

COMMAND = (sys.executable, "-m", "gradebook.training")
UNWATCHED = 5.0
"""Seconds after which a silent watcher has gone."""
KEPT = 200
"""Jobs that are done and kept."""

WAITING, RUNNING, DONE, ENDED = "waiting", "running", "done", "ended"
"""A job's states; ENDED before it was done, because nobody watched."""


@dataclass(frozen=True)
class Task:
    """A run, or with an update the batch of this update for one seed."""

    run: Run
    seed: int = 0
    update: int = 0

    @property
    def message(self) -> dict[str, Any]:
        """What a worker is asked."""
        if not self.update:
            return {"run": vars(self.run)}
        return {**vars(self), "run": vars(self.run)}


@dataclass(eq=False)
class Job:
    """A task on its way. `frames` only grows; it may be read at any time."""

    task: Task
    number: int
    watchers: dict[str, float] = field(default_factory=dict)
    state: str = WAITING
    frames: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""


class Worker:
    """A process that trains one job at a time."""

    def __init__(self, heard: Callable[[Worker, dict[str, Any]], None]):
        paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        self.job: Job | None = None
        self.ready = False
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ
            | {
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
        )
        assert self.process.stdin and self.process.stdout  # both are pipes
        self._ears, self._mouth = self.process.stdin, self.process.stdout
        self._heard = heard
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def tell(self, message: dict[str, Any]) -> None:
        """Sends a message; a process that has ended does not hear it."""
        try:
            self._ears.write(json.dumps(message) + "\n")
            self._ears.flush()
        except (BrokenPipeError, ValueError):
            pass

    def end(self) -> None:
        """Ends the process, which ends where its input does."""
        self._ears.close()
        self._listener.join()

    def _listen(self) -> None:
        with self.process:
            for line in self._mouth:
                self._heard(self, json.loads(line))
        self._heard(self, {"gone": True})


class Pool:
    """The workers of this server and the jobs of all its learners."""

    def __init__(self, size: int | None = None) -> None:
        self._lock = threading.RLock()
        self._jobs: dict[Task, Job] = {}
        self._waiting: list[Job] = []
        self._count = 0
        size = max(1, (os.cpu_count() or 1) - 1) if size is None else size
        self.workers = [Worker(self._heard) for _ in range(size)]

    def watch(self, task: Task, who: str) -> Job:
        """The job of this task, which `who` wants to go on; a new one where
        there is none, or where it has ended."""
        with self._lock:
            job = self._jobs.get(task)
            if job is None or job.state == ENDED:
                self._count += 1
                job = Job(task, self._count)
                self._jobs[task] = job
                self._waiting.append(job)
                self._forget()
            job.watchers[who] = time.monotonic()
            self._hand_out()
            return job

    def leave(self, task: Task, who: str) -> None:
        """`who` wants the task no longer."""
        with self._lock:
            job = self._jobs.get(task)
            if job is not None:
                job.watchers.pop(who, None)
                self._end_unwatched(job)
            self._hand_out()

    def place(self, job: Job) -> int:
        """How many jobs are before this one; 0 where it runs or is over."""
        with self._lock:
            if job.state != WAITING:
                return 0
            return self._waiting.index(job) + 1

    def close(self) -> None:
        """Ends the processes."""
        with self._lock:
            workers, self.workers = self.workers, []
        for worker in workers:
            worker.end()

    def _end_unwatched(self, job: Job) -> None:
        """Ends the job where nobody watches it."""
        if job.state in (DONE, ENDED) or _watched(job):
            return
        job.state = ENDED
        for worker in self.workers:
            if worker.job is job:
                worker.tell({"stop": job.number})

    def _hand_out(self) -> None:
        """Gives each free worker the next job that is still watched."""
        for job in self._waiting:
            self._end_unwatched(job)
        self._waiting = [j for j in self._waiting if j.state == WAITING]
        if not self.workers:
            for job in self._waiting:
                job.state, job.error = DONE, "no process can be started"
        for worker in self.workers:
            if worker.ready and worker.job is None and self._waiting:
                job = self._waiting.pop(0)
                job.state = RUNNING
                worker.job = job
                worker.tell({"id": job.number, **job.task.message})

    def _heard(self, worker: Worker, message: dict[str, Any]) -> None:
        with self._lock:
            if "ready" in message:
                worker.ready = True
            elif "gone" in message:
                self._replace(worker)
            elif worker.job is not None:
                self._took(worker, worker.job, message)
            self._hand_out()

    def _took(self, worker: Worker, job: Job, message: dict[str, Any]) -> None:
        """What a worker says of its job."""
        if "done" in message:
            worker.job = None
            if job.state == RUNNING:
                job.state = DONE
        elif "error" in message:
            job.error = message["error"]
        elif "rows" in message:
            job.rows = message["rows"]
        elif job.state == RUNNING:
            job.frames.append(message)
            self._end_unwatched(job)

    def _replace(self, worker: Worker) -> None:
        """A process ended by itself: its job fails. Another takes its
        place, unless it could not even start."""
        if worker not in self.workers:
            return
        if worker.job is not None:
            worker.job.error = "the process that trains it has ended"
            worker.job.state = DONE
        self.workers.remove(worker)
        if worker.ready:
            self.workers.append(Worker(self._heard))

    def _forget(self) -> None:
        """Drops the oldest jobs that are over."""
        over = [j for j in self._jobs.values() if j.state in (DONE, ENDED)]
        for job in over[:-KEPT]:
            del self._jobs[job.task]


def _watched(job: Job) -> bool:
    """Somebody wants the job."""
    since = time.monotonic() - UNWATCHED
    return any(seen > since for seen in job.watchers.values())
