"""Vocabulary: every baseline and every scale, each as one record.

The engine, the settings, the formula, the board, the laws, the check and the probe
read these records. A new one costs its function in `gradebook.engine.advantages`, a
record here, and its tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

GROUP, STEP, NOTHING = "group", "step", "nothing"
"""The rows whose scores enter a baseline or a scale: of the row's group, of the row's
step, or none."""


@dataclass(frozen=True)
class Baseline:
    """What a score is compared with.

    name       the value of the setting `baseline`
    function   its function in gradebook.engine.advantages
    compares   GROUP, STEP or NOTHING
    words      the computation without a scale: "the reward minus the group's mean"
    short      the baseline on the board; "" if the board draws none
    formula    the line of a worked formula; {rows} are the rows that have a say
    others     a row's own score has no say
    is_mean    it is the plain mean of the rows that have a say
    centers    a deviation may be measured from it, by `spread_about`; False for the
               group's mean, from which a deviation is measured anyway
    reads      the settings that it reads
    needs      columns that a log must have for it
    breaks     laws that it breaks by design, beside those of a comparison over
               the step
    """

    name: str
    function: str
    compares: str
    words: str
    short: str
    formula: str
    others: bool = False
    is_mean: bool = False
    centers: bool = False
    reads: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()

    @property
    def couples_prompts(self) -> bool:
        """A row's baseline depends on rows of other prompts."""
        return self.compares == STEP


@dataclass(frozen=True)
class Scale:
    """What the distance from the baseline is divided by.

    name       the value of the setting `scale`
    function   its function in gradebook.engine.advantages, without eps
    compares   GROUP, STEP or NOTHING
    words      what follows the baseline's words: " over the group's deviation"
    formula    the line of a worked formula, with {ddof}, {about} and {eps}
    is_std     it is a standard deviation
    others     a row's own score has no say: each row of a group has another divisor
    reads      the settings that it reads; "eps" if eps is added to it, and
               "spread_about" if the deviation may be about the baseline
    breaks     as in a Baseline
    aliases    how trainers' own keys call it
    """

    name: str
    function: str
    compares: str
    words: str
    formula: str
    is_std: bool = False
    others: bool = False
    reads: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def couples_prompts(self) -> bool:
        """A row's scale depends on rows of other prompts."""
        return self.compares == STEP

    @property
    def adds_eps(self) -> bool:
        return "eps" in self.reads


_DEVIATION = ("ddof", "eps", "eps_at", "spread_about")

BASELINES: Mapping[str, Baseline] = {
    record.name: record
    for record in (
        Baseline(
            "group_mean",
            "group_mean",
            GROUP,
            words="the reward minus the group's mean",
            short="group's mean",
            formula="mean of {rows}",
            is_mean=True,
            reads=("lone_row",),
        ),
        Baseline(
            "leave_one_out",
            "leave_one_out",
            GROUP,
            words="leave-one-out",
            short="mean of the others",
            formula="mean of the others, {rows}",
            others=True,
            reads=("lone_row",),
            centers=True,
        ),
        Baseline(
            "batch_mean",
            "batch_mean",
            STEP,
            words="the reward minus the batch's mean",
            short="batch's mean",
            formula="mean of {rows}",
            is_mean=True,
            centers=True,
            breaks=("zero_sum", "flat"),
        ),
        Baseline(
            "none",
            "no_baseline",
            NOTHING,
            words="the reward",
            short="",
            formula="none",
            centers=True,
            breaks=("shift", "zero_sum", "flat"),
        ),
        Baseline(
            "second_best",
            "second_best",
            GROUP,
            words="Pass@k",
            short="second best reward",
            formula="the runner-up for the best of {rows}, else the row itself",
            breaks=("zero_sum",),
        ),
        Baseline(
            "length_weighted_mean",
            "length_weighted_mean",
            GROUP,
            words="OPO",
            short="mean weighted by tokens",
            formula="mean of {rows}, weighted by tokens",
            reads=("lone_row",),
            centers=True,
            needs=("length",),
            breaks=("zero_sum",),
        ),
        Baseline(
            "batch_others",
            "batch_others",
            STEP,
            words="the reward minus the mean of the batch's other rows",
            short="mean of the batch's others",
            formula="mean of the batch's other rows, {rows}",
            others=True,
            centers=True,
            breaks=("zero_sum", "flat"),
        ),
    )
}
"""The baselines by name, the usual ones first."""

SCALES: Mapping[str, Scale] = {
    record.name: record
    for record in (
        Scale(
            "group_std",
            "group_std",
            GROUP,
            words=" over the group's deviation",
            formula="standard deviation (ddof {ddof}) of the group's rows{about}{eps}",
            is_std=True,
            reads=_DEVIATION,
            aliases=("group", "true"),
        ),
        Scale(
            "none",
            "no_scale",
            NOTHING,
            words="",
            formula="1 (no division)",
            aliases=("false",),
        ),
        Scale(
            "batch_std",
            "batch_std",
            STEP,
            words=" over the batch's deviation",
            formula="standard deviation (ddof {ddof}) of the batch's rows{about}{eps}",
            is_std=True,
            reads=_DEVIATION,
            aliases=("batch",),
        ),
        Scale(
            "others_std",
            "others_std",
            GROUP,
            words=" over the deviation of the other rows",
            formula="standard deviation (ddof {ddof}) of the other rows{eps}, or 1 if"
            " they are equal",
            is_std=True,
            others=True,
            reads=("ddof", "eps", "eps_at"),
            breaks=("scale", "zero_sum"),
        ),
        Scale(
            "advantage_std",
            "advantage_std",
            STEP,
            words=" over the batch's deviation of the advantages",
            formula="standard deviation (ddof {ddof}) of the batch's distances from"
            " their baselines{eps}",
            is_std=True,
            reads=("ddof", "eps", "eps_at"),
        ),
        Scale(
            "nonzero_share",
            "nonzero_share",
            STEP,
            words=" over the share of rewards other than 0",
            formula="share of non-zero scores among the counted rows",
        ),
        Scale(
            "group_mean",
            "mean_of_group",
            GROUP,
            words=" over the group's mean",
            formula="mean of the group's rows{eps}",
            reads=("eps", "eps_at"),
            breaks=("shift", "scale", "rising"),
        ),
    )
}
"""The scales by name, the usual ones first."""


OFTEN, SOMETIMES = "often", "sometimes"
"""How often a combination is what people ask their trainer for."""


class Asked(NamedTuple):
    """How often a combination is asked for, and the settings that go with it. The check
    tries each bug under what is asked for, and under nothing else."""

    how: str
    settings: Mapping[str, object] = MappingProxyType({})


class Named(NamedTuple):
    """The name of a combination, as a declaration writes it, its title, and whether
    people ask for it."""

    estimator: str
    title: str
    asked: tuple[Asked, ...] = ()


_ABOUT = MappingProxyType({"spread_about": "baseline"})

NAMED: Mapping[tuple[str, str, str], Named] = {
    ("group_mean", "group_std", ""): Named(
        "grpo", "GRPO", (Asked(OFTEN), Asked(SOMETIMES, {"ddof": 0}))
    ),
    ("group_mean", "none", ""): Named("dr_grpo", "Dr. GRPO", (Asked(OFTEN),)),
    ("leave_one_out", "none", ""): Named("rloo", "RLOO", (Asked(OFTEN),)),
    ("batch_mean", "none", ""): Named(
        "batch_mean/none",
        "REINFORCE with the batch's mean",
        (Asked(OFTEN, _ABOUT),),
    ),
    ("batch_mean", "batch_std", ""): Named(
        "batch_zscore", "a batch z-score", (Asked(OFTEN, _ABOUT),)
    ),
    ("group_mean", "batch_std", ""): Named(
        "grpo_batch_std", "GRPO over the batch's deviation", (Asked(OFTEN),)
    ),
    ("leave_one_out", "group_std", ""): Named(
        "leave_one_out/group_std",
        "leave-one-out over the group's deviation",
        (Asked(SOMETIMES),),
    ),
    ("leave_one_out", "others_std", ""): Named(
        "leave_one_out/others_std",
        "leave-one-out over the deviation of the other rows",
        (Asked(SOMETIMES, {"lone_row": "zero"}),),
    ),
    ("second_best", "group_std", ""): Named(
        "grpo_passk", "Pass@k", (Asked(SOMETIMES),)
    ),
    ("second_best", "none", ""): Named("grpo_passk", "Pass@k without a deviation"),
    ("length_weighted_mean", "none", ""): Named("opo", "OPO", (Asked(SOMETIMES),)),
    ("group_mean", "nonzero_share", ""): Named("gpg", "GPG", (Asked(SOMETIMES),)),
    ("none", "none", ""): Named("none", "the raw reward", (Asked(SOMETIMES),)),
    ("group_mean", "group_mean", ""): Named("maxrl", "MaxRL"),
    ("none", "none", "tokens"): Named("reinforce_plus_plus", "REINFORCE++"),
    ("group_mean", "none", "tokens"): Named(
        "reinforce_plus_plus_baseline", "the REINFORCE++ baseline"
    ),
}
"""Baseline, scale and the weight of a second normalization, "" without one -> the names
of combinations that have one, the usual ones first. Others are named by their parts."""


def asked_for(*how: str) -> tuple[Mapping[str, object], ...]:
    """The settings of the combinations that are asked for so often, once
    normalized."""
    return tuple(
        {"baseline": baseline, "scale": scale, **asked.settings}
        for kind in how
        for (baseline, scale, over), record in NAMED.items()
        for asked in record.asked
        if asked.how == kind and not over
    )


def named(baseline: str, scale: str, over: str = "") -> Named:
    """The names of a computation.

    >>> named("batch_mean", "group_std").title
    "the reward minus the batch's mean over the group's deviation"
    """
    if (baseline, scale, over) in NAMED:
        return NAMED[baseline, scale, over]
    words = BASELINES[baseline].words + SCALES[scale].words
    by_parts = Named(f"{baseline}/{scale}", words)
    once = NAMED.get((baseline, scale, ""), by_parts)
    if not over:
        return once
    name, title = once.estimator, once.title
    return Named(f"{name}, whitened by {over}", f"{title}, then whitened over {over}")
