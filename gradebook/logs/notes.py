"""Notes: what else a reader of a verdict should know."""

from __future__ import annotations

from collections.abc import Sequence

from gradebook.logs.judging.judge import Judgement
from gradebook.logs.judging.sentences import count
from gradebook.logs.read.log import Log

NAMED = 5
"""So many steps, or problems, are named; the rest are counted."""


def judged(j: Judgement) -> list[str]:
    """Notes on a judgement."""
    notes = []
    rounding = j.candidates.ruler.advantage
    if rounding:
        notes.append(
            f"Advantages are {rounding.words}; that much is allowed for where"
            " nothing fits exactly."
        )
    quiet = int((j.frame["verdict"] == "cannot tell").sum())
    if quiet and j.verdict in ("correct", "other", "suspect"):
        steps = f"{quiet:,} of {count(len(j.frame), 'step')}"
        notes.append(f"{steps} can tell nothing; they agree with the verdict.")
    return notes


def incomplete(log: Log) -> list[str]:
    """What a recording lacks; nothing for another log."""
    notes: list[str] = []
    recording = log.recording
    if recording is None:
        return notes
    missing = recording.missing()
    if missing:
        some = [
            f"step {step}: {'rank' if len(ranks) == 1 else 'ranks'}"
            f" {', '.join(map(str, ranks))}"
            for step, ranks in missing.items()
        ]
        steps = count(len(missing), "step is", "steps are")
        notes.append(
            f"{steps} not judged, since rows of some ranks are missing"
            f" ({_first(some)})."
        )
    if recording.problems:
        problems = count(len(recording.problems), "problem")
        notes.append(f"The recording has {problems}: {_first(recording.problems)}")
    if recording.by_token:
        notes.append(
            "Advantages differ between the tokens of a row; the mean over"
            " its unmasked tokens is judged."
        )
    return notes


def _first(items: Sequence[str]) -> str:
    return "; ".join([*items[:NAMED], *["…"][: len(items) > NAMED]])


def left_out(log: Log, set_apart: int) -> list[str]:
    """What of a log is not judged, and what was brought together."""
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
            "The rows of a step are not next to each other in this log. They were"
            " grouped by step, in their logged order."
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
