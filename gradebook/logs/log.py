"""`check_log`: files in, a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gradebook.core.lazy_pandas import pd
from gradebook.logs.candidates.logged_steps import LoggedSteps
from gradebook.logs.candidates.reading import logged
from gradebook.logs.candidates.trl import Reading, read_as_trl
from gradebook.logs.judging.declared import asked_of
from gradebook.logs.judging.fit import ruler_of
from gradebook.logs.judging.judge import judge
from gradebook.logs.judging.judgement import Judgement
from gradebook.logs.judging.near_miss import near_miss
from gradebook.logs.judging.sentences import sentence_of, ties_of, unchecked
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.notes import incomplete, notes_of
from gradebook.logs.read.log import Log, read_files
from gradebook.logs.read.sources import Source
from gradebook.logs.what_if import what_if

NO_ADVANTAGES = (
    "Cannot tell: this log has no advantages. Log them beside the rewards, and"
    " check again."
)
NO_STEPS = "Cannot tell: no step of this log could be judged."

Progress = Callable[[float, int], object]
"""Called often with the share read and the steps judged, between two
candidates as well. What it raises ends the check."""


def check_log(
    paths: Iterable[str | Path | Source],
    *,
    columns: Mapping[str, str] | None = None,
    weights: Sequence[float] | None = None,
    group_size: int | None = None,
    places: int | None = None,
    declared: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict on a log: files, directories or uploads.

    `columns` names columns by hand ({"reward": "score"}), `weights` are
    the reward functions', `group_size` the rows per prompt, `places` the
    decimals that advantages were rounded to, `declared` the settings that
    the trainer was given ({"scale": "group"}). A recording says all of this
    itself; what is given here counts before it. Raises GradebookError for
    what cannot be read at all.
    """

    def read(share: float) -> None:
        if progress is not None:
            progress(share, 0)

    log = read_files(paths, columns, read)
    if log.recording is not None:
        declared = {**log.recording.declared, **(declared or {})}
    asked = asked_of(declared, group_size, log.columns.trusted)
    tables = list(log.tables())
    reading, steps = _steps(log, tables, weights, group_size)
    base: dict[str, Any] = {
        "declared": dict(declared or {}),
        "incomplete": tuple(incomplete(log.recording)),
    }
    if steps is None:
        return _verdict(log, NO_STEPS, "cannot tell", **base)
    base["set_apart"] = sum(map(len, tables)) - steps.rows
    if "advantage" not in steps.has:
        lines = what_if(steps, group_size)
        frame = _without_advantages(steps)
        short, _ = unchecked(steps.has)
        return _verdict(
            log,
            NO_ADVANTAGES,
            "cannot tell",
            what_if=lines,
            frame=frame,
            steps_judged=len(frame),
            unchecked=short,
            notes=notes_of(log, None, reading, steps.has, base["set_apart"]),
            weights=reading.weights,
            **base,
        )

    def tick() -> None:
        if progress is not None:
            progress(1.0, steps.step_count)

    j = judge(ruler_of(steps, log.types, places), asked, tick)
    return _judged(log, j, reading, steps, base)


def _steps(
    log: Log,
    tables: list[pd.DataFrame],
    weights: Sequence[float] | None,
    group_size: int | None,
) -> tuple[Reading, LoggedSteps | None]:
    if not tables:
        return Reading((), None), None
    table = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
    reading = read_as_trl(table, log.columns, weights, group_size)
    return reading, logged(table, log.columns, reading)


def _without_advantages(steps: LoggedSteps) -> pd.DataFrame:
    """One row a step that cannot be judged."""
    count = steps.step_count
    frame = pd.DataFrame({"step": steps.labels, "verdict": "cannot tell"})
    frame["bug"] = frame["estimator"] = ""
    frame["ties"] = frame["asks"] = [()] * count
    frame["residual"] = frame["correct_residual"] = np.nan
    frame["row"] = frame["flips"] = frame["groups_affected"] = 0
    frame["rows"] = steps.batch.step_rows.numpy()
    frame["groups"] = np.bincount(steps.groups.step, minlength=count)
    return frame


def _judged(
    log: Log,
    j: Judgement,
    reading: Reading,
    steps: LoggedSteps,
    base: Mapping[str, Any],
) -> Verdict:
    if reading.asks_weights and j.verdict in ("correct", "other"):
        j = replace(j, verdict="cannot tell", why="weights")
    frame, r, s = j.frame, j.reading, j.suspect
    columns = log.columns.shown()
    sentence = sentence_of(j, base["declared"], columns)
    off = frame[frame["verdict"].isin(["suspect", "asks", "other", "none fits"])]
    first = off.iloc[0] if len(off) else None
    named = frame[frame["verdict"] == j.verdict]
    settings = s.settings if s else r.settings if r else {}
    short, _ = unchecked(steps.has)
    return _verdict(
        log,
        sentence,
        j.verdict,
        bug=s.bug if s and j.verdict in ("suspect", "asks") else "",
        asks=tuple(each.bug for each in j.asks),
        estimator=r.estimator if r else "",
        convention=r.words if r else "",
        settings=dict(settings),
        group_size=s.group_size if s else None,
        residual=float(named["residual"].max()) if len(named) else np.nan,
        correct_residual=float(frame["correct_residual"].max()),
        step=None if first is None else first["step"],
        row=None if first is None else int(first["row"]),
        flips=int(frame["flips"].sum()),
        steps_fitted=len(named),
        steps_judged=len(frame),
        ties=ties_of(j),
        notes=notes_of(log, j, reading, steps.has, base["set_apart"]),
        near=near_miss(j),
        unchecked=short,
        weights=reading.weights,
        reading=r,
        suspect=s,
        frame=frame,
        **base,
    )


def _verdict(log: Log, sentence: str, verdict: str, **facts: Any) -> Verdict:
    """A verdict with what reading the log told."""
    missing = log.recording.missing() if log.recording else {}
    if log.empty_advantages:
        rows = "row has" if log.empty_advantages == 1 else "rows have"
        sentence += (
            f" {log.empty_advantages:,} {rows} an empty advantage: their steps are"
            " not judged."
        )
    judged = facts.get("steps_judged", 0)
    return Verdict(
        sentence,
        verdict,
        steps_read=judged + len(log.broken_steps) + len(missing),
        rows=log.rows,
        columns=log.columns.shown(),
        files=tuple(Path(s.name).name for s in log.sources),
        broken=tuple(" ".join(str(e).split()) for e in log.broken),
        broken_cells=log.broken_cells,
        broken_files=log.broken_files,
        empty_advantages=log.empty_advantages,
        missing_ranks=missing,
        problems=log.recording.problems if log.recording else (),
        **facts,
    )
