"""Left over: what the numbers show of a log that no known computation fits.

Each function here looks for one kind of reason: rows grouped differently, rows that
were set to 0, a bound on the numbers, or a term in the reward that the log does not
hold. It says so only if a plain computation then gives the advantages, or, for a KL, if
the rest adds up to 0 in each prompt and grows from 0. R rows, S steps, G groups.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from gradebook.core.batch import codes
from gradebook.core.tolerance import EXACT, SCORES
from gradebook.logs.judging.computation import DRAW, Computation, View
from gradebook.logs.judging.fit import Numbers, Ruler, distance
from gradebook.logs.judging.space import EngineRuns, viewed
from gradebook.logs.logged_steps import LoggedSteps
from gradebook.logs.weights import solved

PIECES, NEIGHBOURS = "pieces", "neighbours"
ONE_ROW, NO_VOTE = "one row", "no vote"
CLAMP, FLOOR, ZEROED = "clamp", "floor", "zeroed"
LENGTH, LONGER, SHORTER, KL = "length", "longer", "shorter", "kl"
"""The kinds of what is left over."""

BY_PROMPT = View()

ROWS = 4_096
"""About so many rows are looked at, in whole steps. Of 92 made logs of up to
3,850 rows that show something (2026-11-28), 256 rows lost two, whose prompts are spread
over two steps, and 1,024 none."""
FEWEST = 3
"""A bound is one only if so many rows are at it: any log has one row at its largest
number. Of 320 made logs (2026-11-29), 1 and 2 gave the same answers, since all other
rows must fit; 6 lost four of 40 floors."""
ORDERED = 0.95
"""The share of pairs of rows whose rest must be ordered as their lengths are. On those
320 logs, 0.6 took a baseline that moves and two KLs for an effect of the length. On 120
others, 0.9 to 1 gave the same answers."""
FEWEST_STEPS = 4
"""Growth from 0 is told from so many steps at least: three are in order by chance in
one of six cases."""
GROWS = 0.1
"""A rest grows from 0 if it is less than this at first, as a share of the last. Of 39
made logs with a KL, a tenth lost none; of 40 whose reward depends on a length that is
not logged, three times as much called none a KL, and 1 four."""


@dataclass(frozen=True)
class LeftOver:
    """One finding.

    kind         one of the kinds above
    computation  what fits, or fits the other rows
    number       rows of a piece; the bound; the least deviation; the weight of a token
    rows         how many rows it is about, of so many rows that were looked at
    all_count    it fits only if rows count that the log marks as left out
    """

    kind: str
    computation: Computation
    number: float = 0.0
    rows: int = 0
    of: int = 0
    all_count: bool = False


def left_over(ruler: Ruler) -> tuple[LeftOver, ...]:
    """The pattern in the differences that no known computation explains; () if there is
    none. The kinds are tried in order, and the first that the numbers show is
    returned."""
    spread = ruler.of_steps(sampled(ruler.steps))
    first = ruler.of_steps(first_steps(ruler.steps))
    for all_count in (False, True):
        if all_count and EngineRuns(spread.steps).counted.all():
            break  # no row was left out
        for look in KINDS:
            part = first if look is neighbours else spread
            if finding := look(_counting_all(part) if all_count else part):
                is_of_all = all_count or finding.all_count
                return (replace(finding, all_count=is_of_all),)
    return ()


def _counting_all(part: Ruler) -> Ruler:
    """The same rows as if all counted, also those that the log marks as left out."""
    batch = viewed(part.steps, View(all_rows=True))
    return replace(part, steps=replace(part.steps, batch=batch))


def first_steps(steps: LoggedSteps) -> np.ndarray:
    """The first steps, of about ROWS rows, without a gap; two at least. bool [S]"""
    size = steps.batch.rows_per_step.numpy()
    return np.cumsum(size) <= max(ROWS, size[:2].sum())


def sampled(steps: LoggedSteps) -> np.ndarray:
    """Steps of about ROWS rows that tell something, spread evenly. bool [S]"""
    size = steps.batch.rows_per_step.numpy()
    telling = np.flatnonzero(~steps.quiet)
    count = max(int(ROWS / max(size[telling].mean(), 1)), 4)
    places = np.unique(np.linspace(0, len(telling) - 1, count).astype(int))
    chosen = np.zeros(len(size), dtype=bool)
    chosen[telling[places]] = True
    return chosen


# What is tried


def plain(steps: LoggedSteps, view: View = BY_PROMPT) -> Iterator[Computation]:
    """The computations of a prompt's rows or of a step's that are used most."""
    eps = (1e-6, 1e-4, 1e-8, 1e-5, 1e-9)
    yield Computation("group_mean", "none", view=view)
    yield Computation("leave_one_out", "none", view=view, lone_row="zero")
    for ddof in (1, 0):
        for each in eps:
            yield Computation("group_mean", "group_std", ddof, each, view=view)
    for baseline in ("group_mean", "batch_mean"):
        for each in eps[:3]:
            yield Computation(baseline, "batch_std", 1, each, view=view)
    yield Computation("batch_mean", "none", view=view)


def numbers_of(steps: LoggedSteps, c: Computation) -> Numbers:
    return EngineRuns(steps, c.view).compute(replace(c, several=steps.several))


def fitting(ruler: Ruler, view: View = BY_PROMPT) -> Computation | None:
    """The first plain computation that fits every step."""
    for c in plain(ruler.steps, view):
        if ruler.fit(numbers_of(ruler.steps, c)).good.all():
            return c
    return None


def near(ruler: Ruler, computed: Numbers) -> np.ndarray:
    """bool [R] the rows that fit."""
    away = distance(computed.values, ruler.steps.advantage)
    return away <= ruler.limit(computed)


def relabelled(steps: LoggedSteps, prompt: np.ndarray, step: np.ndarray) -> LoggedSteps:
    """The rows with other prompts and steps, numbers [R], sorted by step."""
    order = np.argsort(step, kind="stable")
    batch = steps.batch.select(torch.from_numpy(order))
    step, prompt = codes(step[order]), codes(prompt[order])
    labels = np.arange(step.max() + 1)
    batch = replace(batch, step=torch.from_numpy(step), prompt=torch.from_numpy(prompt))
    return replace(steps, batch=batch, advantage=steps.advantage[order], labels=labels)


# Rows grouped otherwise, or set to 0


def pieces(ruler: Ruler) -> LeftOver | None:
    """Pieces of fewer rows than a prompt has are compared with each other."""
    size = int(np.gcd.reduce(ruler.steps.groups.size))
    for rows in range(size - 1, 1, -1):
        if size % rows == 0 and (c := fitting(ruler, View(DRAW, rows))):
            return LeftOver(PIECES, c, rows, ruler.steps.rows, ruler.steps.rows)
    return None


def neighbours(ruler: Ruler) -> LeftOver | None:
    """The rows of a prompt are spread over neighbouring steps, and compared there."""
    steps = ruler.steps
    if steps.names is None:
        return None
    names, step = steps.names, steps.step_of
    pairs = np.unique(np.stack([names, step], 1), axis=0)
    follows = (np.diff(pairs[:, 0]) == 0) & (np.diff(pairs[:, 1]) == 1)
    run = np.cumsum(~np.append(False, follows))
    if follows.sum() < len(pairs) / 3:
        return None
    width = pairs[:, 1].max() + 1
    at = np.searchsorted(pairs[:, 0] * width + pairs[:, 1], names * width + step)
    starts = np.flatnonzero(~np.append(False, follows))
    first = pairs[starts, 1][run - 1]
    together = relabelled(steps, run[at], first[at])
    if (c := fitting(replace(ruler, steps=together))) is None:
        return None
    return LeftOver(NEIGHBOURS, c, 0, int(follows.sum()), steps.rows)


def one_row(ruler: Ruler) -> LeftOver | None:
    """The finding that the last row of each rollout fits while its other rows are 0;
    None if the log does not show it."""
    steps = ruler.steps
    if "rollout" not in steps.has:
        return None
    of = codes(steps.prompt * (steps.rows + 1) + codes(steps.batch.rollout.numpy()))
    last = np.zeros(steps.rows, dtype=bool)
    last[len(of) - 1 - np.unique(of[::-1], return_index=True)[1]] = True
    before_last = np.nan_to_num(steps.advantage[~last], nan=1.0)
    if last.all() or not (np.abs(before_last) <= EXACT).all():
        return None
    each_alone = steps.of_rows(last)
    with_all = steps.of_rows(np.ones(steps.rows, dtype=bool))
    for part, at in ((each_alone, last[last]), (with_all, last)):
        if c := _fitting_at(replace(ruler, steps=part), at):
            return LeftOver(ONE_ROW, c, 0, int(last.sum()), steps.rows)
    # A view in which all rows count has no rollouts: it is tried here.
    if not EngineRuns(each_alone).counted.all():
        batch = viewed(each_alone, View(all_rows=True))
        every = replace(ruler, steps=replace(each_alone, batch=batch))
        if c := _fitting_at(every, last[last]):
            rows = int(last.sum())
            return LeftOver(ONE_ROW, c, 0, rows, steps.rows, all_count=True)
    return None


def _fitting_at(ruler: Ruler, at: np.ndarray) -> Computation | None:
    """The first plain computation that fits the rows `at`, bool [R]."""
    for c in plain(ruler.steps):
        if near(ruler, numbers_of(ruler.steps, c))[at].all():
            return c
    return None


def no_vote(ruler: Ruler) -> LeftOver | None:
    """The rows with an advantage other than 0 fit, compared with each other alone."""
    steps = ruler.steps
    keep = np.abs(np.nan_to_num(steps.advantage, nan=1.0)) > EXACT
    if keep.sum() < FEWEST or keep.all():
        return None
    part = replace(ruler, steps=steps.of_rows(keep))
    if (c := fitting(part)) is None:
        return None
    return LeftOver(NO_VOTE, c, 0, int((~keep).sum()), steps.rows)


# Bounds


def clamp(ruler: Ruler) -> LeftOver | None:
    """The finding that every row that misses is at a bound, and would be beyond it;
    None if the log does not show it."""
    steps = ruler.steps
    logged = np.nan_to_num(steps.advantage)
    at = {
        bound: np.abs(logged - bound) <= 1e-6 * (1 + abs(bound))
        for bound in (logged.max(), logged.min())
    }
    if abs(sum(at)) > 1e-6 * max(map(abs, at)):  # they are not the two of one clamp
        at = {bound: rows for bound, rows in at.items() if rows.sum() >= FEWEST}
    for c in plain(steps):
        computed = numbers_of(steps, c)
        fits = near(ruler, computed)
        beyond = np.zeros(steps.rows, dtype=bool)
        for bound, rows in at.items():
            further = (computed.values - bound) * np.sign(bound) > 0
            beyond |= rows & ~fits & further
        if beyond.sum() >= FEWEST and (fits | beyond).all() and fits.any():
            bound = max(map(abs, at))
            return LeftOver(CLAMP, c, float(bound), int(beyond.sum()), steps.rows)
    return None


def floor(ruler: Ruler) -> LeftOver | None:
    """The rows that miss are those of prompts with a deviation below a floor, which is
    divided by instead; or their advantages are 0."""
    steps = ruler.steps
    for c in (each for each in plain(steps) if each.scale == "group_std"):
        computed = numbers_of(steps, c)
        assert computed.spread is not None
        fits = near(ruler, computed)
        misses = np.bincount(steps.prompt, ~fits) > 0
        spread = computed.spread[steps.groups.first]
        if misses.sum() < FEWEST or not fits.any() or misses.all():
            continue
        # A flat prompt, but for float64's rounding, fits whatever divides it.
        kept = ~misses & (spread > EXACT)
        if not kept.any() or spread[misses].max() >= spread[kept].min():
            continue
        rows = misses[steps.prompt]
        away = (steps.reward - computed.baseline)[rows]
        logged = steps.advantage[rows]
        if (np.abs(logged) <= EXACT).all():
            least = float(spread[kept].min())
            return LeftOver(ZEROED, c, least, int(rows.sum()), steps.rows)
        # All these rows are divided by one number, up to their rounding.
        least = float(away @ away / (away @ logged)) if away @ logged > 0 else 0.0
        room = (ruler.base + ruler.written)[rows] + SCORES * np.abs(logged)
        if least > 0 and (np.abs(away / least - logged) <= room).all():
            return LeftOver(FLOOR, c, least, int(rows.sum()), steps.rows)
    return None


# Terms in the reward


def length(ruler: Ruler) -> LeftOver | None:
    """The reward that was normalized falls, or rises, with the length; or what is left
    over of an advantage does."""
    steps = ruler.steps
    if "length" not in steps.has:
        return None
    tokens = steps.batch.all_tokens.double().numpy()
    functions = np.stack([steps.reward, tokens], axis=1)
    finite = np.isfinite(steps.advantage).all()
    weights = (
        solved(functions, steps.advantage, steps.prompt, steps.step_of)
        if finite
        else None
    )
    if weights and weights[0] > 0 and weights[1]:
        each = weights[1] / weights[0]
        reward = steps.reward + each * tokens
        batch = replace(steps.batch, reward=torch.from_numpy(reward))
        if c := fitting(replace(ruler, steps=replace(steps, batch=batch))):
            return LeftOver(LENGTH, c, each, steps.rows, steps.rows)
    for c in plain(steps):
        rest = steps.advantage - numbers_of(steps, c).values
        if finite and (kind := _follows(rest, tokens, steps, ruler)):
            return LeftOver(kind, c, 0, steps.rows, steps.rows)
    return None


def _follows(
    rest: np.ndarray, tokens: np.ndarray, steps: LoggedSteps, ruler: Ruler
) -> str:
    """LONGER or SHORTER, the rows of a prompt that have more; or ""."""
    rises = falls = 0
    for rows in np.split(
        np.argsort(steps.prompt, kind="stable"),
        np.cumsum(steps.groups.size)[:-1],
    ):
        longer = np.sign(tokens[rows, None] - tokens[rows])
        more = rest[rows, None] - rest[rows]
        more = np.where(np.abs(more) > 2 * ruler.base[rows].max(), np.sign(more), 0)
        rises += int((longer * more > 0).sum())
        falls += int((longer * more < 0).sum())
    pairs = 2 * sum(int(n * (n - 1) // 2) for n in steps.groups.size)
    # Each pair is counted twice. 19 of 20 are ordered by chance once in 25,000 times.
    if rises + falls < max(40, pairs / 2):
        return ""
    if rises >= ORDERED * (rises + falls):
        return LONGER
    return SHORTER if falls >= ORDERED * (rises + falls) else ""


def kl(ruler: Ruler) -> LeftOver | None:
    """The finding that the differences add up to 0 in each prompt and grow from 0 over
    the steps, as those of a KL in the reward do; None if the log does not show it."""
    steps = ruler.steps
    if not np.isfinite(steps.advantage).all():
        return None
    sums = np.bincount(steps.prompt, steps.advantage)
    rounding = ruler.base + ruler.written + SCORES * np.abs(steps.advantage)
    slack = np.bincount(steps.prompt, rounding)
    if not (np.abs(sums) <= slack).all():
        return None
    for c in plain(steps):
        if c.couples_prompts:
            continue
        computed = numbers_of(steps, c)
        varies = computed.values != 0
        if c.divides and not (varies.any() and _has_deviation_1(ruler, c)):
            continue
        rest = steps.advantage - computed.values
        free = steps.groups.size - 1
        if c.divides:
            # As if all were divided by one deviation: small ones make a rest large.
            usual = np.median(computed.scale[varies])
            rest = _off_the_line(steps, computed.values) * computed.scale / usual
            differ = np.bincount(steps.prompt, varies) > 0
            free = np.where(differ, np.maximum(free - 1, 0), 0)
        if _grows(rest, free, steps):
            return LeftOver(KL, c, 0, steps.rows, steps.rows)
    return None


def _has_deviation_1(ruler: Ruler, c: Computation) -> bool:
    """The advantages of most prompts have the deviation 1, as those of any reward that
    was divided by its own."""
    steps = ruler.steps
    size = steps.groups.size
    square = np.bincount(steps.prompt, steps.advantage**2) / np.maximum(
        size - c.ddof, 1
    )
    # An eps of 1 % of the deviation moves the square by 2 %. Prompts in which it moves
    # more, or whose rewards are equal, may be one in five.
    return bool((np.abs(square[size > 1] - 1) < 0.02).mean() > 0.8)


def _off_the_line(steps: LoggedSteps, values: np.ndarray) -> np.ndarray:
    """The rest of advantages over the line through the computed ones, [R]."""
    group = steps.prompt
    square = np.bincount(group, values**2)
    along = np.bincount(group, values * steps.advantage)
    slope = np.divide(along, square, out=np.zeros_like(square), where=square > 1e-12)
    return np.where(square > 1e-12, 1, 0)[group] * (
        steps.advantage - slope[group] * values
    )


def _grows(rest: np.ndarray, free: np.ndarray, steps: LoggedSteps) -> bool:
    """Whether a rest, [R], grows from 0 over the steps. `free`, [G], are the degrees of
    freedom of each prompt's rest: a mean takes one, and a line through it another."""
    freedom = np.bincount(steps.groups.step, free)
    tells = freedom > 0
    if tells.sum() < FEWEST_STEPS:
        return False
    size = np.sqrt(steps.total(rest**2)[tells] / freedom[tells])
    third = max(1, len(size) // 3)
    last = np.median(size[-third:])
    if size[0] > GROWS * last or last < 1e-3:
        return False
    # 4 steps are ordered so well by chance in one of six cases, 8 in one of 35.
    rank = np.argsort(np.argsort(size))
    return bool(np.corrcoef(rank, np.arange(len(rank)))[0, 1] > 0.7)


KINDS: tuple[Callable[[Ruler], LeftOver | None], ...] = (
    *(pieces, neighbours, one_row, clamp, floor, no_vote, length, kl),
)
"""One function for each kind, in the order in which they are asked."""
