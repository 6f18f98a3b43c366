"""Settings: the conventions of a trainer. ESTIMATORS: the named ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from gradebook.core import columns
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.vocabulary import BASELINES, SCALES


@dataclass(frozen=True)
class Settings(Mapping[str, Any]):
    """How a trainer turns rewards into advantages and a loss.

    The defaults are GRPO as TRL before 1.10.0 computes it: sample standard
    deviation (ddof 1), eps 1e-4 added to it. TRL 1.10.0 turned `kl_score` on.
    All statistics are taken within one training step: `batch_mean` and
    `batch_std` are of the row's step.

    Rewards, and which rows count:

    reward_bias, reward_scaling, reward_clip  a score is (reward + bias) * scaling, at
                      most the clip in size; none: no clip
    mask_no_eos       rows that did not end with EOS earn no advantage
    min_group_size    groups with fewer rows are dropped before an engine runs
    group_size        the rows per prompt that the trainer was configured with; none:
                      those of the largest group

    From a score to an advantage:

    baseline, scale   what a score is compared with, and what divides the distance:
                      names in gradebook.core.vocabulary
    spread_about      a deviation is about the group's "mean", or the "baseline"
    ddof              1 divides a variance by n - 1, 0 by n
    lone_row          a row without siblings gets advantage 0 ("zero"), or keeps its
                      score ("raw")
    eps_at            eps is added "after" the root of the variance, "inside"
                      it, or is the "least" deviation
    whiten_tokens     advantages are normalized a second time, over the step
    whiten_over       a row's weight in that second normalization: its unmasked "tokens"
                      (verl), 1 ("rows"), or its kept "transitions"
    whiten_ddof       what its variance takes from the number of tokens: 1
                      (verl, slime) or 0 (SkyRL)
    whiten_eps        1e-8 "inside" the root of its variance (verl), or `eps`
                      "after" the root
    prompts_per_step  the number of prompts that the trainer was configured
                      with; none: the step's own number
    micro_batch       rows of one forward pass, in batch order; none: all
                      rows of the step
    eos_by_width      a row as long as the padded width counts as one without
                      EOS, whatever its flag says
    evaluation        one generation a prompt, its first row, is evaluated
    skip_flat         when the loss leaves out groups without spread: always,
                      in training only, or never
    second_over       a row's weight in a second normalization: its kept transitions,
                      all of them, 1; or "none" for no second one

    Length and filter (DAPO):

    overlong_limit    the unmasked tokens from which a row pays all of
                      `overlong_penalty`; none: length costs nothing
    overlong_buffer   the last tokens up to the limit, over which the penalty
                      grows evenly from 0
    overlong_penalty  what is taken off the score at the limit and beyond
    filter_flat       a prompt whose scored rows all have one score before the
                      penalty for length earns no advantage

    How a row's number reaches its tokens:

    credit            row: every token gets it; to_go: what is paid from the
                      token on (REINFORCE++); gae: generalized advantage
                      estimation with the column `value` (PPO)
    gamma, lam        the discount of to_go and gae, and the trace of gae
    clock             which tokens are a step for gamma: those that the model
                      wrote (verl, miles), or all of the response (slime)
    kl_in_reward      what one unit of logp - ref_logp at an unmasked token
                      costs under to_go and gae

    The loss, token by token:

    loss              how tokens are weighted (engine/loss.token_weight): dapo, bnpo,
                      grpo or dr_grpo, which divides by `max_tokens` a row; none: the
                      mask's width
    accumulation      all losses but dapo are divided by so many steps too
    beta              the weight of the KL term
    ratio             rho, of policy and anchor, by token, or sequence: the
                      exponential of the row's mean log-ratio (GSPO)
    surrogate         ppo: -min(rho A, clip(rho) A); cispo: -A logp times rho
                      as a constant of at most `clip_high` (TRL);
                      reinforce: -A logp
    clip_low, clip_high  ppo holds rho within 1 - clip_low and 1 + clip_high
    dual_clip         if A is below 0, ppo's rho counts at most so much
    off_policy        what w = exp(old_logp - behaviour_logp) does. none:
                      nothing; truncate: a token weighs min(w, off_policy_cap)
                      times as much; reject: it weighs w times as much, and
                      leaves the loss if w is below `off_policy_low` or above
                      `off_policy_cap`
    kl_estimator      with d = ref_logp - logp. k1: -d; k2: d d / 2;
                      k3: exp(d) - d - 1
    kl_score          the estimate is multiplied by exp(logp - logp as a
                      constant): the value stays, and the gradient also counts
                      that the policy chose the token (TRL from 1.10.0, NeMo-RL)

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
    eps_at: str = "after"
    group_size: int | None = None
    min_group_size: int = 1
    prompts_per_step: int | None = None
    mask_no_eos: bool = False
    eos_by_width: bool = False
    reward_bias: float = 0.0
    reward_scaling: float = 1.0
    reward_clip: float | None = None
    whiten_tokens: bool = False
    whiten_over: str = "tokens"
    whiten_ddof: int = 1
    whiten_eps: str = "inside"
    beta: float = 0.0
    loss: str = "dapo"
    max_tokens: int | None = None
    accumulation: int = 1
    micro_batch: int | None = None
    evaluation: bool = False
    skip_flat: str = "always"
    second_over: str = "kept_steps"
    overlong_limit: int | None = None
    overlong_buffer: int = 1
    overlong_penalty: float = 1.0
    filter_flat: bool = False
    credit: str = "row"
    gamma: float = 1.0
    lam: float = 1.0
    clock: str = "written"
    kl_in_reward: float = 0.0
    ratio: str = "token"
    surrogate: str = "ppo"
    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = None
    off_policy: str = "none"
    off_policy_low: float = 0.5
    off_policy_cap: float = 2.0
    kl_estimator: str = "k3"
    kl_score: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            check_setting(field.name, getattr(self, field.name))

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


@dataclass(frozen=True)
class Kind:
    """What values a setting takes, and how a person types one.

    expected  what a value has to be, as an error says it
    fits      whether a value, not None, is one
    read      a value from text; raises GradebookError
    options   the values, if they are few
    optional  None is a value too
    """

    expected: str
    fits: Callable[[Any], bool]
    read: Callable[[str], Any]
    options: tuple[str | int, ...] = ()
    optional: bool = False


def _one_of(*options: str | int, **aliases: str) -> Kind:
    """Few values; `aliases` are other words for them."""
    words = {str(option): option for option in options} | aliases

    def read(text: str) -> Any:
        return words.get(text, words.get(text.lower(), text))

    def fits(value: Any) -> bool:
        return type(value) in (str, int) and value in options

    return Kind("one of " + ", ".join(map(str, options)), fits, read, options)


def _number(expected: str, fits: Callable[[float], bool], optional=False) -> Kind:
    def is_number(value: Any) -> bool:
        number = isinstance(value, (int, float)) and type(value) is not bool
        return number and abs(value) <= sys.float_info.max and fits(value)

    return Kind(expected, is_number, columns.number, optional=optional)


def _count(optional: bool = False) -> Kind:
    def fits(value: Any) -> bool:
        return type(value) is int and 1 <= value < 2**31

    return Kind("a whole number from 1", fits, columns.whole, optional=optional)


def _above_zero(optional: bool = False) -> Kind:
    return _number("a number above 0", lambda value: value > 0, optional)


_FLAG = Kind("true or false", lambda value: type(value) is bool, columns.flag)
_FINITE = _number("a finite number", lambda value: True)
_NOT_NEGATIVE = _number("a number of 0 or more", lambda value: value >= 0)
_SHARE = _number("a number from 0 to 1", lambda value: 0 <= value <= 1)
_SCALE_WORDS = {word: s.name for s in SCALES.values() for word in s.aliases}

KINDS: Mapping[str, Kind] = {
    "baseline": _one_of(*BASELINES),
    "scale": _one_of(*SCALES, **_SCALE_WORDS),
    "spread_about": _one_of("mean", "baseline"),
    "ddof": _one_of(1, 0),
    "lone_row": _one_of("zero", "raw"),
    "eps": _NOT_NEGATIVE,
    "eps_at": _one_of("after", "inside", "least"),
    "group_size": _count(optional=True),
    "min_group_size": _count(),
    "prompts_per_step": _count(optional=True),
    "mask_no_eos": _FLAG,
    "eos_by_width": _FLAG,
    "reward_bias": _FINITE,
    "reward_scaling": _FINITE,
    "reward_clip": _above_zero(optional=True),
    "whiten_tokens": _FLAG,
    "whiten_over": _one_of("tokens", "rows", "transitions"),
    "whiten_ddof": _one_of(1, 0),
    "whiten_eps": _one_of("inside", "after"),
    "beta": _NOT_NEGATIVE,
    "loss": _one_of("dapo", "grpo", "bnpo", "dr_grpo"),
    "max_tokens": _count(optional=True),
    "accumulation": _count(),
    "micro_batch": _count(optional=True),
    "evaluation": _FLAG,
    "skip_flat": _one_of("always", "training", "never"),
    "second_over": _one_of("kept_steps", "steps", "rows", "none"),
    "overlong_limit": _count(optional=True),
    "overlong_buffer": _count(),
    "overlong_penalty": _NOT_NEGATIVE,
    "filter_flat": _FLAG,
    "credit": _one_of("row", "to_go", "gae"),
    "gamma": _SHARE,
    "lam": _SHARE,
    "clock": _one_of("written", "all"),
    "kl_in_reward": _NOT_NEGATIVE,
    "ratio": _one_of("token", "sequence"),
    "surrogate": _one_of("ppo", "cispo", "reinforce"),
    "clip_low": _NOT_NEGATIVE,
    "clip_high": _NOT_NEGATIVE,
    "dual_clip": _above_zero(optional=True),
    "off_policy": _one_of("none", "truncate", "reject"),
    "off_policy_low": _NOT_NEGATIVE,
    "off_policy_cap": _NOT_NEGATIVE,
    "kl_estimator": _one_of("k3", "k1", "k2"),
    "kl_score": _FLAG,
}
"""The one table of settings: what values each takes."""

CHOICES = {name: kind.options for name, kind in KINDS.items() if kind.options}
"""The settings that take one of a few values, with those values."""
FLAGS = tuple(name for name, kind in KINDS.items() if kind is _FLAG)
AT_LEAST_ONE = tuple(n for n, kind in KINDS.items() if kind.read is columns.whole)
"""The settings that take a whole number from 1."""


def check_setting(name: str, value: Any) -> None:
    """Raises GradebookError when `value` is not one `name` can take."""
    kind = KINDS[name]
    if not (kind.fits(value) or (value is None and kind.optional)):
        raise refuse(kind.expected, value, name)


def read_setting(name: str, typed: Any) -> Any:
    """A setting's value, from what a person typed or from a value of its own type; ""
    and "none" are None if None is a value. Raises GradebookError naming the setting.

    >>> read_setting("eps", "1e-5"), read_setting("scale", "group")
    (1e-05, 'group_std')
    """
    if name not in KINDS:
        raise refuse("one of " + ", ".join(KINDS), name, name)
    kind, value = KINDS[name], typed
    if isinstance(typed, str):
        text = typed.strip()
        try:
            absent = kind.optional and text.lower() in ("", "none")
            value = None if absent else kind.read(text)
        except GradebookError as error:
            raise error.at(key=name) from None
    check_setting(name, value)
    return value


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
    *("baseline", "scale", "spread_about", "ddof", "lone_row", "eps", "eps_at"),
    *("whiten_tokens", "whiten_over", "whiten_ddof", "whiten_eps"),
)
"""The settings that a named estimator decides."""
