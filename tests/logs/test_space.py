"""The space runs on the engine: what it remembers changes no number."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gradebook.core.settings import ESTIMATORS
from gradebook.core.vocabulary import BASELINES, SCALES
from gradebook.engine.pipeline import CORRECT, run
from gradebook.logs.judging import space
from gradebook.logs.judging.computation import DRAW, Computation, Second, View
from gradebook.logs.judging.space import EngineRuns
from gradebook.logs.logged_steps import to_logged


def steps_of(seed, rows=24, **columns):
    """Rows of two steps with groups of several sizes, one of a single row."""
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame({"step": np.arange(rows) // 12})
    frame["prompt"] = np.sort(chance.integers(0, 5, rows)) + 10 * frame["step"]
    frame["reward"] = chance.normal(size=rows).round(2)
    frame["advantage"] = chance.normal(size=rows)
    frame["length"] = chance.integers(0, 9, rows)
    frame["eos"] = chance.random(rows) < 0.8
    frame["scored"] = chance.random(rows) < 0.9
    frame["kept_steps"] = chance.integers(1, 4, rows)
    frame["rollout"] = np.arange(rows) // 2
    return to_logged(frame.assign(**columns))


computations = some.builds(
    Computation,
    some.sampled_from([*BASELINES]),
    some.sampled_from([*SCALES]),
    ddof=some.sampled_from([0, 1]),
    eps=some.sampled_from([1e-6, 1e-3, 0.5]),
    eps_at=some.sampled_from(["after", "inside", "least"]),
    about=some.sampled_from(["mean", "baseline"]),
    lone_row=some.sampled_from(["zero", "raw"]),
    second=some.sampled_from([None, *space.SECONDS]),
    ended=some.booleans(),
    clip=some.sampled_from([None, 0.5]),
)


@given(some.integers(0, 50), some.lists(computations, min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_what_is_remembered_is_what_a_plain_run_of_the_engine_gives(seed, several):
    steps = steps_of(seed)
    for ended, clip in {(c.ended, c.clip) for c in several}:
        runs = EngineRuns(steps, View(), ended, clip)
        for c in several:
            if not runs.sees(c):
                continue
            computed = runs.compute(c)
            traced = run(CORRECT, steps.batch.under(c.settings))
            plain = traced.advantage.nan_to_num(0).numpy()
            assert computed.values == pytest.approx(plain, rel=1e-12, abs=1e-12)
            assert computed.baseline == pytest.approx(traced.baseline.numpy())


def test_a_flat_group_without_eps_is_0():
    """The engine gives 0 / 0 there, and no log has a number to compare with that."""
    frame = {"prompt": [0, 0], "reward": [2.0, 2.0], "advantage": [0.0, 0.0]}
    steps = to_logged(frame)
    without_eps = Computation("group_mean", "group_std", eps=0.0)
    assert EngineRuns(steps).compute(without_eps).values.tolist() == [0.0, 0.0]
    traced = run(CORRECT, steps.batch.under(without_eps.settings))
    assert bool(traced.advantage.isnan().all())


@pytest.mark.parametrize("ddof, divided", [(1, 1.5), (0, 1.5)])
def test_a_lone_row_that_keeps_its_score_is_divided_by_1_and_eps(ddof, divided):
    frame = {"prompt": [0, 1, 1], "reward": [3.0, 1.0, 2.0], "advantage": [0.0] * 3}
    steps = to_logged(frame)
    raw = Computation("group_mean", "group_std", ddof=ddof, eps=0.5, lone_row="raw")
    assert EngineRuns(steps).compute(raw).values[0] == 3.0 / divided


def test_rows_are_grouped_by_draw():
    # Prompt 0 is drawn twice: rows 0 and 1, then rows 4 and 5.
    frame = {"prompt": [0, 0, 1, 1, 0, 0], "reward": [1.0, 3, 5, 5, 10, 20]}
    steps = to_logged({**frame, "advantage": [0.0] * 6})
    assert space.grouped(steps, View(DRAW)).tolist() == [0, 0, 1, 1, 2, 2]
    assert View(DRAW) in space.groupings(steps)
    by_draw = Computation("group_mean", "none", view=View(DRAW))
    values = EngineRuns(steps, View(DRAW)).compute(by_draw).values
    assert values.tolist() == [-1.0, 1.0, 0.0, 0.0, -5.0, 5.0]


def test_draws_of_one_size_follow_each_other():
    # Four rows of one prompt, drawn as twice two.
    frame = {"prompt": [0] * 4 + [1] * 2, "reward": [0.0] * 6, "advantage": [0.0] * 6}
    grouped = space.grouped(to_logged(frame), View(DRAW, 2)).tolist()
    assert grouped == [0, 0, 1, 1, 2, 2]


def test_copies_that_fill_a_step_have_no_vote_and_no_weight():
    # The last row repeats the first one. Without it the mean is (1 + 3) / 2.
    rows = {"prompt": [0, 0, 0], "reward": [1.0, 3.0, 1.0], "length": [2, 4, 2]}
    steps = to_logged({**rows, "advantage": [-1.0, 1.0, -1.0]})
    view = View(no_copies=True)
    assert space.originals(steps).tolist() == [0, 1, 0]
    centred = Computation("group_mean", "none", view=view)
    assert EngineRuns(steps, view).compute(centred).values.tolist() == [-1.0, 1.0, -1.0]
    # Whitened over the 2 + 4 tokens of two rows: mean (-2 + 4) / 6 = 1/3, squares
    # 2 (4/3)^2 + 4 (2/3)^2 = 16/3, over 6 tokens 8/9.
    whitened = Computation("group_mean", "none", second=Second("tokens", 0), view=view)
    root = (8 / 9 + 1e-8) ** 0.5
    expected = [-4 / 3 / root, 2 / 3 / root, -4 / 3 / root]
    assert EngineRuns(steps, view).compute(whitened).values == pytest.approx(expected)


def test_all_rows_count_if_a_view_says_so():
    rows = {"prompt": [0, 0, 0], "reward": [1.0, 3.0, 8.0], "length": [2, 4, 0]}
    steps = to_logged({**rows, "advantage": [0.0] * 3})
    view = View(all_rows=True)
    everyone = Computation("group_mean", "none", view=view)
    assert EngineRuns(steps, view).compute(everyone).values.tolist() == [
        -3.0,
        -1.0,
        4.0,
    ]
    flagged = Computation("group_mean", "none")
    assert EngineRuns(steps).compute(flagged).values.tolist() == [-1.0, 1.0, 0.0]


def test_a_computation_is_that_of_its_settings():
    for name, given_settings in ESTIMATORS.items():
        c = Computation.of(given_settings)
        assert c.settings == given_settings, name
        assert Computation.of(c.settings) == c
