"""A bug costs three files: a module, a scenario, a page. Two made-up bugs
are dropped into a copy of the project, and are then complete in every place.

`distinct_mean` sits in the stage baseline.
`padded_loss` sits in the loss and leaves no trace in advantages.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_BEHIND = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__")


DISTINCT_MEAN = '''\
"""Distinct mean: a made-up bug, equal rewards of a prompt count once."""

from __future__ import annotations

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.segments import by_group, is_first


def baseline(
    batch: Batch, score: Tensor, counted: Tensor, group: Tensor
) -> Tensor:
    """Mean over the distinct scores of the row's group. float [R].

    The trainer sees a mean that ignores how often a score occurs.
    """
    level = score.unique(return_inverse=True)[1]
    pairs = group * (len(score) + 1) + level
    kinds = pairs.unique(return_inverse=True)[1]
    groups = by_group(group, is_first(kinds, counted))
    return groups.at_rows(groups.mean(score))
'''

PADDED_LOSS = '''\
"""Padded loss: a made-up bug, padding shares the loss."""

from __future__ import annotations

from torch import Tensor

from gradebook.core.batch import Batch
from gradebook.engine.loss import Loss, learning_tokens, weighted_loss


def loss(
    batch: Batch, advantage: Tensor, trained: Tensor, logp: Tensor
) -> Loss:
    """Each token weighs one over rows times width. float [..., S].

    The trainer sees a loss that shrinks with the longest row.
    """
    learns = learning_tokens(batch, trained)
    tokens = batch.step_rows[batch.step_index] * batch.mask.shape[-1]
    return weighted_loss(batch, advantage, learns, 1 / tokens.double(), logp)
'''

COMMON = """\
kind = "shows"
claim = "What goes wrong is told after the answer."
teaser = "A scene is set before it."
story = "One sentence. A second one. A third one."
lesson = "Look at row 1."
trainer = "Nobody's"
status = "open"
status_note = "Made up."
rule = "What is correct is computed."
focus = 1
controls = ["eps"]
sources = [{ label = "a report", url = "https://example.org/1" }]

[affected]
trainer = "Nobody's"
versions = "all"
keys = ["world_size above 1"]
look = "Search for the stage."
workaround = "Use one process."

[plan]
minutes = 8
usual = 0
why = "It looks right."
do = "Change the column."

[telltale]
kind = "sign"
text = "A row of the lower half is pushed up."
"""


MEAN_SCENARIO = (
    """\
title = "Distinct mean"
bug = "distinct_mean"
rows = [
  { prompt = "A", reward = 1.0 },
  { prompt = "A", reward = 1.0 },
  { prompt = "A", reward = 1.0 },
  { prompt = "A", reward = 0.0 },
]
"""
    + COMMON
    + """
[settings]
eps = 1e-9

[prediction]
question = "Is row 1 pushed up farther?"
choices = ["No", "Yes"]
answer = 1
why = "The mean of 0 and 1 is 0.5."
said = ["The mean falls to 0.5.", "Right: the mean falls to 0.5."]

[record]
columns = []
in_advantages = true
couples_prompts = false
phrase = "a mean over distinct rewards"
correct_phrase = "a mean over rows"
tells = "rewards and advantages"
would_tell = "a prompt with equal rewards"
laws = ["zero_sum"]

[[challenges]]
title = "One reward"
goal = "Make both engines agree by changing one reward."
insight = "As many rows have each reward."
hint = "When is the mean of distinct rewards that of all?"
edits = { columns = ["reward"], most = 1 }
solved = [{ kind = "agree" }]
solution = [{ row = 0, column = "reward", value = 0.0 }]

[expected]
# Mean 0.75, deviation sqrt((3 * 0.0625 + 0.5625) / 3) = 0.5.
correct = [0.5, 0.5, 0.5, -1.5]
# Mean of the distinct rewards 0 and 1: 0.5.
faulty = [1.0, 1.0, 1.0, -1.0]
"""
)

LOSS_SCENARIO = (
    """\
title = "Padded loss"
bug = "padded_loss"
rows = [
  { prompt = "A", reward = 1.0, mask = [1, 0], logp = [-1.0, -1.0] },
  { prompt = "A", reward = 0.0, mask = [1, 1], logp = [-1.0, -1.0] },
]
"""
    + COMMON
    + """
[settings]
eps = 1e-9

[prediction]
question = "Is the loss larger?"
choices = ["Yes", "No"]
answer = 1
why = "Four places share it and not three tokens."
said = ["Padding takes a share of it.", "Right: padding takes a share of it."]

[record]
columns = []
in_advantages = false
couples_prompts = false
phrase = "a loss shared with padding"
correct_phrase = "a mean over tokens"
tells = "the gradient of each token"
would_tell = "a step with rows of different lengths"
laws = ["micro_batch"]

[expected]
# 0.5 / sqrt(0.5).
correct = [0.707107, -0.707107]
faulty = [0.707107, -0.707107]
# (-0.707107 + 2 * 0.707107) / 3 tokens, and / 4 places.
correct_loss = 0.2357023
faulty_loss = 0.1767767
"""
)

PAGE = '''\
"""{title}: a made-up bug."""

from gradebook.ui.pages.bug import bug_page

bug_page("{name}")
'''

BUGS = {
    "distinct_mean": ("Distinct mean", "baseline", DISTINCT_MEAN, MEAN_SCENARIO),
    "padded_loss": ("Padded loss", "loss", PADDED_LOSS, LOSS_SCENARIO),
}

# Everything below runs in the copy, in one process of its own, since this
# one knows the old bugs.
LIBRARY = """
import json
import gradebook
from gradebook.analysis.challenges import apply_solution, judge
from gradebook.analysis.comparison import compare
from gradebook.analysis.formula import worked
from gradebook.analysis.laws import LAWS
from gradebook.cases.link import decode, encode
from gradebook.cases.scenario import starts
from gradebook.cases.state import start
from gradebook.classroom.plan import plan
from gradebook.output.handout import handout
from gradebook.output.pytest_file import pytest_file
from gradebook.output.scenario_file import scenario_file
from gradebook.output.tables import csv

def told(name):
    case = gradebook.load(name)
    bug, state = gradebook.bug(name), start(case)
    traces = [
        gradebook.run(engine, case.batch())
        for engine in (gradebook.CORRECT, bug.engine)
    ]
    return {
        "stage": bug.stage,
        "title": bug.title,
        "phrase": bug.phrase,
        "columns": bug.columns,
        "laws": [law for law in bug.laws if law in LAWS],
        "advantages": [trace.advantage.tolist() for trace in traces],
        "losses": [trace.loss and float(trace.loss) for trace in traces],
        "sandbox": f"sandbox-{name}" in starts(),
        "plan": [s.minutes for s in plan([name]) if s.scenario == name],
        "past the hour": [s.bug for s in plan() if s.begin < 0],
        "handout": handout(name),
        "csv": csv(state),
        "scenario file": scenario_file(state),
        "pytest": pytest_file(state, "https://example.org").text,
        "formula": "\\n".join(
            "".join(part.text for part in line)
            for line in worked(compare(bug, case.batch()), case.focus)[1]
        ),
        "link": decode(encode(state, True)).state.same(state),
        "solved": [
            judge(one, apply_solution(state, one.solution)).solved
            for one in case.challenges
        ],
    }

names = ("distinct_mean", "padded_loss")
print(json.dumps({name: told(name) for name in names}))
"""
LOGS = """
import io, json
import numpy as np, pandas as pd, torch
import gradebook
from gradebook.logs.log import check_log
from gradebook.logs.read.sources import Source

def verdict(name, rows, of_a_step):
    row = np.arange(rows)
    frame = pd.DataFrame({"step": row // of_a_step, "prompt": row // 4})
    frame["reward"] = np.random.default_rng(0).integers(0, 3, rows) / 2
    columns = {n: torch.from_numpy(frame[n].to_numpy()) for n in frame}
    batch = gradebook.Batch(**columns, settings=gradebook.ESTIMATORS["grpo"])
    engine = gradebook.bug(name).engine
    frame["advantage"] = gradebook.run(engine, batch).advantage.numpy()
    frame = frame.drop(columns="step") if of_a_step == rows else frame
    file = io.BytesIO()
    frame.to_parquet(file)
    found = check_log([Source("log.parquet", data=file.getvalue())])
    return [found.verdict, found.bug, found.sentence, *found.notes]

print(json.dumps([
    [verdict(name, *size) for size in SIZES]
    for name in ("distinct_mean", "padded_loss")
]))
"""
PAGES = """
import json, sys
sys.path.insert(0, "tests")
from conftest import Visit
said = {"home": Visit().text}
for name in ("distinct_mean", "padded_loss"):
    said[name] = Visit(name).text
page = Visit("sandbox")
page.choose("sandbox-distinct_mean")
page.put("bugs-sandbox-distinct_mean", ["padded_loss", "distinct_mean"])
said["sandbox"] = page.text
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project with the three files of both bugs dropped in."""
    there = tmp_path_factory.mktemp("project") / "gradebook"
    shutil.copytree(ROOT, there, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    for name, (title, _, module, scenario) in BUGS.items():
        (there / f"gradebook/bugs/{name}.py").write_text(module)
        (there / f"scenarios/{name}.toml").write_text(scenario)
        page = PAGE.format(title=title, name=name)
        (there / f"pages/99_{name}.py").write_text(page)
    return there


def printed(folder, code):
    """What the code prints as JSON, run in the folder."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def library(copy):
    return printed(copy, LIBRARY)


def test_the_files_are_short():
    for _, _, module, _ in BUGS.values():
        lines = module.partition('"""\n\n')[2].splitlines()
        assert len([line for line in lines if line.strip()]) <= 15
    assert len(PAGE.splitlines()) == 5


def test_the_library_knows_both(library):
    for name, (title, stage, _, _) in BUGS.items():
        assert library[name]["stage"] == stage
        assert library[name]["title"] == title
        assert library[name]["link"] and library[name]["sandbox"]
    assert library["distinct_mean"]["phrase"] == "a mean over distinct rewards"
    assert library["distinct_mean"]["laws"] == ["zero_sum"]
    assert library["padded_loss"]["laws"] == ["micro_batch"]


def test_their_numbers_are_those_of_a_hand(library):
    correct, faulty = library["distinct_mean"]["advantages"]
    assert correct == pytest.approx([0.5, 0.5, 0.5, -1.5])
    assert faulty == pytest.approx([1, 1, 1, -1])
    first, second = library["padded_loss"]["advantages"]
    assert first == second
    losses = library["padded_loss"]["losses"]
    assert losses == pytest.approx([0.2357023, 0.1767767])


def test_a_faulty_baseline_is_not_explained_by_the_setting(library):
    """The mean of the rows, 0.75, is not what the faulty stage gives."""
    told = library["distinct_mean"]
    assert "(1.000 − 0.500) / 0.500 = +1.000" in told["formula"]
    assert "from the faulty stage; the setting would give +0.750" in told["formula"]
    assert "mean of" not in told["formula"]


def test_both_are_in_a_plan_and_past_the_default_hour(library):
    for name in BUGS:
        (minutes,) = library[name]["plan"]
        assert minutes == 60 - 4 - 5
        assert name in library[name]["past the hour"]


def test_what_is_taken_home_is_of_the_new_bug(library):
    told = library["distinct_mean"]
    assert "faulty_baseline" in told["csv"].splitlines()[0]
    assert 'bug = "distinct_mean"' in told["scenario file"]
    assert "def zero_sum(" in told["pytest"]
    assert "groups.at_rows(groups.mean(score))" in told["handout"]
    assert "rows times width" in library["padded_loss"]["handout"]


def test_the_solution_of_a_new_challenge_solves_it(library):
    assert library["distinct_mean"]["solved"] == [True]


def test_the_check_knows_both_in_small_and_large_logs(copy):
    """Rows of the log, and of each of its steps."""
    sizes = [(100, 20), (100_000, 500)]
    baseline, loss = printed(copy, f"SIZES = {sizes}\n{LOGS}")
    for verdict, bug, sentence, *_ in baseline:
        assert (verdict, bug) == ("asks", "distinct_mean")
        assert "a mean over distinct rewards" in sentence
    for verdict, bug, _, *notes in loss:
        assert (verdict, bug) == ("correct", "")
        assert any(
            note.startswith("Not checked: Padded loss. It leaves no trace")
            for note in notes
        )


def test_pages_home_and_sandbox_show_both(copy):
    said = printed(copy, PAGES)
    for name, (title, *_) in BUGS.items():
        assert title in said["home"] and title in said[name]
    assert "groups.at_rows(groups.mean(score))" in said["distinct_mean"]
    assert "weighted_loss" in said["padded_loss"]
    assert "`baseline`, `loss`" in said["sandbox"]
