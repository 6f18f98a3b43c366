"""Gradebook: what real normalization bugs do to a training step.

scenario = gradebook.load("partial_groups")
batch = scenario.batch()
correct = gradebook.run(gradebook.CORRECT, batch)
faulty = gradebook.run(gradebook.bug("partial_groups").engine, batch)
steps = gradebook.check(frame)  # a run's log: one row a step
"""

from typing import TYPE_CHECKING

from gradebook.bugs import BUGS
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS, Settings
from gradebook.engine.pipeline import CORRECT, Engine, Trace, run
from gradebook.logs.check import check

if TYPE_CHECKING:
    from gradebook.logs.recording.recorder import Recorder


def __getattr__(name: str) -> object:
    """The recorder is imported when it is first named: it needs pyarrow,
    which a page can do without."""
    if name == "Recorder":
        from gradebook.logs.recording.recorder import Recorder

        return Recorder
    raise AttributeError(f"module 'gradebook' has no attribute {name!r}")


__all__ = [
    "BUGS",
    "CORRECT",
    "ESTIMATORS",
    "Batch",
    "Engine",
    "GradebookError",
    "Recorder",
    "Scenario",
    "Settings",
    "Trace",
    "bug",
    "check",
    "load",
    "run",
]
