"""A process that trains: `python -m gradebook.training`.

It reads one request a line and writes one answer a line, both JSON, until its
input ends. It imports neither the app nor Streamlit.

In:   {"run": {...}, "seed": 0, "update": 0}   train the run
      {"run": {...}, "seed": 2, "update": 37}  sample the batch of an update
Out:  {"updates": [...], "values": {...}}      the curves
      {"rows": [...]}                          the rows of the batch
      {"error": "..."}                         why there is no answer

`python -m gradebook.training precompute` writes the curves that are shipped instead.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch

from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.training.shipped import precompute
from gradebook.training.study import Run
from gradebook.training.train import Training, trained

NICENESS = 19
"""Pages go before training, which takes the time that nobody else wants."""


def batch_at(chosen: Run, seed: int, update: int) -> Batch:
    """The batch of one seed that the faulty engine trains on in this
    update, counted from 1. Raises GradebookError where its policy has
    diverged, since it samples nothing then."""
    training = Training(chosen, [seed])
    for _ in range(update - 1):
        training.advance()
    policy = (training.own + training.shared).detach().log_softmax(-1)
    batch = training.batches(policy, next(training.luck))[1][0]
    if not batch.rows:
        raise GradebookError(
            "This seed's policy is not a number any more, so it samples no"
            " rollouts. Choose an earlier update or another seed"
        )
    return batch


def rows_of(batch: Batch) -> list[dict[str, Any]]:
    """The rows as a scenario file has them; only columns that say more than
    their default. Prompts are named A, B, .. by their place in the task, so
    that a prompt has one name in all updates."""
    columns: dict[str, list[Any]] = {
        "prompt": [chr(ord("A") + p) for p in batch.prompt.tolist()],
        "reward": [round(r, 9) for r in batch.reward.tolist()],
        "mask": batch.mask.long().tolist(),
    }
    if not bool(batch.eos.all()):
        columns["eos"] = batch.eos.tolist()
    if batch.settings.loss == "grpo" and not bool((batch.steps == 1).all()):
        columns["steps"] = batch.steps.tolist()
        columns["kept_steps"] = batch.kept_steps.tolist()
    if not bool(batch.scored.all()):
        columns["scored"] = batch.scored.tolist()
    if bool((batch.rollout[1:] == batch.rollout[:-1]).any()):
        columns["rollout"] = [f"r{rollout}" for rollout in batch.rollout.tolist()]
    if batch.settings.beta:
        for name in ("logp", "ref_logp"):
            values = getattr(batch, name).tolist()
            columns[name] = [[round(v, 6) for v in row] for row in values]
    names = list(columns)
    return [dict(zip(names, cells)) for cells in zip(*columns.values())]


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
