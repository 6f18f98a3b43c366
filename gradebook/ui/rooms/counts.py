"""The counts of a room, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradebook.classroom.room import Rooms
from gradebook.core.formatting import minus
from gradebook.ui.parts.words import safe


def heads(known: Rooms, room: str, _question: str) -> str:
    """How many learners are in the room."""
    here = known.seats(room)
    verb = "learner is" if here == 1 else "learners are"
    return f'<p class="gb-live"><b>{here} {verb} here</b></p>'


def tally(known: Rooms, room: str, question: str) -> str:
    """How many have answered, and how many see this question."""
    at, here = known.seats_at(room, question), known.seats(room)
    verb = "is" if at == 1 else "are"
    return (
        f'<p class="gb-live"><b>{_answers(known, room, question)}</b>;'
        f" {at} of {here} {verb} at this question.</p>"
    )


def so_far(known: Rooms, room: str, question: str) -> str:
    """How many have answered, for those who wait."""
    said = _answers(known, room, question)
    return f'<p class="gb-live">{said} so far.</p>'


PARTS: Mapping[str, Callable[[Rooms, str, str], str]] = {
    "heads": heads,
    "tally": tally,
    "so_far": so_far,
}


def _answers(known: Rooms, room: str, question: str) -> str:
    total = sum(known.counts(room, question).values())
    return "1 answer" if total == 1 else f"{total} answers"


def split(
    choices: Sequence[str],
    counts: Mapping[int, int],
    answer: int | None = None,
    mine: int | None = None,
) -> str:
    """How the answers split, as numbers and as bars.

    answer  the right choice, once it may be shown
    mine    this learner's choice
    """
    most = max([*counts.values(), 1])
    lines = []
    for choice, text in enumerate(choices):
        count = counts.get(choice, 0)
        marks = [", yours"] if choice == mine else []
        if choice == answer:
            marks.append(", the answer")
        lines.append(
            f"<div>{safe(minus(text))}: <b>{count}</b>{''.join(marks)}"
            f'<i style="width:{7 * count / most:.2f}rem"></i></div>'
        )
    return f'<div class="gb-split">{"".join(lines)}</div>'
