"""One run of an engine on rows that a test names."""

import pytest

import gradebook
from gradebook import CORRECT, Batch, Settings

OFF = [0, 0]
ON = [1, 1]
AREAL = {"eps": 1e-5, "spread_about": "baseline"}
REPLICAS = {name: gradebook.bug(name).engine for name in gradebook.BUGS}
ENGINES = {"correct": CORRECT, **REPLICAS}


def trace(prompt, reward, engine="correct", settings=None, **more):
    """One run. Other keywords are settings, or fields of the batch."""
    rows = {name: more.pop(name) for name in [*more] if name not in Settings()}
    chosen = Settings(**{**(settings or {}), **more})
    batch = Batch(prompt, reward, **rows, settings=chosen)
    return gradebook.run(ENGINES[engine], batch)


def close(found, expected, tolerance=1e-12):
    assert found.tolist() == pytest.approx(
        expected, rel=tolerance, abs=tolerance, nan_ok=True
    )
