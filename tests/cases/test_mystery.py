"""A mystery is a seed and edits, and its link says nothing about the bug."""

from collections import Counter

import pytest

import gradebook
from gradebook.cases import edits
from gradebook.cases.mystery import (
    NONE,
    first_state,
    hidden,
    pack_moves,
    suspects,
    unpack_moves,
)
from gradebook.cases.packed_table import packed


def played():
    """A game of four edits, each of another kind."""
    state = first_state()
    log = [state]
    for act, *given in (
        (edits.set_cell, 0, "reward", "2.5"),
        (edits.set_mask, 3, 1, 3, False),
        (edits.remove_row, 5),
        (edits.set_setting, "scale", "none"),
        (edits.add_row, 2),
        (edits.set_cell, 1, "eos", False),
    ):
        log.append(act(log[-1], *given))
    return log


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
    needed = {
        name
        for bug in suspects()
        if bug
        for name in gradebook.load(bug).rows[0]
        if name not in ("logp", "ref_logp", "step")
    }
    assert needed <= set(first_state().table.columns)


def test_edits_come_back_from_a_link_one_by_one():
    log = played()
    states, problems = unpack_moves(pack_moves(log))
    assert problems == () and len(states) == len(log)
    assert all(a.same_batch(b) for a, b in zip(log, states))
    assert pack_moves(log[:1]) == "" and unpack_moves("")[0] == log[:1]


@pytest.mark.parametrize(
    "text",
    [
        "no base64!",
        "AAAA",
        packed({"n": 3}),
        packed([1] * 300),
        packed([{"n": 4, "c": {"reward": 7}}]),
        packed([{"s": {"scale": "nonsense"}}]),
        packed([{"s": {"unknown": "1"}}]),
        packed([{"s": 3}, "text"]),
    ],
)
def test_edits_that_make_no_sense_are_named(text):
    states, problems = unpack_moves(text)
    assert problems and states[0] is first_state()
    assert all(state.problems() == [] for state in states)
