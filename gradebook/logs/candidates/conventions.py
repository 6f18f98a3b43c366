"""Conventions: how trainers turn rewards into advantages, each with its
source. Only what stands in this table is called correct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product
from typing import Any

from gradebook.core.errors import refuse
from gradebook.core.settings import ESTIMATORS, OF_ESTIMATOR, Settings

STANDARD_DEVIATIONS = ("group_std", "batch_std", "others_std")
"""Scales that add eps to a standard deviation."""


@dataclass(frozen=True)
class Convention:
    """One way to compute advantages, and who computes them so.

    estimator  a name from ESTIMATORS, or one made from baseline and scale
    settings   ready to be run
    trainer    the trainer, "" for a combination that no listed trainer has
    version    a release or commit of the trainer
    function   where its code is
    declared   a person said that the trainer was asked for it
    """

    estimator: str
    settings: Settings
    trainer: str = ""
    version: str = ""
    function: str = ""
    declared: bool = False

    def __hash__(self) -> int:
        """The fields' hash, worked out once: a search asks very often."""
        known = self.__dict__.get("_hash")
        if known is None:
            known = hash((self.estimator, self.settings, self.trainer))
            self.__dict__["_hash"] = known
        return known

    @property
    def couples_prompts(self) -> bool:
        """A row's advantage depends on rows of other prompts."""
        s = self.settings
        return (
            s.baseline == "batch_mean"
            or s.scale in ("batch_std", "nonzero_share")
            or s.whiten_tokens
        )


_Source = tuple[str, str, str]
"""A trainer, a version, and the function there."""

_VERL = ("verl", "265c92487", "core_algos.py")
_TRL = ("TRL", "v0.22.2", "GRPOTrainer._generate_and_score_completions")
_RLOO = ("TRL", "00313f219", "RLOOTrainer._generate_and_score_completions")
_AREAL = ("AReaL", "bbc10f0e9", "Normalization.__call__")
_GEM = ("GEM", "6de44a1", "train_oat_grpo.py")
_OAT = ("OAT", "f3ccb7f48", "PPOLearner.compute_monte_carlo_advantages")
_OPENRLHF = (
    "OpenRLHF",
    "3c3be623",
    "RemoteExperienceMaker.compute_advantages_and_returns",
)
_SLIME = ("slime", "55d49e4c5", "RolloutManager._post_process_rewards")
_NEMO = ("NeMo-RL", "7ea279abf", "calculate_baseline_and_std_per_prompt")
_INSTRUCT = ("open-instruct", "d736f7ab7", "DataPreparationActor")
_PRIME = ("prime-rl", "748158fa6", "_compute_request_rewards")
_SKYRL = ("SkyRL", "9c327905c", "RayPPOTrainer._normalize_advantages")

_CENTERED = {"scale": "none"}
_OTHERS = {"baseline": "leave_one_out", "scale": "none"}


def _in(source: _Source, estimator: str, **settings: Any) -> Convention:
    """What a trainer computes; settings that are not named are Settings'
    own."""
    return Convention(estimator, Settings(**settings), *source)


def _of_verl() -> list[Convention]:
    """verl's estimators under its own keys; rLLM and EasyR1 use them."""
    own = {
        name: {k: settings[k] for k in OF_ESTIMATOR} | {"eps": 1e-6}
        for name, settings in ESTIMATORS.items()
        if name != "grpo_vectorized"
    }
    return [
        *(_in(_VERL, name, **settings) for name, settings in own.items()),
        _in(_VERL, "grpo_passk", **{**own["grpo_passk"], **_CENTERED}),
        _in(
            _VERL,
            "reinforce_plus_plus",
            baseline="none",
            scale="none",
            whiten_tokens=True,
            lone_row="raw",
            eps=1e-6,
        ),
    ]


BASELINES = ("group_mean", "batch_mean", "leave_one_out", "none")


def _of_areal(*eps: float) -> list[Convention]:
    """AReaL's levels: which mean is subtracted, which deviation divides."""
    return [
        _in(
            _AREAL,
            levels_name(baseline, scale),
            baseline=baseline,
            scale=scale,
            ddof=ddof,
            eps=one,
            spread_about="baseline",
        )
        for baseline, scale, ddof, one in product(
            BASELINES, ("group_std", "batch_std"), (1, 0), eps
        )
    ]


def _centered_by_areal() -> list[Convention]:
    """AReaL's levels without a deviation."""
    return [
        _in(_AREAL, levels_name(one, "none"), baseline=one, scale="none")
        for one in BASELINES
    ]


def levels_name(baseline: str, scale: str) -> str:
    """The estimator that has this baseline and this scale."""
    named = {
        ("group_mean", "group_std"): "grpo",
        ("group_mean", "batch_std"): "grpo_batch_std",
        ("group_mean", "none"): "dr_grpo",
        ("leave_one_out", "none"): "rloo",
        ("none", "none"): "none",
    }
    return named.get((baseline, scale), f"{baseline}/{scale}")


@lru_cache
def conventions() -> tuple[Convention, ...]:
    """Every listed convention, in the order in which they are preferred
    when several give the same numbers. Settings that two trainers share
    stand once, with the trainer that comes first."""
    table = [
        *_of_verl(),
        _in(_TRL, "grpo", eps=1e-4),
        _in(_TRL, "grpo_batch_std", scale="batch_std", eps=1e-4),
        _in(_TRL, "dr_grpo", **_CENTERED),
        _in(_RLOO, "rloo", **_OTHERS),
        _in(
            _RLOO,
            levels_name("leave_one_out", "batch_std"),
            baseline="leave_one_out",
            scale="batch_std",
            spread_about="baseline",
            eps=1e-4,
        ),
        *_of_areal(1e-5),
        *_centered_by_areal(),
        _in(_GEM, "grpo", ddof=0, eps=1e-9),
        _in(_OAT, "grpo", eps=1e-8),
        _in(_SLIME, "grpo", eps=1e-6),
        _in(_PRIME, "grpo", eps=1e-6),
        _in(_OPENRLHF, "grpo", eps=1e-9),
        _in(_INSTRUCT, "grpo", ddof=0, eps=1e-8),
        _in(
            _NEMO,
            levels_name("leave_one_out", "others_std"),
            baseline="leave_one_out",
            scale="others_std",
            eps=1e-6,
        ),
        *_of_skyrl(),
    ]
    found: dict[Settings, Convention] = {}
    for convention in table:
        found.setdefault(_without_idle(convention.settings), convention)
    return tuple(found.values())


@lru_cache
def configured() -> tuple[Convention, ...]:
    """AReaL under another eps than its own: there it is a setting."""
    return tuple(_of_areal(1e-3, 0.0))


@lru_cache
def clipping() -> tuple[Convention, ...]:
    """AReaL, which clips rewards before it compares them."""
    return (*_of_areal(1e-5, 1e-6), *_centered_by_areal())


def _of_skyrl() -> list[Convention]:
    """SkyRL's estimators with advantage_batch_normalize."""
    whitened = {"eps": 1e-6, "whiten_tokens": True, "whiten_ddof": 0}
    return [
        _in(_SKYRL, f"reinforce_plus_plus_baseline/{name}", **whitened, **own)
        for name, own in (
            ("grpo", {"lone_row": "raw"}),
            ("dr_grpo", {"lone_row": "raw", **_CENTERED}),
            ("rloo", {"lone_row": "zero", **_OTHERS}),
        )
    ]


def _without_idle(settings: Settings) -> Settings:
    """The settings, with what their own scale never reads at its default."""
    if settings.scale in STANDARD_DEVIATIONS:
        return settings
    return altered(settings, ddof=1, eps=0.0, spread_about="mean")


EPS = (1e-6, 1e-4, 1e-5, 1e-8, 1e-9, 1e-3, 0.0)
"""What is tried for eps beyond the listed conventions."""


@lru_cache
def unlisted() -> tuple[Convention, ...]:
    """Combinations that no listed trainer has. A fit under one of them is
    no clean bill."""
    known = {_without_idle(c.settings) for c in conventions()}
    found: dict[Settings, Convention] = {}
    for baseline, scale, lone, ddof, eps in product(
        BASELINES, ("group_std", "batch_std", "none"), ("zero", "raw"),
        (1, 0), EPS,
    ):  # fmt: skip
        settings = _without_idle(
            Settings(
                baseline=baseline,
                scale=scale,
                lone_row=lone,
                ddof=ddof,
                eps=eps,
            )
        )
        if settings not in known:
            name = levels_name(baseline, scale)
            found.setdefault(settings, Convention(name, settings))
    return tuple(found.values())


def declared_conventions(
    declared: Mapping[str, Any],
) -> tuple[Convention, ...]:
    """The listed conventions under settings that the trainer was given.

    `declared` maps settings to values, and may name an estimator. Short
    names are welcome: scale=group is scale=group_std. A declared value
    counts as listed, whoever has it. Raises GradebookError for a setting,
    a value or an estimator that does not exist.
    """
    given = dict(declared)
    estimator = given.pop("estimator", None)
    changes = {name: _value(name, value) for name, value in given.items()}
    table = conventions()
    if estimator is not None:
        wanted = str(estimator).lower().replace("-", "_")
        wanted = {"grpo_vectorized": "grpo"}.get(wanted, wanted)
        names = list(dict.fromkeys(c.estimator for c in table))
        table = tuple(c for c in table if c.estimator == wanted)
        if not table:
            raise refuse("one of " + ", ".join(names), estimator, "estimator")
    found: dict[Settings, Convention] = {}
    for convention in table:
        settings = replace(convention.settings, **changes)
        own = settings == convention.settings
        name = convention.estimator
        if not own and ("scale" in changes or "baseline" in changes):
            name = levels_name(settings.baseline, settings.scale)
        found.setdefault(
            _without_idle(settings),
            replace(
                convention,
                estimator=name,
                settings=settings,
                trainer=convention.trainer if own else "",
                declared=True,
            ),
        )
    return tuple(found.values())


SHORT = {
    "group": "group_std",
    "batch": "batch_std",
    "true": "group_std",
    "false": "none",
}
"""How trainers' own keys name a scale."""


def _value(name: str, value: Any) -> Any:
    """A declared value, read from text. Raises GradebookError."""
    known = [field.name for field in fields(Settings)]
    if name not in known:
        raise refuse("estimator, or one of " + ", ".join(known), name, name)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if name == "scale":
        return SHORT.get(text.lower(), text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@lru_cache(maxsize=4096)
def _altered(settings: Settings, changes: tuple) -> Settings:
    return replace(settings, **dict(changes))


def altered(settings: Settings, **changes: object) -> Settings:
    """The settings with other choices; each is made and checked once."""
    return _altered(settings, tuple(sorted(changes.items())))
