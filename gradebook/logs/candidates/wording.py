"""Wording: conventions and estimators as people write them."""

from __future__ import annotations

from collections.abc import Mapping

from gradebook.core.settings import Settings
from gradebook.logs.candidates.conventions import STANDARD_DEVIATIONS

TITLES: Mapping[str, str] = {
    "grpo": "GRPO",
    "dr_grpo": "Dr. GRPO",
    "rloo": "RLOO",
    "rloo_vectorized": "RLOO (vectorized)",
    "opo": "OPO",
    "gpg": "GPG",
    "grpo_passk": "Pass@k",
    "reinforce_plus_plus": "REINFORCE++",
    "reinforce_plus_plus_baseline": "REINFORCE++ baseline",
    "none": "raw reward",
    "grpo_batch_std": "GRPO over the batch's standard deviation",
}
"""Estimators as people write them."""

PHRASES: Mapping[str, str] = {
    "group_mean": "the group's mean",
    "batch_mean": "the batch's mean",
    "leave_one_out": "the mean of the group's other rows",
    "none": "nothing",
    "group_std": "divided by the group's standard deviation",
    "batch_std": "divided by the batch's standard deviation",
    "others_std": "divided by the standard deviation of the other rows",
}


def title(estimator: str) -> str:
    """The estimator in a sentence: "GRPO", or what it subtracts and
    divides by."""
    if estimator in TITLES:
        return TITLES[estimator]
    baseline, _, scale = estimator.partition("/")
    if baseline == "reinforce_plus_plus_baseline":
        return f"{TITLES[scale]} with whitened tokens"
    words = f"reward less {PHRASES.get(baseline, baseline)}"
    if baseline == "none":
        words = "reward"
    return words + (f", {PHRASES[scale]}" if scale in PHRASES else "")


def in_words(settings: Settings, lone: bool = True) -> str:
    """The settings that matter, in words; `lone`: some group has one
    counted row."""
    words = []
    if settings.scale in STANDARD_DEVIATIONS:
        words += [f"ddof {settings.ddof}", f"eps {settings.eps:g}"]
        if settings.spread_about == "baseline":
            words.append("spread about the baseline")
    elif settings.scale == "none":
        words.append("no standard deviation")
    if lone:
        alone = "0" if settings.lone_row == "raw" else "its own reward"
        words.append(f"a lone row's baseline is {alone}")
    if settings.mask_no_eos:
        words.append("rows without EOS are masked")
    if settings.reward_clip is not None:
        words.append(f"rewards clipped at {settings.reward_clip:g}")
    return ", ".join(words)
