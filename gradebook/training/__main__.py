"""A process that trains: `python -m gradebook.training`.

It reads one request a line and writes one answer a line, both JSON, until its
input ends. It imports neither the app nor Streamlit.

In:   {"run": {...}, "seed": 0, "update": 0}   train the run
      {"run": {...}, "seed": 2, "update": 37}  sample the batch of an update
Out:  {"updates": [...], "values": {...}}      the curves
      {"rows": [...]}                          the rows of the batch
      {"error": "..."}                         why there is no answer

`python -m gradebook.training precompute` writes shipped.json instead: the
curves of each bug at the settings that its page begins with.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch

from gradebook.core.errors import GradebookError
from gradebook.training.one_update import batch_at, rows_of
from gradebook.training.shipped import precompute
from gradebook.training.study import Run
from gradebook.training.train import trained

NICENESS = 19
"""Pages go before training, which takes the time that nobody else wants."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request."""
    run = Run(**request["run"])
    try:
        if request["update"]:
            batch = batch_at(run, request["seed"], request["update"])
            return {"rows": rows_of(batch)}
        return vars(trained(run))
    except GradebookError as error:
        return {"error": str(error)}


def main() -> None:
    """Answers requests, or writes the shipped curves."""
    torch.set_num_threads(1)
    if sys.argv[1:] == ["precompute"]:
        precompute()
        return
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
