"""Measured cases of four bugs without a page: the engine gives the trainer's mended
numbers wherever it has the settings."""

import json
from pathlib import Path

import pytest
import torch

import gradebook

SPARES = Path(__file__).parent.parent / "golden" / "spares"
CASES = [
    pytest.param(path.stem, case, id=f"{path.stem}-{case['name']}")
    for path in sorted(SPARES.glob("*.json"))
    for case in json.loads(path.read_text("utf-8"))["cases"]
]


def found(case, side="correct"):
    """What the engine gives, and what was measured, by name."""
    columns = {
        name: torch.tensor(cells, dtype=torch.float64)
        if isinstance(cells[0], list) and isinstance(cells[0][0], float)
        else cells
        for name, cells in case["rows"].items()
    }
    settings = gradebook.Settings(**case["settings"])
    trace = gradebook.run(
        gradebook.CORRECT, gradebook.Batch(**columns, settings=settings)
    )
    return {name: getattr(trace, name).tolist() for name in case[side]}, case[side]


def near(expected):
    return pytest.approx(expected, rel=3e-5, abs=3e-5, nan_ok=True)


@pytest.mark.parametrize("name, case", CASES)
def test_the_engine_gives_the_mended_numbers(name, case):
    numbers, measured = found(case)
    for key, expected in measured.items():
        rows = zip(numbers[key], expected) if isinstance(expected, list) else ()
        for row, due in rows or [(numbers[key], expected)]:
            assert row == near(due), key


def test_the_faulty_numbers_are_others_on_some_case_of_each():
    told = set()
    for name, case in (each.values for each in CASES):
        numbers, measured = found(case, "faulty")
        for key, expected in measured.items():
            a, b = torch.tensor(numbers[key]), torch.tensor(expected)
            if not torch.allclose(a, b, rtol=3e-5, atol=3e-5, equal_nan=True):
                told.add(name)
    assert told == {path.stem for path in SPARES.glob("*.json")}
