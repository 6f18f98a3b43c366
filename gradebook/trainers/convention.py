"""What a function's answers say of it: its computation among those of the
check's space, its convention, and the known bugs that give its numbers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gradebook.bugs import BUGS
from gradebook.cases.scenario import bug
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings
from gradebook.core.vocabulary import BASELINES
from gradebook.logs.judging import suspects
from gradebook.logs.judging.fit import WRITTEN, Ruler
from gradebook.logs.judging.reading import Asked, Reading, plainness
from gradebook.logs.judging.search import quiet, search
from gradebook.logs.judging.suspects import compute, fit
from gradebook.logs.logged_steps import LoggedSteps, to_logged
from gradebook.trainers.child import Answer, flat


def readings_of(answers: Sequence[Answer]) -> tuple[Reading, ...]:
    """The readings that give the advantages of all whole groups, the plainest
    first. Where there are none, those for groups whose deviation is far above
    any eps and any rounding."""

    def spread(group: list[Any]) -> float:
        return np.std(group) / max(1.0, *map(abs, group))

    whole = [a for a in answers if a.is_whole]
    wide = [a for a in whole if min(map(spread, a.rewards)) > 0.05]
    for some in (whole, wide):
        pairs = [(a.rewards, a.advantages) for a in some]
        if pairs and (readings := _computations(json.dumps(pairs))):
            return readings
    return ()


@lru_cache(256)
def _computations(pairs: str) -> tuple[Reading, ...]:
    """The readings that give the advantages of every batch of JSON text, sorted.
    Releases that answer alike share one search."""
    steps = as_steps(*(Answer(*pair) for pair in json.loads(pairs)))
    candidates = search(Ruler(steps), Asked())
    fitting = candidates.fitting(~quiet(steps), WRITTEN)

    def merit(reading: Reading) -> tuple:
        # Where groups have one size, a second normalization hides the factor that
        # leave-one-out has: of equally plain ones the mean is meant.
        order = [*BASELINES].index(reading.baseline)
        off = float(candidates.readings[reading].residual.max())
        return plainness(reading), order, off

    return tuple(sorted(fitting, key=merit))


def as_steps(*answers: Answer) -> LoggedSteps:
    """Answers as logged steps. A reward of None is missing. Each row has four
    tokens, so that a whitening over tokens is told from one over rows."""
    rows = [
        (step, prompt, reward or 0.0, advantage, reward is not None, 4)
        for step, answer in enumerate(answers)
        for prompt, pair in enumerate(zip(answer.rewards, answer.advantages))
        for reward, advantage in zip(*pair)
    ]
    names = ["step", "prompt", "reward", "advantage", "scored", "length"]
    return to_logged(pd.DataFrame(rows, columns=names))


def settings_of(reading: Reading | None, lone_row: str = "zero") -> Settings:
    """The nearest settings of the engines; `lone_row` as in `words_of`."""
    if reading is None:
        return Settings()
    return replace(
        reading.settings,
        eps=reading.eps or 1e-12,
        lone_row="raw" if lone_row == "raw" else "zero",
    )


def fits(answer: Answer, reading: Reading, **changes: Any) -> bool:
    """The reading, so changed, gives these advantages, up to rounding."""
    ruler = Ruler(as_steps(answer))
    return bool(fit(ruler, replace(reading, **changes)).good.all())


def words_of(reading: Reading | None, answers: Sequence[Answer]) -> dict[str, str]:
    """The convention, each in a word, '' where the answers do not tell it."""
    if reading is None:
        names = "baseline scale ddof eps lone_row missing float_type ragged"
        return dict.fromkeys(names.split(), "")
    eps_at = {"after": "", "inside": " inside the root", "least": " at least"}
    lone_rows = {
        "zero": lambda a: fits(a, reading, lone_row="zero"),
        "raw": lambda a: np.allclose(flat(a.advantages), flat(a.rewards), atol=1e-4),
        "raw, divided": lambda a: fits(a, reading, lone_row="raw"),
    }
    counts = {
        "left out": lambda a: fits(a, reading, rows="flagged"),
        "counts as 0": lambda a: fits(a, reading, rows="all"),
    }
    complete = [a for a in answers if not a.misses]
    missing = [
        a
        for a in answers
        if a.misses and min(sum(r is not None for r in g) for g in a.rewards) > 1
    ]
    return {
        "baseline": reading.baseline,
        "scale": reading.scale,
        "ddof": str(reading.ddof) if reading.divides else "",
        "eps": f"{reading.eps:g}{eps_at[reading.eps_at]}" if reading.adds_eps else "",
        "lone_row": _first_fit([a for a in complete if a.sizes == {1}], lone_rows),
        "missing": _first_fit(missing, counts),
        "float_type": _float_type(reading, complete),
        "ragged": _ragged(reading, complete),
    }


def _first_fit(
    answers: Sequence[Answer], choices: Mapping[str, Callable[[Answer], bool]]
) -> str:
    """The choice that fits every answer; '' without an answer."""
    for answer in answers:
        if answer.trouble:
            return answer.trouble.removeprefix("returned ")
    every = [name for name, fit in choices.items() if all(map(fit, answers))]
    return [*every, "other"][0] if answers else ""


def _ragged(reading: Reading, answers: Sequence[Answer]) -> str:
    def regrouped(a: Answer, size: int) -> bool:
        """It fits groups of `size` by position, without the rows past the last,
        which may take part in a computation over the batch."""
        rows = len(flat(a.rewards))
        if reading.couples_prompts and rows % size:
            return True
        rewards, advantages = (
            [flat(groups)[i : i + size] for i in range(0, rows - size + 1, size)]
            for groups in (a.rewards, a.advantages)
        )
        return fits(Answer(rewards, advantages), reading)

    unequal = [a for a in answers if len(a.sizes) > 1 and min(a.sizes) > 1]
    answered = [a for a in unequal if a.advantages]
    if unequal and not answered:
        return "refused"
    ways = {
        "by prompt": lambda a: fits(a, reading),
        "by position": lambda a: regrouped(a, max(a.sizes)),
        "one group for all": lambda a: regrouped(a, len(flat(a.rewards))),
    }
    word = _first_fit(answered, ways)
    refuses = len(answered) < len(unequal) and word == "by position"
    return word + ", refused where rows do not divide" * refuses


def _float_type(reading: Reading, answers: Sequence[Answer]) -> str:
    """float64 where the advantages of large rewards, whose digits float32
    loses, are off by no more than their own rounding."""
    large = [a for a in answers if a.is_whole and max(map(abs, flat(a.rewards))) >= 50]
    if not large:
        return ""
    due = compute(as_steps(*large), reading).values.tolist()
    advantages = [value for a in large for value in flat(a.advantages)]
    off = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(advantages, due))
    return "float64" if off <= 1.05 * 2**-24 else "float32"


def bugs_of(reading: Reading, answer: Answer) -> list[str]:
    """Bugs that give an answer's advantages where the reading does not."""
    steps = as_steps(answer)
    reward, prompt = steps.reward, steps.prompt
    columns = {"prompt": prompt, "reward": reward, "advantage": steps.advantage}
    log = pd.DataFrame(columns)
    rounding = Ruler(steps).base + 16 * 2.0**-24 * np.abs(reward)
    within = np.abs(steps.advantage) <= rounding
    (lost,) = (bug(name) for name in BUGS if bug(name).loses == "float32 mean")
    assert lost.unexplained is not None and lost.evidence is not None
    equal = lost.unexplained(log)
    ruler = Ruler(steps, ignored=equal & within)
    if fit(ruler, reading).good.all():
        return []
    if fit(replace(ruler, ignored=equal), reading).good.all():
        dust = equal & ~within
        shown = lost.evidence(log.assign(odd=dust, baseline=reward), reading.settings)
        return [lost.name] if bool((shown[dust] == 2).all()) else []
    steps = replace(steps, has=frozenset({"prompt", "reward", "scored"}))
    tried = suspects.suspects(steps, (settings_of(reading),))
    return list(dict.fromkeys(s.bug for s in tried if fit(ruler, s).good.all()))
