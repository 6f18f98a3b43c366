"""The process that trains beside a server: shared, in turn, cancelled."""

import sys
from itertools import count, repeat

import pytest

from gradebook.bugs import swap
from gradebook.core.errors import GradebookError
from gradebook.training import runs as processes
from gradebook.training.runs import TrainingQueue, in_advance, shipped
from gradebook.training.study import Run, study
from gradebook.training.train import TabularTraining, luck_of, rows_at, trained

LATE = 1800
"""Seconds that a busy machine may take."""


def call_of(lost, seeds=8):
    return trained, Run("partial_groups", lost, "adam", seeds)


@pytest.fixture(scope="module")
def runs():
    runs = TrainingQueue()
    yield runs
    runs.close()


def test_the_batch_of_an_update_is_the_one_that_was_trained_on(runs):
    run = Run("partial_groups", 5.0, "adam", 8)
    made = TabularTraining(run, swap(run.bug).engine, 8)
    luck = luck_of(made, range(8))
    made.advance(next(luck))
    batch, _ = made.batch(next(luck))
    of_seed = batch.step == 6
    rows = runs.ask(rows_at, run, 6, 2).result(LATE)
    assert [row["reward"] for row in rows] == batch.reward[of_seed].tolist()
    assert [row["mask"] for row in rows] == batch.mask[of_seed].tolist()
    letters = [ord(row["prompt"]) - ord("A") for row in rows]
    assert letters == batch.prompt[of_seed].tolist()


def test_runs_are_queued_and_shared_and_can_be_cancelled_and_repeated(runs):
    asked = [call_of(1.0, seeds=32), call_of(1.5), call_of(2.0)]
    futures = [runs.ask(*call) for call in asked]
    assert [runs.ask(*call) for call in asked] == futures, "equal requests share one"
    assert [runs.place(*call) for call in asked] == [0, 1, 2]
    runs.cancel(*asked[1])
    assert [runs.place(*call) for call in (asked[0], asked[2])] == [0, 1]
    assert futures[1].cancelled()
    runs.ask(*asked[1])
    assert [runs.place(*call) for call in asked] == [0, 2, 1]
    runs.cancel(*asked[1])
    assert (result := futures[2].result(LATE)) == trained(asked[2][1])
    # At the start: the mean of n ** 3 / 1000 for n = 2 .. 9.
    assert result.values["success"][0][0][0] == pytest.approx(0.253)


def test_a_dead_process_is_reported_and_the_next_run_starts_a_new_one(monkeypatch):
    short = [sys.executable, "-c", "import sys; sys.stdin.buffer.read(1)"]
    runs, call = TrainingQueue(), (rows_at, call_of(3.0)[1], 0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "COMMAND", short)
        future = runs.ask(*call)
        with pytest.raises(GradebookError, match="Start again"):
            future.result(LATE)
    assert runs.ask(*call) is future, "who looks later is told too"
    assert runs.ask(*call).result(LATE) == rows_at(*call[1:])
    runs.close()


def test_a_call_that_yields_shows_its_parts_and_ends_when_it_is_cancelled(runs):
    assert runs.ask(repeat, "a part", 3).result(LATE) is None
    assert runs.so_far(repeat, "a part", 3) is None, "what is whole has no part"
    future, seen = runs.ask(count, 5), set()
    while len(seen) < 3:
        seen.add(runs.so_far(count, 5))
    assert min(seen - {None}) >= 5
    runs.cancel(count, 5)
    with pytest.raises(GradebookError, match="Cancelled"):
        future.result(LATE)
    # The process goes on with what is asked next.
    assert runs.ask(repeat, "a part", 2).result(LATE) is None


ADVANCE = in_advance()


@pytest.mark.parametrize(
    "run",
    [
        run if n == 4 else pytest.param(run, marks=pytest.mark.long)
        for n, run in enumerate(ADVANCE)
    ],
)
def test_the_curves_that_are_shipped_are_those_of_a_fresh_run(run):
    """Within a hundredth of the axis: another processor may round otherwise,
    and a rollout in a thousand then takes another turn."""
    name = study(run.bug).measure
    measured = study(run.bug).measured
    fresh, stored = trained(run), shipped()[run]
    room = (measured.reach[1] - measured.reach[0]) / 100
    means = [
        [sum(seeds) / len(seeds) for frame in curves.values[name] for seeds in frame]
        for curves in (fresh, stored)
    ]
    assert means[0] == pytest.approx(means[1], abs=room)
    assert stored.updates == fresh.updates
