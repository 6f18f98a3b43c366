"""Notes: what else a reader of a verdict should know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gradebook.logs.read.whole_steps import Log
from gradebook.logs.verdict.search import Search
from gradebook.logs.verdict.sentences import (
    convention_notes,
    count,
    unchecked_notes,
)
from gradebook.logs.verdict.tally import Named

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording

NAMED = 5
"""So many steps, or problems, are named; the rest are counted."""


def notes_of(
    log: Log,
    found: Named,
    *,
    reading: Sequence[str],
    search: Search,
    has: frozenset[str] | None,
) -> tuple[str, ...]:
    """Notes on the reading, then on the verdict. `has` are the log's
    canonical columns, None where no step of it was judged."""
    notes = []
    notes += _left_out(log)
    if log.recording is not None:
        notes += _recorded(log.recording)
    if search.unsearched:
        tried = "was" if search.unsearched == 1 else "were"
        notes.append(
            f"{count(search.unsearched, 'step')} that nothing fits {tried}"
            " tried only with what was found on others."
        )
    if search.by_prompts:
        notes.append(
            "Of a large step that nothing fits, some prompts were searched."
            " What depends on the whole batch was computed for all rows only"
            " where it comes close on these."
        )
    notes += reading
    if search.rounding:
        notes.append(
            f"Advantages are {search.rounding.words}; that much is allowed for"
            " where nothing fits exactly."
        )
    frame = found.frame
    quiet = int((frame["verdict"] == "cannot tell").sum())
    if quiet and found.verdict in ("correct", "suspect"):
        steps = f"{quiet:,} of {count(len(frame), 'step')}"
        notes.append(f"{steps} can tell nothing; they agree with the verdict.")
    notes += convention_notes(found)
    if has is not None:
        notes += unchecked_notes(has)
    return tuple(notes)


def _recorded(recording: Recording) -> list[str]:
    """What a recording lacks."""
    notes = []
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


def _left_out(log: Log) -> list[str]:
    notes = []
    if log.broken_files:
        files = len(log.sources)
        notes.append(
            f"{log.broken_files} of {count(files, 'file')} could not be read"
            " to the end; the others are checked."
        )
    if log.set_apart:
        rows = count(log.set_apart, "row belongs", "rows belong")
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
    if log.split_steps:
        some = ", ".join(map(str, [*log.split_steps][:5]))
        steps = count(len(log.split_steps), "step comes", "steps come")
        notes.append(
            f"{steps} back after others ({some}): sort the log by step, so"
            " that each is whole."
        )
    return notes
