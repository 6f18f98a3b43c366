"""What a function from groups of rewards to advantages computes: its
convention, the laws that it keeps, and the known bugs that give its numbers."""

import html
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebook.analysis import law_check
from gradebook.analysis.law_check import BROKEN, HOLDS, NOT_MEASURED
from gradebook.analysis.laws import Step
from gradebook.cases.link import encode, query_string
from gradebook.cases.scenario import SANDBOX, bug, case
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.core.formatting import DUST
from gradebook.core.settings import Settings
from gradebook.core.tolerance import LEAST_SIZE, OF_LAWS
from gradebook.core.vocabulary import SCALES, STEP
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import declaration_of
from gradebook.logs.judging.left_over import CLAMP
from gradebook.logs.judging.sentences import left_over_words
from gradebook.trainers import convention
from gradebook.trainers.batches import BATCHES, LAW_BATCHES
from gradebook.trainers.child import Answer, Rewards, Unusable, answer_of, apart, flat
from gradebook.trainers.releases import LAWS

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


UNKNOWN = "unknown"
"""In place of a convention: nobody knows whether a deviation divides."""


@dataclass(frozen=True)
class Shown:
    """The smallest batch that shows something, by prompt, in a sentence, and as the
    page that opens it beside both engines."""

    rewards: Rewards
    advantages: list[list[float]]
    sentence: str
    link: str


@dataclass(frozen=True)
class Probe:
    """What a probe found.

    convention  each part in a word; '' if it cannot be determined
    computes    the computation in a line; '' if no known one fits
    left_over   what the answers show there, in sentences
    matches     whether it is what was declared
    laws        law -> holds, broken, refused, by convention, not measured
    bugs, shown  bug, or broken law -> the smallest batch that shows it
    troubles    batch -> what went wrong there
    """

    convention: Mapping[str, str]
    computes: str
    declared: Mapping[str, Any]
    matches: bool | None
    laws: Mapping[str, str]
    bugs: Mapping[str, Shown]
    shown: Mapping[str, Shown]
    troubles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    left_over: str = ""

    @property
    def exit_code(self) -> int:
        """0: nothing against it; 1: a bug, a broken law, or another computation than
        declared; 2: undecided."""
        if self.bugs or BROKEN in self.laws.values() or self.matches is False:
            return 1
        return 0 if self.computes else 2

    def to_dict(self) -> dict[str, Any]:
        """For machines: numbers, text, lists and dicts."""
        return {**asdict(self), "exit_code": self.exit_code}

    def __str__(self) -> str:
        lines = [f"Computes {self.computes or 'none of the known computations'}."]
        lines += [self.left_over] if self.left_over else []
        for name, value in self.convention.items():
            lines += [f"  {name.replace('_', ' ')}: {value}"] if value else []
        if self.matches is not None:
            asked = ", ".join(f"{k}={v}" for k, v in self.declared.items())
            word = "is" if self.matches else "is not"
            lines.append(f"That {word} what was declared: {asked}.")
        lines.append("Laws:")
        for name, answer in self.laws.items():
            broken = self.shown.get(name)
            why = broken.sentence if broken else law_check.words(name)
            lines.append(f"  {answer}: {why}")
        for name, shown in self.bugs.items():
            lines.append(f"{bug(name).title} gives these numbers: {shown.sentence}")
            lines.append(f"  Beside both engines, in `gradebook app`: /{shown.link}")
        lines += [f"On {name}: {what}" for name, what in self.troubles.items()]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        head, *rest = str(self).splitlines()
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return f"<p><b>{html.escape(head)}</b></p><ul>{items}</ul>"


def probe(
    function: Callable[[Rewards], Sequence[Sequence[float]]] | None = None,
    declared: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[tuple[Rewards, Any]] | None = None,
) -> Probe:
    """Says what a function from rewards to advantages computes.

    function  takes rewards by prompt, None where one is missing, and returns
              advantages in the same shape. It runs in a process of its own
    declared  what it should compute, as `gradebook.check` takes it
    outputs   recorded answers instead, pairs of rewards and advantages; text
              in place of advantages is an error that was raised

    >>> probe(outputs=[([[1, 0]], [[0.5, -0.5]])]).laws["zero_sum"]
    'holds'
    """
    if (function is None) == (outputs is None):
        raise refuse("a function or outputs", "both or none", "probe")
    if function is not None:
        with apart(function) as (call, notes):
            return replace(examine(call, declared), notes=notes)
    pairs = [
        ([[r if r is None else float(r) for r in group] for group in batch], groups)
        for batch, groups in outputs or ()
    ]
    batches = {f"output {n}": rewards for n, (rewards, _) in enumerate(pairs)}
    recorded = {json.dumps(rewards): groups for rewards, groups in reversed(pairs)}

    def look_up(rewards: Rewards) -> Any:
        groups = recorded.get(json.dumps(rewards), "no such pair")
        if isinstance(groups, str):
            raise Unusable(groups)
        return groups

    judged = examine(partial(answer_of, look_up), declared, batches, batches)
    refused = [law for law, word in judged.laws.items() if word == law_check.REFUSED]
    return replace(judged, laws={**judged.laws, **dict.fromkeys(refused, NOT_MEASURED)})


def examine(
    function: Callable[[Rewards], Answer],
    declared: Mapping[str, Any] | None = None,
    batches: Mapping[str, Rewards] = BATCHES,
    law_batches: Collection[str] = LAW_BATCHES,
) -> Probe:
    """The probe of what gives answers; each batch is asked once."""
    declaration, kept = declaration_of(declared), dict[str, Answer]()

    def call(rewards: Rewards) -> Answer:
        key = json.dumps(rewards)
        if key not in kept:
            kept[key] = function(rewards)
        return kept[key]

    answers = [call(rewards) for rewards in batches.values()]
    computations = convention.computations_of(answers)
    first = computations[0] if computations else None
    solved = convention.with_own_eps(first, answers) if first else None
    if solved and solved != first:
        first, computations = solved, (solved,)
    ragged = convention.ragged_of(first, answers)
    words = convention.words_of(first, answers, ragged)
    # A function that refuses unequal groups is not accused of what it makes of
    # those that happen to divide: it is never given them.
    judged = [
        a for a in answers if not ragged.refuses or a.trouble or len(a.sizes) == 1
    ]
    judged.sort(key=lambda answer: len(flat(answer.rewards)))
    settings = convention.settings_of(first, words["lone_row"])
    bugs = _bugs(first, settings, judged, call) if first else {}
    rest = ""
    if first and solved is None and not bugs:  # it fits wide groups alone
        rest = _left_over(first, answers)
        first, computations = None, ()
        words = convention.words_of(None, answers, ragged)
    elif opposite := () if first else convention.turned(answers):
        settings = convention.settings_of(opposite[0])
        rest = f"With the opposite sign, that is {_titled(opposite[0])}."
    others = () if first or rest else convention.left_over_of(answers)
    rest = rest or " ".join(map(left_over_words, others))
    designed = {law: law_check.convention(law, settings) for law in LAWS}
    designed["rising"] = ""  # whatever turns an order is shown
    if others and others[0].kind == CLAMP:
        designed |= dict.fromkeys(("zero_sum", "scale"), "the clamp")
    if not first and not rest:
        designed["scale"] = UNKNOWN
    for_laws = [batches[name] for name in law_batches]
    of_laws = [a.rewards for a in judged if a.rewards in for_laws]
    laws, shown = _laws(designed, settings, call, of_laws, next(iter(bugs), ""))
    return Probe(
        convention=words,
        computes=_titled(first) if first else "",
        declared=dict(declared or {}),
        matches=any(map(declaration.allows, computations))
        if declared and computations
        else None,
        laws=laws,
        bugs=bugs,
        shown=shown,
        troubles={n: a.trouble for n, a in zip(batches, answers) if a.trouble},
        left_over=rest,
    )


def _left_over(computation: Computation, answers: Sequence[Answer]) -> str:
    """What the answers show of a computation that gives those to wide groups alone."""
    found = convention.left_over_of(answers)
    first = f"{_titled(computation)} fits groups that vary much, and no others."
    return " ".join(map(left_over_words, found)) or first


def _of_groups(answer: Answer) -> list[list[float]]:
    """The advantages. Raises GradebookError where the function gave none, or NaN."""
    if answer.trouble:
        raise GradebookError(answer.trouble)
    return answer.advantages


def _laws(
    designed: Mapping[str, str],
    settings: Settings,
    call: Callable[[Rewards], Answer],
    batches: Sequence[Rewards],
    bug: str,
) -> tuple[dict[str, str], dict[str, Shown]]:
    """Each law's answer on the batches, the fewest rows first, and the smallest
    batch that breaks it, on the board beside the engine of `bug`."""

    def outcome(law: str, *batches: Rewards) -> law_check.Outcome:
        steps = [law_check.step_of(batch) for batch in batches if suits(law, batch)]
        allowed = partial(rounding, settings, law == "flat")
        by_design = designed[law] if steps else ""
        values = law_check.on_groups(lambda groups: _of_groups(call(groups)))
        if by_design != UNKNOWN:
            return law_check.judge(law, values, steps, settings, allowed, by_design)
        # Nobody knows whether something divides: it keeps the law if either is kept.
        either = [
            law_check.judge(law, values, steps, replace(settings, scale=s), allowed)
            for s in ("group_std", "none")
        ]
        return next((o for o in either if o.answer != BROKEN), either[0])

    def word(law: str, rewards: Rewards) -> str:
        return outcome(law, rewards).answer

    laws = {law: outcome(law, *batches).answer for law in LAWS}
    shown = {}
    for law in LAWS:
        if laws[law] == BROKEN:
            first = next(batch for batch in batches if word(law, batch) == BROKEN)
            least = smallest(first, partial(word, law))
            broken = outcome(law, least)
            if broken.change:
                least = law_check.groups_of(broken.change.step)
            link = sandbox(least, settings, bug)
            given = _of_groups(call(least))
            shown[law] = Shown(least, given, broken.sentence, link)
    return laws, shown


def suits(law: str, rewards: Rewards) -> bool:
    """Missing rewards are for their own law, and so are flat groups. What a lone
    row gets is a part of the convention, and no law."""
    if law == "missing" or None in flat(rewards):
        return law == "missing" and None in flat(rewards)
    if law == "flat":
        return all(len(group) > 1 for group in rewards)
    return not any(len({*group}) == 1 < len(group) for group in rewards)


def rounding(settings: Settings, exact: bool, step: Step) -> list[float]:
    """How far float32 may move each row's advantage: its spacing at the
    rewards' size over the deviation that divides."""
    groups = law_check.groups_of(step)
    scored = [[r for r in group if r is not None] for group in groups]
    spacing = OF_LAWS * max([LEAST_SIZE, *map(abs, flat(scored))])
    allowed: list[float] = []
    for group, rewards in zip(groups, scored):
        divisor = 1.0
        scale = SCALES[settings.scale]
        if scale.is_std and not exact:
            of = flat(scored) if scale.compares == STEP else rewards
            divisor = float(np.std(of or [0.0])) + settings.eps
        allowed += [DUST + spacing / divisor] * len(group)
    return allowed


def _titled(computation: Computation) -> str:
    """The computation in a line."""
    details = computation.details
    return f"{computation.title} ({details})" if details else computation.title


def _bugs(
    computation: Computation,
    settings: Settings,
    answers: Sequence[Answer],
    call: Callable[[Rewards], Answer],
) -> dict[str, Shown]:
    """Bugs that explain all answers that the computation does not explain, each with
    the smallest batch that shows it. What a lone row gets is a part of the convention,
    so batches of lone rows show no bug."""
    telling = [a for a in answers if 1 not in a.sizes]
    named = convention.bugs_of(computation, telling)

    def shows(name: str, rewards: Rewards) -> bool:
        return name in convention.bugs_of(computation, [call(rewards)])

    seen: dict[str, Shown] = {}
    for name in named:
        first = next((a.rewards for a in telling if shows(name, a.rewards)), None)
        if first is None:
            continue
        least = smallest(first, partial(shows, name))
        advantages = call(least).advantages
        sentence = f"Rewards {line(least, 'g')} get {line(advantages, '.3g')}."
        link = sandbox(least, settings, name)
        seen[name] = Shown(least, advantages, sentence, link)
    return seen


def smallest(rewards: Rewards, shows: Callable[[Rewards], Any]) -> Rewards:
    """A batch reduced greedily, as long as it `shows` the same."""
    due = shows(rewards)
    while less := next((b for b in smaller(rewards) if shows(b) == due), None):
        rewards = less
    return rewards


def smaller(rewards: Rewards) -> Iterator[Rewards]:
    """Batches that are a little smaller or rounder: a prompt less, a row less
    in every prompt, a row less in one, a reward of 0 or 1."""

    def instead(p: int, *groups: list[Any]) -> Rewards:
        return [*rewards[:p], *groups, *rewards[p + 1 :]]

    if len(rewards) > 1:
        yield from map(instead, range(len(rewards)))
    if min(map(len, rewards)) > 2:
        yield [group[:-1] for group in rewards]
    for p, group in enumerate(rewards):
        if len(group) > 2:
            for n in range(len(group)):
                yield instead(p, group[:n] + group[n + 1 :])
    for p, group in enumerate(rewards):
        for n, reward in enumerate(group):
            for rounder in (0.0, 1.0) if reward not in (0, 1, None) else ():
                yield instead(p, [*group[:n], rounder, *group[n + 1 :]])


def sandbox(rewards: Rewards, settings: Settings, bug: str = "") -> str:
    """The address of the page that shows the batch beside both engines."""
    first = start(case(SANDBOX))
    cells = {name: values[0] for name, values in first.table.values().items()}
    rows = [
        cells
        | {"prompt": prompt, "rollout": f"{prompt}{n}"}
        | {"reward": reward or 0.0, "scored": reward is not None}
        for prompt, group in zip(map(chr, count(65)), rewards)
        for n, reward in enumerate(group)
    ]
    state = replace(
        first,
        table=Table.of(rows),
        settings=replace(settings, group_size=max(map(len, rewards))),
        bugs=(bug,) if bug else first.bugs,
    )
    return "sandbox?" + query_string(encode(state, covered=False))


def line(groups: Rewards, form: str) -> str:
    """Groups as text, each number in the format `form`.

    >>> line([[1, None], [0.5, 2]], "g")
    '1 missing | 0.5 2'
    """
    return " | ".join(
        " ".join("missing" if x is None else f"{x:{form}}" for x in group)
        for group in groups
    )


def laws(
    function: Callable[..., Any],
    expected: Mapping[str, str] | None = None,
    declared: Mapping[str, Any] | None = None,
) -> "list[ParameterSet]":
    """The laws as pytest parameters, for any function from rewards to advantages: call
    one, and it fails if the law is broken.

    function  takes rewards by prompt and returns advantages, as in `probe`
    expected  law -> reason: the law must be broken, for this reason
    declared  what the function should compute, as in `probe`

    Raises GradebookError for a law that does not exist.

        @pytest.mark.parametrize("law", gradebook.laws(advantages, expected={
            "flat": "float32 rounding over eps 1e-6"}))
        def test_law(law):
            law()

    >>> [law.id for law in laws(list)][:2]
    ['order', 'other_prompts']
    """
    import pytest

    judged = cache(lambda: probe(function, declared))  # when the first test asks

    def check(name: str) -> None:
        answer = judged().laws[name]
        if answer == BROKEN:
            shown = judged().shown[name]
            batch = f"Rewards {shown.rewards} give {shown.advantages}."
            raise AssertionError(f"{shown.sentence} {batch}")
        if answer != HOLDS:
            pytest.skip(answer)

    marks = {
        choice(name, LAWS, "expected"): [pytest.mark.xfail(strict=True, reason=reason)]
        for name, reason in (expected or {}).items()
    }
    return [
        pytest.param(partial(check, name), id=name, marks=marks.get(name, []))
        for name in LAWS
    ]
