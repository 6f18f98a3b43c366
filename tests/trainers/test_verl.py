"""verl's own GRPO function, recorded and guarded as the recipe says.

Runs in the virtual environment of verl.txt; .ci/run makes it.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

verl = pytest.importorskip("verl")
pytestmark = pytest.mark.filterwarnings("default")

import torch  # noqa: E402
from verl.trainer.ppo.core_algos import (  # noqa: E402
    compute_grpo_outcome_advantage,
)

import gradebook  # noqa: E402
from gradebook.logs.log import check_log  # noqa: E402

README = Path(gradebook.__file__).parent / "trainers" / "README.md"
(RECIPE,) = re.findall(
    r"^## verl\n.*?```python\n(.*?)```", README.read_text(), re.S | re.M
)


def follow(step, batch, **watching):
    """Runs the recipe with the trainer's variables."""
    trainer = SimpleNamespace(global_steps=step)
    exec(RECIPE, {"batch": batch, "self": trainer, **watching})


def data(by_std=True, rejected=False):
    """What verl's trainer holds after `compute_advantage`: the tensors of
    DataProto.batch, and uid of DataProto.non_tensor_batch."""
    chance = torch.Generator().manual_seed(0)
    rows, width = 16, 8
    length = torch.randint(2, width, (rows, 1), generator=chance)
    mask = (torch.arange(width) < length).long()
    scores = torch.zeros(rows, width)
    last = (length - 1).long()
    scores.scatter_(1, last, torch.rand(rows, 1, generator=chance))
    if rejected:
        mask[3] = 0
    uid = np.repeat([f"uid-{n}" for n in range(rows // 4)], 4).astype(object)
    advantages, _ = compute_grpo_outcome_advantage(
        scores.clone(), mask, uid, norm_adv_by_std_in_grpo=by_std
    )
    batch = {
        "token_level_rewards": scores,
        "response_mask": mask,
        "advantages": advantages,
    }
    return SimpleNamespace(batch=batch, non_tensor_batch={"uid": uid})


@pytest.mark.parametrize(
    "by_std, declared",
    [(True, {"estimator": "grpo"}), (False, {"estimator": "dr_grpo"})],
)
def test_the_recipe_records_what_verl_computes(tmp_path, by_std, declared):
    batch = data(by_std)
    guard = gradebook.Guard(declared=declared, action="raise")
    with gradebook.Recorder(tmp_path, declared=declared, strict=True) as recorder:
        for step in range(3):
            follow(step, batch, guard=guard, recorder=recorder)
    verdict = check_log([tmp_path])
    assert verdict.verdict == "correct", verdict.sentence


def test_verl_compares_with_rows_that_were_rejected():
    """The bug that verl PR 6452 is about, in the function as released. The
    empty row must hold a reward that moves its siblings."""
    batch = data(rejected=True)
    declared = {"estimator": "grpo", "counts": "length"}
    guard = gradebook.Guard(declared=declared, action="raise")
    with pytest.raises(gradebook.WrongAdvantages) as error:
        follow(0, batch, guard=guard, recorder=MagicMock())
    named = gradebook.bug(error.value.finding.bug)
    assert named.trainer == "verl" and "tokens" in named.drops
