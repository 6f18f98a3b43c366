"""Adapters, measurements and the shipped table, against outputs that were
measured elsewhere (golden/trainers.json.gz)."""

import gzip
import json
import math
import re
from collections import defaultdict
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

import pytest
import torch

import gradebook
from gradebook.__main__ import main
from gradebook.measure import calls
from gradebook.measure.adapters import ADAPTERS
from gradebook.measure.cut import Module, NotCut
from gradebook.measure.package import files_of, lines
from gradebook.measure.wheels import differences, fetch, pinned
from gradebook.trainers import releases
from gradebook.trainers.child import flat
from gradebook.trainers.releases import measured, newest

GOLDEN = Path(__file__).parents[1] / "golden" / "trainers.json.gz"
PACKAGES = [package for _, package in ADAPTERS]

TRAINER = """
import torch
from somewhere import nothing

LARGE = 2.0

def half(x: nothing.Type) -> "Tensor":
    return x / LARGE

@nothing.register("grpo")
def advantages(rewards, size, eps=1e-4):
    logger.info("never seen")
    groups = rewards.view(-1, size)
    mean = groups.mean(1, keepdim=True)
    std = groups.std(1, keepdim=True)
    return half(2 * (groups - mean) / (std + eps)).flatten()

class Trainer:
    def step(self, inputs):
        rewards = self.score(inputs)
        mean = rewards.mean()
        advantages = rewards - mean
        local = slice(0, 1)
        return advantages[local]
"""


COSMOS_RL = """
import numpy as np
import not_installed_anywhere
class GRPO:
    def compute_advantage(self, rewards):
        rewards = np.array(rewards).astype(np.float32)
        if self.unbiased:
            return (rewards - rewards.mean()).tolist()
        return ((rewards - rewards.mean()) / (rewards.std() + 1e-6)).tolist()
"""

MODULE = Module("trainer.py", {"trainer.py": TRAINER}.get)


def golden():
    """Lines of the golden file, each with its `setting`."""
    for line in json.loads(gzip.decompress(GOLDEN.read_bytes())):
        yield line | {"setting": re.search(r"\[(.*)\]$", line["function"])[1]}


def outputs():
    """Function of a release -> pairs of rewards and advantages, or the error that
    it raised; float32 rewards of one function."""
    answers = defaultdict(list)
    for line in golden():
        if "functions" not in line["probe"] and "bfloat16" not in line["probe"]:
            key = line["package"], line["version"], line["setting"]
            answers[key].append((line["rewards"], line.get("output") or line["error"]))
    return answers


def test_a_law_that_is_newer_than_the_data_is_not_measured(monkeypatch):
    monkeypatch.setattr(releases, "LAWS", (*releases.LAWS, "doubling"))
    lines = releases.measured.__wrapped__()
    assert {line["laws"]["doubling"] for line in lines} == {"not measured"}
    assert lines[0]["laws"]["order"] == "holds"


def test_a_function_is_cut_by_name_with_what_it_names_and_no_import():
    cut = MODULE.cut("advantages")
    assert cut.where == "trainer.py:11"
    # The mean of 1 and 3 is 2, their deviation root 2.
    advantages = cut.run(torch.tensor([1.0, 3.0]), 2).tolist()
    assert advantages == pytest.approx([-1 / (2**0.5 + 1e-4), 1 / (2**0.5 + 1e-4)])
    with pytest.raises(NotCut, match="has no other"):
        MODULE.cut("other")


def test_statements_are_cut_between_two_names():
    cut = MODULE.cut(".step", "rewards", "local")
    assert cut.where == "trainer.py:21"
    rewards = torch.tensor([1.0, 3.0])
    assert cut.run(rewards=rewards)["advantages"].tolist() == [-1, 1]
    with pytest.raises(NotCut):
        MODULE.cut(".step", "rewards", "elsewhere")


def test_the_command_probes_an_installed_trainer(tmp_path, capsys, monkeypatch):
    about = tmp_path / "cosmos_rl-9.9.dist-info" / "METADATA"
    code = tmp_path / "cosmos_rl/dispatcher/algo/grpo.py"
    for file in (about, code):
        file.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: cosmos-rl\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(tmp_path)
    code.write_text(COSMOS_RL)
    assert main(["probe", "--trainer", "Cosmos-RL", "--format", "json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    place = "cosmos-rl 9.9 cosmos_rl/dispatcher/algo/grpo.py:5"
    biased = f"{place} [grpo, unbiased=False]"
    assert [*answers] == [biased, f"{place} [grpo, unbiased=True]"]
    assert answers[biased]["convention"]["eps"] == "1e-06"
    code.write_text("import numpy as np")
    assert main(["probe", "--trainer", "cosmos-rl"]) == 2
    assert main(["probe", "--trainer", "SkyRL"]) == 2
    assert capsys.readouterr().err.count("a known, installed release of") == 2


@pytest.mark.long
def test_one_changed_line_of_a_trainer_changes_the_table():
    path = "cosmos_rl/dispatcher/algo/grpo.py"

    def table(text):
        release = lines("cosmos-rl", "9.9", {path: text}.get, "2026-01-01")
        return {line["setting"]: line for line in release}

    first = table(COSMOS_RL)["grpo, unbiased=False"]
    assert (first["ddof"], first["eps"]) == ("0", "1e-06")
    assert first["file"] == f"{path}:5"
    for old, new, name, value in (
        ("1e-6", "1e-8", "eps", "1e-08"),
        (".std()", ".std(ddof=1)", "ddof", "1"),
        ("/ (rewards.std() + 1e-6)", "* 1.0", "scale", "none"),
    ):
        changed = table(COSMOS_RL.replace(old, new))["grpo, unbiased=False"]
        assert changed[name] == value
    assert table("import numpy as np") == {}, "what cannot be cut is not measured"
    raises = COSMOS_RL.replace("rewards = np", "raise ValueError; rewards = np")
    silent = table(raises)
    assert silent == {}, "nor is what answers no batch"


def test_the_table_has_the_newest_pinned_release_of_every_trainer():
    assert len(PACKAGES) >= 17 and set(PACKAGES) == set(pinned())
    for line in newest():
        assert line["version"] == list(pinned()[line["package"]]["versions"])[-1]
    assert {line["package"] for line in newest()} == set(PACKAGES)
    table = gradebook.releases()
    names = (
        "trainer package version file function setting reached default computes"
        " baseline scale ddof eps lone_row missing float_type ragged order"
        " other_prompts shift law_scale zero_sum flat lost_row law_missing rising bugs"
        " license measured_on"
    )
    assert len(table) == len(measured()) and list(table) == names.split()
    assert {"group_std", "none"} <= set(table["scale"]), "the setting, not the law"
    assert {"holds", "by convention"} <= set(table["law_scale"])
    assert "counts as 0" in set(table["missing"])


def shipped(*key):
    (line,) = (
        line
        for line in measured()
        if (line["package"], line["version"], line["setting"]) == key
    )
    return line


@pytest.mark.parametrize(
    "key, bugs, convention",
    [
        # AReaL 1.0.4 `data.py:1424`, miles 0.0.2 `rollout.py:651`.
        (("areal", "1.0.4", "group mean, group std"), ["partial_groups"], {}),
        (
            *(("openrlhf", "0.10.2", "group_norm"), ["float32_dust"]),
            {"baseline": "group_mean", "scale": "group_std", "eps": "1e-09"},
        ),
        (
            ("miles-rl", "0.0.2", "grpo, grpo_std_normalization=False"),
            *(["whole_batch"], {"ragged": "one group for all"}),
        ),
        (
            ("ms-swift", "4.5.3", "grpo, scale_rewards=none"),
            *(["unscored_rows"], {"missing": "counts as 0"}),
        ),
        (
            *(("trl", "1.16.0", "async_grpo"), []),
            {"ddof": "0", "eps": "1e-08", "float_type": "float64"},
        ),
    ],
)
def test_findings_that_were_checked_by_hand_are_in_the_table(key, bugs, convention):
    judged, line = gradebook.probe(outputs=outputs()[key]), shipped(*key)
    assert list(judged.bugs) == bugs and {*bugs} <= {*line["bugs"]}
    assert convention.items() <= judged.convention.items()
    assert convention.items() <= line.items()


def test_the_batches_of_the_table_show_their_bugs():
    dust = shipped("openrlhf", "0.11.2", "group_norm")["bugs"]["float32_dust"]
    assert max(map(abs, flat(dust["advantages"]))) > 0.5
    release = shipped("ms-swift", "4.6.0", "grpo, scale_rewards=none")
    shown = release["bugs"]["unscored_rows"]
    group, advantages = shown["rewards"][0], shown["advantages"][0]
    mean = sum(r or 0 for r in group) / len(group)
    assert advantages == pytest.approx([(r or 0) - mean for r in group], abs=1e-5)


TRL = "group_mean group_std 1 0.0001"
VERL = "group_mean group_std 1 1e-06"
DUE = {
    ("trl", "grpo, scale_rewards=batch"): "group_mean batch_std 1 0.0001",
    ("trl", "rloo, normalize_advantages"): "leave_one_out advantage_std 1 0.0001",
    ("trl", "async_grpo"): "group_mean group_std 0 1e-08",
    ("verl", "gpg"): "group_mean nonzero_share",
    ("verl", "grpo_passk"): "second_best group_std 1 1e-06",
    ("openrlhf", "group_norm"): "group_mean group_std 1 1e-09",
    ("openrlhf", "reinforce_baseline"): "group_mean advantage_std 0 0.0001 at least",
    ("ms-swift", "grpo, scale_rewards=batch"): "group_mean batch_std 1 0.0001",
    ("ms-swift", "reinforce_plus_plus, scale_rewards=batch"): (
        "group_mean advantage_std 1 0.0001"
    ),
    ("ms-swift", "grpo, scale_rewards=gdpo"): "group_mean group_std 1 1e-08",
    ("areal", "group mean, group std"): "group_mean group_std 1 1e-05",
    ("areal", "leave one out, group std"): "leave_one_out group_std 1 1e-05",
    ("areal", "group mean, batch std"): "group_mean advantage_std 1 1e-05",
    ("areal", "batch mean, batch std (NormConfig's defaults)"): (
        "batch_mean batch_std 1 1e-05"
    ),
    ("skyrl", "maxrl"): "group_mean group_mean 1e-06",
    ("skyrl", "skyrl-agent tinker grpo"): "group_mean advantage_std 0 1e-08",
    ("oat-llm", "grpo"): "group_mean group_std 1 1e-08",
    ("oat-llm", "grpo (run_math_rl)"): "group_mean group_std 1 1e-08",
    ("openpipe-art", "local backend"): "group_mean group_std 0 1e-06",
    ("openpipe-art", "tinker_native backend"): "group_mean group_std 0 0",
    ("unsloth-zoo", "mlx grpo, scale_rewards=batch"): "group_mean batch_std 1 0.0001",
    ("cosmos-rl", "grpo, unbiased=False"): "group_mean group_std 0 1e-06",
    ("cosmos-rl", "grpo, unbiased=True"): "group_mean none",
}
"""Baseline, scale, ddof and eps by package and setting. Others: as verl has
grpo (eps 1e-4 in TRL, ms-swift, Unsloth and torchtune); the baseline alone."""

ODD = {
    # `scale_rewards="group"` was taken for false there, "batch" for true.
    ("trl", "0.22.0", "grpo, scale_rewards=group"): "group_mean none",
    ("trl", "0.22.0", "grpo, scale_rewards=batch"): TRL,
    ("trl", "0.22.1", "grpo, scale_rewards=batch"): TRL,
    # Before 0.7.1 OpenRLHF whitened elsewhere.
    ("openrlhf", "0.7.0", "reinforce_baseline"): "group_mean none",
    # 1 0 0 1 gets .866025: half over .577350, whose ddof is 1; with ddof 0 it is 1.
    ("openpipe-art", "0.5.18", "tinker_native backend"): "group_mean group_std 1 0",
    # 1 0 0 1 gets .865875: half over .577350 + 1e-4; with 1e-6 it is .866024.
    ("google-tunix", "0.1.0", "grpo"): TRL,
    ("google-tunix", "0.1.6", "grpo"): TRL,
}


OF_TRL = ("trl", "ms-swift", "unsloth-zoo", "torchtune")


def due(package, version, setting):
    odd = ODD.get((package, version, setting)) or DUE.get((package, setting))
    if odd:
        return odd
    if "rloo" in setting or setting.startswith("leave one out, no"):
        return "leave_one_out none"
    plain = ("no std", "none", "False", "drgrpo", "dr_grpo")
    others = ("opo", "reinforce_plus_plus_baseline", "compute_advantages")
    if setting in others or any(word in setting for word in plain):
        return "group_mean none"
    return TRL if package in OF_TRL else VERL


def named(judged):
    names = ("baseline", "scale", "ddof", "eps")
    return " ".join(filter(None, (judged.convention[name] for name in names)))


@pytest.mark.long
@pytest.mark.parametrize("package", sorted({key[0] for key in outputs()}))
def test_the_convention_of_every_golden_function_is_named_and_laws_agree(package):
    """No law is called broken that the numbers keep, none kept that they
    break: by arithmetic on the outputs, without the laws' own code."""
    of_package = {key: pairs for key, pairs in outputs().items() if key[0] == package}
    for key, pairs in of_package.items():
        judged = gradebook.probe(outputs=pairs)
        numbers = [(r, a) for r, a in pairs if not isinstance(a, str)]
        finite = [pair for pair in numbers if None not in flat(pair[1])]
        assert named(judged) == due(*key), key
        laws, refuses = judged.laws, "refused" in judged.convention["ragged"]
        complete = [p for p in finite if None not in flat(p[0])]
        if refuses:  # then unequal groups that happen to divide are not judged
            complete = [p for p in complete if len({*map(len, p[0])}) == 1]
        groups = [pair for rewards, a in complete for pair in zip(rewards, a)]
        flat_groups = [a for r, a in groups if len({*r}) == 1 < len(r)]
        dust = max((abs(x) for a in flat_groups for x in a), default=0)
        assert laws["flat"] != "broken" or dust > 1e-6, key
        assert laws["flat"] != "holds" or dust < 1e-4, key
        sums = [abs(sum(a)) for r, a in groups if len(r) > 1 and len({*r}) > 1]
        assert laws["zero_sum"] != "broken" or max(sums) > 1e-6, key
        assert laws["zero_sum"] != "holds" or max(sums) < 1e-2, key
        gets = [
            x
            for rewards, a in finite
            for r, x in zip(flat(rewards), flat(a))
            if r is None
        ]
        # A second normalization leaves 2e-8, which is float32's rounding.
        assert laws["missing"] != "holds" or max(map(abs, gets), default=0) < 1e-6, key
        assert ("unscored_rows" in judged.bugs) == (
            judged.convention["missing"] == "counts as 0"
        ), key
        floored = key == ("verl", "0.7.0", "grpo_vectorized")
        assert ("variance_floor" in judged.bugs) == floored, key


ROUNDED = 4 * 2**-23
"""Of a batch's largest advantage. A processor may round a square root the other
way: one unit in the last place of a float32, which the division and a second
normalization double each. Another eps or ddof moves advantages further."""


# A trainer's own warnings, of a deviation of one row for example, are no errors.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_the_newest_release_measured_again_is_as_shipped(package, tmp_path):
    version = list(pinned()[package]["versions"])[-1]
    try:
        (wheel,) = distributions(path=[str(fetch(package, version, tmp_path))])
    except OSError as error:
        pytest.skip(f"not measured again: {error}")
    files = files_of(wheel)
    release = list(lines(package, version, files, "today"))
    assert release and not differences(release, measured())
    cuts = {}
    for function in ADAPTERS[release[0]["trainer"], package]:
        with suppress(NotCut):
            cuts[function.setting] = function, function.cut(files, version)
    for line in golden():
        if (line["package"], line["version"]) != (package, version):
            continue
        if not line.get("output"):
            continue
        function, cut = cuts[line["setting"]]
        weights = re.search(r"weights (\[.*?\])", line["call"])
        advantages = function.run(
            cut,
            line["rewards"],
            json.loads(weights[1]) if weights else None,
            torch.bfloat16 if "bfloat16" in line["call"] else torch.float32,
        )
        due = [math.nan if a is None else a for a in flat(line["output"])]
        off = ROUNDED * max((abs(a) for a in due if a == a), default=0)
        assert flat(advantages) == pytest.approx(due, rel=0, abs=off, nan_ok=True)


def opo(mask_counts):
    """OPO as a trainer might write it; without lengths it is the plain mean."""
    return f"""
import torch

def compute_opo_outcome_advantage(token_level_rewards, response_mask, index, **rest):
    score = token_level_rewards.sum(-1)
    advantage = torch.zeros(response_mask.shape)
    weight = response_mask.sum(-1) if {mask_counts} else torch.ones(len(score))
    for prompt in set(index):
        rows = torch.tensor(index == prompt)
        mean = (weight[rows] * score[rows]).sum() / weight[rows].sum()
        advantage[rows] = (score[rows] - mean)[:, None] * response_mask[rows]
    return advantage, advantage
"""


@pytest.mark.parametrize("counts, named", [(True, "OPO"), (False, "Dr. GRPO")])
def test_rows_of_two_lengths_show_an_estimator_that_weights_by_length(
    monkeypatch, counts, named
):
    """With rows of one length both give the same numbers."""
    function = calls.verl("opo", {"estimator": "opo"})
    monkeypatch.setitem(ADAPTERS, ("verl", "verl"), (function,))
    text = {"verl/trainer/ppo/core_algos.py": opo(counts)}
    (line,) = lines("verl", "1.0", text.get, "2026-11-27")
    assert line["computes"] == named
