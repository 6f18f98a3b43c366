"""`check_log`: files in, a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.rollouts import Rollouts, to_rollouts
from gradebook.logs.candidates.trl import Reading, read_as_trl, rewarded
from gradebook.logs.check import in_parts, with_groups
from gradebook.logs.computations import Computation, convention, settled
from gradebook.logs.judging import Judging, full_groups, undisturbed
from gradebook.logs.places import decimal_places
from gradebook.logs.read.prefetch import prefetched
from gradebook.logs.read.sources import LIMITS, Limits, Source, sources
from gradebook.logs.read.whole_steps import Log, pieces
from gradebook.logs.results import COLUMNS
from gradebook.logs.search import Search, bases
from gradebook.logs.verdict.verdict import (
    Named,
    Tally,
    Verdict,
    convention_notes,
    named,
    sentence_of,
    ties_of,
    unchecked_notes,
)
from gradebook.logs.verdict.what_if import differences

TIMELINE = ("rows", "groups", "flips", "groups_affected")

GATHERED = 2_000_000
"""Rows that are sorted by step in memory where steps do not stand together;
a longer log has to come sorted."""

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
    with undisturbed():
        work = _Work(log, weights, group_size, progress)
        work.run()
        if log.split_steps and not work.cancelled and log.rows <= GATHERED:
            again = log.again(gathered=True)
            work = _Work(again, weights, group_size, progress)
            work.run()
        return work.verdict()


class _Work:
    """A log being judged, part by part."""

    def __init__(
        self,
        log: Log,
        weights: Sequence[float] | None,
        group_size: int | None,
        progress: Progress | None,
    ) -> None:
        self.log = log
        self.weights = weights
        self.group_size = group_size
        self.progress = progress
        self.reading: Reading | None = None
        self.places: int | None = None
        self.has: frozenset[str] = frozenset()
        self.tally = Tally()
        self.frames: list[pd.DataFrame] = []
        self.differences: list[pd.DataFrame] = []
        self.facts = {
            "full": True,
            "rejected": False,
            "no_eos": False,
            "lone": False,
        }
        self.search = Search(group_size)
        self.cancelled = False
        self.incomplete = False

    def run(self) -> None:
        """Reads and judges the log; a second time where that is needed."""
        with prefetched(self.rollouts()) as parts:
            for rollouts in parts:
                self.judge(rollouts)
                if not self._goes_on(self.log):
                    self.cancelled = True
                    return
        self.incomplete = not self.retry()

    def _goes_on(self, log: Log) -> bool:
        """Tells how far the reading is; false when it is cancelled."""
        if self.progress is None:
            return True
        return self.progress(log.progress, self.tally.steps) is not False

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
            whole = to_rollouts(rewarded(table, self.reading))
            self.has = whole.has
            yield from in_parts(whole)

    def judge(self, rollouts: Rollouts) -> None:
        """Adds a part's results."""
        work, results = self.search.judged(rollouts, self.places)
        self._note_facts(work)
        self.frames.append(
            pd.concat([results.frame, results.timeline], axis=1)
        )
        if "advantage" not in rollouts.has:
            self.tally.add({}, rollouts.steps)
            size = self.search.group_size
            self.differences.append(differences(rollouts, size))
            return
        suspect = (results.frame["verdict"] == "suspect").to_numpy()
        fits = {
            c: fit if c.bug else replace(fit, fits=fit.fits & ~suspect)
            for c, fit in work.fits.items()
        }
        self.tally.add(fits, rollouts.steps)

    def retry(self) -> bool:
        """Where nothing fits every step, reads the log again, for what
        only some parts called for; false when that is cancelled."""
        wanted = self.tally.hopeful()
        if not wanted or self.tally.complete():
            return True
        at, again = 0, self.log.again(self.log.gathered)
        with prefetched(self.rollouts(again)) as parts:
            for rollouts in parts:
                at = self._tried_again(wanted, rollouts, at)
                if not self._goes_on(again):
                    return False
                if not wanted:
                    break
        return True

    def _tried_again(
        self, wanted: list[Computation], rollouts: Rollouts, at: int
    ) -> int:
        """Tries on a part, whose first step is `at`, what was not tried
        there; takes what fails from `wanted`. The next part's first step."""
        search = self.search
        work = Judging(rollouts, search.places, search.group_size)
        every = np.ones(rollouts.steps, dtype=bool)
        missing = [c for c in wanted if at not in self.tally.fits[c]]
        work.try_all(bases(missing), every)
        for c in missing:
            if work.fits[c].fits.all():
                self.tally.put(c, at, work.fits[c])
            else:
                wanted.remove(c)
        return at + rollouts.steps

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
            size = self.search.group_size
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
            broken_files=log.broken_files,
            gathered=log.gathered,
            cancelled=self.cancelled or self.incomplete,
            frame=frame,
            what_if=pd.concat(self.differences, ignore_index=True)
            if self.differences
            else pd.DataFrame(),
        )

    def _notes(self, found: Named, frame: pd.DataFrame) -> tuple[str, ...]:
        log, notes = self.log, []
        if self.cancelled:
            notes.append(
                f"Cancelled after {len(frame)} steps; the rest is not read."
            )
        if self.incomplete:
            notes.append(
                "The second reading was cancelled: what only some steps"
                " called for was not tried on the others."
            )
        if log.broken_files:
            files = len(log.sources)
            notes.append(
                f"{log.broken_files} of {files} files could not be read to"
                " the end; the others are checked."
            )
        if log.gathered:
            notes.append(
                "Rows of a step stand apart in this log; they were brought"
                " together in the order in which they stand."
            )
        if self.search.unsearched:
            notes.append(
                f"{self.search.unsearched} steps that nothing fits were"
                " tried only with what was found on others."
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


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if frames:
        return pd.concat(frames, ignore_index=True)
    return pd.DataFrame({name: [] for name in (*COLUMNS, *TIMELINE)})
