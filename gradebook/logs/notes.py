"""Notes: what else a reader of a verdict should know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gradebook.logs.candidates.trl import Reading
from gradebook.logs.judging.judgement import Judgement
from gradebook.logs.judging.sentences import count, unchecked
from gradebook.logs.read.log import Log

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording

NAMED = 5
"""So many steps, or problems, are named; the rest are counted."""


def notes_of(
    log: Log,
    j: Judgement | None,
    reading: Reading,
    has: frozenset[str],
    set_apart: int,
) -> tuple[str, ...]:
    """Notes on the reading, then on the verdict. `has` are the log's
    canonical columns."""
    notes = _left_out(log, set_apart)
    notes += incomplete(log.recording)
    notes += reading.notes
    if j is not None:
        rounding = j.found.ruler.advantage
        if rounding:
            notes.append(
                f"Advantages are {rounding.words}; that much is allowed for where"
                " nothing fits exactly."
            )
        quiet = int((j.frame["verdict"] == "cannot tell").sum())
        if quiet and j.verdict in ("correct", "other", "suspect"):
            steps = f"{quiet:,} of {count(len(j.frame), 'step')}"
            notes.append(f"{steps} can tell nothing; they agree with the verdict.")
    return (*notes, *unchecked(has)[1])


def incomplete(recording: Recording | None) -> list[str]:
    """What a recording lacks; nothing for another log."""
    notes: list[str] = []
    if recording is None:
        return notes
    missing = recording.missing()
    if missing:
        some = "; ".join(
            f"step {step}: {_ranks(ranks)}"
            for step, ranks in islice(missing.items(), NAMED)
        )
        more = "; …" if len(missing) > NAMED else ""
        steps = count(len(missing), "step is", "steps are")
        notes.append(
            f"{steps} not judged, since rows of some ranks are missing ({some}{more})."
        )
    if recording.problems:
        problems = count(len(recording.problems), "problem")
        some = "; ".join(recording.problems[:NAMED])
        more = "; …" if len(recording.problems) > NAMED else ""
        notes.append(f"The recording has {problems}: {some}{more}")
    if recording.by_token:
        notes.append(
            "Advantages differ between the tokens of a row; the mean over"
            " its unmasked tokens is judged."
        )
    return notes


def _ranks(ranks: Sequence[int]) -> str:
    """'rank 1', 'ranks 1 and 2', 'ranks 1, 2 and 3'."""
    names = [str(rank) for rank in ranks]
    if len(names) == 1:
        return f"rank {names[0]}"
    return f"ranks {', '.join(names[:-1])} and {names[-1]}"


def _left_out(log: Log, set_apart: int) -> list[str]:
    notes = []
    if log.broken_files:
        files = len(log.sources)
        notes.append(
            f"{log.broken_files} of {count(files, 'file')} could not be read"
            " to the end; the others are checked."
        )
    if set_apart:
        rows = count(set_apart, "row belongs", "rows belong")
        notes.append(
            f"{rows} to an evaluation among the training rows, or to a group"
            " that it cut short; they are set apart and not judged."
        )
    if log.gathered and not log.repeated:
        notes.append(
            "Rows of a step stand apart in this log; they were brought"
            " together in the order in which they stand."
        )
    if log.repeated:
        notes.append(
            f"{count(log.repeated, 'step stands', 'steps stand')} twice, as"
            " after a resumed run; each time is judged by itself."
        )
    if log.broken_cells:
        cells = count(log.broken_cells, "broken cell was", "broken cells were")
        steps = count(len(log.broken_steps), "step is", "steps are")
        if log.without:
            steps = f"all {count(log.without, 'row')} of these prompts are"
        notes.append(f"{cells} left out; {steps} not judged for it.")
    return notes
