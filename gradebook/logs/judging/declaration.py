"""Declaration: what a person, a recorder or the page said about a run, as a question
to computations and as settings of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradebook.core.errors import refuse
from gradebook.core.settings import KINDS, OF_ESTIMATOR, Settings, read_setting
from gradebook.core.vocabulary import BASELINES, NAMED, SCALES
from gradebook.logs.judging.computation import GDPO, Computation

COUNTS = ("eos", "length", "scored", "rollout")
"""Columns that may decide which rows count: `counts=eos` declares that rows
without EOS do not, `counts=rollout` that each rollout counts once."""

REJECTS = ("accepted", "rejected")
"""Roles that make rows without tokens."""

ROLES = {
    "eos": ("eos", "truncated", "finish_reason"),
    "length": (*REJECTS, "mask", "length"),
}
"""Gradebook's column -> the roles of a log's columns that it is computed from."""


@dataclass(frozen=True)
class Declaration:
    """The configuration of a run, as a person, a recorder or the page gave it.

    settings    by the engine's names
    counts      columns that decide which rows count
    several     whether each reward function is normalized by itself (GDPO): as
                declared, None if nothing says so
    trusted     columns whose meaning is known
    group_size  rows per prompt, or None
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()
    group_size: int | None = None
    several: bool | None = None

    @property
    def decides(self) -> bool:
        """Whether it declares a setting on which advantages depend."""
        deciding = (*OF_ESTIMATOR, "mask_no_eos", "reward_clip")
        decided = not self.settings.keys().isdisjoint(deciding)
        return decided or self.several is not None

    def computation(self, beside: Sequence[Computation]) -> Computation:
        """The declared computation. Settings that were not declared are those of the
        computations that it is compared with."""
        grpo = Computation("group_mean", "group_std", eps=1e-6)
        like = next(iter(beside), grpo)
        usual = (c for c in beside[:6] if c.divides and c.eps_at == "after")
        divided = next(usual, grpo)
        undeclared = {
            "baseline": like.baseline,
            "scale": like.scale,
            "ddof": divided.ddof,
            "eps": divided.eps,
            "lone_row": like.lone_row or "raw",
        }
        return Computation.of({**Settings(), **undeclared, **self.settings})

    def allows(self, c: Computation) -> bool:
        """Whether the computation has the declared value of each setting it decides.
        If columns are declared to decide which rows count, not all rows count."""
        if self.several not in (None, c.several is not None):
            return False
        if self.several and not c.is_gdpo:
            return False
        if self.counts and c.view.all_rows:
            return False
        decided = self._decided(c)
        declared = self.settings
        return all(
            declared.get(name, value) == value for name, value in decided.items()
        )

    def matches(self, computations: Sequence[Computation]) -> bool | None:
        """Whether one of the computations is the declared one; None if there is no
        computation, or no declaration."""
        if self == Declaration() or not computations:
            return None
        return any(map(self.allows, computations))

    def _decided(self, c: Computation) -> dict[str, Any]:
        """The settings that the computation decides; None for a value that no
        declaration has."""
        decided: dict[str, Any] = {
            "baseline": c.baseline,
            "scale": c.scale,
            "whiten_tokens": c.second is not None,
            "mask_no_eos": c.ended,
            "reward_clip": c.clip,
        }
        if c.divides:
            decided |= {"ddof": c.ddof, "eps": c.eps if c.eps_at == "after" else None}
            if BASELINES[c.baseline].centers:
                decided["spread_about"] = c.about
        elif "scale" not in self.settings:
            # A ddof or an eps that was declared belongs to some deviation: that of a
            # second normalization, if nothing else divides.
            last = c.second
            decided["ddof"] = last.ddof if last else None
            decided["eps"] = c.eps if last and last.eps_after else None
        if c.second and not self.settings.keys() >= {"whiten_tokens"}:
            # A second deviation is another scale than the one that was declared.
            decided["scale"] = None
        if c.lone_row:
            decided["lone_row"] = c.lone_row
        if c.second:
            decided["whiten_ddof"] = c.second.ddof
            if c.over != self.settings.get("whiten_over", "tokens"):
                decided["whiten_tokens"] = None
        return decided


def declaration_of(
    declared: Mapping[str, Any] | None,
    group_size: int | None = None,
    trusted: frozenset[str] = frozenset(),
) -> Declaration:
    """The declaration that a person's settings make. Raises GradebookError for a
    setting, a value or an estimator that does not exist."""
    rest = dict(declared or {})
    estimator = rest.pop("estimator", None)
    counts = {*str(rest.pop("counts", "") or "").replace("+", " ").split()}
    for name in counts.difference(COUNTS):
        raise refuse("one of " + ", ".join(COUNTS), name, "counts")
    several = _is_gdpo(estimator) if estimator else None
    settings = _of_estimator(estimator) if estimator and not several else {}
    settings |= {name: setting_of(name, value) for name, value in rest.items()}
    if settings.get("mask_no_eos"):
        counts |= {"eos"}
    if "eos" in counts:
        settings["mask_no_eos"] = True
    if group_size is None:
        group_size = settings.get("group_size")
    trusted |= {c for c, roles in ROLES.items() if trusted.intersection(roles)}
    return Declaration(settings, frozenset(counts), trusted, group_size, several)


def _is_gdpo(estimator: object) -> bool:
    return str(estimator).strip().lower() == GDPO


def _of_estimator(name: object) -> dict[str, Any]:
    """Baseline, scale and whitening of an estimator. Raises GradebookError."""
    # If combinations share an estimator's name, it means the first of them.
    backwards = reversed([*NAMED.items()])
    of_name = {each.estimator: parts for parts, each in backwards}
    estimator = str(name).lower().replace("-", "_").replace(" ", "_")
    parts = (*estimator.partition("/")[::2], "")
    baseline, scale, over = of_name.get(estimator.removesuffix("_vectorized"), parts)
    if baseline not in BASELINES or scale not in SCALES:
        names = sorted([*of_name, GDPO])
        raise refuse("one of " + ", ".join(names), name, "estimator")
    return {"baseline": baseline, "scale": scale, "whiten_tokens": over == "tokens"}


def setting_of(name: str, value: Any) -> Any:
    """A declared setting's value, as `read_setting`. Raises GradebookError."""
    if name not in KINDS:
        raise refuse("estimator, counts, or one of " + ", ".join(KINDS), name, name)
    return read_setting(name, value)
