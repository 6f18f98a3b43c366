"""The pytest file that a learner takes home finds the bug, and is only what it
says."""

import ast
import re
import subprocess
import sys
import types
from collections import Counter
from dataclasses import replace

import pytest
from output.typed import LINK, NASTY, edited, labelled, opened

import gradebook
from gradebook.analysis.comparison import compared
from gradebook.cases.scenario import case, names
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.output.pytest_file import pytest_file

EDITS = 3


def failures(text, engine):
    """What the tests of a file say, in a module of its own whose adapter calls an
    engine; nothing of a test that passes."""

    def trace(settings, **inputs):
        names = {"rewards": "reward", "prompt_ids": "prompt", "response_mask": "mask"}
        columns = {names.get(name, name): v for name, v in inputs.items()}
        batch = gradebook.Batch(**columns, settings=gradebook.Settings(**settings))
        return gradebook.run(engine, batch)

    def loss(settings, logp, **inputs):
        gradient = trace(settings, logp=logp.detach(), **inputs).gradient
        return (gradient * logp).sum()

    def token_advantages(settings, **inputs):
        return trace(settings, **inputs).token_advantage

    def advantages(settings, **inputs):
        return trace(settings, **inputs).advantage

    module = sys.modules["generated"] = types.ModuleType("generated")
    exec(compile(text, "generated.py", "exec"), vars(module))
    adapters = (loss, token_advantages, advantages)
    adapter = next(a for a in adapters if hasattr(module, a.__name__))
    setattr(module, adapter.__name__, adapter)
    sentences = []
    for name, test in [*vars(module).items()]:
        if name.startswith("test_"):
            try:
                test()
            except AssertionError as error:
                sentences.append(str(error))
    return sentences


def every_file():
    """Names of the generated files: `bug-case_...` is a case as it came,
    `bug-sandbox` the blank batch, `bug-edited_...` a random batch."""
    for name in names():
        bug, _, rest = name.partition("-")
        yield f"{bug}-case_{rest}"
    for bug in gradebook.BUGS:
        yield f"{bug}-sandbox"
        for seed in range(EDITS):
            marks = [pytest.mark.long] if seed else []
            yield pytest.param(f"{bug}-edited_{seed}", marks=marks)


def file_of(name):
    bug, _, kind = name.partition("-")
    if kind == "sandbox":
        state = replace(start(case("sandbox")), bugs=(bug,))
    elif kind.startswith("edited_"):
        seed = int(kind.removeprefix("edited_"))
        state = edited(seed, bug, rows=7, settings=2)
        labels = dict(zip("ABCD", NASTY[2 * seed :]))
        cells = [labels[cell] for cell in state.table["prompt"]]
        state = replace(
            state, table=Table.of_columns({"prompt": cells}, state.table.cells)
        )
    else:
        rest = kind.removeprefix("case_")
        state = opened(f"{bug}-{rest}" if rest else bug)
    return pytest_file(state, LINK)


@pytest.mark.parametrize("name", [*every_file()])
def test_a_file_passes_on_the_correct_engine_and_fails_on_the_faulty_one(name):
    text = file_of(name)
    assert failures(text, gradebook.CORRECT) == []
    sentences = failures(text, gradebook.bug(name.partition("-")[0]).engine)
    assert sentences and all(LINK in sentence for sentence in sentences)


def test_a_law_that_rounding_breaks_is_not_counted_as_a_test_that_catches_the_bug():
    # In float64 the advantages of rewards near 1e11 add up to 3e-5, so a test of that
    # law would fail on a correct trainer. The correct numbers are asked for instead.
    state = opened("double_normalization", scale="none")
    rewards = [repr((float(cell) + 1 / 3) * 1e11) for cell in state.table["reward"]]
    table = Table.of_columns({"reward": rewards}, state.table.cells)
    text = pytest_file(replace(state, table=table), LINK)
    assert "def test_zero_sum" not in text
    assert failures(text, gradebook.CORRECT) == []
    assert failures(text, gradebook.bug("double_normalization").engine)


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_a_file_imports_torch_and_pytest_alone_and_its_lines_are_short(bug):
    text = pytest_file(opened(bug), LINK)
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


def test_the_file_judges_trainers_with_torch_alone_and_asks_for_a_missing_one(tmp_path):
    # Another eps and float32: the law holds whatever the convention.
    for name, bug, body in (
        ("right", "partial_groups", TRAINER),
        ("stride", "partial_groups", STRIDE),
        ("missing", "zero_std_kl", None),
    ):
        text = pytest_file(opened(bug), LINK)
        (call,) = re.findall(r"    raise NotImplementedError\(.*\)", text)
        (tmp_path / f"test_{name}.py").write_text(text.replace(call, body or call))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": "", "OMP_NUM_THREADS": "1"},
    )
    told = re.findall(r"test_(right|stride)\.py::\S+ (PASSED|FAILED)", done.stdout)
    assert Counter(told) == {("right", "PASSED"): 2, ("stride", "FAILED"): 2}
    assert "NotImplementedError: call your trainer" in done.stdout


@pytest.mark.parametrize("name", names())
def test_a_hiding_batch_brings_a_telling_one(name):
    state = opened(name)
    assert ("BATCH_2" in pytest_file(state, LINK)) is compared(state).agree


def test_if_no_law_catches_the_bug_the_numbers_do():
    # One lone row under no baseline: other lengths change nothing.
    state = opened("double_normalization", baseline="none", scale="none")
    text = pytest_file(replace(state, table=state.table.take([0])), LINK)
    assert "test_the_correct_numbers_edited_1" in text
    assert "the_correct_numbers([4.0])" in text


@pytest.mark.parametrize("text", [*NASTY, "\ud800"])
def test_text_is_in_literals_only(text):
    state = labelled(opened("zero_std_kl"), [text, "B"])
    source = pytest_file(state, text)
    assert source.isprintable() or not set(source) & {"\x00", "\r", "\u202e"}
    tree = ast.parse(source.encode())
    literals = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    assert text in literals
    plain = ast.parse(pytest_file(opened("zero_std_kl"), "x"))
    kinds = [[type(n) for n in ast.walk(t)] for t in (tree, plain)]
    assert kinds[0] == kinds[1]


def test_a_law_that_the_settings_break_is_not_asked():
    state = opened("partial_groups", baseline="batch_mean")
    tree = ast.parse(pytest_file(state, LINK))
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert "other_prompts" not in {getattr(f, "id", "") for f in calls}


def test_the_tolerance_is_below_a_small_difference():
    # beta / 10 * (1 - exp(ln 2)) = -5e-5 on a token of a flat group
    text = pytest_file(opened("zero_std_kl", beta=5e-4), LINK)
    assert "assert most <= 5e-06," in text
