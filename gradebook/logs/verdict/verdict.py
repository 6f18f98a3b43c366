"""Verdict: what a whole log's advantages are, with the evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from gradebook.bugs import BUGS
from gradebook.core.lazy_pandas import pd
from gradebook.logs.computations import (
    NEEDS,
    TRACELESS,
    Computation,
    title,
    trainer,
    unusual,
)
from gradebook.logs.fits import ALIKE, Fit
from gradebook.logs.verdict.what_if import by_bug

KL_NOTE = (
    "Zero-std KL leaves no trace in advantages, so this check can never"
    " name it."
)

SAYS: Mapping[str, tuple[str, str]] = {
    "partial_groups": ("fixed-stride grouping", "correct grouping"),
    "double_normalization": (
        "a second normalization over transitions",
        "a single normalization",
    ),
    "no_eos_outliers": (
        "a statistic that counts rows without EOS",
        "a statistic without them",
    ),
    "rejected_rows": (
        "a statistic that counts rejected rows",
        "a statistic without them",
    ),
}
"""What a bug computes, and what is correct, in a sentence."""

WANTS: Mapping[str, str] = {
    "rejected_rows": "a response length, mask or accepted flag",
    "no_eos_outliers": "an EOS or truncated flag",
    "double_normalization": "episode steps",
    "partial_groups": "a prompt or group id",
}
"""What a log must hold for a bug to show."""


@dataclass(frozen=True)
class Tie:
    """A name that fits equally well, and why this log cannot tell."""

    name: str
    why: str


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a log's advantages are.

    sentence          the answer
    verdict           correct, suspect, cannot tell or none fits
    bug               a name from BUGS, or ""
    estimator         the estimator's name; settings are its convention
    group_size        rows per prompt where a stride is named
    residual          largest distance of a row from the named computation
    correct_residual  the same from the correct engine
    step, row         where the correct engine is first off, or None
    flips             rows whose sign differs from the correct advantage's
    steps_fitted      steps that the named computation fits
    steps_judged, steps_read, rows   how much there was
    ties, notes       what the log cannot tell, and what else to know
    columns           what each of the log's columns was taken for
    broken            what was left out, the first hundred by place
    broken_cells, broken_files   how many cells, and files
    gathered          steps did not stand together, and were brought so
    frame             one row a step: the columns of `check`, and rows,
                      groups, flips, groups_affected
    cancelled         not all was read
    what_if           for a log without advantages, where the engines would
                      differ: the columns of `what_if`
    """

    sentence: str
    verdict: str
    bug: str = ""
    estimator: str = ""
    convention: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    group_size: int | None = None
    residual: float = math.nan
    correct_residual: float = math.nan
    step: object = None
    row: int | None = None
    flips: int = 0
    steps_fitted: int = 0
    steps_judged: int = 0
    steps_read: int = 0
    rows: int = 0
    ties: tuple[Tie, ...] = ()
    notes: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    broken: tuple[str, ...] = ()
    broken_cells: int = 0
    broken_files: int = 0
    gathered: bool = False
    cancelled: bool = False
    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    what_if: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def exit_code(self) -> int:
        """0 correct, 1 suspect, 2 anything else, or only partly read."""
        if self.verdict == "suspect":
            return 1
        broken = self.broken_cells or self.broken_files
        whole = not self.cancelled and not broken
        return 0 if self.verdict == "correct" and whole else 2

    def to_json(self, indent: int | None = 2) -> str:
        """Everything but what is told by step, as strict JSON; of
        `what_if` the sums over the steps."""
        frames = ("frame", "what_if")
        plain = {k: v for k, v in vars(self).items() if k not in frames}
        plain["what_if"] = by_bug(self.what_if).to_dict("records")
        plain["ties"] = [vars(tie) for tie in self.ties]
        plain["exit_code"] = self.exit_code
        return json.dumps(_jsonable(plain), indent=indent, allow_nan=False)


def _jsonable(value: Any) -> Any:
    """Numbers that JSON has not become text or null."""
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


@dataclass(eq=False)
class Tally:
    """Fits of every computation over all steps read so far.

    Each array is a part's: float64 residuals, NaN where the computation
    was not tried, and whether it fits, bool.
    """

    fits: dict[Computation, dict[int, np.ndarray]] = field(
        default_factory=dict
    )
    residuals: dict[Computation, dict[int, np.ndarray]] = field(
        default_factory=dict
    )
    tight: dict[Computation, int] = field(default_factory=dict)
    steps: int = 0

    def add(self, fits: Mapping[Computation, Fit], steps: int) -> None:
        """Adds a part of so many steps: how each computation fits there."""
        for computation, fit in fits.items():
            if fit.fits.any():
                self.put(computation, self.steps, fit)
        self.steps += steps

    def put(self, computation: Computation, at: int, fit: Fit) -> None:
        """Notes how a computation fits the part whose first step is `at`."""
        known = self.tight.get(computation, 0)
        self.tight[computation] = known + int(fit.tight.sum())
        self.fits.setdefault(computation, {})[at] = fit.fits
        self.residuals.setdefault(computation, {})[at] = fit.residual

    def complete(self) -> bool:
        """Some computation fits every step."""
        return any(self.count(c) == self.steps for c in self.fits)

    def hopeful(self, each: int = 16, most: int = 256) -> list[Computation]:
        """Computations that fit all steps of some parts, and of the other
        parts none, perhaps since they were not tried there: for each part
        some that fit it, correct ones first."""
        found = [
            c
            for c, parts in self.fits.items()
            if all(part.all() for part in parts.values())
        ]
        found.sort(key=lambda c: (bool(c.bug), c.tier))
        taken: dict[Computation, None] = {}
        for at in sorted({at for c in found for at in self.fits[c]}):
            fitting = (c for c in found if at in self.fits[c])
            taken.update(dict.fromkeys(islice(fitting, each)))
        return list(taken)[:most]

    def count(self, computation: Computation) -> int:
        """Steps that it fits."""
        parts = self.fits.get(computation, {})
        return int(sum(part.sum() for part in parts.values()))

    def fitted(self, computation: Computation) -> np.ndarray:
        """bool [steps]."""
        found = np.zeros(self.steps, dtype=bool)
        for at, part in self.fits.get(computation, {}).items():
            found[at : at + len(part)] = part
        return found

    def worst(self, computation: Computation) -> float:
        """Largest residual on the steps that it fits."""
        worst = 0.0
        for at, part in self.fits.get(computation, {}).items():
            if part.any():
                residual = self.residuals[computation][at]
                worst = max(worst, float(residual[part].max()))
        return worst

    def preferred(self, wanted: list[Computation]) -> Computation | None:
        """The first of those that need the least allowance for rounding,
        and whose residual is as small as the smallest."""
        if not wanted:
            return None
        most = max(self.tight[c] for c in wanted)
        wanted = [c for c in wanted if self.tight[c] == most]
        worst = [self.worst(c) for c in wanted]
        bound = max(ALIKE, 3 * min(worst))
        return next(c for c, w in zip(wanted, worst) if w <= bound)


@dataclass(frozen=True, eq=False)
class Named:
    """The computation a log is named by.

    fits   bool [steps] where it (or, for a bug that is only in part of
           the log, the correct engine) fits
    mixed  the correct engine fits where the bug does not
    """

    verdict: str
    computation: Computation | None
    fits: np.ndarray
    alive: tuple[Computation, ...] = ()
    mixed: bool = False


def named(tally: Tally, frame: pd.DataFrame) -> Named:
    """The one computation behind a log, or the closest to it."""
    steps = tally.steps
    none = np.zeros(steps, dtype=bool)
    if not steps or bool((frame["verdict"] == "cannot tell").all()):
        return Named("cannot tell", None, none)
    every = sorted(tally.fits, key=unusual)
    full = [c for c in every if tally.count(c) == steps]
    correct = [c for c in full if not c.bug]
    faulty = [c for c in full if c.bug]
    if correct:
        chosen = tally.preferred(correct)
        alive = (*correct, *faulty)
        return Named("correct", chosen, ~none, alive)
    if faulty:
        chosen = tally.preferred(faulty)
        return Named("suspect", chosen, ~none, tuple(faulty))
    mixed = []
    for c in every:
        if c.bug and tally.count(c):
            either = tally.fitted(c) | tally.fitted(c.correct)
            if either.all():
                mixed.append(c)
    if mixed:
        chosen = tally.preferred(mixed)
        return Named("suspect", chosen, ~none, tuple(mixed), mixed=True)
    best = max(every, key=tally.count, default=None)
    fits = none if best is None else tally.fitted(best)
    return Named("none fits", best, fits)


def by_name(computation: Computation) -> str:
    """The estimator and the trainer's convention, in words."""
    whose = trainer(computation.settings)
    name = title(computation.estimator)
    return f"{name} in {whose}'s convention" if whose else name


def sentence_of(
    found: Named, frame: pd.DataFrame, residual: float, size: int | None
) -> str:
    """The answer in one sentence, with its evidence."""
    c = found.computation
    total = len(frame)
    if found.verdict == "cannot tell":
        return _cannot_tell(frame)
    assert c is not None or found.verdict == "none fits"
    if found.verdict == "correct":
        whose = trainer(c.settings)
        whose = f" in {whose}'s convention" if whose else ""
        return (
            f"These are {title(c.estimator)} advantages{whose}, correct,"
            f" largest residual {residual:.1g} on {total} of {total} steps."
        )
    if found.verdict == "suspect":
        return _suspect(found, frame, residual, size)
    return _none_fits(found, frame)


def _cannot_tell(frame: pd.DataFrame) -> str:
    if not len(frame):
        return "Cannot tell: no step of this log could be judged."
    if bool((frame["estimator"] == "").all()):
        return "Cannot tell: this log has no advantages."
    return (
        "Cannot tell: nothing varies. In every group the rewards are equal"
        " and the advantages are 0, whatever was computed."
    )


def _suspect(
    found: Named, frame: pd.DataFrame, residual: float, size: int | None
) -> str:
    c, total = found.computation, len(frame)
    faulty, correct = SAYS.get(
        c.bug, (f"the replica {c.bug}", "the correct engine")
    )
    more = [f"group size {size}"] if size else []
    inside = ", ".join([by_name(c), *more])
    off = frame[frame["verdict"] == "suspect"]
    where = f"residual {residual:.1g} on {total} of {total} steps"
    if found.mixed:
        where = f"residual {residual:.1g} on {len(off)} of {total} steps"
    if not len(off):
        return f"These are what {faulty} computes ({inside}): {where}."
    first = off.iloc[0]
    largest = float(off["correct_residual"].max())
    text = (
        f"These are what {faulty} computes ({inside}): {where};"
        f" {correct} is off by up to {largest:.3g},"
        f" first at step {first['step']}, row {first['row']}."
    )
    if found.mixed:
        text += " The other steps are correct."
    return text


def _none_fits(found: Named, frame: pd.DataFrame) -> str:
    c = found.computation
    off = frame[~found.fits]
    if c is None or not found.fits.any():
        near = frame.loc[frame["residual"].idxmin()]
        return (
            "None of the known computations fits: the closest is"
            f" {title(near['estimator'])} with residual"
            f" {near['residual']:.2g} at step {near['step']}."
        )
    first = off.iloc[0]
    told = f"first not step {first['step']}"
    if first["verdict"] in ("correct", "suspect"):
        other = first["bug"] or "correct"
        told += f" ({other}, {title(first['estimator'])}, fits there)."
    else:
        told += (
            f" (residual {first['correct_residual']:.2g} there, row"
            f" {first['row']})."
        )
    engine = "correct " if not c.bug else f"{SAYS.get(c.bug, (c.bug,))[0]} in "
    return (
        "None of the known computations fits every step: the closest is"
        f" {engine}{by_name(c)}, which fits {int(found.fits.sum())} of"
        f" {len(frame)} steps, {told}"
    )


def ties_of(found: Named, facts: Mapping[str, bool]) -> tuple[Tie, ...]:
    """What fits equally well, and why. `facts` are those of `log_facts`."""
    c = found.computation
    if c is None or found.verdict not in ("correct", "suspect"):
        return ()
    ties: dict[str, str] = {}
    for other in found.alive:
        if other.bug and other.bug != c.bug:
            ties.setdefault(other.bug, _why(other.bug, facts))
    for other in found.alive:
        same = other.bug == c.bug and other.tier == 1
        if same and other.estimator != c.estimator:
            ties.setdefault(other.estimator, _why(other.estimator, facts))
    if c.estimator == "grpo" or "grpo" in ties:
        ties["grpo_vectorized"] = "it is the same computation as grpo"
    return tuple(Tie(name, why) for name, why in ties.items())


def _why(name: str, facts: Mapping[str, bool]) -> str:
    """Why a log cannot tell `name` from what it is named by."""
    same = "gives the same numbers on every step of this log"
    if name == "partial_groups" and facts.get("full"):
        return (
            "all groups are full: stride grouping gives the same numbers;"
            " a step with a partial group would tell"
        )
    if name == "rejected_rows" and not facts.get("rejected"):
        return (
            "no row is rejected, so there is nobody to count wrongly; a"
            " step with a rejected row would tell"
        )
    if name == "no_eos_outliers" and not facts.get("no_eos"):
        return (
            "every row ended with EOS; a step with a row that did not"
            " would tell"
        )
    if name == "double_normalization":
        return (
            "a second normalization gives the same numbers here; a step"
            " with episodes of different lengths and a changed spread"
            " would tell"
        )
    if name in ("rloo", "rloo_vectorized"):
        return f"{same}; a group with one counted row would tell"
    if name == "gpg":
        return f"{same}; a step with a score of 0 would tell"
    if name == "opo":
        return f"{same}; a group with different response lengths would tell"
    return same


def convention_notes(found: Named) -> tuple[str, ...]:
    """Conventions of the named computation that fit equally well."""
    c = found.computation
    if c is None or c.settings.scale not in ("group_std", "batch_std"):
        return ()
    alike = [
        o.settings.eps
        for o in found.alive
        if (o.bug, o.estimator, o.settings.ddof)
        == (c.bug, c.estimator, c.settings.ddof)
        and o.settings.eps != c.settings.eps
    ]
    others = sorted(set(alike), reverse=True)
    if not others:
        return ()
    words = ", ".join(f"{eps:g}" for eps in others)
    return (
        f"eps {c.settings.eps:g} has the smallest residual; eps {words} fit"
        " within the rounding of the log too.",
    )


def unchecked_notes(has: frozenset[str]) -> tuple[str, ...]:
    """Bugs that these columns cannot show."""
    notes = []
    for name in BUGS:
        needed = NEEDS.get(name, ())
        if name != TRACELESS and needed and not has.intersection(needed):
            wants = WANTS.get(name, ", ".join(needed))
            notes.append(f"Not checked: {name}; that takes {wants}.")
    return (*notes, KL_NOTE)
