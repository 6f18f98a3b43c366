"""How often the check is right on random steps; tests/bench/check.py has
the full size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[1] / "bench" / "check.py"
SPEC = importlib.util.spec_from_file_location("bench_check", PATH)
bench = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench)

BATCHES = 8


@pytest.mark.long  # about 190 checks
def test_the_right_computation_is_first_or_tied():
    found = bench.shares(BATCHES, seed=1)
    clean = [share for (bug, _), share in found.items() if not bug]
    faulty = [share for (bug, _), share in found.items() if bug]
    assert np.mean(clean) >= 0.995
    assert np.mean(faulty) >= 0.99
    assert {bug for bug, _ in found} == {"", *bench.BUGS}


@pytest.mark.long  # 22 checks
def test_logs_that_tell_little_accuse_nobody():
    for what, found, fine in bench.hard_answers(BATCHES * 4, seed=1):
        assert fine.mean() >= 0.995, (what, found["verdict"].value_counts())
