"""The check reads a recording with nothing guessed."""

import pickle

import numpy as np
import pytest
import torch
from logs.made import made

import gradebook
from gradebook.__main__ import main
from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.logs.read.files import LogFile
from gradebook.logs.recording import recording

GRPO = {"scale": "group", "eps": 1e-4}


def rows(step, rank=0, kind=torch.float64):
    """Two prompts of four rows, and their GRPO advantages (ddof 1, eps
    1e-4), worked out here."""
    chance = np.random.default_rng((step, rank))
    reward = chance.normal(size=(2, 4))
    away = reward - reward.mean(1, keepdims=True)
    advantage = away / (reward.std(1, ddof=1, keepdims=True) + 1e-4)
    return {
        "prompt": np.repeat([2 * rank, 2 * rank + 1], 4),
        "reward": reward.ravel(),
        "advantage": torch.tensor(advantage.ravel()).to(kind),
        "mask": np.ones((8, 3)),
    }


def record(folder, steps, rank=0, ranks=1, kind=torch.float64):
    with gradebook.Recorder(
        folder, declared=GRPO, rank=rank, ranks=ranks, strict=True
    ) as recorder:
        for step in steps:
            recorder.step(step, **rows(step, rank, kind))


def test_the_declared_settings_are_those_of_the_check(tmp_path):
    record(tmp_path, range(3))
    verdict = check_log([tmp_path])
    assert verdict.verdict == "correct" and verdict.exit_code == 0
    assert verdict.declared == GRPO
    assert "as declared: scale=group, eps=0.0001." in verdict.sentence
    # Asked for no deviation, the same numbers are another computation.
    other = check_log([tmp_path], declared={"scale": "none"})
    assert other.declared == GRPO | {"scale": "none"}
    assert other.verdict != "correct"
    named = check_log([tmp_path], declared={"estimator": "dr_grpo"})
    assert named.declared == {"eps": 0.0001, "estimator": "dr_grpo"}


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_coarse_advantages_are_allowed_their_rounding(tmp_path, kind):
    record(tmp_path, range(3), kind=getattr(torch, kind))
    verdict = check_log([tmp_path])
    assert verdict.verdict == "correct"
    assert any(f"stored as {kind}" in note for note in verdict.notes)


def test_float32_advantages_are_not_allowed_a_guessed_rounding(tmp_path):
    with gradebook.Recorder(tmp_path, declared=GRPO) as recorder:
        for step in range(8):
            given = rows(step)
            given["advantage"] = given["advantage"].mul(8).round().div(8)
            recorder.step(step, **given)
    assert check_log([tmp_path]).verdict == "none fits"


def test_a_step_without_a_rank_is_named_and_not_judged(tmp_path, capsys):
    record(tmp_path, [1, 2, 3], rank=0, ranks=3)
    record(tmp_path, [1, 2], rank=1, ranks=3)
    record(tmp_path, [1, 3], rank=2, ranks=3)
    verdict = check_log([tmp_path])
    assert verdict.log.recording.missing() == {2: (2,), 3: (1,)}
    assert verdict.frame["step"].tolist() == [1]
    assert (verdict.steps_judged, verdict.steps_read) == (1, 3)
    assert main(["check", str(tmp_path)]) == 2  # only partly read
    assert "step 2 is not judged: it lacks rows of rank 2" in capsys.readouterr().out


def test_training_continues_after_bad_arguments_and_the_check_names_them(tmp_path):
    with gradebook.Recorder(tmp_path, declared=GRPO) as recorder:
        with pytest.warns(RuntimeWarning, match="Training goes on") as warned:
            recorder.step(0, **rows(0) | {"reward": [float("inf")] * 8})
            recorder.step(1, **rows(1) | {"eos": [5] * 8})
        recorder.step(2, **rows(2))
    assert len(warned) == 1
    run, verdict = recording([tmp_path]), check_log([tmp_path])
    assert run.steps == (2,)
    assert [p.split(":")[0] for p in run.problems] == ["step 0", "step 1"]
    assert verdict.verdict == "correct" and verdict.exit_code == 2
    assert len(verdict.broken) == 2
    assert verdict.broken[0].startswith("step 0: key 'reward', row 0")


def test_a_damaged_file_and_another_log_are_named(tmp_path):
    record(tmp_path, range(2))
    (tmp_path / "zz.arrows").write_bytes(b"cut off")
    made(steps=1).to_parquet(tmp_path / "zzz.parquet")
    verdict = check_log([tmp_path])
    assert verdict.verdict == "correct" and verdict.exit_code == 2
    assert len(verdict.broken) == 2
    assert "zz.arrows: damaged" in verdict.broken[0]
    assert "zzz.parquet: not of the recording" in verdict.broken[1]


def test_a_recording_of_another_version_is_named_as_one(tmp_path):
    record(tmp_path, range(3))
    (file,) = tmp_path.glob("*.arrows")
    file.write_bytes(file.read_bytes().replace(b'"format":2', b'"format":3'))
    with pytest.raises(GradebookError, match=f"{file.name}.*format.*2, found 3"):
        check_log([tmp_path])


def test_rows_without_a_reward_are_unscored(tmp_path):
    """By hand: 1 and 0 have mean 0.5; the row without a reward has none."""
    three = {"prompt": [0, 0, 0]}
    with gradebook.Recorder(
        tmp_path, declared={"scale": "none"}, strict=True
    ) as recorder:
        recorder.step(0, **three, reward=[1.0, 0.0, None], advantage=[0.5, -0.5, 0.0])
        recorder.step(1, **three, reward=[1.0, 0.0, 2.0], advantage=[0.0, -1.0, 1.0])
    verdict = check_log([tmp_path])
    assert verdict.verdict == "correct" and verdict.log.broken_cells == 0


def test_parts_of_a_repeated_run_are_not_mixed_with_the_old_ones(tmp_path):
    record(tmp_path, [1, 2], rank=0, ranks=2)
    record(tmp_path, [1, 2], rank=1, ranks=2)
    record(tmp_path, [2], rank=0, ranks=2)  # resumed; rank 1 died in step 2
    assert recording([tmp_path]).missing() == {2: (1,)}


def test_uploads_and_files_are_read_like_the_folder(tmp_path):
    record(tmp_path, range(3))
    direct = check_log([tmp_path])
    (path,) = tmp_path.glob("*.arrows")
    upload = LogFile(path.name, data=path.read_bytes())
    for given in ([path], [upload]):
        verdict = check_log(given)
        assert verdict.sentence == direct.sentence
        assert verdict.declared == GRPO
    # A verdict can be sent to another process.
    sent = pickle.loads(pickle.dumps(direct))
    assert sent.to_json() == direct.to_json()


def test_a_recording_splits_into_whole_steps(tmp_path):
    record(tmp_path, range(5))
    found = recording([tmp_path])
    for count in (1, 2, 3, 5, 50):
        parts = found.split(count)
        assert len(parts) <= count
        assert [s for part in parts for s in part.steps] == list(range(5))
    assert [len(part.steps) for part in found.split(3)] == [2, 2, 1]
    # A part travels to a worker, which reads its rows there.
    first, *_ = pickle.loads(pickle.dumps(found.split(3)))
    assert first.frame()["step"].tolist() == [0] * 8 + [1] * 8
