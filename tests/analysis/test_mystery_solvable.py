"""Every mystery is solvable: a fixed list of edits names each bug."""

import pytest
import torch

from gradebook.analysis.comparison import same
from gradebook.analysis.mystery import (
    NONE,
    Crash,
    edits,
    first_state,
    look,
    odd_rows,
    suspects,
)
from gradebook.cases import edits as acts


def alike(a, b):
    """Both stopped, or both gave the same."""
    if a is None or b is None:
        return a is b
    return bool(same(a, b).all())


def shown(name, state):
    """The advantages that a trainer shows, None where it stops."""
    try:
        return look(name, state).faulty.advantage
    except Crash:
        return None


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


@pytest.fixture(scope="module")
def states():
    found = [first_state()]
    for act in STRATEGY:
        found.append(act(found[-1]))
    return found


@pytest.fixture(scope="module")
def seen(states):
    """What each suspect gives for each batch of the strategy."""
    return {name: [shown(name, state) for state in states] for name in suspects()}


@pytest.mark.parametrize("name", suspects(), ids=lambda n: n or "none")
def test_the_strategy_names_every_bug_from_advantages_alone(seen, states, name):
    left = set(suspects())
    for at, found in enumerate(seen[name]):
        left = {one for one in left if alike(seen[one][at], found)}
        if left == {name}:
            break
    assert left == {name}
    assert edits(states[: at + 1]) <= len(STRATEGY)


def test_the_first_batch_already_tells_some_apart_but_not_most(seen):
    like_none = [n for n in suspects() if alike(seen[n][0], seen[NONE][0])]
    assert len(suspects()) / 2 < len(like_none) < len(suspects())


def test_a_crash_is_what_only_this_trainer_does(seen):
    """Seven rows that are left do not divide by four."""
    crashed = [n for n in suspects() if seen[n][1] is None]
    assert len(crashed) == 1
    assert odd_rows(crashed[0], acts.set_cell(first_state(), 1, "eos", False)) == [
        *range(8)
    ]


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
    told = {n: odd_rows(n, state) for n in suspects()}
    assert told[NONE] == []
    assert [0, 2, 3] in told.values()


def test_edits_are_counted_by_cell_setting_and_row():
    state = first_state()
    block = "prompt\treward\nA\t5\nA\t6\nB\t7\nB\t8"
    pasted = acts.replace_rows(state, block)
    assert edits([state, pasted]) >= 8
    one = acts.set_cell(state, 0, "reward", "3")
    two = acts.set_setting(one, "scale", "none")
    assert edits([state, one, two]) == 2
    assert edits([state, acts.move_row(state, 0, 7)]) == 1
