"""What rules a computation out early, against lines drawn by hand."""

import numpy as np
import pandas as pd
import pytest
from logs.made import NEEDED, made

import gradebook.logs.judging as judging
from gradebook.core.settings import ESTIMATORS, Settings
from gradebook.logs.candidates.rollouts import to_rollouts
from gradebook.logs.candidates.trl import Reading, rewarded
from gradebook.logs.check import guessed_from
from gradebook.logs.computations import Computation
from gradebook.logs.fits import distance, numbers_of
from gradebook.logs.judging import Judging, judged, restrided
from gradebook.logs.probes import off_line, some_groups, some_strides
from gradebook.logs.read.canonical import canonical

run = judging.run


def line(x, y, of, allowed=1e-6, use=None):
    x, y = np.array(x, float), np.array(y, float)
    use = np.ones(len(x), bool) if use is None else np.array(use)
    no_dust, allowed = np.zeros(len(x)), np.full(len(x), allowed)
    return off_line(x, y, use, np.array(of), no_dust, allowed)


def test_a_line_in_each_group_is_a_line():
    """y = 2x - 1 in one group, y = 5 - x in the other."""
    x, y = [0, 1, 2, 0, 1, 3], [-1, 1, 3, 5, 4, 2]
    away, out = line(x, y, [0, 0, 0, 1, 1, 1])
    assert not out.any() and away.max() < 1e-12


def test_a_bent_group_is_out_by_its_distance_from_the_best_line():
    """Through (0, 0), (1, 0), (2, 3) the best line has slope 1.5 and lies
    at -0.5, 1, 2.5: it misses by 0.5, 1 and 0.5."""
    away, out = line([0, 1, 2], [0, 0, 3], [0, 0, 0])
    np.testing.assert_allclose(away, [0.5, 1, 0.5])
    assert out.all()
    assert not line([0, 1, 2], [0, 0, 3], [0, 0, 0], allowed=1.1)[1].any()


def test_equal_rewards_with_unequal_advantages_are_out():
    assert line([1, 1, 1], [0, 0, 3], [0, 0, 0])[1].all()


def test_rows_without_a_say_and_numbers_that_are_none():
    use = [True, True, True, False]
    assert not line([0, 1, 2, 3], [0, 1, 2, 9], [0] * 4, use=use)[1].any()
    assert not line([0, 1, 2, 3], [0, 1, 2, np.nan], [0] * 4)[1].any()


def test_rounding_of_the_scores_is_allowed_for():
    """Scores 1 and 1 + 1e-7 are one float32: their advantages may be too,
    even where the third row says how steep the line is."""
    x = np.array([1, 1 + 1e-7, 1 + 2e-7])
    y = np.array([-0.5, 0.5, 0.5])
    every, of = np.ones(3, bool), np.zeros(3, int)
    small = np.full(3, 1e-6)
    assert off_line(x, y, every, of, np.zeros(3), small)[1].any()
    assert not off_line(x, y, every, of, 2.4e-7 * x, small)[1].any()


def rollouts(**columns):
    return to_rollouts(pd.DataFrame(columns))


def test_the_groups_that_are_looked_at():
    """The first and the last that vary, of each step; where none varies,
    the first."""
    found = some_groups(
        rollouts(
            step=[1] * 8 + [2] * 4,
            prompt=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
            reward=[1, 1, 0, 1, 0, 2, 0, 3, 5, 5, 6, 6],
        )
    )
    assert found.tolist() == [
        *(True, True, True, True, False, False, True, True),
        *(True, True, False, False),
    ]


def test_the_strides_that_are_looked_at_begin_where_groups_do_not():
    """Groups of 2, 2, 1 and 3 rows, strides of 2: the third is no group."""
    rows = rollouts(
        step=[0] * 40,
        prompt=[0, 0, 1, 1, 2, 3, 3, 3] + [4 + i // 2 for i in range(32)],
        reward=[0.0, 1.0] * 20,
    )
    found = some_strides(rows, np.array([2]))
    assert np.flatnonzero(found)[0] == 4 and found.sum() == 18


@pytest.mark.parametrize("bug", ["", *sorted(NEEDED)])
@pytest.mark.parametrize("estimator", list(ESTIMATORS))
def test_a_probe_never_rules_out_what_was_computed(
    monkeypatch, bug, estimator
):
    """Whatever fits when every row is run fits when groups are looked at
    first, and nothing else does."""
    frame = made(bug, estimator, steps=12, groups=9, seed=3)
    columns = guessed_from(frame, None)
    table = rewarded(canonical(frame, columns)[0], Reading((1.0,), None))
    whole = to_rollouts(table)
    monkeypatch.setattr(judging, "PROBED", 10**9)
    slow = judged(whole)
    monkeypatch.setattr(judging, "PROBED", 1)
    fast = judged(whole)
    assert any(fit.fits.any() for c, fit in slow.fits.items() if c.bug == bug)
    for computation, fit in slow.fits.items():
        if computation in fast.fits:
            found = fast.fits[computation].fits
            np.testing.assert_array_equal(found, fit.fits, str(computation))
    missed = [c for c, f in slow.fits.items() if f.fits.any()]
    assert not set(missed) - set(fast.fits)


def test_guesses_that_come_to_the_same_strides_are_run_once(monkeypatch):
    frame = made("partial_groups", steps=4)
    columns = guessed_from(frame, None)
    table = rewarded(canonical(frame, columns)[0], Reading((1.0,), None))
    work, runs = Judging(to_rollouts(table), group_size=4), []
    monkeypatch.setattr(
        judging, "run", lambda e, b: runs.append(b) or run(e, b)
    )
    largest = Computation("partial_groups", "grpo", ESTIMATORS["grpo"], 1)
    every = np.ones(work.rollouts.steps, dtype=bool)
    work.try_all([largest], every)
    before = len(runs)
    work.try_all([restrided(largest, "given", 4)], every)
    assert before and len(runs) == before
    work.try_all([restrided(largest, "one more", None)], every)
    assert len(runs) > before


def test_a_computation_that_is_not_wanted_takes_none_along():
    """Without a lone row its rule makes no difference, and the two are
    run once; each still has the eps that it is wanted with."""
    rng = np.random.default_rng(0)
    rows = {"prompt": np.repeat(range(8), 4), "reward": rng.normal(size=32)}
    plain = to_rollouts(pd.DataFrame(rows))
    one = Computation("", "grpo", Settings(eps=1e-6, lone_row="zero"), 1)
    other = Computation("", "grpo", Settings(eps=1e-6, lone_row="raw"), 1)
    fine = Computation("", "grpo", Settings(eps=1e-8, lone_row="raw"), 1)
    rows["advantage"] = numbers_of(plain, fine)
    logged = to_rollouts(pd.DataFrame(rows))
    work = Judging(logged, wanted=frozenset([one, fine]))
    work.try_all([one, other], np.ones(1, dtype=bool))
    assert work.fits[fine].fits.all()
    assert distance(numbers_of(plain, fine), rows["advantage"]).max() == 0
