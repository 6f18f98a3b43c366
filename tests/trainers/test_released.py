"""Adapters, measurements and the shipped table, against outputs that were
measured elsewhere (golden/trainers.json.gz)."""

import gzip
import json
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import gradebook
from gradebook.trainers.adapters import adapters
from gradebook.trainers.computations import fitting, flat
from gradebook.trainers.cut import Module, NotCut
from gradebook.trainers.measure import lines, pinned
from gradebook.trainers.releases import measured, newest

GOLDEN = Path(__file__).parents[1] / "golden" / "trainers.json.gz"
PACKAGES = [adapter.package for adapter in adapters()]

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


def trainer(text):
    return Module("trainer.py", {"trainer.py": text}.get, {})


def outputs():
    """Function of a release -> batch -> rewards and advantages, of those
    golden outputs that are numbers, of one reward function in float32."""
    found = defaultdict(dict)
    for line in json.loads(gzip.decompress(GOLDEN.read_bytes())):
        plain = "functions" not in line["probe"] and "bfloat16" not in line["probe"]
        if plain and line.get("output"):
            known = [one for group in line["output"] for one in group]
            if None not in known:
                key = line["package"], line["version"], line["function"]
                pair = line["rewards"], line["output"]
                found[key][line["probe"]] = pair
    return found


def test_a_function_is_cut_by_name_with_what_it_names_and_no_import():
    run, line = trainer(TRAINER).method("advantages")
    assert line == 11
    import torch

    # The mean of 1 and 3 is 2, their deviation root 2.
    found = run(torch.tensor([1.0, 3.0]), 2).tolist()
    assert found == pytest.approx([-1 / (2**0.5 + 1e-4), 1 / (2**0.5 + 1e-4)])
    with pytest.raises(NotCut, match="has no other"):
        trainer(TRAINER).method("other")


def test_statements_are_cut_between_two_names():
    import torch

    run, line = trainer(TRAINER).statements(".step", "rewards", "local")
    assert line == 21
    rewards = torch.tensor([1.0, 3.0])
    assert run(rewards=rewards)["advantages"].tolist() == [-1, 1]
    with pytest.raises(NotCut):
        trainer(TRAINER).statements(".step", "rewards", "elsewhere")


def test_one_changed_line_of_a_trainer_changes_the_table():
    """A release of Cosmos-RL that was never made, with the lines that matter."""
    path = "cosmos_rl/dispatcher/algo/grpo.py"
    text = """
import numpy as np
class GRPO:
    def compute_advantage(self, rewards):
        rewards = np.array(rewards).astype(np.float32)
        if self.unbiased:
            return (rewards - rewards.mean()).tolist()
        return ((rewards - rewards.mean()) / (rewards.std() + 1e-6)).tolist()
"""

    def table(own):
        files = {path: own}.get
        found = lines("cosmos-rl", "9.9", files, "2026-01-01")
        return {line["setting"]: line for line in found}

    first = table(text)["grpo, unbiased=False"]
    assert (first["ddof"], first["eps"]) == ("0", "1e-06")
    assert first["file"] == f"{path}:4"
    for old, new, name, value in (
        ("1e-6", "1e-8", "eps", "1e-08"),
        (".std()", ".std(ddof=1)", "ddof", "1"),
        ("/ (rewards.std() + 1e-6)", "* 1.0", "scale", "none"),
    ):
        changed = table(text.replace(old, new))["grpo, unbiased=False"]
        assert changed[name] == value
    assert table("import numpy as np") == {}, "what cannot be cut is not measured"


def test_the_table_has_the_newest_pinned_release_of_every_trainer():
    assert len(PACKAGES) >= 17 and set(PACKAGES) == set(pinned())
    for line in newest():
        assert line["version"] == list(pinned()[line["package"]]["versions"])[-1]
    assert {line["package"] for line in newest()} == set(PACKAGES)
    table = gradebook.releases()
    assert len(table) == len(measured()) and {"flat", "bugs"} <= set(table.columns)


def found_in(package, setting):
    (line,) = (
        x for x in newest() if (x["package"], x["setting"]) == (package, setting)
    )
    return line


def test_the_findings_that_were_checked_by_hand_are_in_the_table():
    """AReaL 1.0.4 `data.py:1424`; OpenRLHF 0.11.2's flat group of 0.7; miles
    0.0.2 `rollout.py:651`; ms-swift 4.6.0 `advantage.py:58`."""
    areal = found_in("areal", "group mean, group std")
    assert list(areal["bugs"]) == ["partial_groups"] and areal["eps"] == "1e-05"
    openrlhf = found_in("openrlhf", "group_norm")
    assert list(openrlhf["bugs"]) == ["float32_dust"] and openrlhf["eps"] == "1e-09"
    dust = openrlhf["bugs"]["float32_dust"]["advantages"]
    assert max(abs(a) for group in dust for a in group) > 50
    miles = found_in("miles-rl", "grpo, grpo_std_normalization=True")
    assert "whole_batch" in miles["bugs"] and miles["ragged"] == "by position"
    swift = found_in("ms-swift", "grpo, scale_rewards=group")
    missing = swift["bugs"]["unscored_rows"]
    assert missing["rewards"][0] == [-1, -1, -1, None]
    assert missing["advantages"][0] == pytest.approx([-0.5, -0.5, -0.5, 1.5], abs=1e-3)
    unsloth = found_in("unsloth-zoo", "mlx grpo, scale_rewards=group")
    assert list(unsloth["bugs"]) == ["unscored_rows"]
    worker, batch = (
        found_in("trl", "async_grpo"),
        found_in("trl", "grpo, scale_rewards=group"),
    )
    assert (worker["ddof"], worker["eps"]) == ("0", "1e-08")
    assert (batch["ddof"], batch["eps"]) == ("1", "0.0001")


def test_every_function_of_the_golden_outputs_is_a_known_computation():
    """And the same that the shipped table says, where it has the release."""
    shipped = {
        (x["package"], x["version"], x["setting"]): x["computes"] for x in measured()
    }
    compared, unknown, differing = 0, [], []
    for (package, version, function), answers in outputs().items():
        whole = ("equal", "equal8", "binary", "near 100", "tiny 1e-3", "tiny 1e-6")
        names = {"tiny 1e-3": "near 0.001", "tiny 1e-6": "near 0.000001"}
        told = {names.get(n, n): answers[n] for n in whole if n in answers}
        found = fitting(told)
        if found is None:
            unknown.append(f"{package} {version} {function}")
            continue
        setting = re.search(r"\[(.*)\]$", function)[1]
        own = shipped.get((package, version, setting))
        compared += own is not None
        if own is not None and own != found.text:
            differing.append(f"{package} {version} {function}: {own}; {found.text}")
    # Its variance has a floor of 1e-6, which near 0.001 is no eps.
    floored = "verl 0.7.0 compute_grpo_vectorized_outcome_advantage [grpo_vectorized]"
    assert unknown == [floored] and not differing
    assert compared > 20


def test_golden_flat_groups_agree_with_the_shipped_law():
    """A law is not called broken that the numbers keep, nor the reverse."""
    shipped = {(x["package"], x["version"], x["setting"]): x for x in measured()}
    compared = 0
    for (package, version, function), answers in outputs().items():
        setting = re.search(r"\[(.*)\]$", function)[1]
        line = shipped.get((package, version, setting))
        pair = answers.get("flat 0.7 x12")
        if (
            line is None
            or pair is None
            or line["laws"]["flat"]
            not in (
                "holds",
                "broken",
            )
        ):
            continue
        moved = max(map(abs, pair[1][0])) > 1e-5
        if moved:
            assert line["laws"]["flat"] == "broken", (package, version, setting)
        compared += 1
    assert compared > 10


ROUNDED = 4 * 2**-23
"""Of a batch's largest advantage. A processor may round a square root the other
way: one unit in the last place of a float32, which the division and a second
normalization double each. Another eps or ddof moves advantages further."""


def same(left, right):
    """Equal but for how a processor rounds a square root, as lists by row; None
    is NaN."""
    largest = max((abs(one) for one in left if one is not None), default=0)
    return all(
        math.isnan(b) if a is None else abs(a - b) <= ROUNDED * largest
        for a, b in zip(left, right, strict=True)
    )


def test_a_square_root_may_round_otherwise_but_no_convention_may_differ():
    def advantages(ddof, eps, ulps=0):
        rewards = np.array([1, 0, 0, 1, 1, 0, 1, 1], dtype=np.float32)
        root = rewards.std(ddof=ddof)
        root += ulps * np.spacing(root)
        return ((rewards - rewards.mean()) / (root + np.float32(eps))).tolist()

    usual = advantages(1, 1e-6)
    assert same(usual, advantages(1, 1e-6, 1)) and same(usual, advantages(1, 1e-6, -1))
    for other in ((0, 1e-6), (1, 1e-5), (1, 1e-8)):
        assert not same(usual, advantages(*other)), other
    assert same([None, 0.5], [math.nan, 0.5]) and not same([0.5], [math.nan])


# A trainer's own warnings, of a deviation of one row for example, are no errors.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_the_newest_release_measured_again_is_as_shipped(package, tmp_path):
    """Fetches the wheel; where the index cannot be reached, it says so."""
    from gradebook.trainers.measure import differences, fetch, in_wheel

    version = list(pinned()[package]["versions"])[-1]
    try:
        wheel = fetch(package, version, tmp_path)
    except OSError as error:
        pytest.skip(f"not measured again: {error}")
    files = in_wheel(wheel)
    release = list(lines(package, version, files, "today"))
    assert release and not differences(release, measured())
    (adapter,) = (one for one in adapters() if one.package == package)
    for line in json.loads(gzip.decompress(GOLDEN.read_bytes())):
        if (line["package"], line["version"]) != (package, version):
            continue
        if not line.get("output") or "bfloat16" in line["call"]:
            continue
        setting = re.search(r"\[(.*)\]$", line["function"])[1]
        (function,) = (
            one
            for one in adapter.functions
            if one.setting == setting and cuts(one, files, version)
        )
        weights = re.search(r"weights (\[.*?\])", line["call"])
        own = function.run(
            function.cut(files, version),
            line["rewards"],
            json.loads(weights[1]) if weights else None,
        )
        assert same(flat(line["output"]), flat(own)), (setting, line["probe"])


def cuts(function, files, version):
    try:
        return function.cut(files, version)
    except NotCut:
        return None
