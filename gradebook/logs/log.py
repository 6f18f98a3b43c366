"""`check_log`: files in, a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import ESTIMATORS
from gradebook.logs.candidates.reading import logged
from gradebook.logs.candidates.trl import read_as_trl
from gradebook.logs.judging.declared import asked_of
from gradebook.logs.judging.fit import ruler_of
from gradebook.logs.judging.judge import blank, judge
from gradebook.logs.judging.sentences import (
    near_miss,
    sentence_of,
    ties_of,
    unchecked,
)
from gradebook.logs.judging.verdict import Verdict
from gradebook.logs.notes import incomplete, judged, left_out
from gradebook.logs.read.log import Log, other_prompts, read_files
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
    by_row: tuple[str, ...] = (),
) -> Verdict:
    """The verdict on a log: files, directories or uploads.

    `columns` names columns by hand ({"reward": "score"}), `weights` are
    the reward functions', `group_size` the rows per prompt, `places` the
    decimals that advantages were rounded to, `declared` the settings that
    the trainer was given ({"scale": "group"}). A recording says all of this
    itself; what is given here counts before it. Where nothing fits, another
    column that may name prompts is tried; `by_row` name none. Raises GradebookError for
    what cannot be read at all.
    """

    tell = progress or (lambda share, steps: None)
    log = read_files(paths, columns, lambda share: tell(share, 0), by_row)
    recorded = log.recording.declared if log.recording else {}
    settings = {**recorded, **(declared or {})}
    asked = asked_of(settings, group_size, log.columns.trusted)
    tables = list(log.tables())
    facts: dict[str, Any] = {"declared": settings}
    if not tables:
        return _verdict(log, NO_STEPS, "cannot tell", **facts)
    table = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
    reading = read_as_trl(table, log.columns, weights, group_size)
    steps = logged(table, log.columns, reading)
    facts["weights"] = reading.weights
    facts["set_apart"] = len(table) - steps.rows
    facts["unchecked"], unchecked_bugs = unchecked(steps.has)
    notes = (*left_out(log, facts["set_apart"]), *incomplete(log), *reading.notes)
    if "advantage" not in steps.has:
        engine = replace(ESTIMATORS["grpo"], **asked.declared)
        return _verdict(
            log,
            NO_ADVANTAGES,
            "cannot tell",
            what_if=what_if(steps, engine, group_size),
            frame=blank(steps),
            notes=(*notes, *unchecked_bugs),
            **facts,
        )
    ruler = ruler_of(steps, log.types, places)
    j = judge(ruler, asked, lambda: tell(1.0, steps.step_count))
    if j.verdict == "none fits" and (more := other_prompts(log, columns)):
        other = check_log(
            log.sources,
            columns=columns,
            weights=weights,
            group_size=group_size,
            places=places,
            declared=declared,
            progress=progress,
            by_row=more,
        )
        if other.verdict == "correct":
            return other
    if reading.asks_weights and j.verdict in ("correct", "other"):
        j = replace(j, verdict="cannot tell", why="weights")
    frame, suspect = j.frame, j.suspect
    named = j.readings[0] if j.readings else None
    shown_by = suspect or named
    first = frame[frame["verdict"].isin(["suspect", "asks", "other", "none fits"])][:1]
    fitting = frame[frame["verdict"] == j.verdict]
    return _verdict(
        log,
        sentence_of(j, settings, log.columns.shown()),
        j.verdict,
        bug=j.bug,
        asks=tuple(s.bug for s in j.asks),
        estimator=named.estimator if named else "",
        convention=named.words if named else "",
        settings=dict(shown_by.settings) if shown_by else {},
        group_size=suspect.group_size if suspect else None,
        residual=float(fitting["residual"].max()),
        correct_residual=float(frame["correct_residual"].max()),
        step=next(iter(first["step"]), None),
        row=next(map(int, first["row"]), None),
        flips=int(frame["flips"].sum()),
        steps_fitted=len(fitting),
        ties=ties_of(j),
        notes=(*notes, *judged(j), *unchecked_bugs),
        near=near_miss(j),
        reading=named,
        suspect=suspect,
        frame=frame,
        **facts,
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
    steps = len(facts.get("frame", ()))
    return Verdict(
        sentence,
        verdict,
        steps_judged=steps,
        steps_read=steps + len(log.broken_steps) + len(missing),
        rows=log.rows,
        columns=log.columns.shown(),
        files=tuple(Path(s.name).name for s in log.sources),
        broken=tuple(" ".join(str(e).split()) for e in log.broken),
        broken_cells=log.broken_cells,
        broken_files=log.broken_files,
        empty_advantages=log.empty_advantages,
        incomplete=tuple(incomplete(log)),
        missing_ranks=missing,
        problems=log.recording.problems if log.recording else (),
        **facts,
    )
