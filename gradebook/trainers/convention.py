"""What a function's answers show: its computation among those of the check's space, its
convention, and the known bugs that give its numbers."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from gradebook.bugs import BUGS
from gradebook.cases.scenario import Bug, bug
from gradebook.core.formatting import DUST
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.tolerance import FITS_ALL, FLOAT32, LEAST_SIZE, OF_LAWS
from gradebook.core.vocabulary import BASELINES
from gradebook.logs.judging import suspects
from gradebook.logs.judging.computation import Computation, View, plainness
from gradebook.logs.judging.declaration import Declaration
from gradebook.logs.judging.fit import WRITTEN, Numbers, Ruler, distance
from gradebook.logs.judging.gather import gather, search
from gradebook.logs.judging.left_over import (
    CLAMP,
    FLOOR,
    LONGER,
    PIECES,
    SHORTER,
    ZEROED,
    LeftOver,
    left_over,
)
from gradebook.logs.judging.left_over import (
    LENGTH as OF_A_LENGTH,
)
from gradebook.logs.judging.numbers import compute, fit
from gradebook.logs.judging.space import EPS_PLACES
from gradebook.logs.logged_steps import LoggedSteps, to_logged
from gradebook.trainers.child import EOS, LENGTH, Answer, flat

NO_CONVENTION = dict.fromkeys(
    (
        "baseline",
        "scale",
        "ddof",
        "eps",
        "second",
        "lone_row",
        "missing",
        "float_type",
        "ragged",
    ),
    "",
)
"""The parts of a convention, of which the answers determine none."""

OF_LENGTH = frozenset({OF_A_LENGTH, LONGER, SHORTER})
"""What is left over if lengths take part."""


def computations_of(answers: Sequence[Answer]) -> tuple[Computation, ...]:
    """The computations that give the advantages of all whole groups, the plainest
    first. If there are none, those for groups whose deviation is far above any eps and
    any rounding."""

    def spread(group: list[Any]) -> float:
        return np.std(group) / max(1.0, *map(abs, group))

    whole = [a for a in answers if a.is_whole]
    wide = [a for a in whole if min(map(spread, a.rewards)) > 0.05]
    for some in (whole, wide):
        if some and (computations := _computations(_text(some))):
            return computations
    return ()


def _text(answers: Sequence[Answer]) -> str:
    """Answers as JSON text, a list of rewards, advantages and columns each."""
    return json.dumps([(a.rewards, a.advantages, a.columns) for a in answers])


def turned(answers: Sequence[Answer]) -> tuple[Computation, ...]:
    """The computations that give the advantages with the opposite sign."""
    return _of_changed(answers, lambda value, tokens: -value)


def over_length(answers: Sequence[Answer]) -> tuple[Computation, ...]:
    """The computations that give the advantages times their row's length."""
    return _of_changed(answers, lambda value, tokens: value * tokens)


def _of_changed(
    answers: Sequence[Answer], change: Callable[[float, int], float]
) -> tuple[Computation, ...]:
    """The computations that give all whole groups' advantages, each changed; a row's
    length is the second number of `change`."""
    changed = [
        replace(
            a,
            advantages=[
                [change(value, tokens) for value, tokens in zip(*pair)]
                for pair in zip(a.advantages, lengths_of(a))
            ],
        )
        for a in answers
        if a.is_whole
    ]
    return _computations(_text(changed)) if changed else ()


def with_own_eps(
    computation: Computation, answers: Sequence[Answer]
) -> Computation | None:
    """The computation, with the eps or the least deviation that all whole groups have;
    None if no number is right for all. It was found on wide groups."""
    steps = as_steps(*(a for a in answers if a.is_whole))
    ruler = Ruler(steps)
    if not _misses(ruler, compute(steps, computation)):
        return computation
    if not computation.divides or computation.second:
        return None
    bare = compute(steps, replace(computation, eps=0.0))
    assert bare.spread is not None
    tells = np.abs(steps.advantage) > DUST
    away = (steps.reward - bare.baseline)[tells]
    divisor, spread = away / steps.advantage[tells], bare.spread[tells]
    small = spread <= np.quantile(spread, 0.25)
    for eps, place in (
        (float(np.median((divisor - spread)[small])), "after"),
        (float(np.median((divisor**2 - spread**2)[small])), "inside"),
        (float(np.median(divisor[small])), "least"),
    ):
        each = replace(computation, eps=float(f"{eps:.4g}"), eps_at=place)
        if eps > 0 and not _misses(ruler, compute(steps, each)):
            return each
    return None


def _misses(ruler: Ruler, computed: Numbers) -> bool:
    """Some row is further off than float32 explains."""
    away = distance(computed.values, ruler.steps.advantage)
    return bool((away > FITS_ALL * ruler.size).any())


def left_over_of(answers: Sequence[Answer]) -> tuple[LeftOver, ...]:
    """What is left over of the answers that no known computation gives. A KL is not
    asked about, since a function of rewards has none; lengths are, if it takes them."""
    whole = [a for a in answers if a.is_whole]
    findings = left_over(Ruler(as_steps(*whole))) if whole else ()
    kinds = {PIECES, CLAMP, FLOOR, ZEROED}
    if any(LENGTH in a.columns for a in whole):
        kinds |= OF_LENGTH
    return tuple(each for each in findings if each.kind in kinds)


@lru_cache(256)
def _computations(text: str) -> tuple[Computation, ...]:
    """The computations that give the advantages of every batch of JSON text, sorted.
    Releases that answer alike share one search."""
    answers = [
        Answer(rewards, advantages, columns=columns)
        for rewards, advantages, columns in json.loads(text)
    ]
    return fitting(as_steps(*answers))


def fitting(steps: LoggedSteps) -> tuple[Computation, ...]:
    """The computations that give the advantages of all steps, the plainest first."""
    evidence = search(Ruler(steps), Declaration())
    fitting = evidence.fitting(~steps.quiet, WRITTEN)

    def merit(c: Computation) -> tuple:
        # If all groups have one size, a second normalization hides the factor of
        # leave-one-out: of equally plain computations, choose the mean.
        order = [*BASELINES].index(c.baseline)
        off = float(evidence.computations[c].residual.max())
        # An eps that was solved is a free number: a usual one goes before it.
        is_solved = (c.eps, c.eps_at) not in EPS_PLACES
        return is_solved, plainness(c), order, off

    return tuple(sorted(fitting, key=merit))


def as_steps(*answers: Answer) -> LoggedSteps:
    """Answers as logged steps. A reward of None is missing. Each row has its length or,
    if the function is given none, four tokens, so that a whitening over tokens
    differs from one over rows."""
    rows = [
        (step, prompt, reward or 0.0, advantage, reward is not None, length, eos)
        for step, answer in enumerate(answers)
        for prompt, cells in enumerate(
            zip(answer.rewards, answer.advantages, lengths_of(answer), ends_of(answer))
        )
        for reward, advantage, length, eos in zip(*cells)
    ]
    names = ["step", "prompt", "reward", "advantage", "scored", "length", EOS]
    table = pd.DataFrame(rows, columns=names)
    if not any(EOS in answer.columns for answer in answers):
        del table[EOS]
    return to_logged(table)


TOKENS = 4
"""The tokens of every row, if the function is given no lengths."""


def lengths_of(answer: Answer) -> list[list[int]]:
    """The lengths that the function was given, or TOKENS for every row."""
    tokens = [[TOKENS] * len(group) for group in answer.rewards]
    return answer.columns.get(LENGTH, tokens)


def ends_of(answer: Answer) -> list[list[bool]]:
    """Whether each row ended, as the function was told, or that every row did."""
    return answer.columns.get(EOS, [[True] * len(group) for group in answer.rewards])


def settings_of(computation: Computation | None, lone_row: str = "zero") -> Settings:
    """The settings of the engines; `lone_row` as in `words_of`."""
    if computation is None:
        return Settings()
    if computation.scale == "advantage_std":
        # Whole groups cannot tell the two apart. With groups cut by position the
        # measured trainer (AReaL) takes the squares of the advantages themselves,
        # which is the deviation of the rewards about the baseline.
        computation = replace(computation, scale="batch_std", about="baseline")
    return replace(
        computation.settings,
        eps=computation.eps or 1e-12,
        lone_row="raw" if lone_row == "raw" else "zero",
    )


def fits(answer: Answer, computation: Computation, **changes: Any) -> bool:
    """The computation, so changed, gives these advantages, up to rounding."""
    ruler = Ruler(as_steps(answer))
    return bool(fit(ruler, replace(computation, **changes)).good.all())


@dataclass(frozen=True)
class Ragged:
    """What a function makes of groups of unequal sizes.

    how      "by prompt", "by position", "one group for all", "other", "refused", or
             "" without such an answer
    refuses  it cuts groups by position, and refuses rows that do not divide
    """

    how: str = ""
    refuses: bool = False

    @property
    def words(self) -> str:
        return self.how + ", refused if rows do not divide" * self.refuses


def words_of(
    computation: Computation | None, answers: Sequence[Answer], ragged: Ragged
) -> dict[str, str]:
    """The convention, each part in a word; '' if the answers do not determine it."""
    if computation is None:
        return NO_CONVENTION.copy()
    c = computation
    eps_at = {"after": "", "inside": " inside the root", "least": " at least"}
    lone_rows = {
        "zero": lambda a: fits(a, c, lone_row="zero"),
        "raw": lambda a: np.allclose(flat(a.advantages), flat(a.rewards), atol=1e-4),
        "raw, divided": lambda a: fits(a, c, lone_row="raw"),
    }
    counts = {
        "left out": lambda a: fits(a, c, view=View()),
        "counts as 0": lambda a: fits(a, c, view=View(all_rows=True)),
    }
    complete = [a for a in answers if a.is_complete]
    missing = [
        a
        for a in answers
        if a.misses and min(sum(r is not None for r in g) for g in a.rewards) > 1
    ]
    return {
        "baseline": c.baseline,
        "scale": c.scale,
        "ddof": str(c.ddof) if c.divides else "",
        "eps": f"{c.eps:g}{eps_at[c.eps_at]}" if c.adds_eps else "",
        "second": c.over,
        "lone_row": _first_fit([a for a in complete if a.sizes == {1}], lone_rows),
        "missing": _first_fit(missing, counts),
        "float_type": _float_type(c, complete),
        "ragged": ragged.words,
    }


TREATED: Mapping[str, str] = {
    LENGTH: "rows_without_a_token",
    EOS: "unfinished_rows",
}
"""Column -> the part of a convention that says how the rows count that it marks."""


def treatments_of(
    computation: Computation, answers: Sequence[Answer]
) -> dict[str, str]:
    """How the rows count that a column marks, in a word for each column that the
    function takes."""
    taken = {name for answer in answers for name in answer.columns}

    def left_out(answer: Answer) -> bool:
        return fits(answer, computation, ended=EOS in answer.marks)

    def count(answer: Answer) -> bool:
        *_, every = _both_ways(as_steps(answer))
        return bool(fit(Ruler(every), computation).good.all())

    def count_and_get_0(answer: Answer) -> bool:
        *_, every = _both_ways(as_steps(answer))
        marked = np.array([not all(row) for row in zip(*_cells(answer))])
        others = fit(Ruler(every, ignored=marked), computation).good.all()
        return bool(others and (np.abs(every.advantage[marked]) <= DUST).all())

    choices = {
        "left out": left_out,
        "count": count,
        "count, and get 0": count_and_get_0,
    }
    return {
        part: _first_fit([a for a in answers if name in a.marks], choices)
        for name, part in TREATED.items()
        if name in taken
    }


def _cells(answer: Answer) -> list[list[Any]]:
    """The cells of each column that the function was given, row by row."""
    return [flat(cells) for cells in answer.columns.values()]


def _first_fit(
    answers: Sequence[Answer], choices: Mapping[str, Callable[[Answer], bool]]
) -> str:
    """The choice that fits every answer; '' without an answer."""
    for answer in answers:
        if answer.trouble:
            return answer.gave or answer.trouble
    every = [name for name, fit in choices.items() if all(map(fit, answers))]
    return [*every, "other"][0] if answers else ""


def ragged_of(computation: Computation | None, answers: Sequence[Answer]) -> Ragged:
    """What the function makes of groups of unequal sizes."""
    if computation is None:
        return Ragged()
    complete = [a for a in answers if a.is_complete]
    unequal = [a for a in complete if len(a.sizes) > 1 and min(a.sizes) > 1]
    answered = [a for a in unequal if a.advantages]
    if unequal and not answered:
        return Ragged("refused")
    ways = {
        "by prompt": lambda a: fits(a, computation),
        "by position": lambda a: _regrouped(a, computation, max(a.sizes)),
        "one group for all": lambda a: _regrouped(a, computation, len(flat(a.rewards))),
    }
    how = _first_fit(answered, ways)
    return Ragged(how, len(answered) < len(unequal) and how == "by position")


def _regrouped(answer: Answer, computation: Computation, size: int) -> bool:
    """It fits groups of `size` by position, without the rows past the last,
    which may take part in a computation over the batch."""
    rows = len(flat(answer.rewards))
    if computation.couples_prompts and rows % size:
        return True
    rewards, advantages, lengths = (
        [flat(groups)[i : i + size] for i in range(0, rows - size + 1, size)]
        for groups in (answer.rewards, answer.advantages, lengths_of(answer))
    )
    columns = {LENGTH: lengths}
    return fits(Answer(rewards, advantages, columns=columns), computation)


def _float_type(computation: Computation, answers: Sequence[Answer]) -> str:
    """ "float64" if the advantages of large rewards, whose digits float32
    loses, are off by no more than their own rounding."""
    large = [a for a in answers if a.is_whole and max(map(abs, flat(a.rewards))) >= 50]
    if not large:
        return ""
    expected = compute(as_steps(*large), computation).values.tolist()
    advantages = [value for a in large for value in flat(a.advantages)]
    off = max(
        abs(a - b) / max(abs(b), LEAST_SIZE) for a, b in zip(advantages, expected)
    )
    return "float64" if off <= 1.05 * FLOAT32 else "float32"


# The bugs that give a function's numbers


def behind_a_bug(answers: Sequence[Answer]) -> list[Computation]:
    """The computations that give the advantages of all whole groups once some bug has
    changed them."""
    whole = [a for a in answers if a.is_whole]
    if not whole:
        return []
    suspected = gather(Ruler(_as_given(whole)), Declaration()).suspects.items()
    settings = [suspect.settings for suspect, fit in suspected if fit.good.all()]
    return [Computation.of(each) for each in dict.fromkeys(settings)]


def _as_given(answers: Sequence[Answer]) -> LoggedSteps:
    """The answers as steps that have what the function was given: rewards by prompt,
    what is missing of them, and its other arguments."""
    columns = {name for answer in answers for name in answer.columns}
    has = {"step", "prompt", "reward", "scored", "advantage"} | columns
    return replace(as_steps(*answers), has=frozenset(has))


def bugs_of(computation: Computation, answers: Sequence[Answer]) -> list[str]:
    """The bugs that explain all of these answers. If the computation explains them,
    only rounding bugs with evidence of their own are named. What it makes of rows that
    a column marks may be a bug of its own, beside the answers without marks.
    """
    answers = [a for a in answers if a.advantages]
    if not answers:
        return []
    plain = [a for a in answers if not a.marks]
    is_of_marks = not plain or _is_explained(computation, plain)
    parts = _by_marks(answers)
    named = [_bugs_of_part(computation, part, is_of_marks) for part in parts]
    every = dict.fromkeys(name for names in named for name in names)
    if is_of_marks:
        return [*every]
    return [name for name in every if all(name in names for names in named)]


def _by_marks(answers: Sequence[Answer]) -> list[Sequence[Answer]]:
    """The answers to rows of each kind of marks, with those without marks beside them;
    all answers if none has marks."""
    marks = dict.fromkeys(a.marks for a in answers if a.marks)
    none = frozenset[str]()
    return [[a for a in answers if a.marks in (none, m)] for m in marks] or [answers]


def _is_explained(computation: Computation, answers: Sequence[Answer]) -> bool:
    """The computation gives all of these answers, or some bug that rounds does."""
    named = _bugs_of_part(computation, answers)
    return all(bug(name).evidence is not None for name in named)


def _bugs_of_part(
    computation: Computation, answers: Sequence[Answer], is_of_marks: bool = True
) -> list[str]:
    """The bugs that explain all of these answers, of whose rows one column marks some.
    Unless the bug `is_of_marks`, marked rows may also count and get 0.

    A function may have a bug that rounds beside another one: the rows that a rounding
    bug alone explains have its own evidence, and no other bug needs to explain them.
    Whether marked rows count is a part of the convention, so they are tried both ways.
    """
    steps, settings = _as_given(answers), settings_of(computation)
    rounding = [r for r in map(bug, BUGS) if _takes_part(r, computation)]
    shown = [r for r in rounding if _is_shown(r, computation, answers)]
    may_be_lost, lost = _lost_rows(steps, rounding, shown)
    none = np.zeros(steps.rows, dtype=bool)
    readings = [(read, none) for read in _both_ways(steps)]
    if not is_of_marks:
        readings.append((readings[-1][0], _marked_zeros(steps)))

    def explains(candidate: suspects.Candidate) -> bool:
        """It gives all rows, but for what float32 lost before it divided."""
        return any(explains_as(candidate, *each) for each in readings)

    def explains_as(
        candidate: suspects.Candidate, read: LoggedSteps, ignored: np.ndarray
    ) -> bool:
        computed = compute(read, candidate)
        rounded = may_be_lost & _within_rounding(read, computed.scale)
        ruler = Ruler(read, ignored=ignored | lost | rounded)
        return bool(ruler.fit(computed).good.all())

    # The bugs are tried with these lone rows, so the correct engine is, too.
    own = (computation, replace(computation, lone_row=settings.lone_row))
    correct = [replace(c, ended=ended) for c in own for ended in _ends(steps)]
    if any(map(explains, correct)):
        return [record.name for record in shown]
    explain = [s.bug for s in suspects.suspects(steps, (settings,)) if explains(s)]
    return list(dict.fromkeys((*explain, *(record.name for record in shown))))


def _lost_rows(
    steps: LoggedSteps, rounding: Sequence[Bug], shown: Sequence[Bug]
) -> tuple[np.ndarray, np.ndarray]:
    """bool [R] twice: the rows that some of these bugs alone explains, and those of
    them that need no other reason: a bug is shown, or they are within rounding."""
    lost = may_be_lost = np.zeros(steps.rows, dtype=bool)
    for record in rounding:
        alone = _unexplained(record, steps)
        may_be_lost = may_be_lost | alone
        lost = lost | (alone if record in shown else alone & _within_rounding(steps))
    return may_be_lost, lost


def _both_ways(steps: LoggedSteps) -> Iterator[LoggedSteps]:
    """The rows as they are; and as if those without a token counted, if some have
    none."""
    yield steps
    mask = steps.batch.mask
    if not mask.all():
        batch = replace(steps.batch, mask=torch.ones_like(mask))
        yield replace(steps, batch=batch)


def _marked_zeros(steps: LoggedSteps) -> np.ndarray:
    """bool [R]: rows without a token or an end whose advantage is 0."""
    marked = ~(steps.batch.has_tokens & steps.batch.eos).numpy()
    return marked & (np.abs(steps.advantage) <= DUST)


def _ends(steps: LoggedSteps) -> tuple[bool, ...]:
    """The values of `ended` that make a difference."""
    return (False,) if steps.batch.eos.all() else (False, True)


def _takes_part(record: Bug, computation: Computation) -> bool:
    """It is a bug that rounds, and what it rounds is a part of the computation."""
    if record.unexplained is None or record.evidence is None:
        return False
    return all(getattr(computation, k) == v for k, v in record.reading.items())


def _is_shown(record: Bug, computation: Computation, answers: Sequence[Answer]) -> bool:
    """Each row that the bug alone explains is within rounding or has its evidence, and
    some row has; the computation gives all other rows. Answers to missing rewards are
    no part of it."""
    complete = [a for a in answers if a.is_complete]
    if not complete or record.evidence is None:
        return False
    steps = as_steps(*complete)
    alone = _unexplained(record, steps)
    fitting = fit(Ruler(steps, ignored=alone), computation).good[steps.step_of]
    odd = alone & fitting & ~_within_rounding(steps)
    baseline = compute(steps, computation).baseline
    log = _columns(steps).assign(odd=odd, baseline=baseline)
    evidence = record.evidence(log, computation.settings)
    return bool(odd.any() and (evidence[odd] == 2).all())


def _unexplained(record: Bug, steps: LoggedSteps) -> np.ndarray:
    """bool [R]: the rows that the bug alone explains."""
    assert record.unexplained is not None
    return record.unexplained(_columns(steps))


def _columns(steps: LoggedSteps) -> "pd.DataFrame":
    names = ("prompt", "reward", "advantage")
    return pd.DataFrame({name: getattr(steps, name) for name in names})


def _within_rounding(steps: LoggedSteps, scale: float | np.ndarray = 1.0) -> np.ndarray:
    """bool [R]: the advantage is 0 up to what float32 rewards lose, divided by a scale
    [R]. A larger one than FITS_ALL is no rounding, however small the scale is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        divided = np.minimum(OF_LAWS * np.abs(steps.reward) / scale, FITS_ALL)
    rounding = np.maximum(OF_LAWS * np.abs(steps.reward), np.nan_to_num(divided))
    return np.abs(steps.advantage) <= Ruler(steps).base + rounding
