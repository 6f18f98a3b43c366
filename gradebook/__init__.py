"""Gradebook: what five real normalization bugs do to a training step.

    scenario = gradebook.load("partial_groups")
    batch = scenario.batch()
    correct = gradebook.run(gradebook.CORRECT, batch)
    faulty = gradebook.run(gradebook.bug("partial_groups").engine, batch)
    steps = gradebook.check(frame)  # a run's log: one row a step
"""

from gradebook.batch import Batch
from gradebook.bugs import BUGS, bug
from gradebook.engine.pipeline import CORRECT, Engine, Trace, run
from gradebook.errors import GradebookError
from gradebook.logs.check import check
from gradebook.scenario import Scenario, load
from gradebook.settings import ESTIMATORS, Settings

__all__ = [
    "BUGS",
    "Batch",
    "CORRECT",
    "ESTIMATORS",
    "Engine",
    "GradebookError",
    "Scenario",
    "Settings",
    "Trace",
    "bug",
    "check",
    "load",
    "run",
]
