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

if TYPE_CHECKING:
    from gradebook.analysis.comparison import Comparison
    from gradebook.bugs import BUGS
    from gradebook.cases.scenario import Scenario, bug, load
    from gradebook.core.batch import Batch
    from gradebook.core.errors import GradebookError
    from gradebook.core.settings import ESTIMATORS, Settings
    from gradebook.engine.pipeline import CORRECT, Engine, Trace, run
    from gradebook.logs.guard import Finding, Guard, WrongAdvantages
    from gradebook.logs.log import check
    from gradebook.logs.recorder import Recorder
    from gradebook.logs.recording import recording
    from gradebook.output import figures
    from gradebook.output.figures import compare
    from gradebook.trainers.probe import laws, probe
    from gradebook.trainers.releases import releases

MODULES = {
    "analysis.comparison": ("Comparison",),
    "bugs": ("BUGS",),
    "cases.scenario": ("Scenario", "bug", "load"),
    "core.batch": ("Batch",),
    "core.errors": ("GradebookError",),
    "core.settings": ("ESTIMATORS", "Settings"),
    "engine.pipeline": ("CORRECT", "Engine", "Trace", "run"),
    "logs.guard": ("Finding", "Guard", "WrongAdvantages"),
    "logs.log": ("check",),
    "logs.recorder": ("Recorder",),
    "logs.recording": ("recording",),
    "output.figures": ("compare",),
    "trainers.probe": ("laws", "probe"),
    "trainers.releases": ("releases",),
}
"""Where each name is imported from when it is first used: the app's server starts
before torch is imported, and `import gradebook` does not import pyarrow."""


def __getattr__(name: str) -> object:
    if name == "figures":
        return import_module("gradebook.output.figures")
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"gradebook.{module}"), name)
    raise AttributeError(f"module 'gradebook' has no attribute {name!r}")


__all__ = ["figures", *(name for names in MODULES.values() for name in names)]
