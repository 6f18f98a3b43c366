"""The examination of a function of several rewards: how it makes one advantage of them,
each as it is or each normalized in its group, and the laws that it keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradebook.analysis.law_check import (
    BROKEN,
    BY_CONVENTION,
    HOLDS,
    NOT_MEASURED,
    REFUSED,
)
from gradebook.core.errors import refuse
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import declaration_of
from gradebook.logs.judging.fit import Ruler
from gradebook.logs.judging.left_over import left_over
from gradebook.logs.judging.sentences import left_over_words
from gradebook.logs.logged_steps import LoggedSteps
from gradebook.logs.read.log_columns import Columns
from gradebook.logs.trl_layout import ASSUMED, TrlLayout, layout_of, logged
from gradebook.trainers import convention, examination
from gradebook.trainers.batches import BATCHES, LAW_BATCHES
from gradebook.trainers.child import (
    LENGTH,
    NOTHING,
    Answer,
    Ask,
    Given,
    Rewards,
)
from gradebook.trainers.convention import lengths_of
from gradebook.trainers.examination import (
    MOVED_BY_LENGTHS,
    UNKNOWN,
    Probe,
    Shown,
    asked_once,
    designed_by,
    laws_of,
    line_of,
)

MOST = 8
"""Reward functions that a probe can tell apart."""

NO_SUM = (
    "No weighted sum of the rewards, each as it is or each normalized in its group,"
    " explains these advantages."
)


ALONE = "The laws were tried with changes of one reward at a time; the others were 1."


def verify(names: Sequence[str]) -> None:
    """Raises GradebookError for names that are no two to eight different ones."""
    texts = all(isinstance(name, str) and name for name in names)
    if not texts or not 2 <= len(names) <= MOST or len({*names}) < len(names):
        raise refuse(f"2 to {MOST} different names", list(names), "rewards")


def batches_of(count: int) -> Mapping[str, Rewards]:
    """Batches whose rows have so many rewards each. Their groups have more rows than
    there are rewards, so that a group gives the ratio of the weights."""
    chance = np.random.default_rng(0)

    def rows(size: float = 1.0, most: float = np.inf) -> np.ndarray:
        values = np.round(8 * chance.normal(size=(4, count + 3, count))) / 8
        return np.clip(values, -most, most) * size

    flat = rows()
    flat[0, :, 0] = 1.0
    batches = {
        "several rewards": rows(),
        "several rewards of 0 or 1": chance.integers(0, 2, (4, count + 3, count)),
        "several rewards of different sizes": rows() * (1 + 3 * np.arange(count)),
        "several rewards near 0.03": rows(0.03),
        "several rewards near 0.001": rows(0.001),
        "one reward that is equal in a group": flat,
    }
    return {name: values.astype(float).tolist() for name, values in batches.items()}


def examine(
    function: Ask,
    names: Sequence[str],
    declared: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
) -> Probe:
    """The probe of a function of several rewards. A weighted sum of rewards is probed
    like one reward. Of any other computation the laws are tried on each reward alone,
    where the others are 1: equal everywhere, but no factor of 0."""
    declaration = declaration_of(declared)
    call, batches = asked_once(function, columns), batches_of(len(names))
    answers = {name: call(batch) for name, batch in batches.items()}
    troubles = {name: a.trouble for name, a in answers.items() if a.trouble}
    layout, steps, computations = computations_of([*answers.values()], names)
    weights = layout.weights if layout else ()
    first = computations[0] if computations else None
    if first and not first.several:
        return _of_sum(function, names, weights, declared, columns, troubles)
    laws, shown = _laws_of_each(call, names, weights, first, columns)
    words = convention.words_of(first, (), convention.Ragged())
    words["eps"] = f"{first.eps:g}" if first and first.adds_eps else ""
    return Probe(
        convention=words,
        computes=line_of(computations),
        declared=dict(declared or {}),
        matches=declaration.matches(computations),
        laws=laws,
        bugs={},
        shown=shown,
        troubles=troubles,
        notes=(ALONE,),
        left_over=_left_over(steps) if steps and not first else "",
        lost=tuple(name for name, a in answers.items() if a.is_last),
    )


def _left_over(steps: LoggedSteps) -> str:
    """What the answers show that no known computation gives, in sentences."""
    findings = left_over(Ruler(steps))
    return " ".join(map(left_over_words, findings)) or NO_SUM


def computations_of(
    answers: Sequence[Answer], names: Sequence[str]
) -> tuple[TrlLayout | None, LoggedSteps | None, tuple[Computation, ...]]:
    """How the rewards are weighted, the answers as steps with their sum for a reward,
    and the computations that fit those. None, None and () without an answer."""
    answers = [a for a in answers if a.advantages]
    if not answers:
        return None, None, ()
    rows = [
        (step, prompt, advantage, length, *rewards)
        for step, answer in enumerate(answers)
        for prompt, cells in enumerate(
            zip(answer.rewards, answer.advantages, lengths_of(answer))
        )
        for rewards, advantage, length in zip(*cells)
    ]
    functions = [f"reward {name}" for name in names]
    table = pd.DataFrame(
        rows, columns=["step", "prompt", "advantage", "length", *functions]
    )
    columns = Columns({}, tuple(names))
    layout = layout_of(table, columns)
    steps = logged(table, columns, layout)
    if layout.why == ASSUMED:
        return layout, steps, ()
    return layout, steps, convention.fitting(steps)


def _of_sum(
    function: Ask,
    names: Sequence[str],
    weights: Sequence[float],
    declared: Mapping[str, Any] | None,
    columns: Sequence[str],
    troubles: Mapping[str, str],
) -> Probe:
    """The probe of a weighted sum of the rewards: of one reward, over its weight, if
    the others are 0."""
    at = int(np.argmin([abs(abs(w) - 1) if w else np.inf for w in weights]))
    judged = examination.examine(
        alone(function, at, len(names), weights[at]), declared, columns=columns
    )
    terms = " + ".join(f"{w:g} {name}" for w, name in zip(weights, names))
    what = {"rewards": f"summed as they are: {terms}".replace("+ -", "- ")}
    note = f"The laws were tried with changes of {names[at]}; the other rewards were 0."
    return replace(
        judged,
        convention={**what, **judged.convention},
        troubles={**troubles, **judged.troubles},
        notes=(note,),
    )


def alone(
    function: Ask, at: int, count: int, weight: float = 1.0, others: float = 0.0
) -> Ask:
    """The function of one of its rewards, the one at `at`, over a weight; the others
    are equal everywhere, or missing where it is."""

    def row_of(reward: float | None) -> list[float | None]:
        if reward is None:
            return [None] * count
        return [reward / weight if place == at else others for place in range(count)]

    def call(rewards: Rewards, columns: Given = NOTHING) -> Answer:
        cells = [[row_of(reward) for reward in group] for group in rewards]
        return replace(function(cells, columns), rewards=rewards)

    return call


WORST_FIRST = (BROKEN, REFUSED, BY_CONVENTION, NOT_MEASURED, HOLDS)
"""A law's answer for several rewards is the worst of theirs."""


def _laws_of_each(
    call: Ask,
    names: Sequence[str],
    weights: Sequence[float],
    computation: Computation | None,
    columns: Sequence[str],
) -> tuple[dict[str, str], dict[str, Shown]]:
    """Each law's answer, and the smallest batch that breaks it: changes of one reward
    after the other, while the others are 1."""
    settings = Settings()
    if computation and computation.several:
        settings = convention.settings_of(computation)
    laws: dict[str, str] = {}
    shown: dict[str, Shown] = {}
    for at, name in enumerate(names):
        designed = designed_by(settings) | {"scale": UNKNOWN}
        if computation is None:
            designed["rising"] = "several rewards"
            if LENGTH in columns:
                designed |= dict.fromkeys(MOVED_BY_LENGTHS, "the lengths")
        elif weights[at] < 0:
            designed["rising"] = f"the weight of {name} is below 0"
        ask = asked_once(alone(call, at, len(names), others=1.0), columns)
        batches = [BATCHES[batch] for batch in LAW_BATCHES]
        answers, broken = laws_of(designed, settings, ask, batches, "")
        for law, answer in answers.items():
            laws[law] = min(laws.get(law, HOLDS), answer, key=WORST_FIRST.index)
            if law in broken and law not in shown:
                shown[law] = _with_name(broken[law], name)
    return laws, shown


def _with_name(shown: Shown, name: str) -> Shown:
    """What was shown of one reward. No page has a board of several, to link to."""
    sentence = f"With changes of {name} alone: {shown.sentence}"
    return replace(shown, sentence=sentence, link="")
