"""Bugs of different stages that trainers really had at the same time, with
the numbers that were measured."""

import pytest

import gradebook
from gradebook import Batch, Settings
from gradebook.analysis.comparison import compared
from gradebook.bugs import several
from gradebook.cases.link import decode, encode
from gradebook.cases.scenario import combinations, start_case
from gradebook.cases.state import start

CENTRED = Settings(scale="none", group_size=2)
VERL = Settings(eps=1e-6, lone_row="raw")
CUT = {
    "prompt": ["A", "A", "A", "B", "B"],
    "rollout": [0, 0, 1, 2, 3],
    "reward": [1, 1, 0.5, 0, 0],
}
RESET = {"prompt": [0] * 3, "rollout": [0, 0, 1], "reward": [1, 1, 0]}
FLAT = {"prompt": [0] * 7, "reward": [100.1] * 7}


@pytest.mark.parametrize(
    "bugs, settings, rows, advantage",
    [
        # miles before PR 2369.
        (("whole_batch", "fan_out"), CENTRED, CUT, [0.5, 0.5, 0, -0.5, -0.5]),
        (("fan_out",), CENTRED, CUT, [0.167, 0.167, -0.333, 0, 0]),
        ((), CENTRED, CUT, [0.25, 0.25, -0.25, 0, 0]),
        # rLLM with contexts that are reset.
        (("uid_per_rollout", "fan_out"), VERL, RESET, [0, 0, 0]),
        (("uid_per_rollout",), VERL, RESET, [1, 1, 0]),
        (("fan_out",), VERL, RESET, [0.577, 0.577, -1.155]),
        ((), VERL, RESET, [0.707, 0.707, -0.707]),
        # verl 0.6.0 to 0.7.1: the floor hides the dust.
        (("float32_dust", "variance_floor"), VERL, FLAT, [0.0002] * 7),
        (("float32_dust",), VERL, FLAT, [0.826] * 7),
        ((), VERL, FLAT, [0] * 7),
    ],
)
def test_a_combination_gives_the_measured_numbers(bugs, settings, rows, advantage):
    batch = Batch(**rows, settings=settings)
    found = gradebook.run(several(bugs), batch).advantage
    assert found.tolist() == pytest.approx(advantage, abs=6e-4)


def test_the_other_fix_of_filtered_first_is_an_older_bug():
    # open-instruct PR 1794 takes statistics before it drops rows.
    batch = Batch(
        prompt=["A"] * 4 + ["B"] * 4,
        reward=[1, 0, 1, 0, 5, 6, 7, 8],
        eos=[1, 0, 1, 0, 1, 1, 0, 0],
        settings=Settings(scale="none", group_size=4, mask_no_eos=True),
    )
    advantages = {
        "correct": [0, 0, 0, 0, -0.5, 0.5, 0, 0],
        "filtered_first": [-2.25, 0, -2.25, 0, 1.75, 2.75, 0, 0],
        "no_eos_outliers": [0.5, 0, 0.5, 0, -1.5, -0.5, 0, 0],
    }
    for name, expected in advantages.items():
        engine = several([] if name == "correct" else [name])
        found = gradebook.run(engine, batch).advantage
        assert found.tolist() == expected


@pytest.mark.parametrize("case", combinations(), ids=lambda one: one.name)
def test_the_sandbox_opens_each_combination_with_its_numbers(case):
    state = start(start_case(f"sandbox-{case.name}"))
    assert {*state.bugs} == {*case.bugs} and len(case.bugs) == 2
    found = compared(state)
    for side in ("correct", "faulty"):
        advantage = getattr(found, side).advantage.tolist()
        expected = getattr(case.expected, side)
        assert advantage == pytest.approx(expected, abs=2e-5)
    link = encode(state, covered=False)
    opened = decode(link, default="sandbox")
    assert not opened.problems and {*opened.state.bugs} == {*case.bugs}
