"""The pytest file that a learner takes home finds the bug, and is only what it
says."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from output.typed import LINK, NASTY, edited, labelled, opened

import gradebook
from gradebook.analysis.comparison import compared
from gradebook.cases.scenario import case, names
from gradebook.cases.state import start
from gradebook.output.pytest_file import pytest_file

ROOT = Path(__file__).parents[2]
EDITS = 3


HARNESS = '''
"""The adapter of every file in this folder calls an engine."""

import pytest

import gradebook


def trace(settings, **inputs):
    names = {"rewards": "reward", "prompt_ids": "prompt"}
    names |= {"response_mask": "mask"}
    columns = {names.get(name, name): v for name, v in inputs.items()}
    batch = gradebook.Batch(**columns, settings=gradebook.Settings(**settings))
    return gradebook.run(ENGINE, batch)


def advantages(settings, **inputs):
    return trace(settings, **inputs).advantage


def loss(settings, logp, **inputs):
    found = trace(settings, logp=logp.detach(), **inputs)
    return (found.gradient * logp).sum()


@pytest.fixture(autouse=True)
def trainer(request, monkeypatch):
    global ENGINE
    name = request.path.name.removeprefix("test_").partition("__")[0]
    ENGINE = (
        gradebook.CORRECT
        if request.path.parent.name == "correct"
        else gradebook.bug(name).engine
    )
    for adapter in (advantages, loss):
        if hasattr(request.module, adapter.__name__):
            monkeypatch.setattr(request.module, adapter.__name__, adapter)
'''


def run_pytest(folder, *arguments, path=""):
    """Outcomes {(folder, file): [failure texts, '' for passed]}."""
    report = folder / "report.xml"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + ["--import-mode=importlib", f"--junitxml={report}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": path, "PATH": "", "OMP_NUM_THREADS": "1"},
    )
    outcomes = {}
    for one in ET.parse(report).getroot().iter("testcase"):
        parts = one.get("classname").split(".")
        # The message alone may be cut short.
        found = [f"{bad.get('message')}\n{bad.text}" for bad in one]
        place = tuple(parts[-2:])
        outcomes.setdefault(place, []).append(found[0] if found else "")
    assert outcomes, done.stdout + done.stderr
    return outcomes


def written(folder, files):
    """Every file beside the correct engine and beside the faulty one."""
    for side in ("correct", "faulty"):
        (folder / side).mkdir()
        (folder / side / "conftest.py").write_text(HARNESS)
        for name, text in files.items():
            path = folder / side / f"{name}.py"
            path.write_text(text, encoding="utf-8")


def every_file():
    """Names of the generated files: `bug-case_...` is a case as it came,
    `bug-sandbox` the blank batch, `bug-edited_...` a random batch."""
    for name in names():
        bug, _, rest = name.partition("-")
        marks = [pytest.mark.long] if rest else []
        yield pytest.param(f"{bug}-case_{rest}", marks=marks)
    for bug in gradebook.BUGS:
        yield f"{bug}-sandbox"
        yield f"{bug}-edited_0"
        for seed in range(1, EDITS):
            yield pytest.param(f"{bug}-edited_{seed}", marks=pytest.mark.long)


def file_of(name):
    bug, _, kind = name.partition("-")
    if kind == "sandbox":
        state = replace(start(case("sandbox")), bugs=(bug,))
    elif kind.startswith("edited_"):
        seed = int(kind.removeprefix("edited_"))
        state = edited(seed, bug, rows=7, settings=2)
        labels = dict(zip("ABCD", NASTY[2 * seed :]))
        cells = [labels[cell] for cell in state.table["prompt"]]
        state = replace(state, table=state.table.with_column("prompt", cells))
    else:
        rest = kind.removeprefix("case_")
        state = opened(f"{bug}-{rest}" if rest else bug)
    return pytest_file(state, LINK).text


def module_of(name):
    return "test_" + name.replace("-", "__")


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """What pytest says of the files that are asked for, in one run."""
    folder = tmp_path_factory.mktemp("generated")
    asked = {
        item.callspec.params["generated"]
        for item in request.session.items
        if "outcomes" in getattr(item, "fixturenames", ())
    }
    written(folder, {module_of(name): file_of(name) for name in asked})
    return run_pytest(folder, path=str(ROOT))


EVERY = list(every_file())


@pytest.mark.parametrize("generated", EVERY)
def test_a_file_passes_on_the_correct_engine(generated, outcomes):
    assert set(outcomes["correct", module_of(generated)]) == {""}


@pytest.mark.parametrize("generated", EVERY)
def test_a_file_fails_on_the_faulty_engine(generated, outcomes):
    failures = [f for f in outcomes["faulty", module_of(generated)] if f]
    assert failures
    for failure in failures:
        assert failure.startswith("AssertionError")
        assert LINK in failure


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_a_file_imports_torch_and_pytest_alone_and_its_lines_are_short(bug):
    text = pytest_file(opened(bug), LINK).text
    tree = ast.parse(text)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import)]
    assert {a.name for n in imports for a in n.names} == {"math", "pytest", "torch"}
    sources = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert sources == {"__future__", "collections.abc", "dataclasses"}
    code = text.partition("# The batches")[0]
    assert max(map(len, code.splitlines())) <= 88


TRAINER = """
    mean = torch.stack([rewards[prompt_ids == p].mean() for p in prompt_ids])
    std = torch.stack([rewards[prompt_ids == p].std() for p in prompt_ids])
    return ((rewards - mean) / (std.nan_to_num(1.0) + 1e-4)).float()
"""
STRIDE = "\n    prompt_ids = torch.arange(len(rewards)) // 4" + TRAINER


def test_a_trainer_of_torch_alone_is_judged_and_a_missing_one_asked_for(
    tmp_path,
):
    # Another eps and float32: the law holds whatever the convention.
    text = pytest_file(opened("partial_groups"), LINK).text
    (call,) = re.findall(r"    raise NotImplementedError\(.*\)", text)
    for name, body in (("good", TRAINER), ("bad", STRIDE)):
        file = tmp_path / f"test_{name}.py"
        file.write_text(text.replace(call, body))
    text = pytest_file(opened("zero_std_kl"), LINK).text
    (tmp_path / "test_untouched.py").write_text(text)
    found = run_pytest(tmp_path)
    assert set(found["test_good",]) == {""}
    assert len(found["test_bad",]) == 2 and all(found["test_bad",])
    (failure,) = found["test_untouched",]
    assert failure.startswith("NotImplementedError: call your trainer")


@pytest.mark.parametrize("name", names())
def test_a_hiding_batch_brings_a_telling_one(name):
    state = opened(name)
    file = pytest_file(state, LINK)
    hides = compared(state).agree
    assert ("BATCH_2" in file.text) is hides
    assert ("hides the bug" in file.note) is hides
    if hides:
        assert f"'{state.scenario.bug}'" in file.note


def test_where_no_law_catches_the_numbers_do():
    # One lone row under no baseline: other lengths change nothing.
    state = opened("double_normalization", baseline="none", scale="none")
    table = state.table.take([0])
    text = pytest_file(replace(state, table=table), LINK).text
    assert "test_the_correct_numbers_edited_1" in text
    assert "the_correct_numbers([4.0])" in text


def test_an_empty_batch_leaves_the_scenarios_rows():
    state = opened("partial_groups")
    state = replace(state, table=state.table.take([]), row=0)
    file = pytest_file(state, LINK)
    assert "BATCH_1" in file.text and "BATCH_2" not in file.text
    assert "hides the bug" in file.note


@pytest.mark.parametrize("text", [*NASTY, "\ud800"])
def test_text_stands_in_literals_only(text):
    state = labelled(opened("zero_std_kl"), [text, "B"])
    source = pytest_file(state, text).text
    assert source.isprintable() or not set(source) & {"\x00", "\r", "\u202e"}
    tree = ast.parse(source.encode())
    literals = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    assert text in literals
    plain = ast.parse(pytest_file(opened("zero_std_kl"), "x").text)
    kinds = [[type(n) for n in ast.walk(t)] for t in (tree, plain)]
    assert kinds[0] == kinds[1]


def test_a_law_that_the_settings_break_is_not_asked():
    state = opened("partial_groups", baseline="batch_mean")
    tree = ast.parse(pytest_file(state, LINK).text)
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert "other_prompts" not in {getattr(f, "id", "") for f in calls}


def test_the_tolerance_lies_below_a_small_difference():
    # beta / 10 * (1 - exp(ln 2)) = -5e-5 on a token of a flat group
    text = pytest_file(opened("zero_std_kl", beta="5e-4"), LINK).text
    assert "assert most <= 5e-06," in text
