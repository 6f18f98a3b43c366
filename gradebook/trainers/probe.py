"""What a function from groups of rewards to advantages computes: its
convention, the eight laws, and the known bugs that give its numbers."""

from __future__ import annotations

import copy
import html
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from gradebook.analysis.law_check import (
    BROKEN,
    BY_CONVENTION,
    HOLDS,
    NOT_MEASURED,
    REFUSED,
    Outcome,
    groups_of,
    judge,
    on_groups,
    step_of,
    words,
)
from gradebook.analysis.laws import EIGHT
from gradebook.bugs import BUGS
from gradebook.cases.record import bug
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.settings import ESTIMATORS, Settings
from gradebook.engine.pipeline import CORRECT, Engine, run
from gradebook.trainers.batches import BATCHES, LAW_BATCHES, Rewards
from gradebook.trainers.child import Child, Unusable
from gradebook.trainers.computations import Answers, Computation, fitting, flat

NAMES = tuple(law.__name__ if callable(law) else str(law) for law in EIGHT)
"""The eight laws, by name."""

CLEAR = (BROKEN, HOLDS, REFUSED, BY_CONVENTION, NOT_MEASURED)


@dataclass(frozen=True)
class Shown:
    """A batch that shows something: rewards and advantages by prompt."""

    rewards: Rewards
    advantages: list[list[float]] | None
    sentence: str


@dataclass(frozen=True)
class Probe:
    """What a probe found.

    convention  baseline, scale, ddof, eps, lone_row, missing, float_type,
                ragged, each in a word or '' where it cannot be told
    computes    the computation in a line
    declared    what was asked for, and whether it is what was found
    laws        law -> holds, broken, refused, by convention, not measured
    bugs        bug -> the smallest batch that shows it
    shown       law that is broken -> the batch that shows it
    troubles    batch -> what went wrong there
    notes       what else the reader must know
    """

    convention: Mapping[str, str]
    computes: str
    declared: Mapping[str, Any]
    matches: bool | None
    laws: Mapping[str, str]
    bugs: Mapping[str, Shown]
    shown: Mapping[str, Shown]
    troubles: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        """0 nothing against it; 1 a bug, a broken law, or not what was
        declared; 2 it cannot be told."""
        if self.bugs or BROKEN in self.laws.values() or self.matches is False:
            return 1
        return 0 if self.computes else 2

    def to_dict(self) -> dict[str, Any]:
        """For machines: numbers, text, lists and dicts."""

        def plain(of: Mapping[str, Shown]) -> dict[str, Any]:
            return {name: vars(one) for name, one in of.items()}

        return {
            **vars(self),
            "convention": dict(self.convention),
            "declared": dict(self.declared),
            "laws": dict(self.laws),
            "bugs": plain(self.bugs),
            "shown": plain(self.shown),
            "troubles": dict(self.troubles),
            "notes": list(self.notes),
            "exit_code": self.exit_code,
        }

    def __str__(self) -> str:
        lines = [f"Computes {self.computes or 'none of the known computations'}."]
        lines += [
            f"  {name.replace('_', ' ')}: {value}"
            for name, value in self.convention.items()
            if value
        ]
        if self.matches is not None:
            asked = ", ".join(f"{k}={v}" for k, v in self.declared.items())
            word = "is" if self.matches else "is not"
            lines.append(f"That {word} what was declared: {asked}.")
        lines.append("Laws:")
        for name, answer in self.laws.items():
            why = self.shown[name].sentence if name in self.shown else words(name)
            lines.append(f"  {answer}: {why}")
        for name, shown in self.bugs.items():
            lines.append(f"{bug(name).title} gives these numbers: {shown.sentence}")
        lines += [f"On {name}: {what}" for name, what in self.troubles.items()]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        head, *rest = str(self).splitlines()
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return f"<p><b>{html.escape(head)}</b></p><ul>{items}</ul>"


def probe(
    function: Callable[[Rewards], Sequence[Sequence[float]]] | None = None,
    declared: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[tuple[Rewards, Any]] | None = None,
) -> Probe:
    """Says what a function from rewards to advantages computes.

    function  takes groups of rewards, a list for each prompt with None where
              a reward is missing; returns advantages in the same shape. Runs
              in a process of its own (5 s a call, 60 s in all).
    declared  what it should compute: {"estimator": "grpo"}, or settings
    outputs   pairs of rewards and advantages instead of a function

    >>> rewards = [[1.0, 0.0, 3.0, 5.0], [2.0, 4.0, 0.0, 1.0]]
    >>> advantages = [[r - sum(g) / len(g) for r in g] for g in rewards]
    >>> probe(outputs=[(rewards, advantages)]).convention["scale"]
    'none'

    Raises GradebookError for a declaration that cannot be read.

    >>> def centred(groups):
    ...     return [[r - sum(g) / len(g) for r in g] for g in groups]
    >>> pairs = [(g, centred(g)) for g in ([[1.0, 0.0, 0.0]], [[2.0, 5.0]])]
    >>> probe(outputs=pairs).laws["zero_sum"]
    'holds'
    """
    if (function is None) == (outputs is None):
        raise refuse("a function or outputs", "both or none", "probe")
    if outputs is not None:
        recorded = _Recorded(outputs)
        named = {f"output {n}": rewards for n, (rewards, _) in enumerate(outputs)}
        return examine(recorded, declared, named, tuple(named))
    with Child(function) as child:
        return examine(child, declared, notes=child.notes)


class _Recorded:
    """A function that knows a few answers."""

    def __init__(self, outputs: Sequence[tuple[Rewards, Any]]) -> None:
        self.known = {json.dumps(rewards): answer for rewards, answer in outputs}

    def __call__(self, rewards: Rewards) -> Any:
        key = json.dumps([[_whole(r) for r in group] for group in rewards])
        for known, answer in self.known.items():
            if json.loads(known) == json.loads(key):
                return answer
        raise Unusable("no such pair")


def _whole(reward: float | None) -> float | None:
    return None if reward is None else float(reward)


def examine(
    function: Callable[[Rewards], Any],
    declared: Mapping[str, Any] | None = None,
    batches: Mapping[str, Rewards] = BATCHES,
    law_batches: Sequence[str] = LAW_BATCHES,
    notes: Sequence[str] = (),
) -> Probe:
    """The probe of a function that is trusted: it runs in this process."""
    asked = settings_of(declared)
    calls = _Calls(function)
    answers: dict[str, tuple[Rewards, list[list[float]]]] = {}
    troubles: dict[str, str] = {}
    for name, rewards in batches.items():
        try:
            answers[name] = (rewards, calls(rewards))
        except GradebookError as error:
            troubles[name] = str(error)
    finite = {n: p for n, p in answers.items() if None not in flat(p[0])}
    found = fitting(finite)
    convention = _described(found, answers, troubles)
    settings = _settings(found, convention)
    laws: dict[str, str] = {}
    shown: dict[str, Shown] = {}
    for law in NAMES:
        outcome = _clearest(law, calls, settings, batches, law_batches, found)
        laws[law] = outcome.answer
        if outcome.answer == BROKEN and outcome.change is not None:
            rewards = groups_of(outcome.change.step)
            with suppress(GradebookError):
                shown[law] = Shown(rewards, calls(rewards), outcome.sentence)
    if not isinstance(function, _Recorded):
        notes = [*notes]
    else:
        laws = {k: NOT_MEASURED if v == REFUSED else v for k, v in laws.items()}
    bugs = _bugs(found, settings, answers, "a lost row" in troubles)
    return Probe(
        convention,
        found.text if found else "",
        dict(declared or {}),
        _matches(asked, finite) if declared else None,
        laws,
        bugs,
        shown,
        troubles,
        tuple(notes),
    )


def settings_of(declared: Mapping[str, Any] | None) -> Settings:
    """What was declared, as Settings. Raises GradebookError."""
    known = dict(declared or {})
    estimator = known.pop("estimator", None)
    if estimator is not None and estimator not in ESTIMATORS:
        raise refuse("one of " + ", ".join(ESTIMATORS), estimator, "estimator")
    base = ESTIMATORS[estimator] if estimator else Settings()
    for name in known:
        if name not in base:
            raise refuse("estimator, or one of " + ", ".join(base), name, name)
    return Settings(**{**base, **known})


class _Calls:
    """The function, checked, with each answer kept."""

    def __init__(self, function: Callable[[Rewards], Any]) -> None:
        self.function = function
        self.kept: dict[str, Any] = {}
        self.until = time.monotonic() + 60

    def __call__(self, rewards: Rewards) -> list[list[float]]:
        key = json.dumps(rewards)
        if key not in self.kept:
            try:
                self.kept[key] = checked(rewards, self.function(copy.deepcopy(rewards)))
            except Exception as error:
                kind = (
                    "" if isinstance(error, Unusable) else type(error).__name__ + ": "
                )
                self.kept[key] = GradebookError(f"{kind}{error}"[:300])
        answer = self.kept[key]
        if isinstance(answer, GradebookError):
            raise answer
        return answer


def checked(rewards: Rewards, answer: Any) -> list[list[float]]:
    """Advantages in the shape of the rewards. Raises Unusable."""
    try:
        shape = [len(group) for group in answer]
        values = [[float(one) for one in group] for group in answer]
    except (TypeError, ValueError):
        raise Unusable(f"returned no groups of numbers: {answer!r:.60}") from None
    if shape != [len(group) for group in rewards]:
        raise Unusable(f"returned another shape: {shape} rows by prompt")
    if any(isinstance(one, str) for group in answer for one in group):
        raise Unusable("returned text")
    wrong = [one for one in flat(values) if not math.isfinite(one)]
    if wrong:
        raise Unusable("returned " + ("NaN" if math.isnan(wrong[0]) else "infinity"))
    return values


def _described(
    found: Computation | None, answers: Answers, troubles: Mapping[str, str]
) -> dict[str, str]:
    """The convention in words, by the batches that tell."""
    scaled = found is not None and found.scale in ("group_std", "batch_std")
    told = {
        "baseline": found.baseline if found else "",
        "scale": found.scale if found else "",
        "ddof": str(found.ddof) if found and scaled else "",
        "eps": f"{found.eps:g}" if found and found.eps else "",
        "lone_row": "",
        "missing": "",
        "float_type": "",
        "ragged": "",
    }
    if "lone rows" in answers:
        rewards, advantages = map(flat, answers["lone rows"])
        zero = max(map(abs, advantages)) < 1e-9
        raw = max(abs(a - r) for a, r in zip(advantages, rewards)) < 1e-4
        told["lone_row"] = "zero" if zero else "raw" if raw else "other"
    elif "lone rows" in troubles:
        told["lone_row"] = troubles["lone rows"].removeprefix("returned ")
    if found is None:
        return told
    if "a missing reward" in answers:
        (first, *_), (row, *_) = answers["a missing reward"]
        as_zero = found([[r or 0.0 for r in g] for g in answers["a missing reward"][0]])
        near = max(abs(a - b) for a, b in zip(row, as_zero[0])) < 1e-3
        left_out = abs(row[-1]) < 1e-9 and max(map(abs, row[:3])) < 1e-3
        told["missing"] = "counts as 0" if near else "left out" if left_out else "other"
    elif "a missing reward" in troubles:
        told["missing"] = troubles["a missing reward"].removeprefix("returned ")
    if "a flat group of 0.7" in answers and not found.after:
        rewards, advantages = answers["a flat group of 0.7"]
        off = max(abs(a - b) for a, b in zip(found(rewards)[1], advantages[1]))
        told["float_type"] = "float64" if off < 1e-11 else "float32"
    ragged = [n for n in ("a lost row", "two lost rows") if n in answers]
    if ragged:
        by_prompt = all(
            max(abs(a - b) for a, b in zip(flat(found(r)), flat(v))) < 1e-3
            for r, v in map(answers.__getitem__, ragged)
        )
        told["ragged"] = "by prompt" if by_prompt else "by position"
        if "a lost row" in troubles and not by_prompt:
            told["ragged"] = "by position, refused where rows do not divide"
    elif "a lost row" in troubles:
        told["ragged"] = "refused"
    return told


def _settings(found: Computation | None, convention: Mapping[str, str]) -> Settings:
    """The found convention as Settings, for laws and engines."""
    lone = "raw" if convention["lone_row"] == "raw" else "zero"
    if found is None:
        return Settings(lone_row=lone)
    scale = {"group_mean": "none", "spread": "group_std"}.get(found.scale, found.scale)
    return Settings(
        spread_about="baseline" if found.scale == "spread" else "mean",
        baseline=found.baseline,
        scale=scale,
        ddof=found.ddof,
        eps=found.eps or 1e-12,
        lone_row=lone,
        whiten_tokens=bool(found.after),
        whiten_ddof=found.after_ddof,
    )


def _clearest(
    law: str,
    calls: _Calls,
    settings: Settings,
    batches: Mapping[str, Rewards],
    names: Sequence[str],
    found: Computation | None,
) -> Outcome:
    """The law's clearest answer; the smallest batch that breaks it."""
    outcomes = []
    whole = settings.scale in ("batch_std", "nonzero_share")

    def allowed(step: dict[str, list]) -> list[float]:
        return rounding(groups_of(step), law == "flat", settings, whole)

    by_design = None
    if found is not None and found.scale == "group_mean":
        why = "divided by the group's mean"
        by_design = {"shift": why, "scale": why}
    known = [name for name in names if name in batches and _suits(law, batches[name])]
    for name in sorted(known, key=lambda name: len(flat(batches[name]))):
        step = step_of(batches[name])
        outcome = judge(law, on_groups(calls), step, settings, allowed, by_design)
        if outcome.answer in (BROKEN, BY_CONVENTION):
            return outcome
        outcomes.append(outcome)
    empty = Outcome(NOT_MEASURED, "")
    return min(outcomes, key=lambda one: CLEAR.index(one.answer), default=empty)


def _suits(law: str, rewards: Rewards) -> bool:
    """Missing rewards are for their own law, and so are flat groups."""
    constant = any(len({*group}) == 1 < len(group) for group in rewards)
    if None in flat(rewards):
        return law == "missing"
    return law != "missing" and (law == "flat" or not constant)


def rounding(
    groups: Rewards, exact: bool, settings: Settings, whole: bool = False
) -> list[float]:
    """How far float32 may move each row's advantage: its spacing at the
    rewards' size over the group's deviation."""
    known = [[r for r in group if r is not None] for group in groups]
    largest = max(map(abs, flat(known)), default=0.0)
    spacing = 16 * 2**-24 * max(largest, 1e-3)
    found: list[float] = []
    for group, values in zip(groups, known):
        of = flat(known) if whole else values
        spread = torch.tensor(of or [0.0], dtype=torch.float64).std(correction=0).item()
        divided = settings.scale.endswith("_std") and not exact
        divisor = (spread + settings.eps) or 1.0 if divided else 1.0
        found += [1e-6 + spacing / divisor] * len(group)
    return found


def _matches(asked: Settings, answers: Answers) -> bool | None:
    """Whether the declared computation gives the advantages of whole groups
    with spread, whatever its eps."""
    told = [
        _off(CORRECT, rewards, asked, advantages)
        for name, (rewards, advantages) in answers.items()
        if all(len({*group}) > 1 for group in rewards)
        and len({*map(len, rewards)}) == 1
        and "near 0" not in name
    ]
    return all(off < 5e-3 for off in told) if told else None


def _bugs(
    found: Computation | None, settings: Settings, answers: Answers, refuses: bool
) -> dict[str, Shown]:
    """Bugs whose engine gives a batch's advantages where the correct engine,
    under the convention that the other batches show, does not.

    A function that refuses a lost row is not accused of what it makes of
    other unequal groups: it is never given them.
    """
    seen: dict[str, Shown] = {}
    if found is None or found.after or found.scale == "group_mean":
        return seen
    candidates = [name for name in BUGS if bug(name).in_advantages]
    for name, (rewards, advantages) in sorted(
        answers.items(), key=lambda item: len(flat(item[1][0]))
    ):
        sizes = {*map(len, rewards)}
        unequal = len(sizes) > 1
        if len(rewards) < 2 or max(sizes) < 2 or name.startswith("near 0"):
            continue
        if unequal and (refuses or 1 in sizes):
            continue
        constant = [
            n for n, g in enumerate(rewards) if len({*g}) == 1 and g[0] is not None
        ]
        off = _off(CORRECT, rewards, settings, advantages)
        largest = max(abs(r or 0.0) for r in flat(rewards))
        least = 1e-6 + 2**-22 * largest if constant else 5e-3
        if off <= least:
            continue
        ordered = list(dict.fromkeys([*seen, *candidates]))
        near = [
            one
            for one in ordered
            if _off(bug(one).engine, rewards, settings, advantages) < 0.02 * off
        ] or [
            one
            for one in ordered
            if constant
            and _dust(bug(one).engine, rewards, settings, advantages, constant)
        ]
        if near and near[0] not in seen:
            numbers = ", ".join(f"{a:.3g}" for a in flat(advantages)[:8])
            seen[near[0]] = Shown(rewards, advantages, f"{name}: {numbers}.")
    return seen


def _off(
    engine: Engine, rewards: Rewards, settings: Settings, advantages: Rewards
) -> float:
    """How far the engine's advantages are from these."""
    due = _advantages(engine, rewards, settings)
    if due is None:
        return math.inf
    return max(abs(a - b) / (1 + abs(b)) for a, b in zip(due, flat(advantages)))


def _dust(
    engine: Engine,
    rewards: Rewards,
    settings: Settings,
    advantages: Rewards,
    constant: list[int],
) -> bool:
    """In flat groups the engine gives these numerators. There the deviation
    is rounding too, so the divisor lies between eps and eps plus twice it."""
    plain = Settings(**{**settings, "scale": "none"})
    above = _advantages(engine, rewards, plain)
    exact = _advantages(CORRECT, rewards, plain)
    if (
        above is None
        or exact is None
        or max(map(abs, exact)) == 0
        or settings.scale == "none"
    ):
        return False
    of = [at for at, group in enumerate(rewards) for _ in group]
    pairs = [(x, a) for x, a, g in zip(above, flat(advantages), of) if g in constant]
    eps = settings.eps or 1e-12
    due = _advantages(engine, rewards, settings) or []
    others = [
        abs(x - a) for x, a, g in zip(due, flat(advantages), of) if g not in constant
    ]
    return max(others, default=0.0) < 1e-4 and all(
        x * a > 0
        and 0.99 * abs(x) / (eps + 2 * abs(x)) <= abs(a) <= 1.01 * abs(x) / eps
        for x, a in pairs
    )


def _advantages(
    engine: Engine, rewards: Rewards, settings: Settings
) -> list[float] | None:
    rows = flat(rewards)
    size = max(map(len, rewards))
    batch = Batch(
        prompt=[at for at, group in enumerate(rewards) for _ in group],
        reward=torch.tensor([r or 0.0 for r in rows], dtype=torch.float64),
        scored=[r is not None for r in rows],
        settings=Settings(**{**settings, "group_size": size}),
    )
    try:
        return run(engine, batch).advantage.double().tolist()
    except GradebookError:
        return None
