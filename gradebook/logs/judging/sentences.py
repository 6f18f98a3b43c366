"""Sentences: the verdict in one, its condition or question in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import bug
from gradebook.core.formatting import short
from gradebook.logs.judging import proof
from gradebook.logs.judging.declared import REJECTS, ROLES
from gradebook.logs.judging.fit import REWARDS, SCORES, distance
from gradebook.logs.judging.judge import OFF, Judgement
from gradebook.logs.judging.reading import COMPUTATIONS, Reading
from gradebook.logs.judging.suspects import Suspect, can_show
from gradebook.logs.judging.views import compute

Columns = Mapping[str, str]
"""Role -> the log's own name of a column."""

SAYS = {
    "mask": "marks the tokens of a response",
    "length": "counts the tokens of a response",
    "eos": "says that a rollout ended with EOS",
    "truncated": "says that a rollout was cut off",
    "finish_reason": "says how a rollout ended",
    "accepted": "says which rollouts were accepted",
    "rejected": "says which rollouts were rejected",
    "scored": "says which rollouts were scored",
    "rollout": "says which rows are pieces of one rollout",
    "text": "is the text of the prompt that a row was generated from",
    "rank": "is the process that a row was trained on",
    "steps": "counts the transitions of an episode",
    "prompt": "says which rows belong together",
}
"""What a column of a role has to mean for a computation that rests on it."""

COUNTS = {
    "eos": "and unfinished rollouts should not count",
    "truncated": "and such rollouts should not count",
    "finish_reason": "and unfinished rollouts should not count",
    "accepted": "and the others should not count",
    "rejected": "and these should not count",
    "scored": "and unscored ones should not count",
    "rollout": "and each rollout should count once",
}
"""What has to be intended, too, for a bug in which rows count."""

CANNOT_TELL = {
    "all zero": "all advantages are 0, although rewards vary within a prompt. {then}",
    "weights": "equal weights of the reward functions give {title}, but the log does"
    " not determine them. Give them with --weights.",
    "rounding": "{title} is within what rounding of the rewards can do, and so may"
    " others be. Log rewards with more digits.",
    "nothing varies": "nothing varies. In every prompt the rewards are equal and the"
    " advantages are 0. Check steps on which rewards differ.",
}


@dataclass(frozen=True)
class Tie:
    """What fits equally well, and why this log cannot tell.

    name   a name from BUGS, or an estimator
    why    a sentence
    title  the name as a person reads it
    """

    name: str
    why: str
    title: str


def count(number: int, one: str, many: str = "") -> str:
    """ "1 step", "2 steps", "1,000 steps"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def sentence_of(j: Judgement, declared: Mapping[str, object], columns: Columns) -> str:
    """The verdict, then its condition or question."""
    asked = ", ".join(f"{k}={v}" for k, v in declared.items())
    if j.verdict == "correct":
        return _correct(j, asked, columns)
    if j.verdict == "other":
        return _other(j, asked)
    if j.suspect is not None:
        return _suspect(j, j.suspect, columns)
    if j.verdict == "asks":
        return _asks(j)
    if j.verdict == "none fits":
        return _none_fits(j)
    title = j.readings[0].title if j.readings else ""
    then = _condition(j.asks) or "Check that the column holds what was trained."
    return f"Cannot tell: {CANNOT_TELL[j.why].format(title=title, then=then)}"


def _readings_in_words(readings: Sequence[Reading]) -> str:
    """The first reading with what cannot be told apart: "GRPO (ddof 1, eps
    1e−6, 1e−8)"; then other names, with "or"."""
    r = readings[0]
    same = [o for o in readings if o.title == r.title and o.eps_at == r.eps_at]
    words = r.words
    eps = list(dict.fromkeys(short(o.eps) for o in same if o.ddof == r.ddof))
    if len(eps) > 1:
        more = f"eps {', '.join(eps[:4])}{', …' if len(eps) > 4 else ''}"
        words = words.replace(f"eps {eps[0]}", more, 1)
    if len({o.ddof for o in same}) > 1:
        words = words.replace(f"ddof {r.ddof}", "ddof 1 or 0", 1)
    first = f"{r.title} ({words})" if words else r.title
    usual = [
        o.title
        for o in readings
        if (o.baseline, o.scale, "") in COMPUTATIONS and o.over in ("", "tokens")
    ]
    titles = [t for t in dict.fromkeys(usual) if t != r.title][:3]
    if not titles:
        return first
    return f"{first}, or {' or '.join(titles)}, which gives the same numbers here"


def _titles(suspects: Sequence[Suspect]) -> str:
    return " or ".join(s.record.title for s in suspects)


def _condition(asks: Sequence[Suspect], named: str = "") -> str:
    """ "If you asked for GRPO, this is Whole batch." """
    titles = [(Reading.of(s.settings).title, s.record.title) for s in asks[:3]]
    parts = [f"asked for {t}, this is {b}" for t, b in titles if t != named]
    return f"If you {'; if you '.join(parts)}." if parts else ""


def _within(j: Judgement) -> str:
    ruler = j.candidates.ruler
    if j.level == REWARDS:
        return f", within the rewards' rounding ({ruler.reward.words})"
    if j.level > SCORES and ruler.advantage:
        return f", within rounding ({ruler.advantage.words})"
    return ", within float32 rounding" if j.level == SCORES else ""


def _correct(j: Judgement, asked: str, columns: Columns) -> str:
    named = _readings_in_words(j.readings) + _within(j)
    rests = "".join(
        f" This holds if {_means(column, columns)}."
        for column in j.readings[0].columns
        if column not in j.candidates.asked.trusted
    )
    if j.candidates.asked.is_declared:
        return f"The advantages match {named}, as declared: {asked}.{rests}"
    then = _condition(j.asks, j.readings[0].title)
    then = then or "If you configured something else, declare it."
    return f"The advantages match {named}.{rests} {then}"


def _means(column: str, columns: Columns, counting: bool = False) -> str:
    """ "`response_length` counts the tokens of a response". `counting`: what it
    means for the question which rows count."""
    role, named = named_as(column, columns, counting)
    if counting and role == "length":
        says = "is 0 where a rollout was rejected, and rejected rollouts should not"
        return f"`{named}` {says} count"
    says = SAYS.get(role, "means what its name says")
    intended = f", {COUNTS[role]}" if counting and role in COUNTS else ""
    return f"`{named}` {says}{intended}"


def named_as(column: str, columns: Columns, counting: bool) -> tuple[str, str]:
    """The role of a log that a column was made of, and the log's name for it."""
    roles = [r for r in ROLES.get(column, ()) if counting or r not in REJECTS]
    role = next((r for r in roles if r in columns), column)
    return role, columns.get(role, role)


def _other(j: Judgement, asked: str) -> str:
    if j.suspect is not None:
        match, named = j.suspect.record.phrase, [j.suspect]
    else:
        match, named = _readings_in_words(j.readings) + _within(j), [*j.asks[:3]]
    then = f" With what you declared, this is {_titles(named)}." if named else ""
    return f"The advantages match {match}; you declared {asked}.{then}"


def _suspect(j: Judgement, s: Suspect, columns: Columns) -> str:
    record, frame = s.record, j.frame
    column = proof.main_column(record)
    counting = record.stage in proof.HOW_ROWS_COUNT
    means = _means(column, columns, counting)
    if j.verdict == "asks" and (counting or record.proof == "column"):
        confirm = "--column {}={}".format(*named_as(column, columns, counting))
        confirm += f" --declared counts={column}" if counting else ""
        return (
            f"If {means}, these advantages match {record.title}. Confirm with"
            f" `{confirm}`."
        )
    inside = [record.title, Reading.of(s.settings).title]
    inside += [f"group size {s.group_size}"] if s.group_size else []
    first = f"The advantages match {record.phrase} ({', '.join(inside)})"
    off = frame[frame["verdict"].isin(OFF)]
    if len(off):
        largest = off["correct_residual"].replace(np.inf, np.nan).max()
        at = off.iloc[0]
        correct = int(frame["verdict"].eq("correct").sum())
        also = f" and the correct computation on {correct:,} others" if correct else ""
        first += (
            f" on {len(off):,} of {count(len(frame), 'step')}{also}. The correct"
            f" advantages differ by up to {short(float(largest), 4)}; the first of"
            f" these steps is {at['step']}, where row {at['row']} differs most"
        )
    if j.verdict == "suspect":
        return f"{first}. This holds if {means}."
    more = f" (or {_titles(j.asks[1:3])})" if len(j.asks) > 1 else ""
    return (
        f"{first}. Is it what was configured? If not, this is {record.title}{more}:"
        f" declare what was, with --declared."
    )


def _asks(j: Judgement) -> str:
    if j.why == "raw reward":
        then = _condition(j.asks) or "If you configured that, declare estimator=none."
        return f"The advantages are the rewards themselves. {then}"
    start, (first, second) = j.change or 0, j.readings
    labels = j.candidates.steps.labels
    then = f" If not, this is {_titles(j.asks[:2])}." if j.asks else ""
    return (
        f"The advantages match {first.title} up to step {labels[start - 1]} and"
        f" {second.title} from step {labels[start]} on. Was it reconfigured at step"
        f" {labels[start]}?{then}"
    )


def _none_fits(j: Judgement) -> str:
    if j.why == "opposite sign":
        return (
            "None fits as it is: the advantages match"
            f" {_readings_in_words(j.readings)} with the opposite sign. Check the sign"
            " of the loss, or of the column."
        )
    near, also = j.candidates.nearest, ""
    if near is not None and near[1] > 0.02:
        share = min(int(100 * near[1]), 99)
        also = f"; the nearest is {near[0].title}, which fits {share} % of the rows"
    return (
        f"None of the known computations fits{also}. Check the columns, the weights of"
        " the rewards and the group size."
    )


def ties_of(j: Judgement) -> tuple[Tie, ...]:
    """What fits equally well, and why."""
    same = "It gives the same numbers on every step of this log."
    ties = [
        Tie(name, f"{same} Only {bug(name).would_tell} can tell them apart.", title)
        for name, title in ((name, bug(name).title) for name in j.ties)
    ]
    if j.readings and j.change is None:
        others = {r.estimator: r.title for r in j.readings}
        others.pop(j.readings[0].estimator)
        ties += [Tie(name, same, title) for name, title in others.items()]
    return tuple(ties)


def unchecked(has: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """One line that names the columns that would let more be checked, and
    the full list."""
    wanted: dict[str, None] = {}
    lines = []
    for record in map(bug, BUGS):
        if not record.in_advantages:
            lines.append(
                f"Not checked: {record.title}. It leaves no trace in advantages; that"
                f" needs {record.tells}."
            )
        elif not can_show(record, has):
            lines.append(f"Not checked: {record.title}. That needs {record.tells}.")
            missing = [c if isinstance(c, str) else c[0] for c in record.columns]
            wanted.update(dict.fromkeys(c for c in missing if c not in has))
    names = ", ".join(wanted)
    line = f"More could be checked with the columns {names}." if wanted else ""
    return line, tuple(lines)


def near_miss(j: Judgement) -> str:
    """One sentence where only the last rows of each step keep the nearest
    reading from fitting; else ""."""
    ruler, steps = j.candidates.ruler, j.candidates.steps
    if j.verdict != "none fits" or j.candidates.nearest is None:
        return ""
    reading = j.candidates.nearest[0]
    if reading.grouping == "without copies":
        return ""
    away = distance(compute(steps, reading).values, steps.advantage)
    misses = away > 10 * (ruler.base + ruler.written)
    fits_again = np.diff(misses.astype(int), prepend=0) < 0
    fits_again[steps.starts] = False
    if fits_again.any() or not 0 < 2 * misses.sum() <= len(misses):
        return ""
    return (
        f"Near miss: {reading.title} fits {(~misses).sum():,} of the {steps.rows:,}"
        " rows, and only the last rows of each step miss. A tail is often a smaller"
        " batch, or padding: log it as a step of its own, or leave it out."
    )
