"""Verdict: what a whole log's advantages are, with the evidence, in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradebook.cases.scenario import bug
from gradebook.core.formatting import short
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.judging.fit import REWARDS, SCORES, distance
from gradebook.logs.judging.judge import OFF, Judgement
from gradebook.logs.judging.reading import COMPUTATIONS, REJECTS, ROLES, Reading
from gradebook.logs.judging.space import compute
from gradebook.logs.judging.suspects import HOW_ROWS_COUNT, Suspect, main_column
from gradebook.logs.logged_steps import LoggedSteps


@dataclass(frozen=True)
class Tie:
    """What fits equally well: a bug or an estimator, why this log cannot tell, and
    its name as a person reads it."""

    name: str
    why: str
    title: str


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a log's advantages are.

    sentence          the verdict, then its condition or question
    verdict           correct, other, suspect, asks, cannot tell or none fits
    bug               the suspect, or the bug that is asked about, or ""
    asks              the bugs that these numbers would be under a condition
    convention        details of the estimator
    settings          the engine's settings for pages that show a step
    group_size        rows per prompt where a stride is named
    residual          largest distance of a row from the named computation
    correct_residual  the same from the correct numbers
    step, row         where the correct numbers are first off, or None
    flips             rows whose sign differs from the correct advantage's
    steps_fitted      steps that the named computation fits
    ties, notes       what the log cannot tell, and what else to know
    incomplete        those of the notes that say what a recording lacks
    near              which rows miss, where nothing fits
    unchecked         one line: the columns that would let more be checked
    columns           what each of the log's columns was taken for
    broken            what was left out, the first hundred by place
    empty_advantages  rows with an empty advantage; their steps are not judged
    declared          settings that a person or a recorder named
    missing_ranks     step of a recording -> the ranks that lack a part of it
    problems          what a recorder could not record
    frame             one row a step: what `check` gives
    what_if           for a log without advantages: the columns of `what_if`
    steps, correct    the rows that were judged, and what is correct beside
                      them, float64 [R]
    suspects          the bugs that fit some step, as they were run
    """

    sentence: str
    verdict: str
    bug: str = ""
    asks: tuple[str, ...] = ()
    estimator: str = ""
    convention: str = ""
    settings: Settings = Settings(eps=1e-6)
    group_size: int | None = None
    residual: float = math.nan
    correct_residual: float = math.nan
    step: object = None
    row: int | None = None
    flips: int = 0
    steps_fitted: int = 0
    steps_judged: int = 0
    steps_read: int = 0
    rows: int = 0
    ties: tuple[Tie, ...] = ()
    notes: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    near: str = ""
    unchecked: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    broken: tuple[str, ...] = ()
    broken_cells: int = 0
    broken_files: int = 0
    empty_advantages: int = 0
    declared: Mapping[str, object] = field(default_factory=dict)
    missing_ranks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    what_if: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())
    steps: LoggedSteps | None = None
    correct: np.ndarray = field(default_factory=lambda: np.zeros(0))
    suspects: tuple[Suspect, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 correct; 1 another computation than declared, or proved wrong; 2
        anything else, or only partly read."""
        if self.verdict in ("suspect", "other"):
            return 1
        broken = self.broken_cells or self.broken_files
        partly = broken or self.missing_ranks or self.problems
        return 0 if self.verdict == "correct" and not partly else 2

    def to_json(self, indent: int | None = 2) -> str:
        """Everything but what is told by step, as strict JSON; of
        `what_if` the sums over the steps."""
        by_step = ("frame", "what_if", "steps", "correct", "suspects")
        plain = {k: v for k, v in vars(self).items() if k not in by_step}
        plain["what_if"] = by_bug(self.what_if).to_dict("records")
        plain["ties"] = [vars(tie) for tie in self.ties]
        plain["exit_code"] = self.exit_code
        text = json.dumps(_jsonable(plain), indent=indent, allow_nan=False)
        return text.encode("utf-8", errors="replace").decode("utf-8")


def by_bug(lines: pd.DataFrame) -> pd.DataFrame:
    """What the engines would compute, one row for each bug, most flips first: they
    differ on `steps` of `of`; row and numbers are those of the largest difference."""
    if not len(lines):
        return pd.DataFrame({"bug": [], "steps": []})
    each = lines.assign(off=lines["rows_off"] > 0).groupby("bug", sort=False)
    table = lines.loc[each["largest"].idxmax()].set_index("bug")
    table[["rows_off", "flips"]] = each[["rows_off", "flips"]].sum()
    table = table.assign(steps=each["off"].sum(), of=each["off"].size()).reset_index()
    return table.sort_values(["flips", "rows_off"], ascending=False, kind="stable")


def _jsonable(value: Any) -> Any:
    """Numbers that JSON has not become text or null."""
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


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
    "weights": "the log does not determine the weights of its reward functions. Give"
    " them with --weights.",
    "rounding": "{title} is within what rounding of the rewards can do, and so may"
    " others be. Log rewards with more digits.",
    "nothing varies": "nothing varies. In every prompt the rewards are equal and the"
    " advantages are 0. Check steps on which rewards differ.",
}


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
    if j.verdict == "none fits":
        return _none_fits(j)
    then = _condition(j.asks)
    if j.change is not None:
        return _change(j, j.change)
    if j.verdict == "asks":
        then = then or "If you configured that, declare estimator=none."
        return f"The advantages are the rewards themselves. {then}"
    title = j.readings[0].title if j.readings else ""
    then = then or "Check that the column holds what was trained."
    return f"Cannot tell: {CANNOT_TELL[j.why].format(title=title, then=then)}"


def _readings_in_words(j: Judgement) -> str:
    """The first reading with what cannot be told apart: "GRPO (ddof 1, eps
    1e−6, 1e−8)"; then other names, with "or"; then what rounding explains."""
    readings, ruler, within = j.readings, j.candidates.ruler, ""
    if j.level == REWARDS:
        within = f", within the rewards' rounding ({ruler.reward.words})"
    elif SCORES < j.level < REWARDS and ruler.advantage:
        within = f", within rounding ({ruler.advantage.words})"
    elif j.level == SCORES:
        within = ", within float32 rounding"
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
    if titles:
        first += f", or {' or '.join(titles)}, which gives the same numbers here"
    return first + within


def _titles(suspects: Sequence[Suspect]) -> str:
    return " or ".join(s.record.title for s in suspects)


def _condition(asks: Sequence[Suspect], named: str = "") -> str:
    """ "If you asked for GRPO, this is Whole batch." """
    titles = [(Reading.of(s.settings).title, s.record.title) for s in asks[:3]]
    parts = [f"asked for {t}, this is {b}" for t, b in titles if t != named]
    return f"If you {'; if you '.join(parts)}." if parts else ""


def _correct(j: Judgement, asked: str, columns: Columns) -> str:
    named = _readings_in_words(j)
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
        match, named = _readings_in_words(j), [*j.asks[:3]]
    then = f" With what you declared, this is {_titles(named)}." if named else ""
    return f"The advantages match {match}; you declared {asked}.{then}"


def _suspect(j: Judgement, s: Suspect, columns: Columns) -> str:
    record, frame = s.record, j.frame
    column, counting = main_column(record), record.stage in HOW_ROWS_COUNT
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
        worst = off.iloc[0]
        correct = int(frame["verdict"].eq("correct").sum())
        also = f" and the correct computation on {correct:,} others" if correct else ""
        first += (
            f" on {len(off):,} of {count(len(frame), 'step')}{also}. The correct"
            f" advantages differ by up to {short(float(largest), 4)}; the first of"
            f" these steps is {worst['step']}, where row {worst['row']} differs most"
        )
    if j.verdict == "suspect":
        return f"{first}. This holds if {means}."
    more = f" (or {_titles(j.asks[1:3])})" if len(j.asks) > 1 else ""
    return (
        f"{first}. Is it what was configured? If not, this is {record.title}{more}:"
        f" declare what was, with --declared."
    )


def _change(j: Judgement, start: int) -> str:
    first, second = j.readings
    before, step = j.candidates.steps.labels[start - 1 : start + 1]
    then = f" If not, this is {_titles(j.asks[:2])}." if j.asks else ""
    return (
        f"The advantages match {first.title} up to step {before} and {second.title}"
        f" from step {step} on. Was it reconfigured at step {step}?{then}"
    )


def _none_fits(j: Judgement) -> str:
    if j.why == "opposite sign":
        return (
            "None fits as it is: the advantages match"
            f" {_readings_in_words(j)} with the opposite sign. Check the sign"
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
        Tie(b.name, f"{same} Only {b.would_tell} can tell them apart.", b.title)
        for b in map(bug, j.ties)
    ]
    if j.readings and j.change is None:
        others = {r.estimator: r.title for r in j.readings}
        others.pop(j.readings[0].estimator)
        ties += [Tie(name, same, title) for name, title in others.items()]
    return tuple(ties)


def near_miss(j: Judgement) -> str:
    """One sentence where only the last rows of each step keep the nearest
    reading from fitting; else ""."""
    ruler, steps = j.candidates.ruler, j.candidates.steps
    if j.verdict != "none fits" or j.candidates.nearest is None:
        return ""
    reading, _ = j.candidates.nearest
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
