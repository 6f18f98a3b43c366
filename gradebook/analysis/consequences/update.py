"""One update's batch as the rows of a case, to open on the bug's page."""

from __future__ import annotations

from typing import Any

from gradebook.core.batch import Batch


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
        columns["rollout"] = [f"r{one}" for one in batch.rollout.tolist()]
    if batch.settings.beta:
        for name in ("logp", "ref_logp"):
            values = getattr(batch, name).tolist()
            columns[name] = [[round(v, 6) for v in row] for row in values]
    names = list(columns)
    return [dict(zip(names, cells)) for cells in zip(*columns.values())]
