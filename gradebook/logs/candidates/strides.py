"""Strides: rules that make a configured group size from a step's groups."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.logged_steps import LoggedSteps

MORE = {"largest": 0, "one more": 1, "two more": 2, "one less": -1}


def made_by(steps: LoggedSteps, rules: Mapping[str, str]) -> dict[str, Tensor]:
    """Setting -> its value for each step, int64 [S]."""
    return {name: group_size(steps, rule) for name, rule in rules.items()}


def group_size(steps: LoggedSteps, rule: str) -> Tensor:
    """The rows per prompt that a step's groups suggest. int64 [S]."""
    b = steps.batch
    largest = torch.zeros_like(b.step_rows).scatter_reduce(
        0, b.step_index, b.prompt_rows, "amax"
    )
    if rule == "power of two":
        above = (largest - 1).clamp(min=1).double().log2().floor()
        return 2 ** (above.long() + 1)
    if rule == "commonest":
        return _commonest(steps)
    if rule == "smallest":
        return largest.scatter_reduce(0, b.step_index, b.prompt_rows, "amin")
    if rule == "twice":
        return 2 * largest
    return (largest + MORE[rule]).clamp(min=1)


def _commonest(steps: LoggedSteps) -> Tensor:
    counts = (
        pd.DataFrame({"step": steps.groups.step, "size": steps.groups.size})
        .value_counts(["step", "size"])
        .reset_index()
        .sort_values(["step", "count", "size"], ascending=[True, False, False])
    )
    best = counts.drop_duplicates("step")["size"].to_numpy()
    return torch.from_numpy(best.astype("int64"))
