"""The engines give what the trainers gave: tests/golden/, both sides."""

import json
from pathlib import Path

import numpy as np
import pytest
from one_a_stage import SHIPPED

import gradebook

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = {p.stem: json.loads(p.read_text()) for p in GOLDEN.glob("*.json")}


def agree(found, expected, tolerance, where):
    """Every number is the measured one; null means one that is not
    finite."""
    expected = np.array(expected, dtype=float)
    found = np.array(found, dtype=float).reshape(expected.shape)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected), where)
    finite = np.isfinite(expected)
    found, expected = found[finite], expected[finite]
    room = np.maximum(tolerance["rtol"] * np.abs(expected), tolerance["atol"])
    far = np.abs(found - expected) > room
    assert not far.any(), f"{where}: {found[far]}, expected {expected[far]}"


def test_every_bug_has_measured_cases():
    assert {*SHIPPED} <= {*FILES} <= {*gradebook.BUGS}
    assert sum(len(f["cases"]) for f in FILES.values()) == 599


@pytest.mark.parametrize("side", ["correct", "faulty"])
@pytest.mark.parametrize("bug", sorted(FILES))
def test_measured_outputs(bug, side):
    engine = gradebook.CORRECT
    if side == "faulty":
        engine = gradebook.bug(bug).engine
    for case in FILES[bug]["cases"]:
        settings = gradebook.Settings(**case["settings"])
        batch = gradebook.Batch(**case["rows"], settings=settings)
        trace, expected = gradebook.run(engine, batch), case[side]
        if "credited" in expected:  # a row without has no measured number
            assert trace.credited.tolist() == expected["credited"], case["name"]
        for name in ("advantage", "token_advantage", "loss", "gradient"):
            if name in expected:
                found = getattr(trace, name)
                if "credited" in expected:
                    found = found.where(trace.credited, float("nan"))
                agree(
                    found.tolist(),
                    expected[name],
                    FILES[bug]["tolerance"],
                    f"{case['name']}, {name}",
                )
        if "loss" not in expected:
            assert trace.advantage.dtype == trace.score.dtype, case["name"]
