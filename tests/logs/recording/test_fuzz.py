"""Whatever a trainer hands over, the answer is one clear error or none."""

import json
import random
import tempfile
import warnings

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gradebook
from gradebook.logs.recorder import ARGUMENTS, KEY

GOOD = {"prompt": [0, 0], "reward": [1.0, 0.0], "advantage": [0.5, -0.5]}
ODD = (
    None,
    1,
    [],
    [1.0, 2.0, 3.0],
    [[1.0, 2.0], [3.0]],
    [1, "a"],
    ["a", "\ud800"],
    ["a", None],
    [2**70, 1],
    [-1, 1],
    [float("inf"), 1.0],
    [1e308, -1e308],
    {"a": 1},
    object(),
    np.array([None, 1.0], dtype=object),
    np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
    np.ones((2, 3)),
    np.zeros(2, dtype=[("a", "f4")]),
    np.array([1.0, 2.0], dtype=">f8"),
    np.array([2**63, 1], dtype="uint64"),
    torch.tensor([True, False]),
    torch.zeros(2, dtype=torch.complex64),
    torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
    torch.eye(2).to_sparse(),
    torch.zeros(2, device="meta"),
)
columns = st.fixed_dictionaries(
    {},
    optional={name: st.sampled_from(ODD) for name in (*ARGUMENTS, "rewards", "")},
)


@given(columns, st.sampled_from([0, 7, -1, 2**70, 1.5, "1", None, True]))
def test_an_argument_is_recorded_or_is_one_error_with_its_place(odd, step):
    given = GOOD | odd
    with tempfile.TemporaryDirectory() as folder:
        recorder = gradebook.Recorder(folder, strict=True)
        guard = gradebook.Guard(declared={"scale": "none"}, action="raise")
        for loop in (recorder, guard):
            try:
                loop.step(step, **given)
                if loop is recorder:
                    run = gradebook.recording(folder)
                    assert len(run.frame()) == len(given["reward"])
            except gradebook.GradebookError as error:
                assert error.key in (*given, *ARGUMENTS, "step")
                assert error.expected and error.found
            except gradebook.WrongAdvantages:
                assert guard.finding is not None


@given(columns)
def test_training_goes_on_with_at_most_one_warning_each(odd):
    guard = gradebook.Guard(declared={"scale": "none"})
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(record=True) as caught,
        gradebook.Recorder(folder) as recorder,
    ):
        warnings.simplefilter("always")
        for step in range(3):
            recorder.step(step, **(GOOD | odd))
            guard.step(step, **(GOOD | odd))
    assert [w.category for w in caught] in ([], [RuntimeWarning], [RuntimeWarning] * 2)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a recording of two steps."""
    folder = tmp_path_factory.mktemp("run")
    with gradebook.Recorder(folder, strict=True) as recorder:
        recorder.step(0, **GOOD)
        recorder.step(1, **GOOD)
    (path,) = folder.glob("*.arrows")
    return path.read_bytes()


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 1000), marks=pytest.mark.long)]
)
def test_a_damaged_recording_is_named_or_read(content, seeds, tmp_path):
    path = tmp_path / "rank00000-1-00000.arrows"
    for seed in seeds:
        chance, data = random.Random(seed), bytearray(content)
        for _ in range((0, 1, 1, 2, 8)[seed % 5]):
            data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
        if seed % 5 == 0:
            del data[chance.randrange(len(data)) :]
        path.write_bytes(data)
        try:
            run = gradebook.recording(tmp_path)
            if run is not None:
                gradebook.check(run)
        except gradebook.GradebookError as error:
            assert error.expected and error.found, seed


@pytest.mark.parametrize("wrong", ["[]", "{}", '"declared": [1]', '"types": []'])
def test_a_stream_that_says_nonsense_of_itself_is_named(content, tmp_path, wrong):
    path = tmp_path / "rank00000-1-00000.arrows"
    stream = pa.ipc.open_stream(content)
    facts = json.loads(stream.schema.metadata[KEY.encode()])
    facts = json.dumps(facts | json.loads(f"{{{wrong}}}")) if '"' in wrong else wrong
    with pa.ipc.new_stream(str(path), stream.schema.with_metadata({KEY: facts})):
        pass
    with gradebook.Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **GOOD)
    run = gradebook.recording(tmp_path)
    assert run.steps == (0,) and len(run.problems) == 1
    assert run.problems[0].startswith("rank00000-1-00000.arrows: damaged")


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64"])
def test_unsigned_numbers_are_accepted_and_too_large_ones_are_named(tmp_path, kind):
    """torch stores 16 to 64 unsigned bits and cannot compare them."""
    length = np.array([3, 1], dtype=kind)
    with gradebook.Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **GOOD | {"length": length})
        recorder.step(1, **GOOD | {"length": torch.from_numpy(length)})
        large = np.array([2**63, 1], dtype="uint64")
        with pytest.raises(gradebook.GradebookError, match="key 'length', row 0"):
            recorder.step(2, **GOOD | {"length": large})
    assert gradebook.recording(tmp_path).frame()["length"].tolist() == [3, 1, 3, 1]
