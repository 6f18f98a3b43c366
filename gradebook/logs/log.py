"""`check_log`: files in, a verdict out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from gradebook.logs.canonical import summed
from gradebook.logs.check import in_parts, judged_part, with_groups
from gradebook.logs.computations import (
    Computation,
    base,
    convention,
    settled,
)
from gradebook.logs.judging import (
    Judging,
    full_groups,
    one_thread,
    restrided,
)
from gradebook.logs.pieces import Log, pieces
from gradebook.logs.places import decimal_places
from gradebook.logs.readers import LIMITS, Limits, Source, sources
from gradebook.logs.results import COLUMNS
from gradebook.logs.rollouts import Rollouts, to_rollouts
from gradebook.logs.trl import Reading, read_as_trl
from gradebook.logs.verdict import (
    Named,
    Tally,
    Verdict,
    convention_notes,
    named,
    sentence_of,
    ties_of,
    unchecked_notes,
)

TIMELINE = ("rows", "groups", "flips", "groups_affected")

Progress = Callable[[float, int], bool | None]
"""Called with the share done and the steps judged; False cancels."""


def check_log(
    paths: Iterable[str | Path | Source],
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    progress: Progress | None = None,
    limits: Limits = LIMITS,
) -> Verdict:
    """The verdict on a log: files, directories or uploads.

    `columns` names columns by hand ({"reward": "score"}), `weights` are
    the reward functions', `group_size` the rows per prompt. Raises
    GradebookError for what cannot be read at all.
    """
    log = Log.of(sources(paths), columns, limits)
    work = _Work(log, weights, group_size)
    with one_thread():
        for rollouts in work.rollouts():
            work.judge(rollouts)
            done = work.tally.steps
            if progress and progress(log.progress, done) is False:
                work.cancelled = True
                break
        if not work.cancelled:
            work.retry()
        return work.verdict()


class _Work:
    """A log being judged, part by part."""

    def __init__(
        self,
        log: Log,
        weights: Sequence[float] | None,
        group_size: int | None,
    ) -> None:
        self.log = log
        self.weights = weights
        self.group_size = group_size
        self.reading: Reading | None = None
        self.places: int | None = None
        self.has: frozenset[str] = frozenset()
        self.tally = Tally()
        self.frames: list[pd.DataFrame] = []
        self.facts = {
            "full": True,
            "rejected": False,
            "no_eos": False,
            "lone": False,
        }
        self.size: int | None = group_size
        self.cancelled = False

    def rollouts(self, log: Log | None = None) -> Iterator[Rollouts]:
        """Whole steps, a part at a time; the first part decides how
        rewards are summed and groups cut."""
        for table in pieces(log or self.log):
            if self.reading is None:
                self.reading = read_as_trl(
                    table, self.log.columns, self.weights, self.group_size
                )
                if "advantage" in table:
                    values = table["advantage"].to_numpy()
                    self.places = decimal_places(values)
            table = with_groups(table, self.log.columns, self.reading)
            whole = to_rollouts(summed(table, self.reading.weights))
            self.has = whole.has
            yield from in_parts(whole)

    def judge(self, rollouts: Rollouts) -> None:
        """Adds a part's results."""
        work, results = judged_part(rollouts, self.places, self.size)
        self._note_facts(work)
        self.frames.append(
            pd.concat([results.frame, results.timeline], axis=1)
        )
        if "advantage" not in rollouts.has:
            self.tally.add({}, rollouts.steps)
            return
        if self.size is None:
            self.size = _telling_size(work)
        self._complete(work)
        suspect = (results.frame["verdict"] == "suspect").to_numpy()
        fits = {}
        for computation, fit in work.fits.items():
            fitted = fit.fits if computation.bug else fit.fits & ~suspect
            fits[computation] = (fitted, fit.residual, fit.tight)
        self.tally.add(fits, rollouts.steps)

    def _complete(self, work: Judging) -> None:
        """Tries, on every step, what fits wherever it was tried, and
        strides of the log's own group size."""
        every = np.ones(work.rollouts.steps, dtype=bool)
        hopeful = [
            c
            for c, fit in work.fits.items()
            if np.isnan(fit.residual).any()
            and fit.fits.any()
            and bool((fit.fits | np.isnan(fit.residual)).all())
        ]
        work.try_all(_bases(hopeful), every)
        strides = [
            restrided(c, "given", self.size)
            for c, fit in work.fits.items()
            if self.size
            and c.bug == "partial_groups"
            and c.stride != "given"
            and fit.fits.any()
        ]
        work.try_all(_bases(strides), every)

    def retry(self) -> None:
        """Where nothing fits every step, reads the log again, for what
        only some parts called for."""
        wanted = self.tally.hopeful()
        if not wanted or self.tally.complete():
            return
        at, log = 0, self.log
        again = Log(log.sources, log.columns, log.limits)
        for rollouts in self.rollouts(again):
            work = Judging(rollouts, self.places, self.size)
            every = np.ones(rollouts.steps, dtype=bool)
            missing = [c for c in wanted if at not in self.tally.fits[c]]
            work.try_all(_bases(missing), every)
            for c in missing:
                if not work.fits[c].fits.all():
                    wanted.remove(c)
                    continue
                self.tally.fits[c][at] = work.fits[c].fits
                self.tally.residuals[c][at] = work.fits[c].residual
                self.tally.tight[c] += int(work.fits[c].tight.sum())
            at += rollouts.steps

    def _note_facts(self, work: Judging) -> None:
        rollouts = work.rollouts
        groups = rollouts.groups
        largest = np.zeros(rollouts.steps, dtype="int64")
        np.maximum.at(largest, groups.step, groups.size)
        self.facts["full"] &= bool(full_groups(rollouts, largest).all())
        self.facts["lone"] |= work.facts.lone
        self.facts["no_eos"] |= work.facts.no_eos
        if work.facts.muted:
            kept = rollouts.batch.mask.any(-1)
            self.facts["rejected"] |= not bool(kept.all())

    def verdict(self) -> Verdict:
        """What all parts say together."""
        log = self.log
        frame = _joined(self.frames)
        kept = ~frame["step"].isin(list(log.split_steps)).to_numpy()
        found = named(self.tally, frame)
        if not kept.all():
            found = replace(found, verdict=_doubted(found.verdict))
        c = found.computation
        lone = self.facts["lone"]
        size = c.settings.group_size if c and c.bug else None
        if c and c.bug == "partial_groups" and not size:
            size = self.size
        residual = self.tally.worst(c) if c else np.nan
        if found.verdict == "none fits" and len(frame):
            residual = float(frame["residual"].max())
        off = frame[frame["verdict"].isin(["suspect", "none fits"])]
        first = off.iloc[0] if len(off) else None
        return Verdict(
            sentence=sentence_of(found, frame, residual, size),
            verdict=found.verdict,
            bug=c.bug if c and found.verdict == "suspect" else "",
            estimator=c.estimator if c else "",
            convention=convention(c.settings, lone) if c else "",
            settings=dict(settled(c.settings, lone)) if c else {},
            group_size=size,
            residual=residual,
            correct_residual=float(frame["correct_residual"].max())
            if len(frame)
            else np.nan,
            step=None if first is None else first["step"],
            row=None if first is None else int(first["row"]),
            flips=int(frame["flips"].sum()) if len(frame) else 0,
            steps_fitted=int(found.fits.sum()),
            steps_judged=len(frame),
            steps_read=len(frame) + len(log.broken_steps),
            rows=log.rows,
            ties=ties_of(found, self.facts),
            notes=self._notes(found, frame),
            columns=log.columns.shown(),
            files=tuple(Path(s.name).name for s in log.sources),
            weights=self.reading.weights if self.reading else (),
            broken=tuple(map(str, log.broken)),
            broken_cells=log.broken_cells,
            cancelled=self.cancelled,
            frame=frame,
        )

    def _notes(self, found: Named, frame: pd.DataFrame) -> tuple[str, ...]:
        log, notes = self.log, []
        if self.cancelled:
            notes.append(
                f"Cancelled after {len(frame)} steps; the rest is not read."
            )
        if log.broken_cells:
            steps = len(log.broken_steps)
            notes.append(
                f"{log.broken_cells} broken cells were left out;"
                f" {steps} {'step is' if steps == 1 else 'steps are'} not"
                " judged for it."
            )
        if log.split_steps:
            some = ", ".join(map(str, [*log.split_steps][:5]))
            notes.append(
                f"{len(log.split_steps)} steps come back after others"
                f" ({some}): sort the log by step, so that they are whole."
            )
        if self.reading:
            notes += self.reading.notes
        if self.places:
            notes.append(
                f"Advantages are rounded to {self.places} decimals; that"
                " much is allowed for where nothing fits exactly."
            )
        quiet = int((frame["verdict"] == "cannot tell").sum())
        if quiet and found.verdict != "cannot tell":
            notes.append(
                f"On {quiet} of {len(frame)} steps nothing varies; they"
                " agree with everything."
            )
        notes += convention_notes(found)
        notes += unchecked_notes(self.has)
        return tuple(notes)


def _doubted(verdict: str) -> str:
    """With steps that are not whole, nothing is called correct."""
    return "cannot tell" if verdict == "correct" else verdict


def _bases(wanted: Iterable[Computation]) -> list[Computation]:
    """The computations that `wanted` are variants of, each once."""
    return list(dict.fromkeys(base(c) for c in wanted))


def _telling_size(work: Judging) -> int | None:
    """The rows per prompt whose strides give the steps that nothing
    correct gives; None where there is no such step."""
    plain = np.zeros(work.rollouts.steps, dtype=bool)
    for c, fit in work.fits.items():
        if not c.bug:
            plain |= fit.fits
    found: Counter[int] = Counter()
    for c, fit in work.fits.items():
        telling = fit.fits & ~plain
        if c.bug == "partial_groups" and telling.any():
            found.update(work.strides(c).numpy()[telling].tolist())
    return found.most_common(1)[0][0] if found else None


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if frames:
        return pd.concat(frames, ignore_index=True)
    return pd.DataFrame({name: [] for name in (*COLUMNS, *TIMELINE)})
