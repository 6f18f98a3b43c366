"""Suspects: bugs under the conventions that a trainer may have been configured with,
one table of them for each log."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.settings import Settings
from gradebook.core.vocabulary import OFTEN, SOMETIMES, asked_for
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.logged_steps import LoggedSteps

STRIDES, PROMPTS = "strides", "prompts"
"""Names in a record: the sizes that a log's groups suggest; and the number of prompts
of a step, or the largest number in any step."""

MOST_ASKED, ALL_ASKED = asked_for(OFTEN), asked_for(OFTEN, SOMETIMES)
"""Settings that a bug is tried under, as changes to GRPO's."""

WHITENED = tuple(
    {**shape, "whiten_tokens": True, "whiten_ddof": ddof}
    for shape in ALL_ASKED
    for ddof in (1, 0)
    if shape["baseline"] in ("group_mean", "leave_one_out", "none")
)
"""The same, normalized once more over tokens."""

DETAILS: tuple[tuple[int, float], ...] = (
    *((1, 1e-6), (0, 1e-6), (1, 1e-4), (0, 1e-9), (1, 1e-9), (1, 1e-8), (0, 1e-8)),
    *((1, 1e-5), (0, 1e-4), (0, 1e-5), (1, 1e-3), (1, 0.0), (0, 0.0)),
)
"""ddof and eps, the usual ones first."""

RAW, ZERO, OWN = "raw", "zero", "own"
TAILS = (RAW, ZERO, OWN)
"""What trainers give rows that are left over when groups are cut by place: the raw
reward over the scale, as an engine gives it to a row in no group; 0; or the advantages
of a group of their own in each step."""

HOW_ROWS_COUNT = ("credited", "counted")
"""Stages that decide which rows count. A log never shows which rows should count."""


@dataclass(frozen=True)
class Suspect:
    """A bug with the settings of one run. A bug that rounds also has the `computation`
    that all other rows follow, and `is_shown` says whether its rows prove the bug.
    `tail`: what becomes of the rows that its engine puts into no group."""

    bug: str
    settings: Settings
    guesses: tuple[tuple[str, Any], ...] = ()
    computation: Computation | None = None
    is_shown: bool = False
    tail: str = RAW

    @property
    def record(self) -> Bug:
        return bug(self.bug)

    @property
    def group_size(self) -> int | None:
        """The stride that was guessed; None if the bug has none."""
        return dict(self.guesses).get("group_size")

    @property
    def correct(self) -> "Candidate":
        """The correct computation under the same settings."""
        return self.computation or Suspect("", self.settings)

    @property
    def decides_votes(self) -> bool:
        """Whether the bug decides which rows count. A log never shows which rows should
        count."""
        return self.record.stage in HOW_ROWS_COUNT

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the bug depends on, the one that says how rows count
        first."""
        return telling_columns(self.record)

    @property
    def cuts_by_place(self) -> bool:
        """The bug cuts rows into groups by their position."""
        return cuts_by_place(self.bug)

    @property
    def is_proved_by_numbers(self) -> bool:
        """Its arithmetic proves it: no column, no groups, no evidence of its own."""
        by_structure = self.record.proof == "structure" and not self.decides_votes
        has_evidence = self.record.evidence is not None
        return by_structure and not has_evidence and not self.cuts_by_place

    @property
    def surety(self) -> int:
        """0 for a bug that its numbers show, 1 for a rounding bug with evidence of its
        own, 2 for a rounding that only float32 explains."""
        return 0 if self.record.evidence is None else 1 if self.computation else 2


Candidate = Computation | Suspect
"""A computation or a bug that may explain a log."""


def conventions(
    declaration: Declaration,
    lone: bool,
    shapes: Sequence[Mapping[str, Any]],
    details: Sequence[tuple[int, float]] = DETAILS[:1],
) -> list[Settings]:
    """Settings to try a bug under, with the declared ones fixed. `lone` says that the
    log has rows without siblings, so that their convention is tried too."""
    tried = [
        {
            "lone_row": lone_row,
            "ddof": ddof,
            "eps": eps,
            **shape,
            **declaration.settings,
        }
        for lone_row, shape in product(("raw", "zero")[: 1 + lone], shapes)
        for ddof, eps in (details if shape.get("scale") != "none" else details[:1])
    ]
    return list(dict.fromkeys(Settings(**changes) for changes in tried))


def settings_beside(
    declaration: Declaration,
    beside: Sequence[Computation],
    steps: LoggedSteps,
) -> list[Settings]:
    """Settings under which computations may be a bug: their own, with a scale or
    without one, and those that are asked for most."""
    usual = [(c.ddof, c.eps) for c in beside[:6] if c.divides and c.eps_at == "after"]
    details = [*dict.fromkeys(usual or DETAILS[:2])][:2]
    names = [
        *("baseline", "scale", "lone_row"),
        *("whiten_tokens", "whiten_over", "whiten_ddof", "whiten_eps"),
    ]
    shapes = [{name: c.settings[name] for name in names} for c in beside[:3]]
    if beside and {beside[0].baseline, beside[0].scale} != {"none"}:
        scale = "none" if beside[0].divides else "group_std"
        shapes.append({**shapes[0], "scale": scale})
    sizes = steps.groups.size  # strides leave a lone row if these are unequal
    lone = bool((sizes != sizes[0]).any() or sizes[0] == 1)
    return conventions(declaration, lone, (*shapes, *MOST_ASKED), details)


def suspects(
    steps: LoggedSteps,
    table: Sequence[Settings],
    names: Sequence[str] = BUGS,
    group_size: int | None = None,
    fixed: Collection[str] = (),
) -> Iterator[Suspect]:
    """Every bug that the log's columns allow, under each of the settings. Settings that
    are `fixed` are not guessed: they were declared."""
    prompts = np.bincount(steps.groups.step)
    most = (None,) if (prompts == prompts[0]).all() else (None, int(prompts.max()))
    places: dict[Any, Sequence[int | None]] = {
        STRIDES: (group_size,) if group_size else strides(steps),
        PROMPTS: most,
    }
    for name in names:
        record = bug(name)
        has_columns = can_show(record, steps.has) or bool(record.without)
        if not record.in_advantages or not has_columns:
            continue
        # Bugs of the sum of rewards that were normalized each are not known.
        if steps.several and record.stage not in HOW_ROWS_COUNT:
            continue
        every_row_ended = bool(steps.batch.eos.all())
        for guess in _guesses(record, places, every_row_ended):
            for settings in table:
                declared = {name: settings[name] for name in guess if name in fixed}
                if declared.items() <= guess.items():
                    suspect = Suspect(
                        name, replace(settings, **guess), tuple(guess.items())
                    )
                    yield from _with_tails(suspect, steps)


def _guesses(
    record: Bug, places: Mapping[Any, Sequence[int | None]], every_row_ended: bool
) -> Iterator[dict[str, Any]]:
    """Each combination of the settings that a bug's record says to try, as the log's
    `places` give their values; and rows without EOS with a vote and without one."""
    values_of: dict[str, Sequence[Any]] = {
        setting: places.get(values[0], values)
        for setting, values in record.guesses.items()
    }
    if not every_row_ended:
        values_of.setdefault("mask_no_eos", (False, True))
    for chosen in product(*values_of.values()):
        yield dict(zip(values_of, chosen))


def strides(steps: LoggedSteps) -> tuple[int | None, ...]:
    """The strides that groups may have been cut by, the likeliest first: the largest
    group of the log, that of each step (None), the commonest, one row more, and what
    divides the largest."""
    rows = steps.groups.size
    largest, commonest = int(rows.max()), int(np.bincount(rows).argmax())
    pieces = [n for n in range(largest // 2, 1, -1) if largest % n == 0]
    whole = (largest, None, commonest, largest + 1, *pieces)
    return tuple(dict.fromkeys(whole))


def _with_tails(suspect: Suspect, steps: LoggedSteps) -> Iterator[Suspect]:
    """The suspect. If it cuts rows by place, also its copies with each of the
    advantages that trainers give the rows past the last full stride."""
    yield suspect
    stride = suspect.group_size or int(steps.groups.size.max())
    over = steps.batch.rows_per_step % stride
    if not suspect.cuts_by_place or not over.any():
        return
    for tail in TAILS[1:]:
        yield replace(suspect, tail=tail)
    if (over == 1).any():  # one row, whose own mean is itself
        alone = replace(suspect.settings, lone_row="zero")
        yield replace(suspect, tail=OWN, settings=alone)


def can_show(record: Bug, has: frozenset[str]) -> bool:
    one_of = (c if isinstance(c, tuple) else (c,) for c in record.columns)
    return all(has.intersection(names) for names in one_of)


def cuts_by_place(name: str) -> bool:
    """The bug cuts rows into groups by their position."""
    return any(STRIDES in values for values in bug(name).guesses.values())


def telling_columns(record: Bug) -> tuple[str, ...]:
    """The columns that the bug depends on, the one that says how rows count first."""
    flat = [c if isinstance(c, str) else c[0] for c in record.columns]
    return tuple(c for c in flat if c != "prompt") or ("prompt",)
