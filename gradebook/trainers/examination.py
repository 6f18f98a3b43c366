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
from gradebook.core.columns import of_kind
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
from gradebook.trainers.batches import (
    BATCHES,
    LAW_BATCHES,
    MARKED,
    columns_in,
    columns_of,
)
from gradebook.trainers.child import (
    EOS,
    LENGTH,
    NOTHING,
    Answer,
    Ask,
    Given,
    Rewards,
    flat,
)
from gradebook.trainers.convention import NO_CONVENTION, TREATED
from gradebook.trainers.releases import LAWS

UNKNOWN = "unknown"
"""In place of a convention: nobody knows whether a deviation divides."""

MOVED_BY_LENGTHS = ("shift", "scale", "zero_sum", "flat", "rising")
"""The laws that a function of lengths may break by design: nobody knows what it
computes."""

Call: TypeAlias = Callable[..., Answer]
"""Gives a function a batch of rewards, and columns, those by place if it gets none."""


@dataclass(frozen=True)
class Shown:
    """The smallest batch that shows something, by prompt, in a sentence, and as the
    page that opens it beside both engines. `columns` are what else the function was
    given."""

    rewards: Rewards
    advantages: list[list[float]]
    sentence: str
    link: str
    columns: Given = field(default_factory=dict)


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
    columns: Sequence[str] = (),
) -> Probe:
    """The probe of what gives answers; each batch is asked once, with the `columns`
    that the function takes. Such a function also gets batches with marked rows."""
    declaration, call = declaration_of(declared), asked_once(function, columns)
    named = _asked(call, batches, columns)
    answers = [*named.values()]
    uses_lengths = LENGTH in columns and _uses_lengths(call, answers)
    recognized = _recognized(answers, call, uses_lengths)
    of_laws = [batches[name] for name in law_batches]
    laws, shown = laws_of(
        _designed(recognized, uses_lengths),
        recognized.settings,
        call,
        [a.rewards for a in recognized.judged if a.rewards in of_laws],
        next(iter(recognized.bugs), ""),
    )
    of_lengths = _of_lengths(recognized, uses_lengths) if LENGTH in columns else {}
    return Probe(
        convention={**recognized.words, **of_lengths},
        computes=line_of(recognized.computations),
        declared=dict(declared or {}),
        matches=declaration.matches(recognized.computations),
        laws=laws,
        bugs=recognized.bugs,
        shown=shown,
        troubles={name: a.trouble for name, a in named.items() if a.trouble},
        left_over=recognized.left_over,
        lost=tuple(name for name, a in named.items() if a.is_last),
    )


def _asked(
    call: Call, batches: Mapping[str, Rewards], columns: Sequence[str]
) -> dict[str, Answer]:
    """The answers by the batches' names; with those to marked rows, if the function
    takes the column that marks them."""
    named = {name: call(rewards) for name, rewards in batches.items()}
    of_marks = {n: batch for n, batch in MARKED.items() if batch.column in columns}
    for name, batch in of_marks.items():
        named[name] = call(batch.rewards, batch.columns(columns))
    return named


def _of_lengths(recognized: Recognition, uses_lengths: bool) -> dict[str, str]:
    """What a function does with lengths, as a part of its convention."""
    decides = recognized.words.get(TREATED[LENGTH]) not in ("", "count", None)
    at_0 = "only whether there is a token" if decides else "not used"
    return {"lengths": "used" if uses_lengths else at_0}


def _recognized(
    answers: Sequence[Answer], call: Call, uses_lengths: bool
) -> Recognition:
    """A known computation with the bugs beside it, or what is left over."""
    computations = convention.computations_of(answers)
    if not computations:
        return _unrecognized(answers, call, uses_lengths)
    first = computations[0]
    solved = convention.with_own_eps(first, answers)
    if solved and solved != first:
        first, computations = solved, (solved,)
    ragged = convention.ragged_of(first, answers)
    words = convention.words_of(first, answers, ragged)
    words |= convention.treatments_of(first, answers)
    settings = convention.settings_of(first, words["lone_row"])
    judged = _judged(answers, ragged)
    bugs = _bugs(first, settings, judged, call)
    if solved is None and not bugs:
        # It fits wide groups alone, and no bug explains the others.
        return Recognition(
            judged, settings, left_over=_beyond_wide_groups(first, answers)
        )
    return Recognition(judged, settings, computations, words, bugs)


def _with_a_bug(answers: Sequence[Answer], call: Call) -> Recognition | None:
    """A bug by which no known computation gives the advantages of whole groups, with
    the computation that it changes; None without one."""
    judged = _judged(answers, convention.Ragged())
    for computation in convention.behind_a_bug(answers):
        settings = convention.settings_of(computation)
        if bugs := _bugs(computation, settings, judged, call):
            name = bug(next(iter(bugs))).title
            sentence = f"With the bug {name}, that is {titled(computation)}."
            return Recognition(judged, settings, bugs=bugs, left_over=sentence)
    return None


def _unrecognized(
    answers: Sequence[Answer], call: Call, uses_lengths: bool
) -> Recognition:
    """What answers show that no known computation gives: a change of one, a bug, or
    what is left over."""
    judged = _judged(answers, convention.Ragged())
    if opposite := convention.turned(answers):
        sentence = f"With the opposite sign, that is {titled(opposite[0])}."
        settings = convention.settings_of(opposite[0])
        return Recognition(judged, settings, left_over=sentence)
    if uses_lengths and (whole := convention.over_length(answers)):
        sentence = f"Times the row's length, that is {titled(whole[0])}."
        settings = convention.settings_of(whole[0])
        return Recognition(judged, settings, left_over=sentence)
    if faulty := _with_a_bug(answers, call):
        return faulty
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


def asked_once(function: Ask, names: Sequence[str]) -> Call:
    """The function, asked once for equal batches; with the named columns of a batch's
    rows by place, if none are given."""
    kept: dict[str, Answer] = {}

    def call(rewards: Rewards, columns: Given = NOTHING) -> Answer:
        given = columns_of(rewards, names)
        given = {name: columns.get(name, given[name]) for name in names}
        key = json.dumps([rewards, given])
        if key not in kept:
            kept[key] = function(rewards, given)
        return kept[key]

    return call


def _uses_lengths(call: Call, answers: Sequence[Answer]) -> bool:
    """Some batch without marked rows has other advantages when all its rows are as
    long."""

    def differs(answer: Answer) -> bool:
        equal = [[1] * len(group) for group in answer.rewards]
        other = flat(call(answer.rewards, {LENGTH: equal}).advantages)
        return not np.allclose(flat(answer.advantages), other, atol=1e-5)

    return any(differs(a) for a in answers if a.advantages and not a.marks)


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
            columns = columns_in(step, (LENGTH, EOS))
            ask = law_check.on_groups(lambda groups: _of_groups(call(groups, columns)))
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

    def shows(name: str, answer: Answer) -> bool:
        return name in convention.bugs_of(computation, [answer])

    seen: dict[str, Shown] = {}
    for name in named:
        first = next((answer for answer in telling if shows(name, answer)), None)
        if first is None:
            continue
        least = smallest_answer(call, first, partial(shows, name))
        given = [f"Rewards {line(least.rewards, 'g')}"]
        if LENGTH in least.columns:
            given.append(f"lengths {line(least.columns[LENGTH], 'd')}")
        if EOS in least.marks:
            given.append(f"finished {line(least.columns[EOS], 'd')}")
        advantages = line(least.advantages, ".3g")
        seen[name] = Shown(
            least.rewards,
            least.advantages,
            f"{', '.join(given)} get {advantages}.",
            sandbox(
                least.rewards,
                replace(settings, mask_no_eos=EOS in least.marks),
                name,
                least.columns,
            ),
            least.columns,
        )
    return seen


def smallest_answer(
    call: Call, answer: Answer, shows: Callable[[Answer], bool]
) -> Answer:
    """The answer to a batch that was reduced greedily, each row with its columns."""
    names = [*answer.columns]

    def asked(groups: list[list[tuple[Any, ...]]]) -> Answer:
        rewards, *columns = (
            [[row[place] for row in group] for group in groups]
            for place in range(len(names) + 1)
        )
        return call(rewards, dict(zip(names, columns)))

    def rounder(row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [(reward, *row[1:]) for reward in rounder_rewards(row[0])]

    prompts = zip(answer.rewards, *answer.columns.values())
    groups = [[*zip(*cells)] for cells in prompts]
    return asked(smallest(groups, lambda rows: shows(asked(rows)), rounder))


def rounder_rewards(reward: float | None) -> list[float]:
    """Rewards to try in place of one."""
    return [0.0, 1.0] if reward not in (0, 1, None) else []


Rounder = Callable[[Any], Sequence[Any]]


def smallest(
    groups: list[list[Any]],
    shows: Callable[[Any], Any],
    rounder: Rounder = rounder_rewards,
) -> list[list[Any]]:
    """A batch reduced greedily, as long as it `shows` the same. `rounder` gives what to
    try in place of a row: of a reward, unless rows have more."""
    due = shows(groups)
    tried = partial(smaller, rounder=rounder)
    while less := next((b for b in tried(groups) if shows(b) == due), None):
        groups = less
    return groups


def smaller(
    groups: list[list[Any]], rounder: Rounder = rounder_rewards
) -> Iterator[list[list[Any]]]:
    """Batches that are a little smaller or rounder: a prompt less, a row less
    in every prompt, a row less in one, a reward of 0 or 1."""

    def instead(p: int, *others: list[Any]) -> list[list[Any]]:
        return [*groups[:p], *others, *groups[p + 1 :]]

    if len(groups) > 1:
        yield from map(instead, range(len(groups)))
    if min(map(len, groups)) > 2:
        yield [group[:-1] for group in groups]
    for p, group in enumerate(groups):
        if len(group) > 2:
            for n in range(len(group)):
                yield instead(p, group[:n] + group[n + 1 :])
    for p, group in enumerate(groups):
        for n, row in enumerate(group):
            for other in rounder(row):
                yield instead(p, [*group[:n], other, *group[n + 1 :]])


def sandbox(
    rewards: Rewards, settings: Settings, bug: str = "", columns: Given = NOTHING
) -> str:
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
    if LENGTH in columns:
        lengths = flat(columns[LENGTH])
        widest, lists = max(1, *lengths), cells.keys() & of_kind("list")
        for row, tokens in zip(rows, lengths):
            row |= {name: [cells[name][0]] * widest for name in lists}
            row["mask"] = [token < tokens for token in range(widest)]
    if EOS in columns:
        for row, ended in zip(rows, flat(columns[EOS])):
            row["eos"] = bool(ended)
    state = replace(
        first,
        table=Table.of(rows),
        settings=replace(settings, group_size=max(map(len, rewards))),
        bugs=(bug,) if bug else first.bugs,
    )
    return "sandbox?" + query_string(encode(state, covered=False))


def line(groups: Rewards, form: str) -> str:
    """Groups as text, each number in the format `form`; −0 is 0.

    >>> line([[1, None], [0.5, 2]], "g")
    '1 missing | 0.5 2'
    """
    return " | ".join(
        " ".join("missing" if x is None else f"{x:{form}}" for x in group)
        for group in groups
    )
