"""Questions about a batch without a name: do the engines differ on it, and where?
Which bug is in the trainer, if any? Pure functions of scenarios; what is drawn is
drawn by a hash, so that a reload asks the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison, compare, push
from gradebook.bugs import swap
from gradebook.cases.reports import draw
from gradebook.cases.scenario import Scenario, load, variants
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import same
from gradebook.core.settings import KINDS, Settings
from gradebook.engine.pipeline import CORRECT, Engine, Trace, run

NOWHERE = "Nowhere: they agree"
NO_BUG = "None: these numbers are correct"
CHECKPOINTS = (3, 5)
"""After so many revealed bugs there is a checkpoint: three are few to choose among, and
the second asks about two more."""
MOST_CHOICES = 4
"""As many as a case's own question has at most (`Prediction`)."""


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
    """Do the engines differ on this batch, and where? The wrong choices are every
    row, none, the row in question alone, and the other rows."""
    both = comparison(case)
    parts, every, what = differing(both), [*range(both.batch.rows)], "row"
    if len(every) == 1:  # the tokens of a lone row
        pushes = trained_with(both, case, faulty=False), trained_with(both, case)
        parts = (~same(*pushes)[0]).nonzero().flatten().tolist()
        every, what = both.batch.mask[0].nonzero().flatten().tolist(), "token"
    others = [part for part in every if part not in parts]
    sets = [parts, [], every, [case.focus], others, others[:1], every[:1], every[-1:]]
    named = partial(on, every=every, what=what)
    texts = [*dict.fromkeys(map(named, sets))]
    right = texts[0]
    choices = sorted(texts[:MOST_CHOICES], key=partial(draw, case.name))
    # The two that every batch has come first and last.
    choices.sort(key=lambda text: (text != NOWHERE, text == named(every)))
    return Question(tuple(choices), choices.index(right))


def on(parts: Sequence[int], every: Sequence[int], what: str) -> str:
    """'On rows 2 and 3' of every row."""
    if not parts:
        return NOWHERE
    if len(parts) == len(every):
        return f"On every {what}"
    if len(parts) == 1:
        return f"On {what} {parts[0]} alone"
    if len(parts) > 2 and parts[-1] - parts[0] == len(parts) - 1:
        return f"On {what}s {parts[0]} to {parts[-1]}"
    return f"On {what}s {', '.join(map(str, parts[:-1]))} and {parts[-1]}"


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
    return _trained_with(both.batch, both.faulty if faulty else both.correct, case)


def _trained_with(batch: Batch, trace: Trace, case: Scenario) -> Tensor:
    return trace.advantage if case.lines == "row" else push(batch, trace)


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
            other = compare(swap(name), both.batch)
        except GradebookError:
            continue
        if bool(same(trained_with(other, case), wanted).all()):
            fitting.append(name)
    return fitting


@lru_cache(maxsize=64)
def acting(case: Scenario, bugs: tuple[str, ...]) -> list[str]:
    """The settings that these bugs' pages offer and that do something on this batch:
    another value gives other numbers, in the correct engine or with one of the bugs.
    It is the same for every answer, so it names none."""
    engines = [CORRECT, *(swap(name).engine for name in bugs)]
    read = {name for bug in bugs for name in load(bug).controls}
    return [n for n in case.settings if n in read and _acts(case, n, engines)]


def _acts(case: Scenario, name: str, engines: Sequence[Engine]) -> bool:
    for engine in engines:
        before = _numbers(case, case.settings, engine)
        for value in _others(name, case.settings[name]):
            settings = replace(case.settings, **{name: value})
            after = _numbers(case, settings, engine)
            if after is None or before is None:
                if after is not before:
                    return True
            elif not bool(same(after, before).all()):
                return True
    return False


def _numbers(case: Scenario, settings: Settings, engine: Engine) -> Tensor | None:
    """What the engine trains with; None if it stops with an error."""
    try:
        batch = case.rows.batch(settings)
        return _trained_with(batch, run(engine, batch), case)
    except GradebookError:
        return None


def _others(name: str, value: Any) -> list[Any]:
    """Other values of the setting: all of few, else some small numbers."""
    kind = KINDS[name]
    some: Sequence[Any] = kind.options or (True, False, 0.0, 0.5, 1, 2, 3)
    others = [other for other in some if kind.fits(other)]
    return [other for other in (*others, *[None] * kind.optional) if other != value]
