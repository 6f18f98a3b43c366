"""Each bug is one stage swapped, in as few lines as the fault needs."""

import inspect
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

import gradebook
from gradebook import BUGS, CORRECT, Batch, GradebookError, Settings
from gradebook.engine.pipeline import STAGES

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parents[1] / "golden"
STAGE = {
    "bf16_rewards": "standardized",
    "double_normalization": "advantage",
    "fan_out": "counted",
    "filtered_first": "group",
    "float32_dust": "score",
    "micro_batch_means": "loss",
    "missing_parentheses": "standardized",
    "no_eos_outliers": "counted",
    "one_pass_variance": "scale",
    "padded_mean": "advantage",
    "partial_groups": "group",
    "prompt_text": "group",
    "rejected_rows": "counted",
    "sharded_whitening": "advantage",
    "swapped_scale": "scale",
    "uid_per_rollout": "group",
    "unscored_rows": "credited",
    "variance_floor": "scale",
    "whole_batch": "group",
    "zero_std_kl": "trained",
}


def test_the_bugs_have_their_names():
    # A bug added later is welcome; these stay.
    assert set(BUGS) >= set(STAGE)
    assert list(BUGS) == sorted(BUGS)


@pytest.mark.parametrize("name", STAGE)
def test_each_bug_swaps_its_stage(name):
    assert gradebook.bug(name).name == name
    assert gradebook.bug(name).stage == STAGE[name]


@pytest.mark.parametrize("name", BUGS)
def test_only_that_stage_is_swapped(name):
    bug = gradebook.bug(name)
    for stage in STAGES:
        is_correct = getattr(bug.engine, stage) is getattr(CORRECT, stage)
        assert is_correct == (stage != bug.stage)
    assert getattr(bug.engine, bug.stage) is bug.faulty
    assert getattr(CORRECT, bug.stage) is bug.correct


@pytest.mark.parametrize("name", BUGS)
def test_both_functions_have_one_signature(name):
    bug = gradebook.bug(name)
    faulty, correct = (
        inspect.signature(function, eval_str=True)
        for function in (bug.faulty, bug.correct)
    )
    assert faulty == correct
    assert bug.faulty.__name__ == bug.correct.__name__ == bug.stage


def same(a, b):
    if a is None or b is None:
        return a is b
    return (
        a.dtype == b.dtype
        and torch.equal(a.nan_to_num(), b.nan_to_num())
        and torch.equal(a.isnan(), b.isnan())
    )


def first_difference(correct, faulty):
    """The first stage with another result. The last one gives both the
    loss and the gradient."""
    for field in fields(correct):
        a = getattr(correct, field.name)
        if not same(a, getattr(faulty, field.name)):
            return field.name if field.name in STAGES else STAGES[-1]
    return None


MEASURED = {
    name: json.loads((GOLDEN / f"{name}.json").read_text())["cases"] for name in STAGE
}


def differs(case):
    """The measured outputs of both trainers are apart."""
    return any(
        np.abs(numbers(case["correct"][part]) - numbers(case["faulty"][part])).max(
            initial=0
        )
        > 1e-3
        for part in ("advantage", "gradient")
        if part in case["correct"]
    )


def numbers(values):
    """The measured numbers; one that is not finite is far from all others."""
    return np.nan_to_num(np.array(values, dtype=float), nan=1e30)


@pytest.mark.parametrize("name", MEASURED)
def test_the_first_stage_that_differs_is_the_swapped_one(name):
    apart = 0
    for case in MEASURED[name]:
        batch = Batch(**case["rows"], settings=Settings(**case["settings"]))
        correct = gradebook.run(CORRECT, batch)
        faulty = gradebook.run(gradebook.bug(name).engine, batch)
        first = first_difference(correct, faulty)
        wanted = (STAGE[name],) if differs(case) else (None, STAGE[name])
        assert first in wanted, case["name"]
        apart += differs(case)
    assert apart


@pytest.mark.parametrize("name", ["nope", "", "Partial_groups", None])
def test_an_unknown_bug_is_refused_naming_the_known_ones(name):
    with pytest.raises(GradebookError) as caught:
        gradebook.bug(name)
    assert caught.value.key == "bug"
    assert caught.value.expected == "one of " + ", ".join(BUGS)
    assert caught.value.found == repr(name)


def test_filtered_first_stops_at_the_first_step_that_does_not_divide():
    # Steps 9 and 5 hold 4 and 2 rows: six rows divide by 3, neither step does.
    batch = Batch([0] * 6, [0] * 6, step=[9, 9, 5, 9, 5, 9])
    engine = gradebook.bug("filtered_first").engine
    gradebook.run(engine, batch)
    for size, said in ((3, "step 9: 4 rows do not"), (4, "step 5: 2 rows do not")):
        with pytest.raises(GradebookError, match=said):
            gradebook.run(engine, batch.under(Settings(group_size=size)))
