"""A mystery is a seed, which says nothing about the bug, and every mystery is
solvable: a fixed list of edits names each bug."""

from collections import Counter

import pytest
import torch

import gradebook
from gradebook.analysis.comparison import same
from gradebook.cases import edits as acts
from gradebook.ui.pages.mystery import (
    NONE,
    Crash,
    edits,
    first_state,
    hidden,
    look,
    odd_rows,
    suspects,
)


def test_every_bug_that_advantages_show_is_a_suspect_and_so_is_none():
    shown = {n for n in gradebook.BUGS if gradebook.bug(n).in_advantages}
    assert set(suspects()) == shown | {NONE}
    assert 0 < len(shown) < len(gradebook.BUGS)


def test_seeds_hide_every_suspect_about_as_often():
    counts = Counter(hidden(f"seed{n}") for n in range(1900))
    assert set(counts) == set(suspects())
    assert all(50 < count < 200 for count in counts.values())


def test_the_first_batch_has_a_value_in_every_column_that_a_bug_reads():
    """So that the columns of the board give nothing away."""
    rows = [gradebook.load(bug).rows[0] for bug in suspects() if bug]
    needed = {name for row in rows for name in row} - {"logp", "ref_logp", "step"}
    assert needed <= set(first_state().table.columns)


def cell(row, column, value):
    return lambda state: acts.set_cell(state, row, column, value)


def setting(name, value):
    return lambda state: acts.set_setting(state, name, value)


STRATEGY = (
    cell(1, "eos", False),
    cell(5, "scored", False),
    lambda state: acts.set_mask(state, 6, 0, 3, False),
    cell(3, "rollout", "2"),
    cell(4, "text", "A"),
    lambda state: acts.remove_row(state, 2),
    setting("whiten_tokens", True),
    cell(0, "rank", "1"),
    lambda state: acts.set_mask(state, 3, 1, 3, False),
    setting("whiten_tokens", False),
    # Two rows of prompt A that differ by 0.0001: small deviations.
    cell(2, "reward", "1"),
    cell(0, "reward", "1.0001"),
    # 0.5 beside three equal rewards, divided by the others' deviation.
    cell(1, "eos", True),
    cell(1, "reward", "0.9"),
    cell(2, "reward", "0.9"),
    lambda state: acts.add_row(state, 2),
    cell(3, "rollout", "9"),
    cell(0, "reward", "0.5"),
    setting("scale", "others_std"),
    setting("baseline", "leave_one_out"),
)
"""One edit after the other, whatever is hidden."""


def shown(name, state):
    """The advantages that a trainer shows, None where it stops."""
    try:
        return look(name, state).faulty.advantage
    except Crash:
        return None


def alike(a, b):
    """Both stopped, or both gave the same."""
    if a is None or b is None:
        return a is b
    return bool(same(a, b).all())


@pytest.fixture(scope="module")
def states():
    states = [first_state()]
    for act in STRATEGY:
        states.append(act(states[-1]))
    return states


@pytest.fixture(scope="module")
def seen(states):
    """What each suspect gives for each batch of the strategy."""
    return {name: [shown(name, state) for state in states] for name in suspects()}


@pytest.mark.parametrize("name", suspects(), ids=lambda n: n or "none")
def test_the_strategy_names_every_bug_from_advantages_alone(seen, name):
    left = {
        suspect
        for suspect in suspects()
        if all(alike(a, b) for a, b in zip(seen[suspect], seen[name]))
    }
    assert left == {name}


def test_the_first_batch_already_tells_some_apart_but_not_most(seen):
    like_none = [n for n in suspects() if alike(seen[n][0], seen[NONE][0])]
    assert len(suspects()) / 2 < len(like_none) < len(suspects())


def test_a_crash_is_what_only_this_trainer_does(seen):
    """Seven rows that are left do not divide by four."""
    (crashed,) = [n for n in suspects() if seen[n][1] is None]
    without_eos = acts.set_cell(first_state(), 1, "eos", False)
    assert odd_rows(crashed, without_eos) == [*range(8)]


def test_no_advantage_tells_the_trainers_number_type(seen):
    """A trainer in float32 looks like the correct one in the first batch."""
    types = {name: look(name, first_state()).faulty.score.dtype for name in suspects()}
    (low,) = (n for n, kind in types.items() if kind == torch.float32)
    assert torch.equal(seen[low][0], seen[NONE][0])
    assert seen[low][0].dtype == torch.float64


def test_wrong_rows_by_hand():
    """Without its EOS, row 1 of A earns nothing; a trainer that still counts
    it divides 1 1 0 0 by another deviation than 1 0 0."""
    state = acts.set_cell(first_state(), 1, "eos", False)
    rows = {n: odd_rows(n, state) for n in suspects()}
    assert rows[NONE] == []
    assert [0, 2, 3] in rows.values()


def test_edits_are_counted_by_cell_setting_and_row():
    state = first_state()
    pasted = acts.replace_rows(state, "prompt\treward\nA\t5\nA\t6\nB\t7\nB\t8")
    assert edits([state, pasted]) >= 8
    cell = acts.set_cell(state, 0, "reward", "3")
    both = acts.set_setting(cell, "scale", "none")
    assert edits([state, cell, both]) == 2
    assert edits([state, acts.move_row(state, 0, 7)]) == 1
