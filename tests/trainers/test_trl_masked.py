"""TRL's `mask_truncated_completions` is a setting, not a fault."""

from types import SimpleNamespace

import advantages

import gradebook
from gradebook.logs.log import check_log
from gradebook.trainers.trl import declared


def test_masked_truncated_rows_are_healthy_for_guard_and_check(tmp_path):
    groups = [[1.0, 0.0, 3.0, 5.0], [2.0, 4.0, 0.0, 1.0]]
    rows = {
        "prompt": [0, 0, 0, 0, 1, 1, 1, 1],
        "reward": sum(groups, []),
        "advantage": sum(advantages.grpo(groups), []),
        "length": [3, 0, 2, 5, 0, 4, 4, 3],
        "eos": [1, 0, 1, 1, 0, 1, 1, 1],
    }
    asked = declared(SimpleNamespace(scale_rewards="group"))
    with gradebook.Recorder(tmp_path, declared=asked, strict=True) as recorder:
        recorder.step(0, **rows)
    gradebook.Guard(declared=asked, action="raise").step(0, **rows)
    assert gradebook.Guard(action="warn").step(0, **rows) is None
    assert check_log([tmp_path]).exit_code == 0
