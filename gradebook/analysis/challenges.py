"""Challenges: what a learner tries on a batch, and the checks of it.

A checker sees the scenario, the state it started from, the state now and
both engines on it; so it knows what was edited, and says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gradebook.analysis.comparison import DUST, Comparison, compare, sign
from gradebook.cases import edits as acts
from gradebook.cases.fields import SWITCHES, typed_setting
from gradebook.cases.record import bug
from gradebook.cases.scenario import (
    AddRow,
    Challenge,
    Change,
    RemoveRow,
    Scenario,
    Setting,
)
from gradebook.cases.state import State, start
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError
from gradebook.engine.grouping import credited, divisible, has_tokens

LENGTHS = {"steps", "kept_steps"}
EXPLODES = 1000.0
"""An advantage of this size is no healthy one."""
LARGE = 0.5
"""An advantage of this size is no dust."""


class Verdict(NamedTuple):
    """Whether a challenge is solved; if not, what is still missing."""

    solved: bool
    missing: str


SOLVED = Verdict(True, "")


@dataclass(frozen=True)
class Edits:
    """What differs between two states of one scenario, by value: 100 and
    100.0 are the same."""

    cells: frozenset[tuple[int, str]]
    settings: frozenset[str]
    switches: frozenset[str]
    rows: int  # how many rows more; cells of rows beyond are not listed

    @property
    def columns(self) -> set[str]:
        """The columns with an edited cell."""
        return {column for _, column in self.cells}

    @property
    def only_cells(self) -> bool:
        """Nothing but cells was edited, and at least one."""
        others = self.settings or self.switches or self.rows
        return bool(self.cells) and not others

    @property
    def only_settings(self) -> bool:
        """Nothing but settings was edited, and at least one."""
        others = self.cells or self.switches or self.rows
        return bool(self.settings) and not others


def edits(before: State, now: State) -> Edits:
    """What was edited. Raises GradebookError where a cell is unreadable."""
    old, new = (state.table.values() for state in (before, now))
    changed = {
        (row, name)
        for name in {*old, *new}
        for row, pair in enumerate(zip(old.get(name, ()), new.get(name, ())))
        if pair[0] != pair[1]
    }
    then, today = before.settings(), now.settings()
    return Edits(
        frozenset(changed),
        frozenset(n for n in today.keys() if then[n] != today[n]),
        frozenset(
            n for n in SWITCHES if getattr(before, n) != getattr(now, n)
        ),
        now.rows - before.rows,
    )


def judge(
    challenge: Challenge, now: State, comparison: Comparison | None = None
) -> Verdict:
    """Whether `now` solves the challenge of its scenario.

    `comparison` is both engines on `now`; without it they are run. Raises
    GradebookError where the state cannot be read or run.
    """
    scenario = now.scenario
    if comparison is None:
        comparison = compare(bug(scenario.bug), now.batch())
    if not comparison.batch.rows:
        return Verdict(False, "There are no rows.")
    check = CHECKERS[challenge.check]
    return check(scenario, start(scenario), now, comparison)


def apply_solution(state: State, changes: Sequence[Change]) -> State:
    """The state after the changes, in order. Raises GradebookError for a
    row that is not there."""
    for change in changes:
        state = _changed(state, change)
    return state


def _changed(state: State, change: Change) -> State:
    table = state.table
    if isinstance(change, Setting):
        typed = typed_setting(change.setting, change.value)
        return acts.set_setting(state, change.setting, typed)
    if isinstance(change, AddRow):
        return replace(state, table=table.joined(Table.of([change.add_row])))
    if isinstance(change, RemoveRow):
        return acts.remove_row(state, change.remove_row)
    if not 0 <= change.row < len(table):
        raise GradebookError(
            key="solution",
            row=change.row,
            expected=f"a row below {len(table)}",
            found=str(change.row),
        )
    return replace(
        state, table=table.with_cell(change.row, change.column, change.value)
    )


# Agreement


def _agrees(comparison: Comparison) -> Verdict:
    if comparison.agree:
        return SOLVED
    for stage in ("advantage", "loss"):
        if bool(comparison.differs(stage).any()):
            return Verdict(False, f"The engines still differ in the {stage}.")
    return Verdict(False, "The engines still differ in the gradient.")


def agree_by_one_reward(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Both engines agree after one reward, and nothing else, changed."""
    found = edits(before, now)
    if not found.only_cells or found.columns != {"reward"}:
        return Verdict(False, "Change one reward and nothing else.")
    if len(found.cells) > 1:
        return Verdict(False, f"{len(found.cells)} rewards are changed.")
    return _agrees(comparison)


def agree_by_one_setting(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Both engines agree after one setting, and nothing else, changed."""
    found = edits(before, now)
    if not found.only_settings:
        return Verdict(False, "Change one setting and no cell.")
    if len(found.settings) > 1:
        return Verdict(False, f"{len(found.settings)} settings are changed.")
    return _agrees(comparison)


def agree_by_settings(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Both engines agree under other settings, and still compare rows."""
    if not edits(before, now).only_settings:
        return Verdict(False, "Change settings and no cell.")
    if now.settings().baseline == "none":
        return Verdict(False, "Without a baseline nothing is compared.")
    return _agrees(comparison)


def agree_by_lengths(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Both engines agree after lengths alone changed."""
    found = edits(before, now)
    if not found.only_cells or not found.columns <= LENGTHS:
        return Verdict(False, "Change the steps of episodes, nothing else.")
    if bool((comparison.batch.kept_steps == 0).any()):
        return Verdict(False, "Every episode keeps at least one step.")
    return _agrees(comparison)


# Leaks


def turned_from_outside(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """The focus row's faulty sign turned by the reward of one row of
    another prompt."""
    found = edits(before, now)
    focus = scenario.focus
    if not found.only_cells or found.columns != {"reward"}:
        return Verdict(False, "Change one reward and nothing else.")
    if len(found.cells) > 1:
        return Verdict(False, f"{len(found.cells)} rewards are changed.")
    ((row, _),) = found.cells
    prompt = comparison.batch.prompt_index
    if prompt[row] == prompt[focus]:
        return Verdict(False, f"Row {row} is of row {focus}'s own prompt.")
    if not _turned(before, comparison)[focus]:
        return Verdict(False, f"Row {focus} keeps its faulty sign.")
    return SOLVED


def turned_by_silent_rows(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Another row's faulty sign turned, by rewards of rows without a say."""
    found = edits(before, now)
    if not found.only_cells or found.columns != {"reward"}:
        return Verdict(False, "Change rewards and nothing else.")
    says = credited(comparison.batch)
    for row, _ in sorted(found.cells):
        if bool(says[row]):
            return Verdict(False, f"Row {row} has a say; leave its reward.")
    if not any(_turned(before, comparison)):
        return Verdict(False, "No row's faulty sign has turned.")
    return SOLVED


def leaks_at_reward_zero(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """The only rejected rows have reward 0, and their siblings move."""
    batch = comparison.batch
    rejected = ~has_tokens(batch)
    if not bool(rejected.any()):
        return Verdict(False, "No row is rejected.")
    if bool((batch.reward[rejected] != 0).any()):
        return Verdict(False, "A rejected row still has a reward.")
    if not bool(comparison.differs("advantage").any()):
        return Verdict(False, "Nothing leaks: the advantages agree.")
    return SOLVED


def leaks_into_another_prompt(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """A row differs whose whole prompt has a say."""
    batch = comparison.batch
    silent = batch.prompt_index[~credited(batch)].tolist()
    if not silent:
        return Verdict(False, "Every row has a say.")
    others = [p not in silent for p in batch.prompt_index.tolist()]
    if not any(others):
        return Verdict(False, "Add rows of a prompt that lost none.")
    differs = comparison.differs("advantage").tolist()
    if not any(d and o for d, o in zip(differs, others)):
        return Verdict(False, "The other prompt agrees in both engines.")
    return SOLVED


def leaks_without_outlier(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """All rewards are 0 or 1, and the advantages differ."""
    if not set(comparison.batch.reward.tolist()) <= {0.0, 1.0}:
        return Verdict(False, "Some reward is neither 0 nor 1.")
    if not bool(comparison.differs("advantage").any()):
        return Verdict(False, "The advantages agree.")
    return SOLVED


def some_row_flips(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Some row's advantage has the other sign in the faulty engine."""
    if not bool(comparison.flips.any()):
        return Verdict(False, "No row flips.")
    return SOLVED


def divides_and_bites(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Another number of rows, one that the group size divides, and the
    advantages differ."""
    batch = comparison.batch
    if edits(before, now).settings:
        return Verdict(False, "Leave the settings as they were.")
    if batch.rows == before.rows:
        return Verdict(False, "Make a batch with another number of rows.")
    try:
        divisible(batch)
    except GradebookError as error:
        return Verdict(False, f"The guard stops it: {error.message}.")
    if not bool(comparison.differs("advantage").any()):
        return Verdict(False, "It divides, and the bug does not bite.")
    return SOLVED


def faulty_explodes(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """A faulty advantage is beyond 1000, no correct one beyond 10."""
    if edits(before, now).settings:
        return Verdict(False, "Leave the settings as they were.")
    faulty = float(comparison.faulty.advantage.nan_to_num().abs().max())
    correct = float(comparison.correct.advantage.nan_to_num().abs().max())
    if faulty < EXPLODES:
        return Verdict(False, f"The largest faulty one is {faulty:.3g}.")
    if correct > 10:
        return Verdict(False, f"A correct one is {correct:.3g}, too.")
    return SOLVED


# Lengths and dust


def moved_by_lengths(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Lengths alone changed, the correct advantages stayed, and the focus
    row's faulty advantage is beyond 3."""
    found = edits(before, now)
    if not found.only_cells or not found.columns <= LENGTHS:
        return Verdict(False, "Change the steps of episodes, nothing else.")
    value = float(comparison.faulty.advantage[scenario.focus])
    if not value >= 3 - DUST:
        return Verdict(
            False, f"Row {scenario.focus} is at {value:+.3f}, below +3."
        )
    return SOLVED


def signal_from_nothing(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Every prompt's rewards are equal, and a faulty advantage is large."""
    batch = comparison.batch
    if len(set(zip(batch.prompt_index.tolist(), batch.reward.tolist()))) > (
        len(set(batch.prompt_index.tolist()))
    ):
        return Verdict(False, "Some prompt has two different rewards.")
    if bool(sign(comparison.correct.advantage).any()):
        return Verdict(False, "The correct engine sees a signal as well.")
    largest = float(comparison.faulty.advantage.nan_to_num().abs().max())
    if largest < LARGE:
        return Verdict(
            False, f"The largest faulty advantage is {largest:.2g}."
        )
    return SOLVED


# Loss and gradient


def neighbours_change(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """Under another loss type alone, rows that train in both engines have
    different gradients."""
    if edits(before, now) != Edits(
        frozenset(), frozenset({"loss"}), frozenset(), 0
    ):
        return Verdict(False, "Change the loss type and nothing else.")
    both = comparison.correct.trained & comparison.faulty.trained
    if not bool((both & comparison.gradient_differs).any()):
        return Verdict(False, "Rows that train on both sides agree.")
    return SOLVED


def blanked_by_the_fix(
    scenario: Scenario, before: State, now: State, comparison: Comparison
) -> Verdict:
    """No row trains in the correct engine, and some do in the faulty."""
    if edits(before, now).settings:
        return Verdict(False, "Leave the settings as they were.")
    if comparison.correct.loss is None:
        return Verdict(False, "There is no loss without logp.")
    left = int(comparison.correct.trained.sum())
    if left:
        return Verdict(False, f"The correct engine trains {left} rows yet.")
    if not bool(comparison.gradient_differs.any()):
        return Verdict(False, "The faulty engine has no gradient either.")
    return SOLVED


def _turned(before: State, comparison: Comparison) -> list[bool]:
    """Each row's faulty advantage has the other sign than before."""
    first = compare(bug(before.scenario.bug), before.batch())
    then = sign(first.faulty.advantage)
    return (then * sign(comparison.faulty.advantage) < 0).tolist()


Checker = Callable[[Scenario, State, State, Comparison], Verdict]

CHECKERS: Mapping[str, Checker] = {
    "agree_by_lengths": agree_by_lengths,
    "agree_by_one_reward": agree_by_one_reward,
    "agree_by_one_setting": agree_by_one_setting,
    "agree_by_settings": agree_by_settings,
    "blanked_by_the_fix": blanked_by_the_fix,
    "divides_and_bites": divides_and_bites,
    "faulty_explodes": faulty_explodes,
    "leaks_at_reward_zero": leaks_at_reward_zero,
    "leaks_into_another_prompt": leaks_into_another_prompt,
    "leaks_without_outlier": leaks_without_outlier,
    "moved_by_lengths": moved_by_lengths,
    "neighbours_change": neighbours_change,
    "some_row_flips": some_row_flips,
    "signal_from_nothing": signal_from_nothing,
    "turned_by_silent_rows": turned_by_silent_rows,
    "turned_from_outside": turned_from_outside,
}
"""Each checker by the name that scenario files give it (scenario.CHECKS)."""
