"""The examination of what gives advantages for groups of rewards: its convention, the
laws that it keeps, and the known bugs that give its numbers."""

import html
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from gradebook.analysis import law_check
from gradebook.analysis.law_check import BROKEN
from gradebook.analysis.laws import Step
from gradebook.cases.link import encode, query_string
from gradebook.cases.scenario import SANDBOX, bug, case
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import DUST
from gradebook.core.settings import Settings
from gradebook.core.tolerance import LEAST_SIZE, OF_LAWS
from gradebook.core.vocabulary import SCALES, STEP
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.declaration import declaration_of
from gradebook.logs.judging.left_over import CLAMP
from gradebook.logs.judging.sentences import left_over_words
from gradebook.trainers import convention
from gradebook.trainers.batches import BATCHES, LAW_BATCHES, lengths_in, lengths_of
from gradebook.trainers.child import Answer, Ask, Lengths, Rewards, flat
from gradebook.trainers.convention import NO_CONVENTION
from gradebook.trainers.releases import LAWS

UNKNOWN = "unknown"
"""In place of a convention: nobody knows whether a deviation divides."""

MOVED_BY_LENGTHS = ("shift", "scale", "zero_sum", "flat", "rising")
"""The laws that a function of lengths may break by design: nobody knows what it
computes."""

Call: TypeAlias = Callable[..., Answer]
"""Gives a function a batch of rewards, and lengths, those by place if it gets none."""


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
    lost        the batches on which the function gave nothing because its process was
                lost: where that happened, and all later ones
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
    lost: tuple[str, ...] = ()

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
        for name in self.lost[:1]:
            what = f"On {name}: {self.troubles[name]}"
            lines.append(f"{what}. The function was not called again.")
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
        told = {n: what for n, what in self.troubles.items() if n not in self.lost}
        lines += [f"On {name}: {what}" for name, what in told.items()]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        head, *rest = str(self).splitlines()
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return f"<p><b>{html.escape(head)}</b></p><ul>{items}</ul>"


@dataclass(frozen=True)
class Recognition:
    """What a function's answers were recognized as.

    judged        the answers that bugs and laws are asked of, the fewest rows first
    settings      of the engines beside which a batch of theirs is shown
    computations  those that fit all of it, the plainest first; () if none does
    words         the convention, as `convention.words_of`
    bugs          bug -> the smallest batch that shows it
    left_over     what the answers show if no computation fits, in sentences
    is_clamped    what is left over is first of all a clamp
    """

    judged: Sequence[Answer]
    settings: Settings
    computations: tuple[Computation, ...] = ()
    words: Mapping[str, str] = field(default_factory=NO_CONVENTION.copy)
    bugs: Mapping[str, Shown] = field(default_factory=dict)
    left_over: str = ""
    is_clamped: bool = False


def examine(
    function: Ask,
    declared: Mapping[str, Any] | None = None,
    batches: Mapping[str, Rewards] = BATCHES,
    law_batches: Collection[str] = LAW_BATCHES,
    lengths: bool = False,
) -> Probe:
    """The probe of what gives answers; each batch is asked once, with the lengths of
    its rows if `lengths`."""
    declaration, call = declaration_of(declared), asked_once(function, lengths)
    answers = [call(rewards) for rewards in batches.values()]
    uses_lengths = lengths and _uses_lengths(call, answers)
    recognized = _recognized(answers, call, uses_lengths)
    of_laws = [batches[name] for name in law_batches]
    laws, shown = laws_of(
        _designed(recognized, uses_lengths),
        recognized.settings,
        call,
        [a.rewards for a in recognized.judged if a.rewards in of_laws],
        next(iter(recognized.bugs), ""),
    )
    words = dict(recognized.words)
    if lengths:
        words["lengths"] = "used" if uses_lengths else "not used"
    return Probe(
        convention=words,
        computes=line_of(recognized.computations),
        declared=dict(declared or {}),
        matches=declaration.matches(recognized.computations),
        laws=laws,
        bugs=recognized.bugs,
        shown=shown,
        troubles={n: a.trouble for n, a in zip(batches, answers) if a.trouble},
        left_over=recognized.left_over,
        lost=tuple(n for n, a in zip(batches, answers) if a.is_last),
    )


def _recognized(
    answers: Sequence[Answer], call: Call, uses_lengths: bool
) -> Recognition:
    """A known computation with the bugs beside it, or what is left over."""
    computations = convention.computations_of(answers)
    if not computations:
        return _unrecognized(answers, uses_lengths)
    first = computations[0]
    solved = convention.with_own_eps(first, answers)
    if solved and solved != first:
        first, computations = solved, (solved,)
    ragged = convention.ragged_of(first, answers)
    words = convention.words_of(first, answers, ragged)
    settings = convention.settings_of(first, words["lone_row"])
    judged = _judged(answers, ragged)
    bugs = _bugs(first, settings, judged, call)
    if solved is None and not bugs:
        # It fits wide groups alone, and no bug explains the others.
        return Recognition(
            judged, settings, left_over=_beyond_wide_groups(first, answers)
        )
    return Recognition(judged, settings, computations, words, bugs)


def _unrecognized(answers: Sequence[Answer], uses_lengths: bool) -> Recognition:
    """What answers show that no known computation gives: a change of one, or what is
    left over."""
    judged = _judged(answers, convention.Ragged())
    if opposite := convention.turned(answers):
        sentence = f"With the opposite sign, that is {titled(opposite[0])}."
        settings = convention.settings_of(opposite[0])
        return Recognition(judged, settings, left_over=sentence)
    if uses_lengths and (whole := convention.over_length(answers)):
        sentence = f"Times the row's length, that is {titled(whole[0])}."
        settings = convention.settings_of(whole[0])
        return Recognition(judged, settings, left_over=sentence)
    findings = convention.left_over_of(answers)
    return Recognition(
        judged,
        Settings(),
        left_over=" ".join(map(left_over_words, findings)),
        is_clamped=bool(findings) and findings[0].kind == CLAMP,
    )


def _judged(answers: Sequence[Answer], ragged: convention.Ragged) -> list[Answer]:
    """The answers that bugs and laws are asked of, the fewest rows first. A function
    that refuses unequal groups is not accused of what it makes of those that happen to
    divide: it is never given them."""
    judged = [
        answer
        for answer in answers
        if not ragged.refuses or answer.trouble or len(answer.sizes) == 1
    ]
    return sorted(judged, key=lambda answer: len(flat(answer.rewards)))


def _designed(recognized: Recognition, uses_lengths: bool) -> dict[str, str]:
    """Law -> what breaks it by design, or ''; UNKNOWN if nobody knows."""
    designed = designed_by(recognized.settings)
    if recognized.computations:
        return designed
    if recognized.is_clamped:
        designed |= dict.fromkeys(("zero_sum", "scale"), "the clamp")
    if not recognized.left_over:
        designed["scale"] = UNKNOWN
    if uses_lengths:
        designed |= dict.fromkeys(MOVED_BY_LENGTHS, "the lengths")
    return designed


def designed_by(settings: Settings) -> dict[str, str]:
    """Law -> the setting that breaks it by design, or ''."""
    designed = {law: law_check.convention(law, settings) for law in LAWS}
    designed["rising"] = ""  # whatever turns an order is shown
    return designed


def asked_once(function: Ask, lengths: bool) -> Call:
    """The function, asked once for equal batches; with the lengths of a batch's rows by
    place, if `lengths` and none are given."""
    kept: dict[str, Answer] = {}

    def call(rewards: Rewards, of_rows: Lengths | None = None) -> Answer:
        tokens = (of_rows or lengths_of(rewards)) if lengths else None
        key = json.dumps([rewards, tokens])
        if key not in kept:
            kept[key] = function(rewards, tokens)
        return kept[key]

    return call


def _uses_lengths(call: Call, answers: Sequence[Answer]) -> bool:
    """Some batch has other advantages when all its rows are as long."""

    def differs(answer: Answer) -> bool:
        equal = [[1] * len(group) for group in answer.rewards]
        other = flat(call(answer.rewards, equal).advantages)
        return not np.allclose(flat(answer.advantages), other, atol=1e-5)

    return any(differs(answer) for answer in answers if answer.advantages)


def _beyond_wide_groups(computation: Computation, answers: Sequence[Answer]) -> str:
    """What the answers show, in sentences, if the computation fits groups that vary
    much and no others."""
    findings = convention.left_over_of(answers)
    otherwise = f"{titled(computation)} fits groups that vary much, and no others."
    return " ".join(map(left_over_words, findings)) or otherwise


def _of_groups(answer: Answer) -> list[list[float]]:
    """The advantages. Raises GradebookError if the function gave none, or NaN."""
    if answer.trouble:
        raise GradebookError(answer.trouble)
    return answer.advantages


def laws_of(
    designed: Mapping[str, str],
    settings: Settings,
    call: Call,
    batches: Sequence[Rewards],
    bug: str,
) -> tuple[dict[str, str], dict[str, Shown]]:
    """Each law's answer on the batches, the fewest rows first, and the smallest
    batch that breaks it, on the board beside the engine of `bug`."""

    def outcome(law: str, *batches: Rewards) -> law_check.Outcome:
        steps = [law_check.step_of(batch) for batch in batches if suits(law, batch)]
        allowed = partial(rounding, settings, law == "flat")
        by_design = designed[law] if steps else ""

        def values(step: Step, changed: Mapping[str, Any]) -> list[float]:
            lengths = lengths_in(step)
            ask = law_check.on_groups(lambda groups: _of_groups(call(groups, lengths)))
            return ask(step, changed)

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
            if broken.follow_up:
                least = law_check.groups_of(broken.follow_up.step)
            link = sandbox(least, settings, bug)
            advantages = _of_groups(call(least))
            shown[law] = Shown(least, advantages, broken.sentence, link)
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


def titled(computation: Computation) -> str:
    """The computation in a line."""
    details = computation.details
    return f"{computation.title} ({details})" if details else computation.title


def line_of(computations: Sequence[Computation]) -> str:
    """The plainest computation in a line, the first of those that fit; '' for none."""
    return titled(computations[0]) if computations else ""


def _bugs(
    computation: Computation,
    settings: Settings,
    answers: Sequence[Answer],
    call: Call,
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
