"""Reading: one computation of advantages, with its name and words. Asked: what was
declared, as a question to readings and as settings of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from gradebook.core.errors import refuse
from gradebook.core.formatting import short
from gradebook.core.settings import KINDS, OF_ESTIMATOR, Settings, read_setting
from gradebook.core.vocabulary import BASELINES, NAMED, SCALES, named

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
            s["eps_at"],
            about=s["spread_about"],
            lone_row=s["lone_row"],
            second=f"tokens {s['whiten_ddof']}" if s["whiten_tokens"] else "",
            rows="ended" if s["mask_no_eos"] else "flagged",
            clip=s["reward_clip"],
        )

    @property
    def estimator(self) -> str:
        """grpo, or batch_mean/group_std."""
        name = named(self.baseline, self.scale, self.over).estimator
        return "rloo_vectorized" if name == "rloo" and self.lone_row == "zero" else name

    @property
    def title(self) -> str:
        return named(self.baseline, self.scale, self.over).title

    @property
    def over(self) -> str:
        """What a second normalization weighs: rows, tokens, transitions."""
        return self.second.partition(" ")[0].removesuffix("/eps")

    @property
    def divides(self) -> bool:
        return SCALES[self.scale].is_std

    @property
    def adds_eps(self) -> bool:
        return SCALES[self.scale].adds_eps

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
        by_length = "length" in BASELINES[self.baseline].needs
        rests = {
            "length": by_length or self.over == "tokens",
            "steps": self.over == "transitions",
            "eos": self.rows == "ended",
            "text": "text" in self.grouping,
        }
        return tuple(column for column in rests if rests[column])

    @property
    def couples_prompts(self) -> bool:
        """A row's advantage depends on rows of other prompts."""
        records = BASELINES[self.baseline], SCALES[self.scale]
        return any(record.couples_prompts for record in records) or bool(self.second)

    @property
    def settings(self) -> Settings:
        """The engine's settings that compute it, but for its grouping and for rows
        that all count."""
        return Settings(
            baseline=self.baseline,
            scale=self.scale,
            ddof=self.ddof,
            eps=self.eps,
            eps_at=self.eps_at,
            spread_about=self.about,
            lone_row=self.lone_row or "raw",
            whiten_tokens=bool(self.second),
            whiten_over=self.over or "tokens",
            whiten_ddof=int(self.second[-1:] or 1),
            whiten_eps="after" if "/eps" in self.second else "inside",
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

    def reading(self, beside: Sequence[Reading]) -> Reading:
        """The computation that was declared; what was not is as in the readings
        that it stands `beside`."""
        grpo = Reading("group_mean", "group_std", eps=1e-6)
        like = next(iter(beside), grpo)
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
    """Baseline, scale and whitening of an estimator. Raises GradebookError."""
    of_name = {each.estimator: parts for parts, each in reversed(NAMED.items())}
    estimator = str(name).lower().replace("-", "_").replace(" ", "_")
    parts = (*estimator.partition("/")[::2], "")
    baseline, scale, over = of_name.get(estimator.removesuffix("_vectorized"), parts)
    if baseline not in BASELINES or scale not in SCALES:
        raise refuse("one of " + ", ".join(sorted(of_name)), name, "estimator")
    return {"baseline": baseline, "scale": scale, "whiten_tokens": over == "tokens"}


def setting_of(name: str, value: Any) -> Any:
    """A declared setting's value, as `read_setting`. Raises GradebookError."""
    if name not in KINDS:
        raise refuse("estimator, counts, or one of " + ", ".join(KINDS), name, name)
    return read_setting(name, value)
