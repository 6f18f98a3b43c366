"""AReaL, OpenRLHF, SkyRL and miles as released: their own advantage functions,
and the recipes of gradebook/trainers/README.md word by word.

Runs in the virtual environment of others.txt; .ci/run makes it.
"""

import re
from collections import UserDict
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import gradebook
from gradebook.logs.log import check_log
from gradebook.measure.cut import Module
from gradebook.measure.package import files_of

README = Path(gradebook.__file__).parent / "trainers" / "README.md"
RECIPES = dict(
    re.findall(r"^## (\w+).*?```python\n(.*?)```", README.read_text(), re.S | re.M)
)
"""Trainer -> its first block of Python in the README."""


def released(package, path, name):
    """A function of an installed package, taken from its file."""
    try:
        release = distribution(package)
    except PackageNotFoundError as error:
        pytest.skip(str(error))
    return Module(path, files_of(release)).cut(name)


def follow(trainer, folder, declared, **variables):
    """Runs a recipe with the trainer's variables; the verdict on what it
    recorded, which is correct. The guard raises if it finds something."""
    guard = gradebook.Guard(declared=declared, action="raise")
    with gradebook.Recorder(folder, declared=declared, strict=True) as record:
        space = {"torch": torch, "recorder": record, "guard": guard}
        exec(RECIPES[trainer], space | variables)
    verdict = check_log([folder])
    assert verdict.verdict == "correct", verdict.sentence
    return verdict


# Three prompts. By hand for the first: 1, 0, 0, 3 have mean 1, and their
# squared distances 0, 1, 1, 4 have the sum 6, so the deviation is root 2.
REWARDS = [[1.0, 0.0, 0.0, 3.0], [0.5, 0.25, 0.75, 2.0], [4.0, 4.0, 1.0, 0.0]]
LENGTHS = [[3, 5, 2, 4], [1, 2, 3, 6], [2, 2, 5, 3]]
ONE_LOST = [(REWARDS[0][:3], LENGTHS[0][:3]), *zip(REWARDS[1:], LENGTHS[1:])]
FIRST = [0.0, -(0.5**0.5), -(0.5**0.5), 2**0.5]


def first_prompt(folder):
    return gradebook.recording(folder).frame()["advantage"].tolist()[:4]


def of_areal(groups, adv_norm=None):
    """What `PPOActor.compute_advantages` returns for groups of rewards."""
    of = released("areal", "areal/utils/data.py", "Normalization")
    actor = "areal/trainer/ppo/actor.py", "PPOActor._compute_advantages"
    compute = released("areal", *actor)
    norm = {"mean_leave1out": False, "std_unbiased": True, "eps": 1e-5}
    norm |= {"mean_level": "group", "std_level": "group", "group_size": 4}
    trainer = compute.trainer(
        "config",
        overlong_reward_penalty=False,
        use_decoupled_loss=False,
        recompute_logprob=False,
        reward_bias=0.0,
        reward_scaling=1.0,
        reward_clip=20.0,
        reward_norm=of.run(SimpleNamespace(**norm)),
        adv_norm=adv_norm and of.run(SimpleNamespace(**norm | adv_norm)),
        kl_ctl=0.1,
        kl_estimator=of.module["KLEstimator"](),
        mask_no_eos_with_zero=False,
        discount=1.0,
        gae_lambda=1.0,
    )
    trajectories = []
    chance = torch.Generator().manual_seed(0)
    for rewards, lengths in groups:
        width = 2 + max(lengths)  # two tokens of the prompt
        token, length = torch.arange(width), torch.tensor(lengths)[:, None]
        shape = (len(rewards), width)
        trajectories.append(
            {
                "input_ids": torch.ones(shape, dtype=torch.int32),
                "attention_mask": token < 2 + length,
                "loss_mask": ((token >= 2) & (token < 2 + length)).int(),
                "logprobs": -torch.rand(shape, generator=chance),
                "ref_logp": -torch.rand(shape, generator=chance),
                "rewards": torch.tensor(rewards),
            }
        )
    batched_call = of.module["batched_call"]
    return batched_call(lambda batch: compute.run(trainer, batch), trajectories)


AREAL = {"estimator": "grpo", "eps": 1e-5, "spread_about": "baseline"}


def of_step(number):
    return SimpleNamespace(engine=SimpleNamespace(get_version=lambda: number))


@pytest.mark.parametrize("adv_norm", [None, {"mean_level": "batch"}])
def test_the_recipe_for_areal_records_its_normalized_rewards(tmp_path, adv_norm):
    result = of_areal(list(zip(REWARDS, LENGTHS)), adv_norm)
    verdict = follow("AReaL", tmp_path, AREAL, result=result, self=of_step(7))
    assert verdict.frame["step"].tolist() == [7]
    assert first_prompt(tmp_path) == pytest.approx(FIRST, abs=1e-4)


def test_areal_1_0_4_cuts_groups_by_position(tmp_path):
    """One rollout of the first prompt is lost: the bug of AReaL issue 1419,
    in the class as released."""
    result = of_areal(ONE_LOST)
    with pytest.raises(gradebook.WrongAdvantages) as error:
        follow("AReaL", tmp_path, AREAL, result=result, self=of_step(0))
    named = gradebook.bug(error.value.finding.bug)
    assert (named.trainer, named.stage) == ("AReaL", "group")


@pytest.mark.parametrize(
    "estimator, declared",
    [
        ("group_norm", {"estimator": "grpo"}),
        ("dr_grpo", {"estimator": "dr_grpo"}),
        ("rloo", {"estimator": "rloo"}),
        (
            "reinforce_baseline",
            {"scale": "none", "whiten_tokens": True, "whiten_ddof": 0},
        ),
    ],
)
def test_the_recipe_for_openrlhf_records_what_it_computes(
    tmp_path, estimator, declared
):
    path = "openrlhf/trainer/ppo_utils/experience_maker.py"
    name = "RemoteExperienceMaker.compute_advantages_and_returns"
    compute = released("openrlhf", path, name)
    trainer = compute.trainer(
        "args strategy rollout reward algo advantage kl_ctl",
        n_samples_per_prompt=4,
        clip_range=None,
        overlong_buffer_len=None,
        stop_properly_penalty_coef=None,
        estimator=estimator,
        advantage_estimator=estimator,
        gamma=1.0,
        no_std_norm=False,
        value=0.0,
    )
    rewards = torch.tensor(REWARDS).flatten()
    lengths = torch.tensor(LENGTHS).flatten()
    experiences = []
    # Micro-batches of five rows and a last one of two, in another order.
    for index in torch.tensor([7, 2, 9, 0, 4, 1, 11, 3, 8, 10, 6, 5]).split(5):
        width = int(lengths[index].max())
        mask = torch.arange(width) < lengths[index][:, None]
        experiences.append(
            SimpleNamespace(
                index=index.tolist(),
                rewards=rewards[index],
                action_mask=mask,
                kl=torch.zeros(mask.shape),
                info={},
            )
        )
    compute.run(trainer, experiences)
    variables = {"experiences": experiences, "self": trainer, "step": 3}
    follow("OpenRLHF", tmp_path, declared, **variables)


@pytest.mark.parametrize(
    "function, by_std, declared",
    [
        ("compute_grpo_outcome_advantage", True, {"estimator": "grpo"}),
        ("compute_grpo_outcome_advantage", False, {"estimator": "dr_grpo"}),
        ("compute_rloo_outcome_advantage", True, {"estimator": "rloo"}),
    ],
)
def test_the_recipe_for_skyrl_records_what_it_computes(
    tmp_path, function, by_std, declared
):
    path = "skyrl/backends/skyrl_train/utils/ppo_utils.py"
    compute = released("skyrl", path, function).run
    rows = 12
    lengths = torch.tensor(LENGTHS).flatten()
    mask = (torch.arange(8) < lengths[:, None]).long()
    rewards = torch.zeros(rows, 8)
    rewards[torch.arange(rows), lengths - 1] = torch.tensor(REWARDS).flatten()
    uids = [f"prompt-{n // 4}" for n in range(rows)]
    # SkyRL pads the batch with copies of its first row.
    data = {
        "rewards": torch.cat([rewards, rewards[:2]]),
        "response_mask": torch.cat([mask, mask[:2]]),
    }
    metadata = {"uids": [*uids, "pad0", "pad1"], "pad_size": 2}
    data["advantages"], _ = compute(
        data["rewards"].clone(),
        data["response_mask"],
        np.array(metadata["uids"]),
        grpo_norm_by_std=by_std,
    )

    batch = UserDict(data)
    batch.metadata = metadata
    trainer = SimpleNamespace(global_step=5)
    verdict = follow("SkyRL", tmp_path, declared, training_input=batch, self=trainer)
    assert verdict.log.rows == rows
    if by_std and "grpo" in function:
        assert first_prompt(tmp_path) == pytest.approx(FIRST, abs=1e-4)


def of_miles(groups, by_std=True):
    """The variables of miles, a fork of slime, after its own
    `_post_process_rewards`, for groups of rewards and lengths."""
    sample = released("miles-rl", "miles/utils/types.py", "Sample").run
    name = "RolloutManager._post_process_rewards"
    process = released("miles-rl", "miles/ray/rollout.py", name)
    trainer = process.trainer(
        "args",
        advantage_estimator="grpo",
        rewards_normalization=True,
        grpo_std_normalization=by_std,
        n_samples_per_prompt=4,
        rollout_batch_size=len(groups),
        reward_key=None,
        custom_reward_post_process_func=None,
        rollout_id=7,
    )
    samples = [
        sample(
            group_index=number,
            response_length=length,
            reward=reward,
            status=sample.Status.COMPLETED,
        )
        for number, (rewards, lengths) in enumerate(groups)
        for reward, length in zip(rewards, lengths)
    ]
    raw_rewards, rewards = process.run(trainer, samples)
    return {
        "self": trainer,
        "samples": samples,
        "raw_rewards": raw_rewards,
        "rewards": rewards,
        "Sample": sample,
    }


@pytest.mark.parametrize("estimator", ["grpo", "dr_grpo"])
def test_the_recipe_for_slime_records_what_miles_computes(tmp_path, estimator):
    variables = of_miles(list(zip(REWARDS, LENGTHS)), by_std=estimator == "grpo")
    verdict = follow("slime", tmp_path, {"estimator": estimator}, **variables)
    assert verdict.frame["step"].tolist() == [7]
    if estimator == "grpo":
        assert first_prompt(tmp_path) == pytest.approx(FIRST, abs=1e-5)


def test_miles_0_0_2_compares_all_rows_if_one_is_lost(tmp_path):
    with pytest.raises(gradebook.WrongAdvantages) as error:
        follow("slime", tmp_path, {"estimator": "grpo"}, **of_miles(ONE_LOST))
    finding = error.value.finding
    assert finding.verdict == "other"
    assert gradebook.bug("whole_batch").title in finding.sentence
