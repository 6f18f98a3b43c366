"""Computations: an engine, an estimator and a trainer's convention.

All of them, in the order in which they are preferred when several give a
log's numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gradebook.cases.record import bug
from gradebook.core.settings import ESTIMATORS, Settings
from gradebook.engine.pipeline import CORRECT, Engine

EPS = (1e-6, 1e-4, 1e-5, 1e-8, 1e-9, 1e-3, 0.0)
"""What trainers add to a standard deviation, likeliest first."""

CLIPS = (20.0, 10.0, 5.0, 1.0)
"""Reward clips, tried where a reward lies beyond them and nothing fits."""

STRIDES = (
    "largest",
    "power of two",
    "one more",
    "two more",
    "twice",
    "one less",
    "commonest",
    "smallest",
)
"""Guesses at the configured rows per prompt, from the groups of a step."""

TRACELESS = "zero_std_kl"
"""The bug that leaves the advantages as they are."""

NEEDS: Mapping[str, tuple[str, ...]] = {
    "no_eos_outliers": ("eos",),
    "rejected_rows": ("length",),
    "double_normalization": ("steps", "kept_steps"),
    "partial_groups": ("prompt",),
}
"""A replica is tried when the log has one of these columns."""


@dataclass(frozen=True)
class Computation:
    """What may have been computed.

    bug        a name from BUGS, or "" for the correct engine
    estimator  a name from ESTIMATORS, or of the same kind
    tier       1: what a trainer calls an estimator; 2: other choices of
               baseline and scale (AReaL's levels); 3: with a reward clip
    stride     a guess from STRIDES; only partial groups reads it
    """

    bug: str
    estimator: str
    settings: Settings
    tier: int
    stride: str = "largest"

    def __hash__(self) -> int:
        """The fields' hash, worked out once."""
        known = self.__dict__.get("_hash")
        if known is None:
            own = (self.bug, self.estimator, self.settings, self.stride)
            known = hash(own)
            self.__dict__["_hash"] = known
        return known

    @property
    def engine(self) -> Engine:
        """The correct engine, or the bug's replica."""
        return bug(self.bug).engine if self.bug else CORRECT

    @property
    def correct(self) -> Computation:
        """The correct engine under the same estimator and convention."""
        return _corrected(self)

    @property
    def coupled(self) -> bool:
        """A row's number depends on rows of other groups."""
        s = self.settings
        across = s.baseline == "batch_mean" or s.whiten_tokens
        across |= s.scale in ("batch_std", "nonzero_share")
        return across or self.bug in ("double_normalization",)


@lru_cache(maxsize=65536)
def _corrected(computation: Computation) -> Computation:
    settings = altered(computation.settings, group_size=None)
    return Computation("", computation.estimator, settings, computation.tier)


@dataclass(frozen=True)
class Facts:
    """What the rows allow to differ, so that nothing is computed twice.

    has     canonical columns of the log
    lone    some group, or stride, has at most one counted row
    no_eos  some row has no EOS
    muted   some row has no tokens or no EOS
    clips   those of CLIPS that some reward lies beyond
    """

    has: frozenset[str]
    lone: bool
    no_eos: bool
    muted: bool
    clips: tuple[float, ...]


@lru_cache
def families(tier: int) -> tuple[tuple[str, Settings], ...]:
    """Estimators of a tier with their settings; eps stays to be chosen."""
    named = [
        *_both_ddof("grpo", ESTIMATORS["grpo"]),
        ("dr_grpo", ESTIMATORS["dr_grpo"]),
        ("rloo", ESTIMATORS["rloo"]),
        ("rloo_vectorized", ESTIMATORS["rloo_vectorized"]),
        ("opo", ESTIMATORS["opo"]),
        ("gpg", ESTIMATORS["gpg"]),
        *_both_ddof("grpo_passk", ESTIMATORS["grpo_passk"]),
        ("grpo_passk", altered(ESTIMATORS["grpo_passk"], scale="none")),
        (
            "reinforce_plus_plus_baseline",
            ESTIMATORS["reinforce_plus_plus_baseline"],
        ),
        ("none", ESTIMATORS["none"]),
        *_both_ddof(
            "grpo_batch_std", altered(ESTIMATORS["grpo"], scale="batch_std")
        ),
    ]
    if tier == 1:
        return tuple(_both_lone_rows(named))
    taken = {settings for _, settings in named}
    return tuple(
        (name, settings)
        for name, settings in _both_lone_rows(_levels())
        if settings not in taken
    )


def _both_ddof(name: str, settings: Settings) -> list[tuple[str, Settings]]:
    return [(name, altered(settings, ddof=ddof)) for ddof in (1, 0)]


def _both_lone_rows(
    named: list[tuple[str, Settings]],
) -> Iterator[tuple[str, Settings]]:
    """Each estimator as it is, then with the other rule for a lone row,
    where that rule does not make it another estimator."""
    yield from named
    for name, settings in named:
        if name not in ("rloo", "rloo_vectorized", "none"):
            other = "zero" if settings.lone_row == "raw" else "raw"
            yield name, altered(settings, lone_row=other)


def _levels() -> list[tuple[str, Settings]]:
    """Mean level, std level and spread, as AReaL's Normalization has them
    (lone_row zero), except those that have an estimator's name."""
    found = []
    for baseline in ("batch_mean", "leave_one_out", "none", "group_mean"):
        for scale in ("none", "batch_std", "group_std"):
            if scale == "none" and baseline != "batch_mean":
                continue
            for about in ("mean", "baseline"):
                for ddof in (1, 0):
                    settings = altered(
                        Settings(),
                        baseline=baseline,
                        scale=scale,
                        spread_about=about,
                        ddof=ddof,
                        lone_row="zero",
                        eps=EPS[0],
                    )
                    found.append((f"{baseline}/{scale}", settings))
    return found


@lru_cache(maxsize=512)
def computations(
    bug_name: str, tier: int, facts: Facts
) -> tuple[Computation, ...]:
    """The computations of one engine and tier that the columns allow, each
    with eps 1e-6; `variants` has the other ones."""
    clips: tuple[float | None, ...] = (None,)
    tiers = (tier,)
    if tier == 3:
        clips = facts.clips
        tiers = (1, 2)
    found = {}
    for name, settings in (f for t in tiers for f in families(t)):
        if name == "opo" and "length" not in facts.has:
            continue
        for masked in _masked(bug_name, facts):
            for clip in clips:
                changed = altered(
                    settings, mask_no_eos=masked, reward_clip=clip
                )
                each = Computation(bug_name, name, changed, tier)
                found.setdefault((name, bare(each, facts)), each)
    return tuple(found.values())


def _masked(bug_name: str, facts: Facts) -> tuple[bool, ...]:
    if not facts.no_eos:
        return (bug_name == "no_eos_outliers",)
    return (True,) if bug_name == "no_eos_outliers" else (False, True)


@lru_cache(maxsize=65536)
def bare(computation: Computation, facts: Facts) -> Settings:
    """The settings without what makes no difference on these rows. Two
    computations of one engine with equal bare settings, and with the same
    strides, give equal numbers.
    """
    s = computation.settings
    changes: dict[str, object] = {"group_size": None}
    if not facts.lone:
        changes["lone_row"] = "zero"
    if not facts.no_eos:
        changes["mask_no_eos"] = False
    if s.scale in ("none", "nonzero_share"):
        changes |= {"ddof": 1, "spread_about": "mean"}
    elif s.baseline == "group_mean" and s.scale == "group_std":
        if changes.get("lone_row", s.lone_row) == "zero":
            changes["spread_about"] = "mean"
    elif s.baseline == "batch_mean" and s.scale == "batch_std":
        changes["spread_about"] = "mean"
    return altered(s, **changes)


def altered(settings: Settings, **changes: object) -> Settings:
    """The settings with other choices, all known to be good: they are not
    checked again, since a search makes thousands."""
    if all(getattr(settings, name) == v for name, v in changes.items()):
        return settings
    twin = object.__new__(Settings)
    twin.__dict__.update(settings.__dict__, **changes)
    return twin


def with_settings(computation: Computation, settings: Settings) -> Computation:
    """The computation under other settings."""
    c = computation
    return Computation(c.bug, c.estimator, settings, c.tier, c.stride)


@lru_cache(maxsize=65536)
def variants(computation: Computation) -> tuple[Computation, ...]:
    """The same computation with every eps that could matter."""
    s = computation.settings
    if s.scale not in ("group_std", "batch_std"):
        return (computation,)
    return tuple(
        with_settings(computation, altered(s, eps=eps)) for eps in EPS
    )


TRAINERS: Mapping[tuple[int, float, str], str] = {
    (1, 1e-4, "zero"): "TRL",
    (1, 1e-5, "zero"): "AReaL",
    (1, 1e-6, "raw"): "verl",
    (0, 1e-9, "zero"): "GEM",
    (1, 1e-8, "zero"): "OAT",
}
"""Whose convention it is, by ddof, eps and the rule for a lone row."""

TITLES: Mapping[str, str] = {
    "grpo": "GRPO",
    "dr_grpo": "Dr. GRPO",
    "rloo": "RLOO",
    "rloo_vectorized": "RLOO (vectorized)",
    "opo": "OPO",
    "gpg": "GPG",
    "grpo_passk": "Pass@k",
    "reinforce_plus_plus_baseline": "REINFORCE++ baseline",
    "none": "raw reward",
    "grpo_batch_std": "GRPO over the batch's standard deviation",
}
"""Estimators as people write them."""


def title(estimator: str) -> str:
    """The estimator's name in a sentence."""
    if estimator in TITLES:
        return TITLES[estimator]
    return estimator.replace("_", " ").replace("/", " over ")


@lru_cache(maxsize=65536)
def base(computation: Computation) -> Computation:
    """The computation that this one is a variant of."""
    settings = altered(computation.settings, eps=EPS[0])
    return with_settings(computation, settings)


@lru_cache(maxsize=65536)
def unusual(computation: Computation) -> bool:
    """The rule for a lone row is not the one of the trainer that uses this
    ddof and eps."""
    s = computation.settings
    return settled(s, False) != s


def trainer(settings: Settings) -> str:
    """Whose convention the settings are, or ""."""
    if settings.scale not in ("group_std", "batch_std"):
        return ""
    key = (settings.ddof, settings.eps)
    for (ddof, eps, lone), name in TRAINERS.items():
        if key == (ddof, eps):
            return name
    return ""


def convention(settings: Settings, lone: bool = True) -> str:
    """The settings that matter, in words; `lone`: some group has one
    counted row."""
    words = []
    if settings.scale in ("group_std", "batch_std"):
        words += [f"ddof {settings.ddof}", f"eps {settings.eps:g}"]
        if settings.spread_about == "baseline":
            words.append("spread about the baseline")
    elif settings.scale == "none":
        words.append("no standard deviation")
    if lone:
        words.append(f"a lone row's baseline is {_alone(settings)}")
    if settings.mask_no_eos:
        words.append("rows without EOS are masked")
    if settings.reward_clip is not None:
        words.append(f"rewards clipped at {settings.reward_clip:g}")
    return ", ".join(words)


def settled(settings: Settings, lone: bool) -> Settings:
    """The settings, with the trainer's own rule for a lone row where the
    log has none."""
    if lone or settings.scale not in ("group_std", "batch_std"):
        return settings
    for (ddof, eps, rule), _ in TRAINERS.items():
        if (ddof, eps) == (settings.ddof, settings.eps):
            return altered(settings, lone_row=rule)
    return settings


def _alone(settings: Settings) -> str:
    return "0" if settings.lone_row == "raw" else "its own reward"
