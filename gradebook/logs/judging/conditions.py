"""Conditions: the bugs that the numbers of a correct computation would be, if
other settings were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from gradebook.core.settings import Settings
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.judging.declared import Asked
from gradebook.logs.judging.reading import Reading
from gradebook.logs.judging.search import Found
from gradebook.logs.judging.suspects import Suspect


def settings_to_try(
    asked: Asked, readings: Iterable[Reading], steps: LoggedSteps
) -> tuple[Settings, ...]:
    """The settings under which a condition may make a bug of the readings. What
    a lone row gets matters only where groups or strides leave one."""
    sizes = steps.groups.size
    whole = bool((sizes == sizes[0]).all()) and sizes[0] > 1
    details: dict[tuple[int, float], None] = {}
    for r in list(readings)[:6]:
        if r.divides and r.eps_at == "after":
            details[r.ddof, r.eps] = None
    details = details or {(1, 1e-6): None, (0, 1e-6): None}
    few = list(details)[:2]
    declared = dict(asked.declared)
    shapes: tuple[dict[str, Any], ...] = (
        {},
        {"scale": "none"},
        {"baseline": "leave_one_out", "scale": "none"},
        {"baseline": "batch_mean", "scale": "none"},
        {"baseline": "batch_mean", "scale": "batch_std"},
        {"scale": "batch_std"},
    )
    own: list[dict[str, Any]] = [
        {"baseline": r.baseline, "scale": r.scale, "lone_row": r.settings.lone_row}
        for r in list(readings)[:3]
        if r.settings.baseline == r.baseline and r.settings.scale == r.scale
    ]
    found: dict[Settings, None] = {}
    for lone_row in ("raw",) if whole else ("raw", "zero"):
        for changes in (*own, *shapes):
            for ddof, eps in few if changes.get("scale") != "none" else few[:1]:
                free = {"lone_row": lone_row, "ddof": ddof, "eps": eps, **changes}
                free = {k: v for k, v in free.items() if k not in declared}
                found[Settings(**{**free, **declared})] = None
    for r in list(readings)[:3]:
        if r.second.startswith("tokens"):
            found[replace(r.settings, **declared)] = None
    return tuple(found)


def conditions_of(found: Found, usable: np.ndarray) -> tuple[Suspect, ...]:
    """A suspect of each bug that fits all usable steps while the correct
    engine under its settings does not: what these numbers would be, if those
    settings were asked for."""
    chosen: dict[str, Suspect] = {}
    for suspect, fit in found.suspects.items():
        if suspect.bug in chosen or not fit.good[usable].all():
            continue
        if suspect.record.loses:
            continue  # rounding is no other setting's computation
        correct = found.correct(suspect)
        if not correct.good[usable].all():
            chosen[suspect.bug] = suspect
    return tuple(sorted(chosen.values(), key=lambda s: len(s.record.columns)))
