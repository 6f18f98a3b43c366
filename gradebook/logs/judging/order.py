"""Order: whether higher rewards have higher advantages within a prompt.

The law `analysis.laws.rising`, asked of a whole log at once. Correct advantages may
break it, so it is a finding in words and no verdict.
"""

from dataclasses import dataclass

import numpy as np

from gradebook.core.batch import codes
from gradebook.core.tolerance import EXACT
from gradebook.logs.judging import space
from gradebook.logs.judging.computation import View
from gradebook.logs.judging.fit import Ruler

BY_PROMPT = View()

FEWEST = 2
"""The fewest prompts that a sentence is about: one may be a single wrong cell."""


@dataclass(frozen=True)
class Order:
    """Of `prompts` whose rewards differ: in how many of them a higher reward has a
    lower advantage (`broken`), and in how many the best row has the lowest and the
    worst row the highest (`turned`)."""

    prompts: int
    broken: int
    turned: int

    @property
    def is_shown(self) -> bool:
        return self.broken >= FEWEST

    @property
    def is_turned(self) -> bool:
        """Most of these prompts turn the order of all their rows."""
        return self.is_shown and 2 * self.turned > self.broken


def order_of(ruler: Ruler, view: View = BY_PROMPT) -> Order:
    """The order in the prompts of a log, of rows that count and earn an advantage."""
    parts = map(ruler.of_steps, ruler.steps.parts())
    orders = [_order_of_part(part, view) for part in parts]
    return Order(
        prompts=sum(part.prompts for part in orders),
        broken=sum(part.broken for part in orders),
        turned=sum(part.turned for part in orders),
    )


def _order_of_part(ruler: Ruler, view: View) -> Order:
    """The order in the prompts of some whole steps."""
    steps = ruler.steps
    runs = space.EngineRuns(steps, view)
    counts = (runs.counted & runs.credited).numpy() & np.isfinite(steps.advantage)
    if not counts.any():
        return Order(0, 0, 0)
    group = codes(space.grouped(steps, view)[counts])
    reward, advantage = steps.reward[counts], steps.advantage[counts]
    slack = 2 * (ruler.base + ruler.written)[counts]
    by_reward = np.lexsort((reward, group))
    group, reward = group[by_reward], reward[by_reward]
    advantage, slack = advantage[by_reward], slack[by_reward]
    is_first = np.diff(group, prepend=-1) != 0
    is_last = np.diff(group, append=-1) != 0
    differ = reward[is_last] - reward[is_first] > EXACT * (1 + np.abs(reward[is_last]))
    best = _extreme(advantage, group, reward == reward[is_last][group], np.maximum)
    worst = _extreme(advantage, group, reward == reward[is_first][group], np.minimum)
    lowest = _extreme(advantage, group, np.ones(len(group), bool), np.minimum)
    highest = _extreme(advantage, group, np.ones(len(group), bool), np.maximum)
    room = np.zeros(len(lowest))
    np.maximum.at(room, group, slack)
    apart = highest - lowest > room
    turned = differ & apart & (best <= lowest + room) & (worst >= highest - room)
    falls = (np.diff(group) == 0) & (np.diff(reward) > EXACT)
    falls &= np.diff(advantage) < -slack[1:]
    broken = np.bincount(group[1:][falls], minlength=len(lowest)) > 0
    broken |= turned
    return Order(int(differ.sum()), int((broken & differ).sum()), int(turned.sum()))


def _extreme(
    values: np.ndarray, group: np.ndarray, chosen: np.ndarray, of: np.ufunc
) -> np.ndarray:
    """The largest or smallest of each group's chosen values, [G]."""
    start = -np.inf if of is np.maximum else np.inf
    extremes = np.full(int(group.max()) + 1, start)
    of.at(extremes, group[chosen], values[chosen])
    return extremes
