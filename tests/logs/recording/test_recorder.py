"""What a training loop hands over comes back whole."""

import resource

import numpy as np
import pytest
import torch

from gradebook.core.errors import GradebookError
from gradebook.logs.recorder import ARGUMENTS, Recorder
from gradebook.logs.recording import recording

ROWS = {"prompt": [0, 0], "reward": [1.0, 0.0], "advantage": [0.5, -0.5]}


def read(folder):
    """Every row of a folder's whole steps, as lists by column."""
    return recording([folder]).frame().to_dict("list")


def test_rows_come_back_as_they_were(tmp_path):
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(
            3,
            prompt=["a", "a", "b"],
            reward=torch.tensor([1.0, 0.0, 2.5], requires_grad=True),
            advantage=np.array([0.7, -0.7, 0.1]),
            eos=[True, False, 1],
            length=[4, 5, 6],
            rollout=torch.tensor([7, 8, 9]),
            text=["p", "p", "q"],
        )
    assert read(tmp_path) == {
        "step": [3, 3, 3],
        "reward": [1.0, 0.0, 2.5],
        "advantage": [0.7, -0.7, 0.1],
        "prompt": ["a", "a", "b"],
        "rollout": [7, 8, 9],
        "text": ["p", "p", "q"],
        "eos": [True, False, True],
        "length": [4, 5, 6],
        "scored": [True, True, True],
        "rank": [0, 0, 0],
    }


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_the_float_type_is_kept_and_the_number_is_exact(tmp_path, name):
    advantage = torch.tensor([1 / 3, -2 / 3], dtype=getattr(torch, name))
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **ROWS | {"advantage": advantage})
    assert recording([tmp_path]).types["advantage"] == name
    assert read(tmp_path)["advantage"] == advantage.double().tolist()


@pytest.mark.parametrize(
    "first, by_token, advantage",
    [
        ([9.0, 0.5, 0.5], False, [0.5, -0.5, 0.0]),
        ([9.0, 0.25, 0.75], True, [0.5, -0.5, 0.0]),  # the mean
    ],
)
def test_a_row_has_one_advantage(tmp_path, first, by_token, advantage):
    mask = [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    tokens = [first, [-0.5, 7.0, 7.0], [3.0, 3.0, 3.0]]
    three = {"prompt": [0, 0, 0], "reward": [1, 0, 0]}
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **three, advantage=tokens, mask=mask)
    rows = read(tmp_path)
    assert rows["advantage"] == advantage and rows["length"] == [2, 1, 0]
    assert recording([tmp_path]).parts["by_token"].tolist() == [by_token]


def test_steps_with_other_columns_or_types_go_to_another_file(tmp_path):
    half = {"advantage": torch.tensor(ROWS["advantage"], dtype=torch.float16)}
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **ROWS, eos=[True, False])
        recorder.step(1, **ROWS)
        recorder.step(2, **ROWS | half)
    assert len(list(tmp_path.glob("*.arrows"))) == 3
    run = recording(tmp_path)
    assert run.steps == (0, 1, 2) and "eos" not in run.columns
    assert run.types == {"reward": "float64", "advantage": "float16"}
    assert run.frame()["step"].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_closed_recorder_writes_no_more(tmp_path):
    with Recorder(tmp_path) as recorder:
        recorder.step(0, **ROWS)
    with pytest.warns(RuntimeWarning, match="step 1: .*an open recorder"):
        recorder.step(1, **ROWS)
    assert len(list(tmp_path.glob("*.arrows"))) == 1
    assert read(tmp_path)["step"] == [0, 0]


def test_a_file_is_never_written_twice_while_the_clock_stands_still(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("time.time_ns", lambda: 1)
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **ROWS)
        recorder.step(1, **ROWS, eos=[True, False])
    assert read(tmp_path)["step"] == [0, 0, 1, 1]


def test_a_resumed_run_replaces_only_the_steps_that_it_repeats(tmp_path):
    for rank in (0, 1):
        with Recorder(tmp_path, rank=rank, ranks=2, strict=True) as recorder:
            for step in (1, 2):
                recorder.step(step, **ROWS)
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(2, **ROWS | {"reward": [8.0, 9.0]})
    rows = read(tmp_path)
    assert rows["step"] == [1, 1, 1, 1, 2, 2]
    assert rows["reward"] == [1.0, 0.0, 1.0, 0.0, 8.0, 9.0]


def test_prompts_numbered_by_each_rank_stay_apart(tmp_path):
    for rank in (0, 1):
        with Recorder(
            tmp_path, rank=rank, ranks=2, prompts="per rank", strict=True
        ) as recorder:
            recorder.step(0, **ROWS)
    assert read(tmp_path)["prompt"] == ["0/0", "0/0", "1/0", "1/0"]


def test_a_step_may_have_no_rows_on_a_rank(tmp_path):
    empty = {"prompt": [], "reward": [], "advantage": []}
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **ROWS)
        recorder.step(1, **empty)
        recorder.step(2, **ROWS)
    assert read(tmp_path)["step"] == [0, 0, 2, 2]


BAD = [
    ("reward", [1.0, float("inf")], 1, "a finite number, NaN or None"),
    ("advantage", [[1.0, 2.0], [1.0]], 1, "shape [2], as in row 0"),
    ("mask", [[1, 2], [1, 1]], 0, "0 or 1"),
    ("length", [-1, 2], 0, "0 or more"),
    ("rewards", [1, 2], None, f"one of {', '.join(ARGUMENTS)}"),
]


@pytest.mark.parametrize("key, value, row, expected", BAD)
def test_a_bad_argument_is_named_with_its_row(tmp_path, key, value, row, expected):
    with pytest.raises(GradebookError) as error:
        Recorder(tmp_path, strict=True).step(0, **ROWS | {key: value})
    assert (error.value.key, error.value.row) == (key, row)
    assert error.value.expected == expected and error.value.found


def test_training_goes_on_while_the_disk_is_full(tmp_path):
    """A file that may not grow is what a full disk looks like: the write
    fails in the middle."""
    recorder = Recorder(tmp_path)
    recorder.step(0, **ROWS)
    (path,) = tmp_path.glob("*.arrows")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
    try:
        with pytest.warns(RuntimeWarning, match="step 1: .*File too large"):
            recorder.step(1, **ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    recorder.step(2, **ROWS)
    recorder.close()
    assert read(tmp_path)["step"] == [0, 0, 2, 2]
    noted, cut = recording([tmp_path]).problems
    assert noted.startswith("step 1: ") and "behind its first 1 steps" in cut


def test_a_file_that_is_cut_off_anywhere_keeps_its_whole_steps(tmp_path):
    with Recorder(tmp_path / "run", strict=True) as recorder:
        ends = []
        for step in range(3):
            recorder.step(step, **ROWS)
            (path,) = (tmp_path / "run").glob("*.arrows")
            ends.append(path.stat().st_size)
    content = path.read_bytes()
    for end in sorted({*ends, *range(ends[0], len(content), 7)}):
        path.write_bytes(content[:end])
        run, whole = recording(tmp_path / "run"), sum(e <= end for e in ends)
        assert run.steps == tuple(range(whole))
        assert len(run.frame()) == 2 * whole
        cut = [p for p in run.problems if f"behind its first {whole} steps" in p]
        # A killed run ends right behind a step; a closed one has 8 bytes more.
        assert len(cut) == (end not in ends)
