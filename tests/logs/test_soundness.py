"""Small advantages are no proof of a computation: whatever lies below the largest
rounding of scores once counted as GRPO of clipped rewards."""

from pathlib import Path

import pytest

from gradebook.logs.log import check_log

SMALL = sorted((Path(__file__).parent / "soundness").glob("*.csv"))
"""Dr. GRPO times 0.05, GRPO over the longest response, and noise of 0.1."""


@pytest.mark.parametrize("declared", [{}, {"estimator": "grpo"}], ids=["", "grpo"])
@pytest.mark.parametrize("log", SMALL, ids=lambda log: log.stem)
def test_small_advantages_are_no_known_computation_and_no_bug(log, declared):
    verdict = check_log([log], declared=declared)
    assert (verdict.exit_code, verdict.verdict) == (2, "none fits")
    assert not verdict.bug
