"""What was declared: settings that a trainer was asked for, as a question to
readings and as settings of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gradebook.core.errors import refuse
from gradebook.core.settings import (
    CHOICES,
    ESTIMATORS,
    OF_ESTIMATOR,
    Settings,
    check_setting,
)
from gradebook.logs.judging.reading import COMPUTATIONS, Reading

SHORT = {
    "group": "group_std",
    "batch": "batch_std",
    "true": "group_std",
    "false": "none",
}
"""How trainers' own keys name a scale."""

OF_ADVANTAGES = frozenset((*OF_ESTIMATOR, "mask_no_eos", "reward_clip"))
"""The settings that a reading can agree with or not."""

COUNTS = ("eos", "length", "scored", "rollout")
"""Columns that may decide which rows count: `counts=eos` declares that rows
without EOS do not, `counts=rollout` that each rollout counts once."""

REJECTS = ("accepted", "rejected")
"""Roles that make rows without tokens."""

ROLES = {
    "eos": ("eos", "truncated", "finish_reason"),
    "length": (*REJECTS, "mask", "length"),
}
"""The roles of a log's columns that one column of ours is made of."""

ALIASES = {
    "grpo_vectorized": "grpo",
    "reinforce_pp": "reinforce_plus_plus",
    "zscore": "batch_zscore",
    "raw": "none",
}


@dataclass(frozen=True)
class Asked:
    """What a person, a recorder or the page said about the run.

    declared    settings that were declared, by the engine's names
    counts      columns that were declared to decide which rows count
    trusted     columns whose meaning is known
    group_size  rows per prompt
    """

    declared: Mapping[str, Any] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()
    group_size: int | None = None

    @property
    def is_declared(self) -> bool:
        """Something that decides advantages was declared."""
        return not OF_ADVANTAGES.isdisjoint(self.declared)

    @property
    def by_engine(self) -> bool:
        """An engine computes what was declared."""
        names = ("baseline", "scale")
        return all(self.declared.get(n, "none") in CHOICES[n] for n in names)

    @property
    def reward_clip(self) -> float | None:
        """The clip of the rewards that was declared."""
        return self.declared.get("reward_clip")

    def wanted(self, r: Reading) -> bool:
        """The reading is what was declared, as far as it decides that."""
        by_tokens = r.over == "tokens"
        decided: dict[str, Any] = {
            "baseline": r.baseline,
            "scale": r.scale,
            "whiten_tokens": by_tokens if by_tokens or not r.second else None,
            "mask_no_eos": r.rows == "ended",
            "reward_clip": r.clip,
        }
        if r.divides:
            decided["ddof"] = r.ddof
            decided["eps"] = r.eps if r.eps_at == "after" else None
            if r.baseline != "group_mean":
                decided["spread_about"] = r.about
        if r.lone_row:
            decided["lone_row"] = r.lone_row
        if r.second:
            decided["whiten_ddof"] = int(r.second[-1])
        return all(
            decided.get(name, value) == value
            for name, value in self.declared.items()
            if name in OF_ADVANTAGES
        )


def asked_of(
    declared: Mapping[str, Any] | None,
    group_size: int | None = None,
    trusted: frozenset[str] = frozenset(),
) -> Asked:
    """What a person named. Raises GradebookError for a setting, a value or an
    estimator that does not exist."""
    rest = dict(declared or {})
    estimator = rest.pop("estimator", None)
    counts = {*str(rest.pop("counts", "") or "").replace("+", " ").split()}
    for name in counts.difference(COUNTS):
        raise refuse("one of " + ", ".join(COUNTS), name, "counts")
    settings = _of_estimator(estimator) if estimator else {}
    settings |= {name: _value(name, value) for name, value in rest.items()}
    if settings.get("mask_no_eos"):
        counts |= {"eos"}
    if "eos" in counts:
        settings["mask_no_eos"] = True
    if group_size is None:
        group_size = settings.get("group_size")
    trusted |= {c for c, roles in ROLES.items() if trusted.intersection(roles)}
    return Asked(settings, frozenset(counts), trusted, group_size)


def _of_estimator(name: object) -> dict[str, Any]:
    """Baseline, scale and whitening of an estimator."""
    estimator = str(name).lower().replace("-", "_").replace(" ", "_")
    estimator = ALIASES.get(estimator, estimator)
    if estimator in ESTIMATORS:
        settings = ESTIMATORS[estimator]
        return {k: settings[k] for k in ("baseline", "scale", "whiten_tokens")}
    for (baseline, scale, over), (title, _) in COMPUTATIONS.items():
        if title == estimator:
            whiten = {"whiten_tokens": over == "tokens"}
            return {"baseline": baseline, "scale": scale, **whiten}
    baseline, _, scale = estimator.partition("/")
    if scale and baseline == "reinforce_plus_plus_baseline":
        return {**_of_estimator(scale), "whiten_tokens": True}
    if scale and any(n.startswith(baseline) for n, *_ in COMPUTATIONS):
        return {"baseline": baseline, "scale": scale, "whiten_tokens": False}
    names = sorted({*ESTIMATORS, *(title for title, _ in COMPUTATIONS.values())})
    raise refuse("one of " + ", ".join(names), name, "estimator")


def _value(name: str, value: Any) -> Any:
    """A declared value, read from text. Raises GradebookError."""
    if name not in Settings():
        expected = "estimator, counts, or one of " + ", ".join(Settings())
        raise refuse(expected, name, name)
    if isinstance(value, str):
        value = _of_text(name, value.strip())
    check_setting(name, value)
    return value


def _of_text(name: str, text: str) -> Any:
    if name == "scale":
        return SHORT.get(text.lower(), text)
    if text.lower() == "none" and name != "baseline":
        return None
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
