"""`check_log`: files in, a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.candidates import Candidate
from gradebook.logs.candidates.fit import (
    EXACT,
    Rounding,
    rounding_of,
    rounding_of_type,
)
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.reading import logged
from gradebook.logs.candidates.trials import Trials
from gradebook.logs.candidates.trl import Reading, read_as_trl
from gradebook.logs.candidates.wording import in_words
from gradebook.logs.check import in_parts, tried
from gradebook.logs.notes import notes_of
from gradebook.logs.quiet import return_memory, undisturbed
from gradebook.logs.read.sources import Source, sources
from gradebook.logs.read.whole_steps import Log, whole_steps
from gradebook.logs.verdict.search import Search
from gradebook.logs.verdict.sentences import sentence_of, ties_of
from gradebook.logs.verdict.steps import (
    joined,
    results_of,
    without_advantages,
)
from gradebook.logs.verdict.tally import Named, Tally, named
from gradebook.logs.verdict.verdict import Verdict
from gradebook.logs.verdict.what_if import what_if

GATHERED = 2_000_000
"""Rows that are sorted by step in memory where steps do not stand together;
a longer log has to come sorted."""

MOST = 128
"""So many candidates that fit some steps are tried on all steps of a part."""

Progress = Callable[[float, int], object]
"""Called often with the share read and the steps judged, between two
candidates as well. What it raises ends the check."""


def check_log(
    paths: Iterable[str | Path | Source],
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    declared: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict on a log: files, directories or uploads.

    `columns` names columns by hand ({"reward": "score"}), `weights` are
    the reward functions', `group_size` the rows per prompt, `declared` the
    settings that the trainer was given ({"scale": "group"}). A recording
    says all of this itself; what is given here counts before it. Raises
    GradebookError for what cannot be read at all.
    """
    log = Log.of(sources(paths), columns)
    if log.recording is not None:
        declared = {**log.recording.declared, **(declared or {})}
    declared = declared or {}

    def judged(log: Log, search: Search) -> _Work:
        work = _Work(log, search, weights, group_size, declared, progress)
        work.run()
        return work

    with undisturbed():
        search = Search(tried(declared, group_size))
        work = judged(log, search)
        if log.split_steps and log.rows <= GATHERED:
            work = judged(log.again(gathered=True), Search(search.tried))
        if work.is_late:
            search = replace(work.search, unsearched=0, by_prompts=0)
            work = judged(log.again(work.log.gathered), search)
        verdict = work.verdict()
    return_memory()
    return verdict


@dataclass(eq=False)
class _Work:
    """A log being judged, part by part. `first` is how many candidates were
    kept after the first part."""

    log: Log
    search: Search
    weights: Sequence[float] | None
    group_size: int | None
    declared: Mapping[str, Any]
    progress: Progress | None
    reading: Reading | None = None
    rounding: Rounding = EXACT
    has: frozenset[str] | None = None
    lone: bool = False
    tally: Tally = field(default_factory=Tally)
    frames: list[pd.DataFrame] = field(default_factory=list)
    differences: list[pd.DataFrame] = field(default_factory=list)
    first: int = 0

    def run(self) -> None:
        """Reads and judges the log."""
        tell = partial(_tell, self.progress, self.log, self.tally)
        self.search.tried = replace(self.search.tried, tick=tell)
        for steps in self.parts():
            self.judge(steps)
            tell()

    def parts(self) -> Iterator[LoggedSteps]:
        """Whole steps, a part at a time; the first part decides how
        rewards are summed and groups cut."""
        log = self.log
        for table in whole_steps(log):
            if self.reading is None:
                self.reading = read_as_trl(
                    table,
                    log.columns,
                    self.weights,
                    self.group_size,
                )
                if "advantage" in table:
                    values = table["advantage"].to_numpy()
                    self.rounding = _rounding(log, values)
            steps = logged(table, log.columns, self.reading)
            log.set_apart += len(table) - steps.rows
            self.has = steps.has
            yield from in_parts(steps)

    def judge(self, steps: LoggedSteps) -> None:
        """Adds a part's results."""
        voters = steps.batch.mask.any(-1) & steps.batch.eos
        voting = np.bincount(
            steps.batch.prompt_index.numpy()[voters.numpy()],
            minlength=len(steps.groups.size),
        )
        self.lone |= bool((voting <= 1).any())
        if "advantage" not in steps.has:
            self.frames.append(without_advantages(steps))
            self.tally.steps += steps.step_count
            self.differences.append(what_if(steps, self.group_size))
            return
        trials = self.search.run(steps, self.rounding)
        self.first = self.first or len(self.search.kept)
        results = results_of(trials, self._usual())
        self.frames.append(results.frame)
        self._settle(trials)
        self.tally.add(trials, results)

    def _usual(self) -> Candidate | None:
        """The correct candidate by which most steps fit so far."""
        correct = [c for c in self.tally.own if not c.bug and c.listed]
        return max(correct, key=self.tally.count, default=None)

    def _settle(self, trials: Trials) -> None:
        """Tries on all steps of the part what was tried on some of them
        and fits there."""
        every = np.ones(trials.steps.step_count, dtype=bool)
        partly = [
            c
            for c, fit in trials.fits.items()
            if fit.loose.any() and np.isinf(fit.residual).any()
        ]
        for candidate in partly[:MOST]:
            del trials.fits[candidate]
        trials.try_on(every, partly[:MOST])

    @property
    def is_late(self) -> bool:
        """Only a later part called for some candidate, and nothing fits
        every step: what fits might have fitted the parts before."""
        if len(self.search.kept) == self.first:
            return False
        most = max(map(self.tally.count, self.tally.own), default=0)
        return most < self.tally.steps

    def verdict(self) -> Verdict:
        """What all parts say together."""
        log, frame = self.log, joined(self.frames)
        found = self._named(frame)
        frame, c = found.frame, found.candidate
        off = frame[frame["verdict"].isin(["suspect", "none fits"])]
        first = off.iloc[0] if len(off) else None
        missing = log.recording.missing() if log.recording else {}
        source = ""
        if c and c.convention.trainer:
            parts = (c.convention.trainer, c.convention.version)
            source = " ".join(parts) + f", {c.convention.function}"
        return Verdict(
            sentence=sentence_of(found, self.declared, log.empty_advantages),
            verdict=found.verdict,
            bug=c.bug if c and found.verdict == "suspect" else "",
            estimator=c.estimator if c else "",
            convention=in_words(c.settings, self.lone) if c else "",
            source=source,
            settings=dict(c.settings) if c else {},
            group_size=c.group_size if c else None,
            residual=found.residual,
            correct_residual=float(frame["correct_residual"].max())
            if len(frame)
            else np.nan,
            step=None if first is None else first["step"],
            row=None if first is None else int(first["row"]),
            flips=int(frame["flips"].sum()) if len(frame) else 0,
            steps_fitted=int(found.fits.sum()),
            steps_judged=len(frame),
            steps_read=len(frame) + len(log.broken_steps) + len(missing),
            rows=log.rows,
            ties=ties_of(found),
            notes=notes_of(
                log,
                found,
                reading=self.reading.notes if self.reading else (),
                search=self.search,
                has=self.has,
            ),
            columns=log.columns.shown(),
            files=tuple(Path(s.name).name for s in log.sources),
            weights=self.reading.weights if self.reading else (),
            broken=tuple(" ".join(str(e).split()) for e in log.broken),
            broken_cells=log.broken_cells,
            broken_files=log.broken_files,
            empty_advantages=log.empty_advantages,
            set_apart=log.set_apart,
            gathered=log.gathered,
            declared=dict(self.declared),
            missing_ranks=missing,
            problems=log.recording.problems if log.recording else (),
            frame=frame,
            what_if=pd.concat(self.differences, ignore_index=True)
            if self.differences
            else pd.DataFrame(),
        )

    def _named(self, frame: pd.DataFrame) -> Named:
        """What the log is called; with steps that are not whole, nothing
        is called correct."""
        if self.differences or not len(frame):
            none = np.zeros(len(frame), dtype=bool)
            why = "no advantages"
            return Named("cannot tell", None, none, why=why, frame=frame)
        found = named(self.tally, frame)
        kept = ~frame["step"].isin(list(self.log.split_steps)).to_numpy()
        if not kept.all() and found.verdict == "correct":
            return replace(found, verdict="cannot tell", why="split")
        return found


def _tell(progress: Progress | None, log: Log, tally: Tally) -> None:
    """Calls `progress`. It takes the parts of the work that it needs: a
    search that held the work, which holds the search, would stay in memory."""
    if progress is not None:
        progress(log.progress, tally.steps)


def _rounding(log: Log, advantage: np.ndarray) -> Rounding:
    """How advantages were rounded: a recording says so, of another log it
    is guessed."""
    if log.recording is None:
        return rounding_of(advantage)
    return rounding_of_type(log.recording.types["advantage"])
