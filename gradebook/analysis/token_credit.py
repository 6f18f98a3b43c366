"""A token's advantage worked out with its numbers: from the row's number through the
sum from the row's end, and through the whitening, if the settings have these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from gradebook.analysis.comparison import Comparison
from gradebook.analysis.formula import MOST_TERMS, Line, Part, worked
from gradebook.core.batch import Batch
from gradebook.core.formatting import digits_apart, plain, same, settled, short, signed
from gradebook.core.vocabulary import BASELINES, NOTHING
from gradebook.engine.advantages import whitening_root
from gradebook.engine.pipeline import Trace
from gradebook.engine.tokens import paid, scanned, values

STEPS = {
    "mask": "the row's unmasked tokens",
    "response": "all tokens of the response",
    "padding": "all tokens, padding too",
}
"""The tokens that a sum may go through, in words."""


def number_part(value: float, other: float, stage: str, sign: bool = False) -> Part:
    """A number of a stage, with the digits that tell it from the other engine's."""
    digits = digits_apart(value, other)
    write = signed if sign else plain
    return Part(write(settled(value), digits), not bool(same(value, other)), stage)


@dataclass(frozen=True)
class Term:
    """What one token adds to the sum: factor × (paid + gamma × ahead - value)."""

    token: int
    factor: float
    paid: float
    ahead: float
    value: float
    gamma: float

    @property
    def surprise(self) -> float:
        return self.paid + self.gamma * self.ahead - self.value


@dataclass(frozen=True)
class Owed:
    """The sum that gives a token its return.

    steps    through which tokens it goes, a key of STEPS
    carries  it goes on beyond a token that is no step
    terms    what each of these tokens adds, from the token to the row's end
    """

    steps: str
    carries: bool
    terms: tuple[Term, ...]

    @property
    def nonzero(self) -> list[Term]:
        return [term for term in self.terms if settled(term.surprise)]


def owed(batch: Batch, trace: Trace, row: int, token: int) -> Owed | None:
    """The sum that gives the trace's returns on this row; None if no known one does."""
    sums = [*_known_sums(batch, trace, row)]
    reward, value, steps = (torch.stack(x) for x in zip(*(s[1:] for s in sums)))
    for carries in (True, False):
        returns = scanned(batch, reward, value, steps, carries)
        fits = same(returns, trace.token_return[row]).all(-1).tolist()
        if True not in fits:
            continue
        name, paid_at, value_at, steps_at = sums[fits.index(True)]
        through = [t for t in range(token, len(steps_at)) if steps_at[t]]
        if not carries:
            through = _unbroken(through, token)
        terms = _terms(batch, paid_at.tolist(), value_at.tolist(), through)
        return Owed(name, carries, (*terms,))
    return None


def _known_sums(
    batch: Batch, trace: Trace, row: int
) -> Iterator[tuple[str, Tensor, Tensor, Tensor]]:
    """The sums that may give the returns of a row: a key of STEPS, and [T] what its
    tokens are paid, what the critic says of them and which of them are steps."""
    masks = {
        "mask": batch.mask,
        "response": batch.response,
        "padding": torch.ones_like(batch.mask),
    }
    for name, steps in masks.items():
        value = values(batch, steps)[row]
        yield name, trace.token_reward[row], value, steps[row]
        # Or the sum pays the row's number at its own last step.
        again = paid(batch, trace.advantage, _last(steps), steps)
        yield name, again[row], value, steps[row]


def _last(steps: Tensor) -> Tensor:
    """int64 [R] the last token of each row that is a step, -1 for none."""
    places = torch.arange(steps.shape[-1]).expand(steps.shape)
    return torch.where(steps, places, -1).amax(-1)


def _unbroken(through: list[int], token: int) -> list[int]:
    """The tokens that follow `token` without a gap."""
    return [t for place, t in enumerate(through) if t == token + place]


def _terms(
    batch: Batch, reward: list[float], value: list[float], through: list[int]
) -> Iterator[Term]:
    s, factor = batch.settings, 1.0
    for t, following in zip_longest(through, through[1:]):
        ahead = 0.0 if following is None else value[following]
        yield Term(t, factor, reward[t], ahead, value[t], s.gamma)
        factor *= s.gamma * (s.lam if s.credit == "gae" else 1.0)


def earned(comparison: Comparison, trace: Trace, row: int, token: int) -> list[Line]:
    """How the token gets its advantage, in lines of parts; the first ends with it."""
    batch = comparison.batch
    is_correct = trace is comparison.correct
    other = comparison.faulty if is_correct else comparison.correct
    result = _signed((trace, other), "token_advantage", row, token)
    if not bool(batch.mask[row, token]):
        return [(result, Part(": the token is masked"))]
    lines = _of_row if batch.settings.credit == "row" else _of_sum
    credit = lines(batch, (trace, other), row, token, result)
    return [*credit, *_of_the_row(comparison, trace, row)]


def earned_in_push(
    comparison: Comparison, trace: Trace, row: int, token: int
) -> list[Line]:
    """How the token gets the advantage that its push is made of, below that."""
    by_row = comparison.batch.settings.credit == "row"
    if by_row and _is_return(trace, row, token):  # at every token the same
        return _of_the_row(comparison, trace, row)
    first, *others = earned(comparison, trace, row, token)
    return [(Part("advantage: "), *first), *others]


def _is_return(trace: Trace, row: int, token: int) -> bool:
    return bool(same(trace.token_advantage, trace.token_return)[row, token])


def _signed(traces: tuple[Trace, Trace], stage: str, row: int, token: int) -> Part:
    """The first engine's number, as it differs from the second's."""
    this, other = (float(getattr(trace, stage)[row, token]) for trace in traces)
    return number_part(this, other, stage, sign=True)


def _of_row(
    batch: Batch, traces: tuple[Trace, Trace], row: int, token: int, result: Part
) -> list[Line]:
    """The row's number at each of its unmasked tokens, or not at this one."""
    number = _signed(traces, "token_return", row, token)
    if _is_return(traces[0], row, token):
        words = " is the row's number, at each of its unmasked tokens"
        return [(result, Part(words))]
    return [
        (result, Part(": this engine gives the token nothing of the row's "), number)
    ]


def _of_sum(
    batch: Batch, traces: tuple[Trace, Trace], row: int, token: int, result: Part
) -> list[Line]:
    """The sum that the token is owed, and its whitening."""
    sums = [owed(batch, trace, row, token) for trace in traces]
    total, trace = _signed(traces, "token_return", row, token), traces[0]
    summed = [*_summed(sums[0], sums[1], total)]
    summed += _payments(batch, trace, row, sums[0])
    if _is_return(trace, row, token):
        return summed
    spreads = [_whitening(batch, trace, row, token) for trace in traces]
    if spreads[0] is None:
        return [(Part("return "), total, Part(", advantage "), result), *summed]
    twin = spreads[1] or (0.0, 0.0)
    (mean, deviation), count = spreads[0], int(_earns(batch, trace, row).sum())
    less = number_part(mean, twin[0], "token_return")
    bracket = ("(", ")") if mean < 0 else ("", "")
    quotient = (
        Part("("),
        total._replace(text=total.text.removeprefix("+")),
        Part(f" − {bracket[0]}"),
        less,
        Part(f"{bracket[1]}) / "),
        number_part(deviation, twin[1], "token_return"),
        Part(" = "),
        result,
    )
    words = (
        f"{less.text} is the mean of the returns of the step's {count} unmasked tokens,"
        f" {quotient[5].text} is their deviation"
    )
    (first, *others) = summed
    return [quotient, (Part(words),), (Part("return: "), *first), *others]


def _earns(batch: Batch, trace: Trace, row: int) -> Tensor:
    """bool [R, T] the unmasked tokens of the row's step that may have an advantage."""
    rows = trace.credited & (batch.kept_steps > 0) & (batch.step == batch.step[row])
    return batch.mask & rows[:, None]


def _whitening(
    batch: Batch, trace: Trace, row: int, token: int
) -> tuple[float, float] | None:
    """The mean and the deviation that turn the token's return into its advantage; None
    if these of the step's tokens do not."""
    chosen = trace.token_return[_earns(batch, trace, row)]
    left = max(len(chosen) - batch.settings.whiten_ddof, 1)
    if not len(chosen):
        return None
    mean = chosen.mean()
    step = batch.step_index[row]
    squares = torch.zeros(batch.step_count, dtype=chosen.dtype)
    squares[step] = ((chosen - mean) ** 2).sum() / left
    deviation = whitening_root(batch, squares)[step]
    whitened = (trace.token_return[row, token] - mean) / deviation
    if not bool(same(whitened, trace.token_advantage[row, token])):
        return None
    return float(mean), float(deviation)


def _summed(this: Owed | None, other: Owed | None, total: Part) -> Iterator[Line]:
    """surprise + factor × surprise + .. = return, and through which tokens."""
    if this is None:
        yield (total,)
        return
    terms = this.nonzero
    if not terms:
        yield (total, Part(f": {_nothing(this)}"))
        return
    if len(terms) > MOST_TERMS:
        yield (total, Part(f" is the sum over {len(this.terms)} tokens"))
    elif len(terms) == 1 and same(terms[0].factor, 1.0):
        yield (total,)
    else:
        yield (*_sum(terms), Part(" = "), total)
    before, differs = _through(this), other is None or _through(this) != _through(other)
    yield (Part(before, differs),)


def _sum(terms: Sequence[Term]) -> Iterator[Part]:
    for place, term in enumerate(terms):
        size = abs(term.surprise) if place else term.surprise
        mark = ("", " − " if term.surprise < 0 else " + ")[bool(place)]
        factor = "" if same(term.factor, 1.0) else f"{short(term.factor, 4)} × "
        bracket = ("(", ")") if size < 0 and factor else ("", "")
        yield Part(f"{mark}{factor}{bracket[0]}")
        yield Part(plain(settled(size)), stage="token_return")
        yield Part(bracket[1])


def _nothing(this: Owed) -> str:
    if this.carries:
        return "nothing is paid from the token on"
    return "a masked token ends the sum before anything is paid"


def _through(this: Owed) -> str:
    words = f"the sum goes through {STEPS[this.steps]}"
    if not this.carries:
        words += ", and a masked token ends it"
    return words


def _payments(
    batch: Batch, trace: Trace, row: int, this: Owed | None
) -> Iterator[Line]:
    """What each token adds to the sum, taken apart."""
    terms = this.nonzero if this else []
    if len(terms) > MOST_TERMS:
        return
    for term in terms:
        yield (Part(_apart(term, _priced(batch, trace, row, term))),)


def _priced(batch: Batch, trace: Trace, row: int, term: Term) -> str:
    """What the token is paid, less the price of its KL: '0 - 0.5 × 2 (logp - ref
    logp)'; '' if it pays no price."""
    price = batch.settings.kl_in_reward
    if not price or batch.logp is None:
        return ""
    gap = float(batch.logp[row, term.token] - batch.ref_logp[row, term.token])
    for number in (0.0, float(trace.advantage[row])):
        if settled(price * gap) and same(number - price * gap, term.paid):
            times = f"{short(price, 4)} × {_bracketed(gap)} (logp − ref logp)"
            return f"{short(settled(number), 4)} − {times} = "
    return ""


def _apart(term: Term, priced: str) -> str:
    """'token 1: paid 1 + 0 (value of the next) - 0.5 (its value) = +0.500', or only
    what it is paid if the critic says nothing."""
    text = f"token {term.token}: paid {priced}{short(settled(term.paid), 4)}"
    if settled(term.ahead) or settled(term.value):
        gamma = "" if term.gamma == 1 else f"{short(term.gamma, 4)} × "
        text += f" + {gamma}{_bracketed(term.ahead)} (value of the next)"
        text += f" − {_bracketed(term.value)} (its value)"
        text += f" = {signed(settled(term.surprise))}"
    return text


def _bracketed(value: float) -> str:
    text = short(settled(value), 4)
    return f"({text})" if value < 0 else text


def _of_the_row(comparison: Comparison, trace: Trace, row: int) -> list[Line]:
    """How the row gets its number."""
    s, number = comparison.batch.settings, float(trace.advantage[row])
    is_plain = BASELINES[s.baseline].compares == NOTHING and s.scale == "none"
    if is_plain and bool(same(trace.advantage, trace.score)[row]):
        text = f"row {row}: {signed(settled(number))} is its score, without a baseline"
        return [(Part(text),)]
    side = 0 if trace is comparison.correct else 1
    first, *others = worked(comparison, row)[side]
    return [(Part(f"row {row}: "), *first), *others]
