"""Plans for a session: which cases to open, for how many minutes each.

A case's words for the lead are in its scenario file, in the table [plan]; question,
choices and answer are those of the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Annotated

from gradebook.bugs import BUGS
from gradebook.cases import reports
from gradebook.cases import scenario as cases
from gradebook.cases.link import encode
from gradebook.cases.scenario import Scenario, load
from gradebook.cases.schema import BugName, FilePart, Lesson, Whole, between, read_part
from gradebook.cases.state import start
from gradebook.core.errors import refuse
from gradebook.training.study import KINDS
from gradebook.training.transformer import outcome
from gradebook.training.transformer.experiments import experiment, experimented
from gradebook.training.transformer.results import measured

MINUTES = 60
"""The length of a session, if a lead does not say otherwise: a lesson. The hour's plan
takes 60 with its opening and closing."""
TRAINING = "training-"
"""Before the bug, in the name of its training runs' question."""
LEAST = 3
"""Minutes that a case needs, to read it, predict and see the answer: the fewest that a
case's file gives."""


@dataclass(frozen=True)
class PlanStep:
    """A few minutes of a session.

    scenario  the case to open; '' for a step without one
    trains    the step opens the bug's training runs, and no case
    page      the page to open, if it is neither a case nor training runs
    usual     the tempting answer, and `why` it tempts
    truth     the answer, and why it holds
    do        what to do after the reveal
    next      the case to open when there is time left, or ''
    place     the place in the hour; 0 for a step outside it
    """

    title: str
    begin: int = 0
    minutes: int = LEAST
    bug: str = ""
    scenario: str = ""
    trains: bool = False
    page: str = ""
    ask: str = ""
    choices: tuple[str, ...] = ()
    answer: int | None = None
    usual: str = ""
    why: str = ""
    truth: str = ""
    do: str = ""
    next: str = ""
    place: int = 0

    @property
    def question(self) -> str:
        """The name of the step's question in a room."""
        return TRAINING + self.bug if self.trains else self.scenario or self.page


OPENING = PlanStep(
    minutes=4,
    title="What an advantage is",
    page="primer",
    ask="Four answers to one prompt earn 1, 0, 0 and 1. What happens to the"
    " advantage of the first when the second earns 1 as well?",
    choices=("It shrinks", "It stays the same", "It grows"),
    answer=0,
    usual="It stays the same, because its own reward does.",
    why="An advantage looks like a score of the answer. But it is a comparison:"
    " the mean rises, so the first answer is less far above it.",
    truth="It shrinks. With two successes the mean is 0.5, with three it is 0.75.",
    do="Drag that reward to 1, or type it. Then set all four to 1: every"
    " advantage is 0.",
)

CLOSING = PlanStep(
    minutes=5,
    title="What to take home",
    page="trainers",
    ask="Could your own trainer have one of these bugs, and which line would"
    " you open to find out?",
    choices=("No, our tests pass", "Yes, one or more", "I cannot say yet"),
    usual="No, our tests pass.",
    why="A test batch tends to be tidy: full groups, equal lengths, every row"
    " finished and none rejected. A tidy batch hides these bugs.",
    truth="A tidy batch proves nothing here. The page of each bug says where"
    " to look in the code and which settings trigger it.",
    do="Everyone looks up their own trainer, reads “Am I affected?” on the page"
    " of a bug that it shows, and keeps the handout of one bug.",
)


HOUR, OWN = "The hour", "Bugs that I choose"
"""The plan that the scenario files describe, and the lead's own choice."""


@dataclass(frozen=True)
class TitledPlan(FilePart):
    """A plan with a title, and the minutes that it is made for."""

    title: str
    minutes: Whole
    bugs: Annotated[tuple[BugName, ...], between(1)]


@dataclass(frozen=True)
class Shelf(FilePart):
    """The file of the plans that have a title."""

    plan: Annotated[tuple[TitledPlan, ...], between(1)]


@cache
def named() -> tuple[TitledPlan, ...]:
    """The plans of scenarios/session/plans.toml. Raises GradebookError with file and
    key."""
    return read_part(Shelf, cases.FOLDER / "session" / "plans.toml").plan


def minutes_of(title: str) -> int:
    """How long the plan of this title is made for."""
    return next((plan.minutes for plan in named() if plan.title == title), MINUTES)


@lru_cache
def shelf() -> dict[str, tuple[str, ...]]:
    """The plans by title, each with its bugs in teaching order: the hour first, then
    those that have a title of their own, then each trainer and each stage with two
    bugs or more."""
    trainers, stages = cases.by_trainer(), cases.by_stage()
    groups = {f"Trainer: {name}": bugs for name, bugs in trainers.items()}
    groups |= {f"Stage: {name}": bugs for name, bugs in stages.items()}
    plans = {HOUR: tuple(dict.fromkeys(step.bug for step in _of_the_hour()))}
    plans |= {plan.title: plan.bugs for plan in named()}
    return plans | {title: bugs for title, bugs in groups.items() if len(bugs) > 1}


def plan(bugs: Sequence[str] = (), minutes: int = MINUTES) -> tuple[PlanStep, ...]:
    """A session, step after step, of `minutes` in all.

    Without `bugs` it is the hour that the scenario files describe, or a
    plan of the hour's bugs in other minutes. It holds each of the bugs, and
    more of their cases and training runs as time permits.

    Raises GradebookError for an unknown bug, and for too few minutes for the bugs.
    """
    bugs = tuple(dict.fromkeys(bugs))
    if not bugs and minutes == MINUTES:
        held = _of_the_hour()
    else:
        held = _fitting(bugs or shelf()[HOUR], minutes)
    steps, begin = [], 0
    for step in (OPENING, *held, CLOSING):
        steps.append(replace(step, begin=begin))
        begin += step.minutes
    return tuple(steps)


def query(scenario: str) -> dict[str, str]:
    """The link's parameters that open the case as it is, covered."""
    return encode(start(load(scenario)), covered=True)


@lru_cache(maxsize=1024)
def asked(name: str) -> PlanStep | None:
    """The step with the question of this name: of a case, a report of "Bug or not?",
    a training run, or of how a plan opens and closes. None if there is none."""
    if report := reports.named(name):
        says, truth = report.complaint, report.truth
        return PlanStep("Bug or not?", ask=says, choices=reports.CHOICES, answer=truth)
    bug = name.removeprefix(TRAINING)
    if bug != name and bug in experimented():
        return _training(bug)
    if name in cases.names():
        return _case(load(name))
    return next((s for s in (OPENING, CLOSING) if s.question == name), None)


def _of_the_hour() -> list[PlanStep]:
    steps = [step for bug in BUGS for step in _steps(bug) if step.place]
    return sorted(steps, key=lambda step: step.place)


def _fitting(bugs: Sequence[str], minutes: int) -> list[PlanStep]:
    """The bugs' steps, with minutes that fill the session. Every bug gets its
    report, then a second step before one gets a third."""
    around = OPENING.minutes + CLOSING.minutes
    least, room = around + LEAST * len(bugs), minutes - around
    if minutes < least:
        raise refuse(f"at least {least} for {len(bugs)} bugs", minutes, "minutes")
    by_bug = [_steps(name) for name in bugs]
    kept = {steps[0]: steps[0].minutes for steps in by_bug}
    for turn in zip_longest(*(steps[1:] for steps in by_bug)):
        for step in filter(None, turn):
            if sum(kept.values()) + step.minutes <= room:
                kept[step] = step.minutes
    while sum(kept.values()) > room:
        kept[max(kept, key=lambda step: kept[step])] -= 1
    while sum(kept.values()) < room:
        kept[min(kept, key=lambda step: kept[step])] += 1
    steps = [step for steps in by_bug for step in steps if step in kept]
    return [replace(step, minutes=kept[step]) for step in steps]


def _steps(name: str) -> list[PlanStep]:
    """All that can be taught of a bug: its report, the cases that have notes
    for a lead, and its training runs."""
    main, *others = cases.variants(name)
    steps = [_case(case) for case in (main, *(case for case in others if case.plan))]
    if name in experimented() and experiment(name).plan:
        steps.append(_training(name))
    return steps


def _training(name: str) -> PlanStep:
    """The question about the training runs, with the dose that is shown first."""
    trial, case = experiment(name), load(name)
    pair = measured(name, trial.shown)
    last = pair.updates[-1]
    ask = outcome.question_of(trial, trial.shown, last, case.engine_names)
    choices = tuple(c[:1].upper() + c[1:] for c in outcome.SUCCESS.choices)
    step = PlanStep(f"Does it matter? {case.title}", bug=name, trains=True, ask=ask)
    answer = KINDS.index(outcome.kind(pair.effect(last), outcome.comparisons()))
    return _taught(step, choices, answer, trial.why, trial.plan)


def _case(case: Scenario) -> PlanStep:
    main, prediction = load(case.bug).title, case.prediction
    title = f"{main}: {case.title}" if case.variant else main
    step = PlanStep(title, bug=case.bug, scenario=case.name, ask=prediction.question)
    return _taught(
        step, prediction.choices, prediction.answer, prediction.why, case.plan
    )


def _taught(
    step: PlanStep,
    choices: tuple[str, ...],
    answer: int,
    why: str,
    lesson: Lesson | None,
) -> PlanStep:
    """The step with its answers and the lead's words about it."""
    truth = f"{choices[answer]}. {why}"
    step = replace(step, choices=choices, answer=answer, truth=truth)
    if lesson is None:
        return step
    return replace(step, **vars(lesson) | {"usual": f"{choices[lesson.usual]}."})
