"""The engines give what the trainers gave: tests/golden/, both sides."""

import json
import math
from pathlib import Path

import pytest

import gradebook

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = {p.stem: json.loads(p.read_text()) for p in GOLDEN.glob("*.json")}
CASES = [
    pytest.param(bug, case, side, id=f"{bug}-{case['name']}-{side}")
    for bug, file in sorted(FILES.items())
    for case in file["cases"]
    for side in ("correct", "faulty")
]


def number(value):
    return math.nan if value is None else float(value)


def agree(found, expected, tolerance):
    assert len(found) == len(expected)
    for row, (a, b) in enumerate(zip(found, map(number, expected))):
        if math.isfinite(b):
            assert a == pytest.approx(
                b, rel=tolerance["rtol"], abs=tolerance["atol"]
            ), f"row {row}"
        else:
            assert not math.isfinite(a), f"row {row}"


def test_every_bug_has_measured_cases():
    assert sorted(FILES) == sorted(gradebook.BUGS)
    assert sum(len(f["cases"]) for f in FILES.values()) == 385


@pytest.mark.parametrize("bug, case, side", CASES)
def test_measured_output(bug, case, side):
    settings = gradebook.Settings(**case["settings"])
    batch = gradebook.Batch(**case["rows"], settings=settings)
    engine = gradebook.CORRECT
    if side == "faulty":
        engine = gradebook.bug(bug).engine
    trace = gradebook.run(engine, batch)
    expected, tolerance = case[side], FILES[bug]["tolerance"]
    agree(trace.advantage.tolist(), expected["advantage"], tolerance)
    if "loss" in expected:
        agree([float(trace.loss)], [expected["loss"]], tolerance)
        for found, row in zip(
            trace.gradient.tolist(), expected["gradient"], strict=True
        ):
            agree(found, row, tolerance)
    else:
        assert trace.advantage.dtype == trace.score.dtype
