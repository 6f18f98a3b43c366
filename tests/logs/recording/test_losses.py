"""What a recording says of its loss: a turned KL, one without a gradient, and an anchor
that moves; and that a healthy run says nothing."""

import pytest
import torch

import gradebook
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError
from gradebook.logs.judging.of_loss import turned
from gradebook.logs.log import check_log
from gradebook.logs.recorder import ARGUMENTS, Recorder
from gradebook.logs.recording import recording

DECLARED = {"estimator": "dr_grpo", "beta": 0.4, "loss": "dapo", "skip_flat": "never"}
STEPS = 3


def rollouts(step, rewards=(1.0, 0.0, 1.0, 1.0)):
    """Two prompts of two rollouts, two tokens each; the policy has left the
    reference."""
    luck = torch.Generator().manual_seed(step)
    logp = -0.5 - torch.rand(4, 2, generator=luck, dtype=torch.float64)
    away = torch.rand(4, 2, generator=luck, dtype=torch.float64) - 0.4
    return {
        "prompt": [0, 0, 1, 1],
        "reward": [reward + step * bool(reward) for reward in rewards],
        "mask": [[1, 1], [1, 1], [1, 1], [1, 0]],
        "logp": logp,
        "ref_logp": logp + away,
    }


def checked(folder, engine=gradebook.CORRECT, rewards=(1.0, 0.0, 1.0, 1.0), **settings):
    """The sentence about a run that a trainer with this engine recorded."""
    asked = gradebook.Settings(
        **{**gradebook.ESTIMATORS["dr_grpo"], "beta": 0.4, "skip_flat": "never"}
        | settings
    )
    with Recorder(folder, declared=DECLARED, strict=True) as recorder:
        for step in range(STEPS):
            rows = rollouts(step, rewards)
            trace = gradebook.run(engine, gradebook.Batch(**rows, settings=asked))
            recorder.step(
                step,
                **rows,
                advantage=trace.advantage,
                loss=trace.loss,
                policy_loss=trace.policy_loss.sum(),
                grad_norm=trace.gradient.norm(),
            )
    return check_log([folder]).sentence


TURNED = "The KL is subtracted from the loss"
FROZEN = "The KL has no gradient"


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
@pytest.mark.parametrize("loss", ["dapo", "grpo"])
def test_loss_and_policy_part_show_a_subtracted_kl(tmp_path, estimator, loss):
    how = {"kl_estimator": estimator, "loss": loss}
    assert TURNED not in checked(tmp_path / "correct", **how)
    engine = gradebook.bug("kl_sign").engine
    sentence = checked(tmp_path / "faulty", engine, **how)
    # Beta is 0.4. If the estimator and the sum are not the declared ones, several
    # fit by a constant more.
    assert TURNED in sentence
    assert "−0.4 times the KL" in sentence or (estimator, loss) != ("k3", "dapo")


def test_a_step_whose_kl_was_cut_off_says_nothing_about_beta():
    """One token of two is away from the reference. Its k3 is e - 2 = 0.71828 at a gap
    of 1, 1 / e = 0.36788 at -1, and e^4 - 5 = 49.6 at 4, which verl cuts off at 10.
    The loss is 1 less 0.4 times the mean of both tokens' k3."""
    ones = torch.ones(2, 1, dtype=torch.float64).numpy()
    steps = [
        {
            "prompt": [0, 0],
            "reward": [0.0, 1.0],
            "mask": ones > 0,
            "logp": -ones,
            "ref_logp": -ones + [[gap], [0]],
            "policy_loss": 1.0,
            "loss": 1 - 0.4 * k3 / 2,
        }
        for gap, k3 in ((1, 0.7182818), (-1, 0.3678794), (4, 10))
    ]
    declared = gradebook.Settings(baseline="group_mean", skip_flat="never")
    assert turned(steps, declared) == (
        "The KL is subtracted from the loss: in 2 steps the loss less its policy part"
        " is −0.4 times the KL (k3, summed as dapo does), and no beta is below 0."
    )


def test_a_step_without_advantages_shows_a_kl_without_a_gradient(tmp_path):
    flat, engine = (1.0, 1.0, 1.0, 1.0), gradebook.bug("frozen_kl").engine
    assert FROZEN not in checked(tmp_path / "correct", rewards=flat)
    assert FROZEN in checked(tmp_path / "faulty", engine, rewards=flat)
    assert FROZEN not in checked(tmp_path / "varied", engine)  # advantages act there


@pytest.mark.parametrize("moves", [True, False])
def test_mini_batches_show_an_anchor_that_moves(tmp_path, moves):
    with Recorder(tmp_path, strict=True) as recorder:
        for step in range(STEPS):
            rows = rollouts(step)
            del rows["ref_logp"]
            old = rows["logp"].clone()
            # The second mini-batch comes after an optimizer's step.
            old[2:] += 0.0 if moves else 0.01
            more = {"old_logp": old, "mini_batch": [0, 0, 1, 1]}
            recorder.step(step, **rows, **more, advantage=[0.5, -0.5, 0, 0])
    assert ("The ratio's anchor moves" in check_log([tmp_path]).sentence) == moves


def test_every_column_of_a_batch_is_recorded_and_read_back(tmp_path):
    assert {*COLUMNS} - {*ARGUMENTS} == {"step"}
    rows = rollouts(0)
    more = {"value": rows["logp"] * 2, "behaviour_logp": rows["logp"] - 1}
    others = {"old_logp": rows["logp"], "generation": [5, 5, 6, 6], "extent": [2] * 4}
    with Recorder(tmp_path, strict=True) as recorder:
        recorder.step(0, **rows, **more, **others, advantage=[0.5, -0.5, 0, 0], loss=1)
    (step,) = recording([tmp_path]).losses()
    for name in ("logp", "ref_logp"):
        assert step[name].tolist() == rows[name].tolist()
    assert step["value"].tolist() == more["value"].tolist()
    assert step["behaviour_logp"].tolist() == more["behaviour_logp"].tolist()
    assert step["mask"].tolist()[3] == [True, False]
    assert step["generation"].tolist() == [5, 5, 6, 6] and step["loss"] == 1.0
    assert step["extent"].tolist() == [2] * 4 and step["policy_loss"] is None


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"mask": None}, "logp.*a mask"),
        ({"logp": torch.zeros(4, 3)}, "logp.*mask's shape"),
        ({"loss": [1.0, 2.0]}, "loss.*one number"),
    ],
)
def test_what_cannot_be_recorded_names_its_argument(tmp_path, wrong, says):
    rows = rollouts(0) | {"advantage": [0.5, -0.5, 0, 0]} | wrong
    recorder = Recorder(tmp_path, strict=True)
    with recorder, pytest.raises(GradebookError, match=says):
        recorder.step(0, **rows)
