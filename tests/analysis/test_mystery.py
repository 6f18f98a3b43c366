"""A mystery is a seed, which says nothing about the bug."""

from collections import Counter

import gradebook
from gradebook.analysis.mystery import (
    NONE,
    first_state,
    hidden,
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
    needed = {
        name
        for bug in suspects()
        if bug
        for name in gradebook.load(bug).rows[0]
        if name not in ("logp", "ref_logp", "step")
    }
    assert needed <= set(first_state().table.columns)
