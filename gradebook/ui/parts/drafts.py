"""What a session keeps of its learner: the drafts of the cases, and what was guessed,
uncovered and solved. The browser keeps it in a cookie, and the server outside a room
nothing.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

import streamlit as st

from gradebook.analysis.challenges import Attempt
from gradebook.analysis.comparison import Comparison, compare, compared
from gradebook.bugs import BUGS, Swap, swapped
from gradebook.cases.draft import C, Draft
from gradebook.cases.scenario import Case
from gradebook.cases.state import State, message_of, start
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts.channel import Channel


@dataclass
class PageChoices:
    """What was chosen on a draft's page, beside the batch.

    estimator  the named estimator, if several have the settings
    stage      the stage that is open on the path, '' for none
    kind       the numbers that the sandbox shows, '' until they are chosen
    challenge  the number of the challenge that is shown; None for the first that is
               not solved
    judged     what the batch last missed to solve it; '' for nothing
    guess      what was said of the batch on the board, if it is not the case's own
    opened     the part at the page's end that is open, '' for none
    visited    the tokens that were selected: (row, token)
    """

    estimator: str = ""
    stage: str = ""
    kind: str = ""
    challenge: int | None = None
    judged: str = ""
    guess: "Guess | None" = None
    opened: str = ""
    visited: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class PageDraft(Draft[C]):
    """A draft with what its page works out of it, what was chosen on the page, and
    the line to its board."""

    page: PageChoices = field(default_factory=PageChoices)
    channel: Channel = field(default_factory=Channel)
    _last: tuple[State | None, Comparison | None, str] = (None, None, "")
    _base: tuple[State | None, Comparison | None] = (None, None)
    _attempt: Attempt | None = None

    @property
    def swap(self) -> Swap:
        return swapped(self.state.bugs)

    @property
    def comparison(self) -> Comparison:
        """Both engines on the batch as it is. If it has a `fault`: on the last batch
        that these bugs could compute, or else on the case's."""
        return self._results()[0]

    @property
    def fault(self) -> str:
        """Why the engines cannot compute the batch, in words; '' if they can."""
        return self._results()[1]

    def _results(self) -> tuple[Comparison, str]:
        """Worked out once for each state."""
        state, good, fault = self._last
        if state is not self.state:
            if state is None or state.bugs != self.state.bugs:
                good = None
            fault = ""
            try:
                good = self.compared() if self.edited else self.original
            except GradebookError as error:
                fault = message_of(error)
            self._last = self.state, good, fault
        return good or self.original, fault

    @property
    def attempt(self) -> Attempt:
        """The state as a try at the case's challenges, worked out once for each."""
        attempt = self._attempt
        if attempt is None or attempt.now is not self.state:
            both = None if self.fault else self.comparison
            attempt = self._attempt = Attempt(self.state, both)
        return attempt

    @property
    def original(self) -> Comparison:
        """Both engines on the case's own batch."""
        return _as_it_came(self.scenario, self.state.bugs)

    @property
    def before(self) -> Comparison:
        """Both engines on the batch without the learner's edits."""
        base = self.base
        if base.same_batch(self.origin):
            return self.original
        if self._base[0] is not base:
            self._base = base, compared(base)
        return self._base[1] or self.original

    @property
    def has_other_batch(self) -> bool:
        """The batch came from elsewhere: what is said of the case's is not about it."""
        return self.state.opened is not None

    @property
    def shown_row(self) -> int:
        """The selected row, or the last of the batch that was compared."""
        return min(self.state.row, self.comparison.batch.rows - 1)

    @property
    def prompts(self) -> list[str]:
        """The rows' prompts as typed; by number if the comparison is older."""
        typed, batch = list(self.state.table["prompt"]), self.comparison.batch
        if len(typed) == batch.rows:
            return typed
        return [str(prompt) for prompt in batch.prompt.tolist()]

    def compared(self) -> Comparison:
        """Both engines on the state. Raises GradebookError."""
        return compare(self.swap, self.batch)

    def select(self, row: int, token: int | None = None) -> None:
        super().select(row, token)
        self.page.visited.add((self.state.row, self.state.token))


@lru_cache(maxsize=256)
def _as_it_came(scenario: Case, bugs: tuple[str, ...]) -> Comparison:
    return compare(swapped(bugs), start(scenario).batch())


def of(case: C) -> PageDraft[C]:
    """The session's draft of the case, made at the first visit."""
    drafts_of_session = keys.DRAFTS.get()
    if case.name not in drafts_of_session:
        drafts_of_session[case.name] = PageDraft(case)
    return drafts_of_session[case.name]


# What the learner has done so far


SKIPPED = -1
COOKIE = "gradebook"
OTHERS = ("!", "?", "@")
"""How an entry begins that is about a batch without a name, a training run, or the
visitor's trainer."""
LONGEST = 3800
"""Bytes of the cookie at most; browsers take 4096."""


class Guess(NamedTuple):
    """A choice or SKIPPED, and where it was put on the axis."""

    choice: int
    place: float | None = None


@dataclass
class Progress:
    """What one visitor has done so far.

    guesses  case -> the guess that uncovered it, in the whole session
    solved   case -> the numbers of its solved challenges
    shown    case -> the numbers of those whose solution was shown
    hidden   cases that a room keeps covered
    unnamed  batches that were judged without their name -> whether rightly: a
             checkpoint by its number of bugs, a variant by its name
    trained  bug -> what was predicted of a training run: the choice, None for no
             vote, and the dose in the question
    mine     the visitor's own trainer, as a package or a name, and its version; ""
             until they are chosen
    """

    guesses: dict[str, Guess] = field(default_factory=dict)
    solved: dict[str, set[int]] = field(default_factory=dict)
    shown: dict[str, set[int]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    unnamed: dict[str, bool] = field(default_factory=dict)
    trained: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    mine: tuple[str, str] = "", ""

    def covered(self, case: str) -> bool:
        return case in self.hidden or case not in self.guesses

    def answer(self, case: str, choice: int, place: float | None = None) -> None:
        """The learner's choice, or SKIPPED, which takes no guess back."""
        self.hidden.discard(case)
        if choice != SKIPPED or case not in self.guesses:
            self.guesses[case] = Guess(choice, place)

    def uncovered(self) -> list[str]:
        return [bug for bug in BUGS if not self.covered(bug)]

    def text(self) -> str:
        """The progress as a cookie, reports first. What is too long is left out."""
        entries = []
        for case in sorted(self.guesses, key=lambda case: case not in BUGS):
            choice, place = self.guesses[case]
            where = "" if place is None else f"{place:.4g}"
            solved, shown = (
                "".join(map(str, sorted(numbers.get(case, ()))))
                for numbers in (self.solved, self.shown)
            )
            entries.append(f"{case}:{choice}:{where}:{solved}:{shown}")
        entries[:0] = self._others()
        while len("|".join(entries)) > LONGEST:
            entries.pop()
        return "|".join(entries)

    def _others(self) -> list[str]:
        """The entries that are about no question of a case."""
        entries = [f"!{name}:{right:d}" for name, right in self.unnamed.items()]
        for bug, (choice, dose) in self.trained.items():
            chosen = "" if choice is None else choice
            entries.append(f"?{bug}:{chosen}:{quote(dose, safe='')}")
        if any(self.mine):
            entries.append("@" + ":".join(quote(part, safe="") for part in self.mine))
        return entries

    def _read_other(self, entry: str) -> None:
        """Takes one of these entries. Raises ValueError."""
        name, *rest = entry[1:].split(":")
        if entry[0] == "!":
            (right,) = rest
            self.unnamed[name] = bool(int(right))
        elif entry[0] == "@":
            (version,) = rest
            self.mine = unquote(name), unquote(version)
        else:
            choice, dose = rest
            self.trained[name] = int(choice) if choice else None, unquote(dose)

    @classmethod
    def read(cls, text: str) -> Self:
        """The progress in a cookie; what cannot be read is left out."""
        progress = cls()
        for entry in text.split("|"):
            try:
                if entry[:1] in OTHERS:
                    progress._read_other(entry)
                    continue
                case, choice, place, solved, shown = entry.split(":")
                guess = Guess(int(choice), float(place) if place else None)
                numbers = set(map(int, solved)), set(map(int, shown))
            except ValueError:
                continue
            if guess.choice >= SKIPPED and math.isfinite(guess.place or 0):
                progress.guesses[case] = guess
                progress.solved[case], progress.shown[case] = numbers
        return progress


PROGRESS: keys.Key[Progress] = keys.Key(
    "progress", lambda: Progress.read(st.context.cookies.get(COOKIE, ""))
)
"""The session's progress; at its first run, the browser's cookie."""


def covered(case: str) -> bool:
    return PROGRESS.get().covered(case)
