"""A process that trains: `python -m gradebook.training`.

It reads one JSON message a line and writes one a line. It asks for nothing
else, so it imports neither the app nor Streamlit.

In:   {"id": 3, "run": {...}}                  train, frame by frame
      {"id": 4, "run": {...},
       "seed": 2, "update": 37}                the batch of an update
      {"stop": 3}                              end the run with this id
Out:  {"ready": true}                          once, at the start
      {"id": 3, "update": 5, "values": {...}}  a frame
      {"id": 4, "rows": [...]}                 the rows of the batch
      {"id": 3, "error": "..."}                why it cannot go on
      {"id": 3, "done": true}                  always the last

The process ends when its input does: it does not outlive its server.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from queue import SimpleQueue
from typing import Any, TextIO

import torch

from gradebook.core.errors import GradebookError
from gradebook.training.study import Run, studied, study
from gradebook.training.train import (
    batch_at,
    frames,
    rows_of,
)

KINDNESS = 19
"""Added to the process's niceness: pages go before training, which takes
the time that nobody else wants."""


class Inbox:
    """Messages that came, read by a thread of their own, so that a run can
    be stopped while it trains."""

    def __init__(self, source: TextIO) -> None:
        self.wanted: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.stopped: set[int] = set()
        self._source = source
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._source:
            message = json.loads(line)
            if "stop" in message:
                self.stopped.add(message["stop"])
            else:
                self.wanted.put(message)
        os._exit(0)


def work(inbox: Inbox, target: TextIO) -> None:
    """Carries out what is wanted, one after the other, for ever."""

    def say(message: dict[str, Any]) -> None:
        target.write(json.dumps(message) + "\n")
        target.flush()

    say({"ready": True})
    while True:
        message = inbox.wanted.get()
        number, run = message["id"], Run(**message["run"])
        try:
            if "update" in message:
                batch = batch_at(run, message["seed"], message["update"])
                say({"id": number, "rows": rows_of(batch)})
            else:
                for frame in frames(run):
                    if number in inbox.stopped:
                        break
                    say({"id": number, **vars(frame)})
        except GradebookError as error:
            say({"id": number, "error": str(error)})
        say({"id": number, "done": True})


def main() -> None:
    """Warms up, then works."""
    torch.set_num_threads(1)
    for bug in studied()[:1]:
        made = frames(Run(bug, study(bug).slider.default, "adam", 8))
        next(made), next(made)
    gc.collect()
    gc.freeze()
    if hasattr(os, "nice"):
        os.nice(KINDNESS)
    work(Inbox(sys.stdin), sys.stdout)


if __name__ == "__main__":
    main()
