"""Gradebook: what real normalization bugs do to a training step.

>>> import gradebook
>>> batch = gradebook.load("partial_groups").batch()
>>> correct = gradebook.run(gradebook.CORRECT, batch)
>>> faulty = gradebook.run(gradebook.bug("partial_groups").engine, batch)
>>> both = gradebook.compare(gradebook.bug("partial_groups"), batch)
>>> bool((both.faulty.advantage == faulty.advantage).all())
True

gradebook.check(frame) judges a table of whole training steps: one row for each step.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if find_spec("torch") is None:
    raise ImportError(
        "gradebook needs PyTorch, which is not installed: pip install torch"
        " (for a CPU alone: pip install torch --index-url"
        " https://download.pytorch.org/whl/cpu)"
    )

from gradebook.analysis.comparison import Comparison
from gradebook.bugs import BUGS
from gradebook.cases.scenario import Scenario, bug, load
from gradebook.core.batch import Batch
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS, Settings
from gradebook.engine.pipeline import CORRECT, Engine, Trace, run

if TYPE_CHECKING:
    from gradebook.logs.guard import Finding, Guard, WrongAdvantages
    from gradebook.logs.log import check
    from gradebook.logs.recorder import Recorder
    from gradebook.logs.recording import recording
    from gradebook.output import figures
    from gradebook.output.figures import compare
    from gradebook.trainers.probe import laws, probe
    from gradebook.trainers.releases import releases

LATE = {
    "Finding": "gradebook.logs.guard",
    "Guard": "gradebook.logs.guard",
    "Recorder": "gradebook.logs.recorder",
    "WrongAdvantages": "gradebook.logs.guard",
    "check": "gradebook.logs.log",
    "compare": "gradebook.output.figures",
    "laws": "gradebook.trainers.probe",
    "probe": "gradebook.trainers.probe",
    "recording": "gradebook.logs.recording",
    "releases": "gradebook.trainers.releases",
}
"""Names that are imported when they are first used, so that `import gradebook` does
not import pyarrow."""


def __getattr__(name: str) -> object:
    if name == "figures":
        return import_module("gradebook.output.figures")
    if name in LATE:
        return getattr(import_module(LATE[name]), name)
    raise AttributeError(f"module 'gradebook' has no attribute {name!r}")


__all__ = [
    "BUGS",
    "CORRECT",
    "ESTIMATORS",
    "Batch",
    "Comparison",
    "Engine",
    "Finding",
    "GradebookError",
    "Guard",
    "Recorder",
    "Scenario",
    "Settings",
    "Trace",
    "WrongAdvantages",
    "bug",
    "check",
    "compare",
    "figures",
    "laws",
    "load",
    "probe",
    "recording",
    "releases",
    "run",
]
