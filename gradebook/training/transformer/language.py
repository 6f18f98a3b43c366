"""The language: two-digit sums, worked aloud in 32 words.

    37+48=                                    the prompt
    ok, 15+70=85.                             an answer that ends
    ok, 15+70=85. wait, 15+70=85. hold on, …  an answer that rambles on

An answer opens with any of eight words, which nobody scores. It adds the ones,
then the tens, says the sum and a full stop. Then it ends, or it rambles: one more
word, and the same sum again. The window cuts it after ANSWER tokens.

What an answer says is the first number after its first "=". A success says the
sum and ends. A few prompts ask "37@48="; "@" means nothing, and no answer to it
is right.
"""

import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby

OPENERS = ("ok", "well", "so", "sure", "now", "right", "aha", "hmm")
RAMBLES = ("wait", "again", "check", "no", "hold on", "but", "let me see", "actually")
WORDS = (*"0123456789", "+", "=", ".", "<end>", "<start>", "@", *OPENERS, *RAMBLES)
PLUS, EQUALS, STOP, END, START, AT = range(10, 16)
PROMPT = 7
"""Tokens of a prompt: the start, "37+48" and "="."""
ANSWER = 24
"""Tokens of an answer at most: an opener, the longest sum ("18+180=198." is 11 tokens),
and once more a word and that sum."""
ENDS = 0.5
"""In the texts to learn from: the chance to end after a full stop. So the policy begins
with answers of both kinds."""
MEANINGLESS = 0.1
"""In the texts to learn from: the share of prompts with "@", which some experiments
ask (`TransformerConditions.meaningless`)."""
SKEW = 0.7
"""In the texts to learn from, high digits are rare, which makes some prompts hard: a
digit is drawn with weight (1 + digit) ** -SKEW."""


@dataclass(frozen=True)
class Problem:
    """A prompt. `sum` is None if no answer is right."""

    left: int
    right: int
    has_meaning: bool = True

    @property
    def sum(self) -> int | None:
        return self.left + self.right if self.has_meaning else None

    @property
    def tokens(self) -> list[int]:
        """PROMPT tokens."""
        sign = PLUS if self.has_meaning else AT
        return [START, *digits(self.left), sign, *digits(self.right), EQUALS]

    @property
    def text(self) -> str:
        return render(self.tokens[1:])


def digits(number: int) -> list[int]:
    return [int(digit) for digit in str(number)]


SHOWN = ((31, 38), (92, 27), (39, 55), (28, 12), (57, 68), (69, 87))
"""The prompts whose answers are shown: without and with a carry, with two and
with three digits. They were chosen before anything was trained."""


@cache
def problems() -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """All 8100 sums: those to learn from, and 600 that are held out of every
    training, the shown ones first. A point of a curve asks 256 of them at most."""
    shown = [Problem(*pair) for pair in SHOWN]
    others = [Problem(a, b) for a in range(10, 100) for b in range(10, 100)]
    others = [problem for problem in others if problem not in shown]
    random.Random("held out").shuffle(others)
    kept = 600 - len(shown)
    return tuple(others[kept:]), tuple(shown + others[:kept])


def worked(problem: Problem) -> list[int]:
    """The sum worked aloud: for 37+48 "15+70=85." as tokens."""
    ones = problem.left % 10 + problem.right % 10
    total = problem.left + problem.right
    return [*digits(ones), PLUS, *digits(total - ones), EQUALS, *digits(total), STOP]


class Texts:
    """Texts to learn from, one after the other; a seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"texts {seed}")
        self.sums, _ = problems()
        self.cumulative = list(accumulate(map(_weight, self.sums)))

    def next(self) -> list[int]:
        """A prompt and its answer, PROMPT + ANSWER tokens or fewer."""
        problem = self._drawn()
        meaning = self.random.random() >= MEANINGLESS
        worked_sum = worked(problem if meaning else self._drawn())
        prompt = Problem(problem.left, problem.right, meaning).tokens
        answer = [WORDS.index(self.random.choice(OPENERS)), *worked_sum]
        while self.random.random() >= ENDS:
            answer += [WORDS.index(self.random.choice(RAMBLES)), *worked_sum]
        return prompt + [*answer, END][:ANSWER]

    def _drawn(self) -> Problem:
        place = self.random.random() * self.cumulative[-1]
        return self.sums[bisect(self.cumulative, place)]


def _weight(problem: Problem) -> float:
    weight = 1.0
    for number in (problem.left, problem.right):
        tens, ones = digits(number)
        weight *= (tens * (ones + 1)) ** -SKEW  # a first digit is at least 1
    return weight


def says_sum(problem: Problem, answer: Sequence[int]) -> bool:
    """The first number after the first "=" of the answer is the sum, and a full
    stop follows it."""
    if problem.sum is None or EQUALS not in answer:
        return False
    expected = [*digits(problem.sum), STOP]
    begin = answer.index(EQUALS) + 1
    return list(answer[begin : begin + len(expected)]) == expected


def ends(answer: Sequence[int]) -> bool:
    return END in answer


def is_success(problem: Problem, answer: Sequence[int]) -> bool:
    """The answer says the sum, and ends."""
    return says_sum(problem, answer) and ends(answer)


def spoken(tokens: Sequence[int]) -> list[str]:
    """The text of each token before the end; joined they are the answer as a person
    reads it."""
    texts: list[str] = []
    for token in tokens:
        if token == END:
            break
        word = WORDS[token]
        if word in OPENERS + RAMBLES:
            gap = "" if not texts or texts[-1].endswith(" ") else " "
            texts.append(f"{gap}{word}, ")
        else:
            texts.append(". " if token == STOP else word)
    return texts


def render(tokens: Sequence[int]) -> str:
    """Tokens as a person reads them; "…" if the window cut the answer."""
    text = "".join(spoken(tokens))
    return text.strip() if END in tokens or len(tokens) < ANSWER else text + "…"


@dataclass(frozen=True)
class Judged:
    """An answer with its mistakes: pieces of its text, each with whether it is one, and
    what is wrong in a few words; no words for a success."""

    pieces: list[tuple[str, bool]]
    faults: list[str]


def judged(problem: Problem, answer: Sequence[int]) -> Judged:
    """A number that is not the sum is a mistake. So is all that follows the first full
    stop of an answer that does not end."""
    texts = spoken(answer)
    wrong, faults = [False] * len(texts), []
    begin = answer.index(EQUALS) + 1 if EQUALS in answer else 0
    # The number ends at the first token that is no digit: the digits are tokens 0 to 9.
    after = next((n for n in range(begin, len(texts)) if answer[n] > 9), len(texts))
    if not says_sum(problem, answer):
        first, last = (begin, after) if after > begin > 0 else (0, len(texts))
        wrong[first:last] = [True] * (last - first)
        is_sum = list(answer[begin:after]) == digits(problem.sum or 0)
        faults.append("no full stop" if begin and is_sum else f"not {problem.sum}")
    if not ends(answer):
        stops = [n for n in range(after, len(texts)) if answer[n] == STOP]
        first = stops[0] + 1 if stops else 0
        wrong[first:] = [True] * (len(texts) - first)
        faults.append("does not end")
        texts.append("…")
        wrong.append(True)
    runs = groupby(zip(texts, wrong), key=lambda pair: pair[1])
    pieces = [("".join(text for text, _ in run), mark) for mark, run in runs]
    return Judged(pieces, faults)
