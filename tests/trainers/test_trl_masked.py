"""TRL's `mask_truncated_completions` is a setting, not a fault."""

import warnings
from types import SimpleNamespace

import advantages

import gradebook
from gradebook.logs.log import check_log
from gradebook.trainers.trl import declared


def test_masked_truncated_rows_are_healthy_for_guard_and_check(tmp_path):
    """Truncated rows have no tokens left, and their rewards enter the mean."""
    asked = declared(SimpleNamespace(scale_rewards="group"))
    guard = gradebook.Guard(declared=asked, action="raise")
    alone = gradebook.Guard(action="warn")
    with (
        warnings.catch_warnings(),
        gradebook.Recorder(tmp_path, declared=asked, strict=True) as recorder,
    ):
        warnings.simplefilter("error")
        for step in range(4):
            groups = [[1.0, 0.0, 3.0 + step, 5.0], [2.0, 4.0, 0.0, 1.0]]
            rows = {
                "prompt": [0, 0, 0, 0, 1, 1, 1, 1],
                "reward": sum(groups, []),
                "advantage": sum(advantages.grpo(groups), []),
                "length": [3, 0, 2, 5, 0, 4, 4, 3],
                "eos": [1, 0, 1, 1, 0, 1, 1, 1],
            }
            recorder.step(step, **rows)
            guard.step(step, **rows)
            alone.step(step, **rows)
    assert check_log([tmp_path]).exit_code == 0
