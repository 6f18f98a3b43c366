"""A plan of sixty minutes over the five bugs, as data.

Questions, choices and answers are the scenarios'; what is said about them
here is for the one who leads.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradebook.bugs import BUGS
from gradebook.cases.link import encode
from gradebook.cases.scenario import Scenario, load, names
from gradebook.cases.state import start

MINUTES = 60


@dataclass(frozen=True)
class Step:
    """A few minutes of the hour.

    begin     minute at which it begins; -1 for a step past the hour
    scenario  the case to open; '' for a step without one
    ask       the question, as it stands on the page
    usual     the tempting answer, and why it tempts
    truth     the answer, and why it holds
    do        what to do after the reveal
    next      the case to open when there is time left, or ''
    """

    begin: int
    minutes: int
    title: str
    bug: str = ""
    scenario: str = ""
    ask: str = ""
    choices: tuple[str, ...] = ()
    usual: str = ""
    why: str = ""
    truth: str = ""
    do: str = ""
    next: str = ""


@dataclass(frozen=True)
class Lesson:
    """What the lead needs besides the scenario: minutes, the index of the
    tempting choice and why it tempts, what to do next."""

    scenario: str
    minutes: int
    usual: int
    why: str
    do: str
    next: str


OPENING = Step(
    begin=0,
    minutes=4,
    title="What an advantage is",
    ask="Four answers to one prompt earn 1, 0, 0 and 1. What happens to the"
    " advantage of the first when the second earns 1 as well?",
    usual="Nothing, its own reward is the same.",
    why="An advantage reads like a score of the answer. It is a comparison:"
    " the mean rises, so the first answer stands less far above it.",
    truth="It shrinks. With two successes the mean is 0.5, with three it is"
    " 0.75.",
    do="Open Home, and in the primer type the 1. Then set all four to 1:"
    " every advantage is 0.",
)

CLOSING = Step(
    begin=-1,
    minutes=5,
    title="What to take home",
    ask="Which of the five could your own trainer have, and which line would"
    " you open to find out?",
    usual="None, our tests pass.",
    why="A test batch tends to be tidy: full groups, equal episodes, every"
    " row finished, none rejected, beta 0. Each of these hides one of the"
    " five.",
    truth="A tidy batch proves nothing here. The page of each bug says where"
    " to look in the code and which setting turns it on.",
    do="Everyone reads “am I affected?” for the trainer in use, and takes"
    " the handout of one bug along.",
)

LESSONS = (
    Lesson(
        "partial_groups",
        7,
        0,
        "It is the best answer of its prompt, and twelve rows divide by"
        " four, so the groups look whole. Nobody checks where the cuts"
        " fall.",
        "Set row 11 to 0: a reward of another prompt moves three rows of"
        " prompt C. Then open the stage “group”.",
        "partial_groups-tail",
    ),
    Lesson(
        "partial_groups-interleaved",
        5,
        0,
        "No row is missing, so position and prompt seem to be the same"
        " thing. They are only while the rows of a prompt stand together.",
        "Ask for a test that would have found it. A count of rows does not.",
        "partial_groups-full",
    ),
    Lesson(
        "double_normalization",
        6,
        0,
        "Normalizing what is normal should do nothing, and so it would, if"
        " every row counted once. Here every transition counts.",
        "Change an episode's length and leave the rewards alone. No sign"
        " turns, so look at sizes.",
        "double_normalization-equal_lengths",
    ),
    Lesson(
        "double_normalization-manufactured",
        4,
        0,
        "Equal rewards have no spread, and 0 divided by anything is 0. The"
        " mean of three times 0.1 is not exactly 0.1.",
        "Set prompt A's rewards to 0 and prompt B's to 1: no dust and no"
        " signal, so a test on such rewards sees nothing.",
        "double_normalization-subsample",
    ),
    Lesson(
        "no_eos_outliers",
        6,
        0,
        "A row that earns nothing seems to be out of the game. It is out of"
        " the credit, and still in the mean.",
        "Change only row 1's reward. In the correct engine row 0 stands"
        " still.",
        "no_eos_outliers-recipe",
    ),
    Lesson(
        "no_eos_outliers-longest",
        4,
        0,
        "The row ended and failed, so it should be pushed down. The"
        " trainer does not look for EOS, it looks at the length.",
        "Add one column of padding: the flag goes, though no rollout changed.",
        "no_eos_outliers-binary",
    ),
    Lesson(
        "rejected_rows",
        5,
        0,
        "Row 2 is better than row 1, and the rejected row trains no token."
        " An empty mask is read as “gone”; the reward is not.",
        "Compare the estimators below: six of eight change, two do not.",
        "rejected_rows-zero_reward",
    ),
    Lesson(
        "rejected_rows-lone_survivor",
        4,
        1,
        "With nothing to compare with, 0 seems the only fair value. verl's"
        " GRPO passes the raw score on.",
        "Say it plainly: the fix removes the leak and leaves a row that is"
        " compared with nothing.",
        "rejected_rows-other_groups",
    ),
    Lesson(
        "zero_std_kl",
        6,
        0,
        "The advantage multiplies the policy term, and that is the term"
        " people have in mind. The KL term has no advantage in it.",
        "Read both views at the foot of the page. Whether it is a bug is"
        " disputed; take a vote by hand, not a verdict.",
        "zero_std_kl-bnpo",
    ),
    Lesson(
        "zero_std_kl-one_generation",
        4,
        1,
        "The policy differs from the reference, so some KL should be"
        " reported. A lone row has no spread, and the fix takes it out.",
        "Turn on the phase switch: a guard in training only brings the"
        " evaluation loss back.",
        "zero_std_kl-beta_zero",
    ),
)


def plan() -> tuple[Step, ...]:
    """The hour, step after step, then the bugs that it leaves out."""
    told = [one for one in LESSONS if one.scenario in names()]
    steps, begin = [OPENING], OPENING.minutes
    for lesson in told:
        steps.append(_step(lesson, begin))
        begin += lesson.minutes
    steps.append(_at(CLOSING, begin))
    in_hour = {step.bug for step in steps}
    return (*steps, *(_spare(load(b)) for b in BUGS if b not in in_hour))


def query(scenario: str, covered: bool = True) -> dict[str, str]:
    """The link's parameters that open the case as it is."""
    return encode(start(load(scenario)), covered)


def _step(lesson: Lesson, begin: int) -> Step:
    scenario = load(lesson.scenario)
    asked = scenario.prediction
    return Step(
        begin=begin,
        minutes=lesson.minutes,
        title=_title(scenario),
        bug=scenario.bug,
        scenario=scenario.name,
        ask=asked.question,
        choices=asked.choices,
        usual=asked.choices[lesson.usual] + ".",
        why=lesson.why,
        truth=f"{asked.choices[asked.answer]}. {asked.why}",
        do=lesson.do,
        next=lesson.next if lesson.next in names() else "",
    )


def _spare(scenario: Scenario) -> Step:
    """A step for a bug that the hour does not hold."""
    asked = scenario.prediction
    return Step(
        begin=-1,
        minutes=10,
        title=_title(scenario),
        bug=scenario.bug,
        scenario=scenario.name,
        ask=asked.question,
        choices=asked.choices,
        truth=f"{asked.choices[asked.answer]}. {asked.why}",
    )


def _at(step: Step, begin: int) -> Step:
    return Step(**{**vars(step), "begin": begin})


def _title(scenario: Scenario) -> str:
    main = load(scenario.bug).title
    return f"{main}: {scenario.title}" if scenario.variant else main
