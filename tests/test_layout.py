"""The rooms of gradebook/ hold: import-linter's contracts in pyproject.toml,
and what they cannot say."""

import graphlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

import gradebook
from gradebook.engine.pipeline import STAGES

ROOT = Path(__file__).parents[1]


def test_rooms_import_one_way():
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml")) == 0


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph("gradebook", cache_dir=None)
    imports = {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
    }
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError with the circle


def python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.long
def test_the_library_runs_without_streamlit_and_plotly():
    """None in sys.modules makes every import of the name fail. A process
    that trains imports as little."""
    code = """
import sys
sys.modules["streamlit"] = sys.modules["plotly"] = None
import gradebook
from gradebook.training import runs
[getattr(gradebook, name) for name in gradebook.__all__]
batch = gradebook.Batch([0, 0], [1, 3])
for name in gradebook.BUGS:
    gradebook.run(gradebook.bug(name).engine, batch)
print(gradebook.run(gradebook.CORRECT, batch).baseline.tolist())
"""
    assert python(code) == ["[2.0,", "2.0]"]


def test_the_server_runs_one_script_of_a_session_at_a_time():
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["runner"]["fastReruns"] is False


def described(name):
    """A public function or class, and those of its methods that take arguments."""
    thing = getattr(gradebook, name)
    if inspect.isfunction(thing):
        yield name, thing, thing.__doc__
    elif inspect.isclass(thing):
        yield name, thing.__init__, thing.__doc__
        for method, function in inspect.getmembers(thing, inspect.isfunction):
            ours = function.__module__.startswith("gradebook")
            if ours and not method.startswith("_"):
                yield f"{name}.{method}", function, function.__doc__


def test_public_docstrings_name_every_argument():
    """ruff's D417 asks for a section "Args", which these docstrings do not have. The
    keys of a scenario file are in its table in scenarios/README.md."""
    keys = (ROOT / "scenarios" / "README.md").read_text()
    missing = {
        f"{place}: {argument}"
        for name in gradebook.__all__
        for place, function, words in described(name)
        for argument in inspect.signature(function).parameters
        if argument != "self"
        and not re.search(rf"\b{argument}\b", words + keys * (name == "Scenario"))
    }
    # The stages of an engine and a trace: each one's docstring says its result.
    missing -= {f"{kind}: {stage}" for kind in ("Engine", "Trace") for stage in STAGES}
    assert not missing
