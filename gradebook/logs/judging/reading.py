"""A reading: the name of one computation of advantages, its settings, and its
words.

It is a baseline, a scale, where eps stands, what a lone row gets, and perhaps
a second normalization.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradebook.core.formatting import short
from gradebook.core.settings import Settings

TITLES: Mapping[tuple[str, str], str] = {
    ("group_mean", "group_std"): "GRPO",
    ("group_mean", "none"): "Dr. GRPO",
    ("leave_one_out", "none"): "RLOO",
    ("length_weighted_mean", "none"): "OPO",
    ("group_mean", "nonzero_share"): "GPG",
    ("second_best", "group_std"): "Pass@k",
    ("second_best", "none"): "Pass@k without a deviation",
    ("none", "none"): "the raw reward",
    ("group_mean", "batch_std"): "GRPO over the batch's deviation",
    ("batch_mean", "batch_std"): "a batch z-score",
    ("batch_mean", "none"): "REINFORCE with the batch's mean",
    ("group_mean", "group_mean"): "MaxRL",
}
BASELINE_WORDS = {
    "none": "the reward",
    "group_mean": "the reward minus the group's mean",
    "batch_mean": "the reward minus the batch's mean",
    "batch_others": "the reward minus the mean of the batch's other rows",
    "batch_tokens": "the reward minus the batch's mean over tokens",
    "leave_one_out": "leave-one-out",
    "length_weighted_mean": "OPO",
    "second_best": "Pass@k",
}
SCALE_WORDS = {
    "group_std": "over the group's deviation",
    "batch_std": "over the batch's deviation",
    "others_std": "over the deviation of the other rows",
    "advantage_std": "over the batch's deviation of the advantages",
    "nonzero_share": "over the share of rewards other than 0",
    "group_mean": "over the group's mean",
}
NAMES: Mapping[tuple[str, str, str], str] = {
    ("group_mean", "group_std", ""): "grpo",
    ("group_mean", "none", ""): "dr_grpo",
    ("leave_one_out", "none", ""): "rloo",
    ("length_weighted_mean", "none", ""): "opo",
    ("group_mean", "nonzero_share", ""): "gpg",
    ("second_best", "group_std", ""): "grpo_passk",
    ("second_best", "none", ""): "grpo_passk",
    ("none", "none", ""): "none",
    ("group_mean", "batch_std", ""): "grpo_batch_std",
    ("batch_mean", "batch_std", ""): "batch_zscore",
    ("group_mean", "group_mean", ""): "maxrl",
    ("none", "none", "tokens"): "reinforce_plus_plus",
    ("group_mean", "none", "tokens"): "reinforce_plus_plus_baseline",
}
"""Names of estimators, as a declaration writes them; others are made of
baseline, scale and second normalization."""


@dataclass(frozen=True)
class Reading:
    """One computation of the space.

    eps_at    "after" the root, "inside" it, or "least": the deviation is
              at least eps
    about     what a deviation is measured from: "mean" or "baseline"
    lone_row  what a row without siblings is compared with: itself ("zero")
              or 0 ("raw"); "" where there is no such row
    second    one of SECONDS, or ""
    rows      one of ROWS
    grouping  how rows were grouped, see `judging.groupings`
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
    grouping: str = "prompt"
    clip: float | None = None

    @classmethod
    def of(cls, s: Settings) -> Reading:
        """The reading of an engine's settings, as far as it is named by them."""
        second = f"tokens {s.whiten_ddof}" if s.whiten_tokens else ""
        return cls(s.baseline, s.scale, lone_row=s.lone_row, second=second)

    @property
    def estimator(self) -> str:
        """The estimator's name: grpo, or batch_mean/group_std."""
        over = self.over
        key = self.baseline, self.scale, over
        if key == ("leave_one_out", "none", "") and self.lone_row == "zero":
            return "rloo_vectorized"
        if key in NAMES:
            return NAMES[key]
        first = NAMES.get((*key[:2], ""), f"{self.baseline}/{self.scale}")
        return f"{first}, whitened by {over}" if over else first

    @property
    def title(self) -> str:
        """The computation as a person says it."""
        named = TITLES.get((self.baseline, self.scale))
        if named is None:
            named = BASELINE_WORDS[self.baseline]
            if self.scale != "none":
                named += f" {SCALE_WORDS[self.scale]}"
        over = self.over
        if (self.baseline, self.scale, over) == ("none", "none", "tokens"):
            return "REINFORCE++"
        if (self.baseline, self.scale, over) == ("group_mean", "none", "tokens"):
            return "the REINFORCE++ baseline"
        return f"{named}, then whitened over {over}" if over else named

    @property
    def over(self) -> str:
        """What a second normalization weighs: rows, tokens, transitions."""
        return self.second.split(" ")[0].removesuffix("/eps")

    @property
    def divides(self) -> bool:
        """eps and ddof take part."""
        return self.scale.endswith("_std")

    @property
    def adds_eps(self) -> bool:
        """eps takes part."""
        return self.divides or self.scale == "group_mean"

    @property
    def words(self) -> str:
        """Details, in brackets after the title."""
        words = []
        if self.divides:
            words.append(f"ddof {self.ddof}")
        if self.adds_eps:
            at = {"after": "", "inside": " inside the root", "least": " as the least"}
            words.append(f"eps {short(self.eps)}{at[self.eps_at]}")
        if self.divides and self.about == "baseline":
            words.append("spread about the baseline")
        if self.second:
            after = ", its eps after the root" if "/eps" in self.second else ""
            words.append(f"ddof {self.second[-1]} of the whitening{after}")
        if self.rows == "ended":
            words.append("rows without EOS left out")
        if self.clip is not None:
            words.append(f"rewards clipped at {short(self.clip)}")
        if self.grouping != "prompt":
            draw = f"by draw, {self.grouping.removeprefix('draws of ')} rows each"
            words.append("grouped " + GROUPING_WORDS.get(self.grouping, draw))
        return ", ".join(words)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose meaning the reading rests on, beside prompt, reward
        and advantage."""
        by_token = self.second.startswith("tokens") or self.baseline in (
            "length_weighted_mean",
            "batch_tokens",
        )
        by_transition = self.second.startswith("transitions")
        return (
            *(("length",) if by_token else ()),
            *(("steps",) if by_transition else ()),
            *(("eos",) if self.rows == "ended" else ()),
            *(("text",) if "text" in self.grouping else ()),
        )

    @property
    def couples_prompts(self) -> bool:
        """A row's advantage depends on rows of other prompts."""
        alone = self.baseline.startswith("batch") or self.second
        return bool(alone) or self.scale in (
            "batch_std",
            "advantage_std",
            "nonzero_share",
        )

    @property
    def settings(self) -> Settings:
        """The nearest settings of the engine, for pages that show it."""
        baseline = {"batch_others": "batch_mean", "batch_tokens": "batch_mean"}
        scale = {"advantage_std": "batch_std", "group_mean": "none"}
        return Settings(
            baseline=baseline.get(self.baseline, self.baseline),
            scale=scale.get(self.scale, self.scale),
            ddof=self.ddof,
            eps=self.eps,
            spread_about=self.about,
            lone_row=self.lone_row or "raw",
            whiten_tokens=self.second.startswith("tokens"),
            whiten_ddof=int(self.second[-1]) if self.second else 1,
            mask_no_eos=self.rows == "ended",
            reward_clip=self.clip,
        )


GROUPING_WORDS = {
    "prompt": "by prompt",
    "runs": "by draw: equal prompts that stand together",
    "text": "by prompt text",
    "id and text": "by id and text",
    "without copies": "by prompt, without the copies that fill a step",
    "given": "as given",
}


def plainness(r: Reading) -> tuple:
    """Usual computations first, among those that fit equally well."""
    usual = ("grpo", "dr_grpo", "rloo", "rloo_vectorized", "batch_zscore")
    name = r.estimator
    return (
        r.rows == "all",
        r.rows == "ended",
        r.grouping != "prompt",
        r.clip is not None,
        bool(r.second),
        r.eps_at != "after",
        r.about != "mean",
        usual.index(name) if name in usual else len(usual),
    )
