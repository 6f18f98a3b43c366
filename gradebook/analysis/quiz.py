"""Questions about a batch without a name: do the engines differ on it, and where?
Which bug is in the trainer, if any? Pure functions of scenarios; what is drawn is
drawn by a hash, so that a reload asks the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison, compare, push
from gradebook.bugs import swap
from gradebook.cases.reports import draw
from gradebook.cases.scenario import Scenario, load, variants
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import same

NOWHERE = "Nowhere: they agree"
EVERYWHERE = "On every row"
NO_BUG = "None: these numbers are correct"
CHECKPOINTS = (3, 5)
"""After so many revealed bugs there is a checkpoint."""
MOST_CHOICES = 4


@dataclass(frozen=True)
class Question:
    """Choices, and the index of the right one."""

    choices: tuple[str, ...]
    answer: int


@lru_cache(maxsize=64)
def comparison(case: Scenario) -> Comparison:
    """Both engines on the case's own batch. Raises GradebookError."""
    return compare(swap(case.bug), case.batch())


def differing(both: Comparison) -> list[int]:
    """The rows whose advantage, or gradient at some token, differs."""
    stages = ("advantage", "token_advantage", "gradient")
    marks = [both.differs(stage) for stage in stages]
    return torch.stack(marks).any(0).nonzero().flatten().tolist()


def where(case: Scenario) -> Question:
    """Do the engines differ on this batch, and where? The wrong choices are the row
    in question alone, the other rows, every row and none."""
    both = comparison(case)
    rows, every = differing(both), [*range(both.batch.rows)]
    others = [row for row in every if row not in rows]
    first = others[:1] or rows[:1]
    sets = [rows, [], every, [case.focus], others, first]
    texts = [*dict.fromkeys(map(partial(on_rows, count=len(every)), sets))]
    right = texts[0]
    shown = sorted(texts[:MOST_CHOICES], key=partial(draw, case.name))
    # The two that every batch has come first and last.
    shown.sort(key=lambda text: (text != NOWHERE, text == EVERYWHERE))
    return Question(tuple(shown), shown.index(right))


def on_rows(rows: Sequence[int], count: int) -> str:
    """'On rows 2 and 3' of so many rows."""
    if not rows:
        return NOWHERE
    if len(rows) == count:
        return EVERYWHERE
    if len(rows) == 1:
        return f"On row {rows[0]} alone"
    if len(rows) > 2 and rows[-1] - rows[0] == len(rows) - 1:
        return f"On rows {rows[0]} to {rows[-1]}"
    return f"On rows {', '.join(map(str, rows[:-1]))} and {rows[-1]}"


def another(bug: str, seen: Sequence[str]) -> Scenario | None:
    """A variant of the bug that is not among the seen cases; None if all are."""
    cases = [c for c in variants(bug) if c.variant and c.name not in seen]
    cases = [case for case in cases if _runs(case)]
    return max(cases, key=lambda case: draw("another", case.name), default=None)


def _runs(case: Scenario) -> bool:
    """The faulty trainer does not stop with an error on the batch."""
    try:
        comparison(case)
    except GradebookError:
        return False
    return True


def trained_with(both: Comparison, case: Scenario, faulty: bool = True) -> Tensor:
    """What one engine gives: an advantage a row, or a push a token."""
    trace = both.faulty if faulty else both.correct
    return trace.advantage if case.lines == "row" else push(both.batch, trace)


@lru_cache(maxsize=64)
def checkpoint(bugs: tuple[str, ...]) -> tuple[Scenario, Question] | None:
    """A batch of a mixed shelf, those of the variants of `bugs`, whose numbers only
    one of these bugs explains, or which hides its bug; and which bug it is, if any.
    None if there is no such batch."""
    cases = [c for name in bugs for c in variants(name) if c.variant and _runs(c)]
    for case in sorted(cases, key=lambda case: draw(*bugs, case.name)):
        fitting = explained_by(case, bugs)
        if len(fitting) < 2:
            titles = [load(name).title for name in bugs]
            answer = bugs.index(fitting[0]) if fitting else len(bugs)
            return case, Question((*titles, NO_BUG), answer)
    return None


def explained_by(case: Scenario, bugs: Sequence[str]) -> list[str]:
    """The bugs that give this case's faulty numbers on its batch; none if the correct
    engine gives them."""
    both, fitting = comparison(case), []
    if both.agree:
        return []
    wanted = trained_with(both, case)
    for name in bugs:
        try:
            found = compare(swap(name), both.batch)
        except GradebookError:
            continue
        if bool(same(trained_with(found, case), wanted).all()):
            fitting.append(name)
    return fitting
