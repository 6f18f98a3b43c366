"""Reading: one computation of advantages, with its name and words. Asked: what was
declared, as a question to readings and as settings of the engine."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from gradebook.core.errors import refuse
from gradebook.core.formatting import short
from gradebook.core.settings import CHOICES, OF_ESTIMATOR, Settings, check_setting

COMPUTATIONS: dict[tuple[str, str, str], tuple[str, str]] = {
    ("group_mean", "group_std", ""): ("grpo", "GRPO"),
    ("group_mean", "none", ""): ("dr_grpo", "Dr. GRPO"),
    ("leave_one_out", "none", ""): ("rloo", "RLOO"),
    ("length_weighted_mean", "none", ""): ("opo", "OPO"),
    ("group_mean", "nonzero_share", ""): ("gpg", "GPG"),
    ("second_best", "group_std", ""): ("grpo_passk", "Pass@k"),
    ("second_best", "none", ""): ("grpo_passk", "Pass@k without a deviation"),
    ("none", "none", ""): ("none", "the raw reward"),
    ("group_mean", "batch_std", ""): (
        "grpo_batch_std",
        "GRPO over the batch's deviation",
    ),
    ("batch_mean", "batch_std", ""): ("batch_zscore", "a batch z-score"),
    ("batch_mean", "none", ""): ("batch_mean/none", "REINFORCE with the batch's mean"),
    ("group_mean", "group_mean", ""): ("maxrl", "MaxRL"),
    ("none", "none", "tokens"): ("reinforce_plus_plus", "REINFORCE++"),
    ("group_mean", "none", "tokens"): (
        "reinforce_plus_plus_baseline",
        "the REINFORCE++ baseline",
    ),
}
"""Baseline, scale and what a second normalization weighs -> the estimator's name,
as a declaration writes it, and its title. Others are named by their parts."""

BASELINE_WORDS = {
    "group_mean": "the reward minus the group's mean",
    "leave_one_out": "leave-one-out",
    "batch_mean": "the reward minus the batch's mean",
    "none": "the reward",
    "second_best": "Pass@k",
    "length_weighted_mean": "OPO",
    "batch_others": "the reward minus the mean of the batch's other rows",
}
SCALE_WORDS = {
    "group_std": " over the group's deviation",
    "none": "",
    "batch_std": " over the batch's deviation",
    "others_std": " over the deviation of the other rows",
    "advantage_std": " over the batch's deviation of the advantages",
    "nonzero_share": " over the share of rewards other than 0",
    "group_mean": " over the group's mean",
}
"""The baselines and the scales of the space, the usual ones first."""

EPS_WORDS = {"after": "", "inside": " inside the root", "least": " as the least"}


@dataclass(frozen=True)
class Reading:
    """One computation of the space.

    eps_at    "after" the root, "inside" it, or "least": the least deviation
    about     what a deviation is measured from: "mean" or "baseline"
    lone_row  what a row without siblings is compared with: itself ("zero")
              or 0 ("raw"); "" where there is no such row
    second    one of space.SECONDS, or ""
    rows      which count: "flagged", scored rows with tokens, each rollout once;
              "ended", those of them that ended; or "all"
    grouping  a name of space.groupings
    clip      rewards beyond it were clipped
    """

    baseline: str
    scale: str
    ddof: int = 1
    eps: float = 0.0
    eps_at: str = "after"
    about: str = "mean"
    lone_row: str = ""
    second: str = ""
    rows: str = "flagged"
    grouping: str = "by prompt"
    clip: float | None = None

    @classmethod
    def of(cls, s: Mapping[str, Any]) -> Self:
        """The reading of an engine's settings."""
        return cls(
            s["baseline"],
            s["scale"],
            s["ddof"],
            s["eps"],
            about=s["spread_about"],
            lone_row=s["lone_row"],
            second=f"tokens {s['whiten_ddof']}" if s["whiten_tokens"] else "",
            rows="ended" if s["mask_no_eos"] else "flagged",
            clip=s["reward_clip"],
        )

    @property
    def _names(self) -> tuple[str, str]:
        parts = self.baseline, self.scale
        if named := COMPUTATIONS.get((*parts, self.over)):
            return named
        words = BASELINE_WORDS[self.baseline] + SCALE_WORDS[self.scale]
        name, title = COMPUTATIONS.get((*parts, ""), ("/".join(parts), words))
        if not self.over:
            return name, title
        return (
            f"{name}, whitened by {self.over}",
            f"{title}, then whitened over {self.over}",
        )

    @property
    def estimator(self) -> str:
        """grpo, or batch_mean/group_std."""
        name = self._names[0]
        return "rloo_vectorized" if name == "rloo" and self.lone_row == "zero" else name

    @property
    def title(self) -> str:
        return self._names[1]

    @property
    def over(self) -> str:
        """What a second normalization weighs: rows, tokens, transitions."""
        return self.second.partition(" ")[0].removesuffix("/eps")

    @property
    def divides(self) -> bool:
        return self.scale.endswith("_std")

    @property
    def adds_eps(self) -> bool:
        return self.divides or self.scale == "group_mean"

    @property
    def words(self) -> str:
        """Details, in brackets after the title."""
        after = ", its eps after the root" if "/eps" in self.second else ""
        details = {
            f"ddof {self.ddof}": self.divides,
            f"eps {short(self.eps)}{EPS_WORDS[self.eps_at]}": self.adds_eps,
            "spread about the baseline": self.divides and self.about == "baseline",
            f"ddof {self.second[-1:]} of the whitening{after}": self.second,
            "rows without EOS left out": self.rows == "ended",
            f"rewards clipped at {short(self.clip or 0)}": self.clip is not None,
            f"grouped {self.grouping}": self.grouping != "by prompt",
        }
        return ", ".join(word for word, is_so in details.items() if is_so)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it rests on, beside prompt, reward and advantage."""
        by_length = self.over == "tokens" or self.baseline == "length_weighted_mean"
        rests = {
            "length": by_length,
            "steps": self.over == "transitions",
            "eos": self.rows == "ended",
            "text": "text" in self.grouping,
        }
        return tuple(column for column in rests if rests[column])

    @property
    def is_of_engine(self) -> bool:
        return self.baseline in CHOICES["baseline"] and self.scale in CHOICES["scale"]

    @property
    def couples_prompts(self) -> bool:
        """A row's advantage depends on rows of other prompts."""
        of_batch = self.scale in ("batch_std", "advantage_std", "nonzero_share")
        return of_batch or self.baseline.startswith("batch") or bool(self.second)

    @property
    def settings(self) -> Settings:
        """The nearest settings of the engine, for pages that show it."""
        scale = {"advantage_std": "batch_std", "group_mean": "none"}
        return Settings(
            baseline=self.baseline.replace("batch_others", "batch_mean"),
            scale=scale.get(self.scale, self.scale),
            ddof=self.ddof,
            eps=self.eps,
            spread_about=self.about,
            lone_row=self.lone_row or "raw",
            whiten_tokens=self.over == "tokens",
            whiten_ddof=int(self.second[-1:] or 1),
            mask_no_eos=self.rows == "ended",
            reward_clip=self.clip,
        )


def plainness(r: Reading) -> tuple:
    """Usual computations first, among those that fit equally well."""
    usual = ("grpo", "dr_grpo", "rloo", "rloo_vectorized", "batch_zscore")
    name = r.estimator
    return (
        r.rows == "all",
        r.rows == "ended",
        r.grouping != "by prompt",
        r.clip is not None,
        bool(r.second),
        r.eps_at != "after",
        r.about != "mean",
        usual.index(name) if name in usual else len(usual),
    )


SHORT = {
    "group": "group_std",
    "batch": "batch_std",
    "true": "group_std",
    "false": "none",
}
"""How trainers' own keys name a scale."""

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


@dataclass(frozen=True)
class Asked:
    """What a person, a recorder or the page said about the run: settings by the
    engine's names, columns that decide which rows count, columns whose meaning is
    known, and rows per prompt."""

    declared: Mapping[str, Any] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()
    group_size: int | None = None

    @property
    def is_declared(self) -> bool:
        """Something that decides advantages was declared."""
        decide = (*OF_ESTIMATOR, "mask_no_eos", "reward_clip")
        return not self.declared.keys().isdisjoint(decide)

    @property
    def by_engine(self) -> bool:
        """An engine computes what was declared."""
        return self.reading(()).is_of_engine

    def reading(self, beside: Sequence[Reading]) -> Reading:
        """The computation that was declared; what was not is as in the readings
        that it stands `beside`."""
        grpo = Reading("group_mean", "group_std", eps=1e-6)
        like = next((r for r in beside[:3] if r.is_of_engine), grpo)
        usual = (r for r in beside[:6] if r.divides and r.eps_at == "after")
        divided = next(usual, grpo)
        named = {
            "baseline": like.baseline,
            "scale": like.scale,
            "ddof": divided.ddof,
            "eps": divided.eps,
            "lone_row": like.lone_row or "raw",
        }
        return Reading.of({**Settings(), **named, **self.declared})

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
            decided |= {"ddof": r.ddof, "eps": r.eps if r.eps_at == "after" else None}
            if r.baseline != "group_mean":
                decided["spread_about"] = r.about
        if r.lone_row:
            decided["lone_row"] = r.lone_row
        if r.second:
            decided["whiten_ddof"] = int(r.second[-1])
        return all(self.declared.get(n, value) == value for n, value in decided.items())


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
    settings |= {name: setting_of(name, value) for name, value in rest.items()}
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
    named = {estimator: of for of, (estimator, _) in reversed(COMPUTATIONS.items())}
    estimator = str(name).lower().replace("-", "_").replace(" ", "_")
    parts = (*estimator.partition("/")[::2], "")
    baseline, scale, over = named.get(estimator.removesuffix("_vectorized"), parts)
    if baseline not in BASELINE_WORDS or scale not in SCALE_WORDS:
        raise refuse("one of " + ", ".join(sorted(named)), name, "estimator")
    return {"baseline": baseline, "scale": scale, "whiten_tokens": over == "tokens"}


def setting_of(name: str, value: Any) -> Any:
    """A setting's value, read from text. Raises GradebookError."""
    if name not in Settings():
        expected = "estimator, counts, or one of " + ", ".join(Settings())
        raise refuse(expected, name, name)
    if isinstance(value, str):
        value = value.strip()
        word = value.lower()
        if name == "scale":
            value = SHORT.get(word, value)
        elif word == "none" and name != "baseline":
            value = None
        else:
            with suppress(ValueError):  # a number, true or false
                value = json.loads(word)
    check_setting(name, value)
    return value
