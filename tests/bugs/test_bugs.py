"""Each bug is one stage swapped, in as few lines as the fault needs."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import gradebook
from gradebook import BUGS, CORRECT, Batch, GradebookError, Settings
from gradebook.analysis.comparison import compare
from gradebook.engine.pipeline import STAGES

GOLDEN = Path(__file__).parents[1] / "golden"
TELLING = ("gradient", "token_advantage", "advantage")
"""What a trainer's output is compared by: the latest result that was measured."""


@pytest.mark.parametrize("name", BUGS)
def test_exactly_one_stage_is_swapped_for_a_function_of_its_signature(name):
    bug = gradebook.bug(name)
    assert bug.name == name
    for stage in STAGES:
        is_correct = getattr(bug.engine, stage) is getattr(CORRECT, stage)
        assert is_correct == (stage != bug.stage)
    assert getattr(bug.engine, bug.stage) is bug.faulty
    assert getattr(CORRECT, bug.stage) is bug.correct
    signature, correct = map(inspect.signature, (bug.faulty, bug.correct))
    assert [*signature.parameters] == [*correct.parameters]
    assert bug.faulty.__name__ == bug.correct.__name__ == bug.stage


@pytest.mark.parametrize("name", [p.stem for p in sorted(GOLDEN.glob("*.json"))])
def test_the_first_stage_that_differs_is_the_swapped_one(name):
    # A score in float32 is off by less than what counts as a difference; the
    # deviation of equal rewards is the first to show it.
    dust = name == "float32_dust"
    first = ("scale", "standardized") if dust else (gradebook.bug(name).stage,)
    apart = 0
    for case in json.loads((GOLDEN / f"{name}.json").read_text())["cases"]:
        correct, faulty = (
            numbers(next(case[side][name] for name in TELLING if name in case[side]))
            for side in ("correct", "faulty")
        )
        if np.abs(correct - faulty).max(initial=0) <= 1e-3:
            continue
        batch = Batch(**case["rows"], settings=Settings(**case["settings"]))
        both = compare(gradebook.bug(name), batch)
        assert both.diverging[0] in first, case["name"]
        apart += 1
    assert apart


def numbers(values):
    """The measured numbers; one that is not finite is far from all others."""
    return np.nan_to_num(np.array(values, dtype=float), nan=1e30)


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
