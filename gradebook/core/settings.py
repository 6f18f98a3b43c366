"""Settings: the conventions of a trainer. ESTIMATORS: the named ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from gradebook.core.errors import refuse

CHOICES: Mapping[str, tuple[str | int, ...]] = {
    "baseline": (
        *("group_mean", "batch_mean", "leave_one_out"),
        *("length_weighted_mean", "second_best", "none"),
    ),
    "scale": ("group_std", "batch_std", "nonzero_share", "others_std", "none"),
    "spread_about": ("mean", "baseline"),
    "ddof": (1, 0),
    "lone_row": ("zero", "raw"),
    "whiten_ddof": (1, 0),
    "loss": ("dapo", "grpo", "bnpo", "dr_grpo"),
    "skip_flat": ("always", "training", "never"),
    "second_over": ("kept_steps", "steps", "rows", "none"),
}
"""The settings that take one of a few values, with those values."""


@dataclass(frozen=True)
class Settings(Mapping[str, Any]):
    """How a trainer turns rewards into advantages and a loss.

    The defaults are GRPO as TRL computes it: sample standard deviation
    (ddof 1), eps 1e-4 added to it. All statistics are taken within one
    training step: `batch_mean` and `batch_std` are of the row's step.

    whiten_ddof       what the variance of `whiten_tokens` takes from the
                      number of tokens: 1 (verl, slime) or 0 (SkyRL)
    prompts_per_step  the number of prompts that the trainer was configured
                      with; none: the step's own number
    micro_batch       rows of one forward pass, in batch order; none: all
                      rows of the step
    eos_by_width      a row as long as the padded width counts as one without
                      EOS, whatever its flag says
    evaluation        one generation a prompt, its first row, is evaluated
    skip_flat         when the loss leaves out groups without spread: always,
                      in training only, or never
    second_over       what a second normalization weighs a row by: its kept
                      transitions, all of them, 1; or "none" for no second one

    Behaves as a read-only mapping too, so `Settings(**settings)` is a copy.

    Raises GradebookError naming the setting when a value cannot be used.
    ESTIMATORS has the settings of verl's estimators by name.

    >>> Settings(scale="none").eps
    0.0001
    >>> ESTIMATORS["rloo"].baseline, ESTIMATORS["rloo"]["scale"]
    ('leave_one_out', 'none')
    """

    baseline: str = "group_mean"
    scale: str = "group_std"
    spread_about: str = "mean"
    ddof: int = 1
    lone_row: str = "zero"
    eps: float = 1e-4
    group_size: int | None = None
    min_group_size: int = 1
    prompts_per_step: int | None = None
    mask_no_eos: bool = False
    eos_by_width: bool = False
    reward_bias: float = 0.0
    reward_scaling: float = 1.0
    reward_clip: float | None = None
    whiten_tokens: bool = False
    whiten_ddof: int = 1
    beta: float = 0.0
    loss: str = "dapo"
    max_tokens: int | None = None
    accumulation: int = 1
    micro_batch: int | None = None
    evaluation: bool = False
    skip_flat: str = "always"
    second_over: str = "kept_steps"

    def __post_init__(self) -> None:
        for field in fields(self):
            check_setting(field.name, getattr(self, field.name))

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


TYPES = {field.name: str(field.type) for field in fields(Settings)}
FLAGS = tuple(n for n in TYPES if TYPES[n] == "bool")
AT_LEAST_ONE = tuple(n for n in TYPES if "int" in TYPES[n] and n not in CHOICES)
"""The settings that take a whole number from 1."""
MAY_BE_NONE = tuple(n for n in TYPES if TYPES[n].endswith("None"))


def check_setting(name: str, value: Any) -> None:
    """Raises GradebookError when `value` is not one `name` can take."""
    if value is None and name in MAY_BE_NONE:
        return
    number = isinstance(value, (int, float)) and type(value) is not bool
    number = number and abs(value) <= sys.float_info.max
    if name in CHOICES:
        fits = type(value) in (str, int) and value in CHOICES[name]
        expected = "one of " + ", ".join(map(str, CHOICES[name]))
    elif name in FLAGS:
        fits, expected = type(value) is bool, "true or false"
    elif name in AT_LEAST_ONE:
        fits = type(value) is int and 1 <= value < 2**31
        expected = "a whole number from 1"
    elif name in ("eps", "beta"):
        fits, expected = number and value >= 0, "a number of 0 or more"
    elif name == "reward_clip":
        fits, expected = number and value > 0, "a number above 0"
    else:
        fits, expected = number, "a finite number"
    if not fits:
        raise refuse(expected, value, name)


_VERL = Settings(eps=1e-6, lone_row="raw")
_UNSCALED = replace(_VERL, scale="none")

ESTIMATORS: Mapping[str, Settings] = {
    "grpo": _VERL,
    "grpo_vectorized": _VERL,
    "dr_grpo": _UNSCALED,
    "rloo": replace(_UNSCALED, baseline="leave_one_out"),
    "rloo_vectorized": replace(_UNSCALED, baseline="leave_one_out", lone_row="zero"),
    "opo": replace(_UNSCALED, baseline="length_weighted_mean"),
    "gpg": replace(_VERL, scale="nonzero_share"),
    "grpo_passk": replace(_VERL, baseline="second_best"),
    "reinforce_plus_plus_baseline": replace(_UNSCALED, whiten_tokens=True),
    "none": replace(_UNSCALED, baseline="none"),
}
"""Settings of each estimator under verl's key: ddof 1, eps 1e-6, and a lone
row keeps its raw score, except in rloo_vectorized (verl core_algos at
265c92487; the difference is reported in verl PR 7150)."""

OF_ESTIMATOR = (
    *("baseline", "scale", "spread_about", "ddof", "lone_row", "eps"),
    *("whiten_tokens", "whiten_ddof"),
)
"""The settings that a named estimator decides."""
