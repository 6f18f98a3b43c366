"""Words: a judgement in sentences, made once. A surface words the advice and the
question about a column in its own way; no surface cuts or replaces a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gradebook.cases.scenario import bug
from gradebook.core.formatting import counted, short
from gradebook.core.tolerance import BEYOND
from gradebook.core.vocabulary import NAMED
from gradebook.logs.judging import left_over
from gradebook.logs.judging.computation import Computation
from gradebook.logs.judging.decide import OFF, Judgement
from gradebook.logs.judging.declaration import REJECTS, ROLES
from gradebook.logs.judging.fit import REWARDS, SCORES, WRITTEN
from gradebook.logs.judging.left_over import LeftOver
from gradebook.logs.judging.near import NearMiss
from gradebook.logs.judging.order import Order
from gradebook.logs.judging.suspects import Suspect
from gradebook.logs.read.curves import Curves
from gradebook.logs.read.log_columns import Unnamed

ColumnNames = Mapping[str, str]  # role -> the log's own name of a column

COMMAND, PAGE = "command", "page"
"""The surfaces: a command line and its reports; the page of the app."""

ADVICE: Mapping[str, Mapping[str, str]] = {
    "weights": {
        COMMAND: "Give them with --weights.",
        PAGE: "Give them in the settings below.",
    },
    "declare": {
        COMMAND: "If you configured another computation, declare it.",
        PAGE: "If you configured another computation, answer the question beside the"
        " log.",
    },
    "declare what was": {
        COMMAND: "Declare the configuration with --declared.",
        PAGE: "Answer the question beside the log.",
    },
    "leave out": {
        COMMAND: "`--column NAME=` makes the check ignore an optional column.",
        PAGE: "Under Columns, “none” makes the check ignore an optional column.",
    },
    "name": {
        COMMAND: "Name it with --column {role}=YOURS.",
        PAGE: "Choose it under Columns.",
    },
    "name or size": {
        COMMAND: "Name it with --column {role}=YOURS, or give --group-size.",
        PAGE: "Choose it under Columns, or give the rows per prompt in the settings.",
    },
}
"""What to do next, by surface."""


@dataclass(frozen=True)
class Confirm:
    """A column whose meaning decides about the bug that is asked about.

    column    its name in Gradebook
    role      what the log's column was taken for
    named     the log's name for it
    counting  the column decides which rows count
    is_from_rewards  the log has no such column: Gradebook made it from empty rewards
    """

    column: str
    role: str
    named: str
    counting: bool
    is_from_rewards: bool = False

    @property
    def declared(self) -> str:
        """The declaration that confirms it, or ""."""
        return f"counts={self.column}" if self.counting else ""

    @property
    def options(self) -> str:
        """The options of the command line that confirm it."""
        column = "" if self.is_from_rewards else f"--column {self.role}={self.named}"
        declared = f"--declared {self.declared}" if self.counting else ""
        return f"{column} {declared}".strip()


@dataclass(frozen=True)
class Statement:
    """A judgement in sentences.

    first    the finding, without its full stop
    rest     further sentences: its assumptions, and questions
    advice   a key of ADVICE, or ""
    confirm  the column whose meaning decides, or None
    """

    first: str
    rest: tuple[str, ...] = ()
    advice: str = ""
    confirm: Confirm | None = None

    def after(self, surface: str) -> str:
        """The sentences after the first one, as a surface says them."""
        sentences = [*self.rest]
        if self.advice:
            sentences.append(ADVICE[self.advice][surface])
        if self.confirm and surface == COMMAND:
            sentences.append(f"Confirm with `{self.confirm.options}`.")
        return " ".join(sentences)

    def words(self, surface: str = COMMAND) -> str:
        return f"{self.first}. {self.after(surface)}".strip()


SAYS = {
    "mask": "marks the tokens of a response",
    "length": "counts the tokens of a response",
    "rejected length": "is 0 for rejected rollouts",
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
    "prompt": "says which rows belong to one prompt",
}
"""Role of a column -> the meaning that a computation with it assumes."""

REASONS = {
    "no advantages": Statement(
        "Cannot tell: this log has no advantages",
        ("Log them beside the rewards, and check again.",),
    ),
    "no steps": Statement("Cannot tell: no step of this log could be judged"),
    "broken steps": Statement(
        "Cannot tell: no step of this log could be judged",
        (
            "If a row cannot be read, its whole step is left out; in a log without"
            " steps, its whole prompt.",
        ),
        advice="leave out",
    ),
    "all zero": Statement(
        "Cannot tell: all advantages are 0, although rewards vary within a prompt"
    ),
    "weights": Statement(
        "Cannot tell: the log does not determine the weights of its reward functions",
        advice="weights",
    ),
    "nothing varies": Statement(
        "Cannot tell: in every prompt all rewards are equal and all advantages are 0",
        ("Check steps in which rewards differ.",),
    ),
    "raw reward": Statement("The advantages are the rewards themselves"),
    "none fits": Statement(
        "None of the known computations fits",
        ("Check the columns, the reward weights, the group size and the declaration.",),
    ),
}
"""The reason of a judgement -> its sentences, without a condition."""


def unnamed_said(error: Unnamed, surface: str) -> str:
    """The error about a column that could not be guessed, with the way in which this
    surface names it."""
    advice = "name or size" if error.role == "prompt" else "name"
    return f"{error}. {ADVICE[advice][surface].format(role=error.role)}"


def curves_said(curves: Curves) -> Statement:
    """A log of curves: that it has no rows, what it tells, and how to log rows."""
    whose = f"{curves.trainer}'s" if curves.trainer else "a"
    return Statement(
        f"Cannot tell: this is {whose} log of curves, with"
        f" {counted(curves.steps, 'line')} and no rows",
        (*curves.tell, f"To check the advantages, {curves.rows}."),
    )


OTHERWISE = {
    "all zero": "Check that the column holds what was trained.",
    "raw reward": "If you configured that, declare estimator=none.",
}
"""The sentence after such a reason if no bug would explain the numbers."""


def statement_of(
    j: Judgement, declared: Mapping[str, object], columns: ColumnNames
) -> Statement:
    """The judgement, then its condition or question."""
    asked = ", ".join(f"{name}={value}" for name, value in declared.items())
    if j.verdict == "correct":
        return _correct(j, asked, columns)
    if j.verdict == "other":
        named = j.named or j.asks[:3]
        then = f"Under this declaration, it is the bug {_titles(named)}."
        return Statement(
            f"{_matches(j)}; you declared {asked}", (then,) if named else ()
        )
    if j.suspect is not None:
        return _suspect(j, j.suspect, columns)
    if j.why == "close":
        return Statement(
            f"Cannot tell: the advantages {_match(j)}; you declared {asked}",
            (
                "What you declared is further off than rounding explains, but not far:"
                f" less than {BEYOND:g} times.",
                f"{_what_would_show(j)} would show it.",
            ),
        )
    if j.why == "copies":
        return _copies(j, j.evidence.copies)
    if j.change is not None:
        return _change(j, j.change)
    if j.why == "rounding":
        return Statement(
            "Cannot tell: within the rounding of the rewards,"
            f" {j.computations[0].title} fits, and so may other computations",
            ("Log rewards with more digits.",),
        )
    reason = REASONS[j.why]
    then = _condition(j.asks) or OTHERWISE.get(j.why, "")
    has_condition = j.why in OTHERWISE
    rest = (*reason.rest, then) if has_condition else reason.rest
    return Statement(reason.first, rest, reason.advice)


def _correct(j: Judgement, asked: str, columns: ColumnNames) -> Statement:
    """The sentence for a computation that was declared, or for a known one without a
    declaration."""
    first, declaration = j.computations[0], j.declaration
    guessed = [c for c in first.columns if c not in declaration.trusted]
    rests = tuple(f"This assumes that {_means(c, columns)}." for c in guessed)
    if declaration.decides:
        return Statement(f"{_matches(j)}, as declared: {asked}", rests)
    if condition := _condition(j.asks, first.title):
        configured = "If you configured that, nothing is wrong."
        return Statement(_matches(j), (*rests, configured, condition))
    return Statement(_matches(j), rests, "declare")


def _change(j: Judgement, at: int) -> Statement:
    """The sentence for a run that changes once, from one computation to another."""
    before, step = j.evidence.steps.labels[at - 1 : at + 1]
    rest = [f"Was the run reconfigured at step {step}?"]
    if j.asks:
        rest.append(f"If not, it is the bug {_titles(j.asks[:2])}.")
    first, second = (computation.title for computation in j.computations)
    return Statement(
        f"The advantages match {first} up to step {before} and {second} from step"
        f" {step} on",
        tuple(rest),
    )


def _copies(j: Judgement, copies: int) -> Statement:
    """The sentence for rows at the ends of steps that repeat the steps' first rows and
    vote."""
    rows = counted(copies, "row repeats", "rows repeat")
    return Statement(
        _matches(j),
        (
            f"The last {rows} the first rows of their steps, and count like any other."
            " Do they fill the step?",
            "If so, they should not count. If instead a prompt was sampled twice in"
            " the step, give each time an id of its own.",
        ),
    )


def _matches(j: Judgement) -> str:
    return f"The advantages {_match(j)}"


def _match(j: Judgement) -> str:
    """ "match" and the bugs, or the first computation and those that give the same
    numbers."""
    if j.named:
        return f"match {' or '.join(s.record.phrase for s in j.named)}"
    first, ruler = j.computations[0], j.evidence.ruler
    sentence = f"match {first.title}"
    if details := first.details + _other_details(j.computations):
        sentence += f" ({details})"
    usual = [
        c.title
        for c in j.computations
        if (c.baseline, c.scale, "") in NAMED and c.over in ("", "tokens")
        if c.about == "mean"
    ]
    titles = [t for t in dict.fromkeys(usual) if t != first.title][:3]
    if titles:
        give = "gives" if len(titles) == 1 else "give"
        sentence += f", or {' or '.join(titles)}, which {give} the same numbers here"
    rounding = {
        SCORES: "float32 rounding",
        WRITTEN: f"rounding ({ruler.advantage.words})",
        REWARDS: f"the rewards' rounding ({ruler.reward.words})",
    }
    return sentence + (f", within {rounding[j.level]}" if j.level in rounding else "")


def _other_details(computations: Sequence[Computation]) -> str:
    """Says that another ddof or eps of the first computation fits too; else ""."""
    first = computations[0]
    same = [c for c in computations if c.title == first.title]
    same = [c for c in same if c.eps_at == first.eps_at]
    several = [n for n in ("ddof", "eps") if len({getattr(c, n) for c in same}) > 1]
    return f"; other values of {' and '.join(several)} fit too" if several else ""


def _titles(bugs: Sequence[Suspect]) -> str:
    return " or ".join(s.record.title for s in bugs)


def _condition(asks: Sequence[Suspect], named: str = "") -> str:
    """ "If GRPO was configured, these are the numbers of the bug Whole batch.", or ""
    without another computation than the one that is `named`."""
    bugs: dict[str, list[Suspect]] = {}
    for suspect in asks[:3]:
        bugs.setdefault(Computation.of(suspect.settings).title, []).append(suspect)
    return " ".join(
        f"If {title} was configured, these are the numbers of the bug {_titles(each)}."
        for title, each in bugs.items()
        if title != named
    )


def _means(column: str, columns: ColumnNames, counting: bool = False) -> str:
    """ "`response_length` counts the tokens of a response"; `counting`, which rows
    count."""
    role, named = named_as(column, columns, counting)
    meaning = "rejected length" if counting and role == "length" else role
    says = SAYS.get(meaning, "means what its name says")
    decides = " and decides which rows count" if counting else ""
    return f"`{named}` {says}{decides}"


def _confirm(column: str, columns: ColumnNames, counting: bool) -> Confirm:
    role, named = named_as(column, columns, counting)
    return Confirm(column, role, named, counting, is_from_rewards=role not in columns)


def named_as(column: str, columns: ColumnNames, counting: bool) -> tuple[str, str]:
    """The role from which a column was made, and the log's name for it."""
    roles = [r for r in ROLES.get(column, ()) if counting or r not in REJECTS]
    role = next((r for r in roles if r in columns), column)
    return role, columns.get(role, role)


def _suspect(j: Judgement, s: Suspect, columns: ColumnNames) -> Statement:
    meanings = _meanings(j.named, columns)
    if j.verdict == "asks" and (s.decides_votes or s.record.proof == "column"):
        clauses = [
            f"{means}, these advantages match {_titles(bugs)}"
            for means, bugs in meanings.items()
        ]
        return Statement(
            f"If {'; if '.join(clauses)}",
            confirm=_confirm(s.columns[0], columns, s.decides_votes),
        )
    first = f"{_matches(j)} ({_under(j.named)}){_how_many(j)}"
    rest = _how_far(j)
    if j.verdict == "suspect":
        assumed = tuple(f"This assumes that {means}." for means in meanings)
        return Statement(first, (*rest, *assumed))
    others = [each for each in j.asks if each not in j.named][:2]
    more = f" (or {_titles(others)})" if others else ""
    question = (
        "Was this computation configured? If not, it is the bug"
        f" {_titles(j.named)}{more}."
    )
    if j.declaration.decides:
        more_rows = f"{_what_would_show(j)} may show it."
        return Statement(first, (*rest, question, more_rows))
    return Statement(first, (*rest, question), "declare what was")


def _meanings(
    named: Sequence[Suspect], columns: ColumnNames
) -> Mapping[str, Sequence[Suspect]]:
    """The meaning of a column -> the bugs that assume it."""
    bugs: dict[str, list[Suspect]] = {}
    for each in named:
        means = _means(each.columns[0], columns, each.decides_votes)
        bugs.setdefault(means, []).append(each)
    return bugs


def _under(named: Sequence[Suspect]) -> str:
    """The bugs and the settings under which they fit: "the bug Partial groups, GRPO,
    group size 4"."""
    computations = dict.fromkeys(Computation.of(s.settings).title for s in named)
    sizes = dict.fromkeys(f"{s.group_size}" for s in named if s.group_size)
    inside = [f"the bug {_titles(named)}", " or ".join(computations)]
    if sizes:
        inside.append(f"group size {' or '.join(sizes)}")
    return ", ".join(inside)


def _what_would_show(j: Judgement) -> str:
    """What a log needs to tell two computations apart. Prompts whose rewards are all
    equal do not, however many they are."""
    steps = j.evidence.ruler.steps
    first = steps.reward[steps.groups.first][steps.prompt]
    if (steps.reward == first).all():
        return "Prompts whose rewards differ"
    return "More steps, or more digits,"


def _how_many(j: Judgement) -> str:
    """How many steps have the bug, and how many are right; "" if there is nothing to
    say."""
    frame = j.frame
    off = int(frame["verdict"].isin(OFF).sum())
    if not off:
        return ""
    correct = int(frame["verdict"].eq("correct").sum())
    others = counted(correct, "other")
    also = f"; on {others} they are correct" if correct else ""
    return f" on {off:,} of {counted(len(frame), 'step')}{also}"


def _how_far(j: Judgement) -> tuple[str, ...]:
    """How far the steps that are off are from the correct advantages."""
    off = j.frame[j.frame["verdict"].isin(OFF)]
    if not len(off):
        return ()
    largest = off["correct_residual"].replace(np.inf, np.nan).max()
    first = off.iloc[0]
    return (
        "The largest difference from the correct advantages is"
        f" {short(float(largest), 4)}. The first step that is off is step"
        f" {first['step']}; its row {first['row']} is farthest off.",
    )


def ties_of(j: Judgement) -> dict[str, str]:
    """Name of each bug or computation that fits equally well -> a sentence that says
    why the log cannot tell."""
    same = "It gives the same numbers on every step of this log."
    ties = {
        b.name: f"{b.title}: {same} Only {b.would_tell} can tell them apart."
        for b in map(bug, j.ties)
    }
    computations = j.computations if j.change is None else ()
    ties |= {c.estimator: f"{c.title}: {same}" for c in computations}
    ties.pop(j.estimator, None)
    return ties


def order_words(order: Order) -> str:
    """How many prompts turn the order of their rewards, in sentences; "" for none."""
    if not order.is_shown:
        return ""
    prompts = f"of {counted(order.prompts, 'prompt')} whose rewards differ"
    if order.is_turned:
        return (
            f"In {order.turned:,} {prompts}, the best row has the lowest advantage:"
            " training makes it less likely."
        )
    return (
        f"In {order.broken:,} {prompts}, a row with a higher reward has a lower"
        " advantage. Three designs do that, too: each reward function is normalized by"
        " itself; the trainer adds something to the logged reward; or some of these"
        " rows are left out of the mean."
    )


LEFT_OVER = {
    left_over.PIECES: "{title} fits every row if each prompt's rows are cut, in their"
    " order, into pieces of {number:.0f}, and only rows of one piece are compared.",
    left_over.NEIGHBOURS: "Neighbouring steps hold the same prompts. {title} fits every"
    " row if a prompt's rows in neighbouring steps are compared with each other.",
    left_over.ONE_ROW: "{title} fits the last row of each rollout, and the rollout's"
    " other rows have advantage 0.",
    left_over.NO_VOTE: "{rows:,} rows have advantage 0. {title} fits all other rows if"
    " these rows are left out of every statistic.",
    left_over.CLAMP: "{rows:,} rows have an advantage of ±{number:.6g}, and {title}"
    " gives them a larger size. {title} fits all other rows. So the advantages are"
    " clamped.",
    left_over.FLOOR: "The {rows:,} rows of prompts with the smallest deviations are"
    " divided by {number:.6g} instead of their deviation. {title} fits all other rows.",
    left_over.ZEROED: "{title} fits all rows of prompts with a deviation of"
    " {number:.6g} or more. {rows:,} rows with a smaller deviation have advantage 0.",
    left_over.LENGTH: "{title} fits every row if each token of a row changes its reward"
    " by {number:.6g}. So the reward that was normalized depends on the length.",
    left_over.LONGER: "The advantages depend on the length: within a prompt, the"
    " logged advantage minus that of {title} is higher for longer rows.",
    left_over.SHORTER: "The advantages depend on the length: within a prompt, the"
    " logged advantage minus that of {title} is lower for longer rows.",
    left_over.KL: "In each prompt the logged advantages minus those of {title} add up"
    " to 0. These are 0 at first and grow over the steps. A KL term in the reward"
    " does that. Log the reward from which the advantages were computed.",
}
"""Kind of what is left over -> its sentence."""


def left_over_words(finding: LeftOver) -> str:
    """The pattern of the differences in sentences."""
    sentence = LEFT_OVER[finding.kind].format(
        title=finding.computation.title, number=finding.number, rows=finding.rows
    )
    if finding.all_count:
        sentence += " The rows that the log marks as left out count in these numbers."
    return sentence


def near_words(near: NearMiss | None) -> str:
    """The closest computation in a sentence, or ""."""
    if near is None:
        return ""
    title = near.computation.title
    if near.is_turned:
        return (
            f"Near miss: {title} fits with the opposite sign. Check the sign of the"
            " loss, or of the column."
        )
    sentence = f"Near miss: {title} fits {near.fitting:,} of the {near.rows:,} rows."
    if near.is_tail:
        sentence += (
            " Only the last rows of each step do not fit. They may be padding or a"
            " smaller batch: log them as their own step, or leave them out."
        )
    return sentence
