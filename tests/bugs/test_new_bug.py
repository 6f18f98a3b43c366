"""A bug costs three files, as scenarios/README.md says: a module, a scenario, a
page. Two made-up bugs are dropped into a copy of the project, and are then
complete in every place.

`distinct_mean` sits in the stage baseline.
`padded_loss` sits in the weight of a token and leaves no trace in advantages.
"""

import json
import re
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


def baseline(batch: Batch, score: Tensor, counted: Tensor, group: Tensor) -> Tensor:
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


def weight(batch: Batch, learns: Tensor) -> Tensor:
    """Each token weighs one over rows times width. float64 [R].

    The trainer sees a loss that shrinks with the longest row.
    """
    tokens = batch.rows_per_step[batch.step_index] * batch.mask.shape[-1]
    return 1 / tokens.double()
'''

SCENARIO = """\
title = "{title}"
bug = "{name}"
kind = "shows"
claim = "What goes wrong is told after the answer."
mechanism = "{mechanism}"
complaint = "My curve looks different from that of a friend."
breaks = "sum"
teaser = "A scene is set before it."
story = "One sentence. A second one. A third one."
lesson = "Look at row 1."
rule = "What is correct is computed."
focus = 1
controls = ["eps"]
sources = [{{ label = "a report", url = "https://example.org/1" }}]
rows = [{rows}]

[settings]
eps = 1e-9

[[status]]
trainer = "Nobody"
report = "issue 1"
state = "open"
checked = [{{ version = "1.0", on = 2026-11-01, has_it = true }}]
seen = 2026-11-02

[affected]
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

[prediction]
question = "{question}"
choices = ["No", "Yes"]
answer = 1
why = "A hand says so."
said = ["Row 1 is in the batch. But a hand says more.", "Right: look at row 1."]

[reading]
question = "Which line divides a sum by what was summed?"
{reading}
answer = 1
trainer = 0
said = ["It leaves some out.", "Right: it divides by all.", "That is no mean."]

[record]
columns = []
in_advantages = {in_advantages}
couples_prompts = false
phrase = "{phrase}"
correct_phrase = "a mean over all of them"
tells = "rewards and advantages"
would_tell = "a prompt with equal rewards"
laws = ["{law}"]

{more}
"""

MEAN_SCENARIO = {
    "mechanism": "The mean is taken over the distinct rewards of a prompt.",
    "question": "Does row 1 get a larger advantage?",
    "reading": '''
code = """
___
advantage = (reward - baseline) / reward.std()
"""
lines = [
  "baseline = reward.unique().mean()",
  "baseline = reward.mean()",
  "baseline = reward.median()",
]
gives = "advantage"
''',
    "rows": ", ".join(f'{{ prompt = "A", reward = {n}.0 }}' for n in (1, 1, 1, 0)),
    "in_advantages": "true",
    "phrase": "a mean over distinct rewards",
    "law": "zero_sum",
    "more": """
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
""",
}

LOSS_SCENARIO = {
    "mechanism": "The loss is divided by all places, padding among them.",
    "question": "Is the loss closer to 0?",
    "reading": '''
code = """
___
"""
lines = [
  "weight = 1 / torch.tensor(mask.numel()).expand(len(mask))",
  "weight = 1 / mask.sum().expand(len(mask))",
  "weight = 1 / mask.sum(-1)",
]
gives = "weight"
''',
    "rows": """
  { prompt = "A", reward = 1.0, mask = [1, 0], logp = [-1.0, -1.0] },
  { prompt = "A", reward = 0.0, mask = [1, 1], logp = [-1.0, -1.0] },
""",
    "in_advantages": "false",
    "phrase": "a loss shared with padding",
    "law": "micro_batch",
    "more": """
[expected]
# 0.5 / sqrt(0.5).
correct = [0.707107, -0.707107]
faulty = [0.707107, -0.707107]
# (-0.707107 + 2 * 0.707107) / 3 tokens, and / 4 places.
correct_loss = 0.2357023
faulty_loss = 0.1767767
""",
}

PAGE = '''\
"""{title}: a made-up bug."""

from gradebook.ui.pages.bug import bug_page

bug_page("{name}")
'''

BUGS = {
    "distinct_mean": ("Distinct mean", DISTINCT_MEAN, MEAN_SCENARIO),
    "padded_loss": ("Padded loss", PADDED_LOSS, LOSS_SCENARIO),
}

# Runs in the copy, in a process of its own, since this one knows the old bugs.
CODE = """
import json, sys
import numpy as np, pandas as pd
import gradebook
from gradebook.analysis.challenges import Attempt, apply_solution, missing
from gradebook.analysis.comparison import compare
from gradebook.analysis.formula import worked
from gradebook.cases.link import decode, encode
from gradebook.cases.scenario import starts
from gradebook.cases.state import start
from gradebook.classroom.plan import plan
from gradebook.logs.log import check_log
from gradebook.logs.read.files import LogFile
from gradebook.output.csv_file import csv_file
from gradebook.output.handout import handout
from gradebook.output.pytest_file import pytest_file
from gradebook.output.scenario_file import scenario_file

sys.path.insert(0, "tests")
from conftest import Visit

def log(engine):
    row = np.arange(200)
    frame = pd.DataFrame({"step": row // 20, "prompt": row // 4})
    frame["reward"] = np.random.default_rng(0).integers(0, 3, len(row)) / 2
    columns = {name: frame[name].to_list() for name in frame}
    batch = gradebook.Batch(**columns, settings=gradebook.ESTIMATORS["grpo"])
    frame["advantage"] = gradebook.run(engine, batch).advantage.numpy()
    return LogFile("log.csv", data=frame.to_csv(index=False).encode())

def told(name):
    case = gradebook.load(name)
    bug, state = gradebook.bug(name), start(case)
    both = compare(bug, case.batch())
    traces, lines = (both.correct, both.faulty), worked(both, case.focus)[1]
    tasks = case.challenges
    verdict = check_log([log(bug.engine)])
    return {
        "stage": bug.stage,
        "advantages": [trace.advantage.tolist() for trace in traces],
        "losses": [trace.loss and float(trace.loss) for trace in traces],
        "formula": ["".join(part.text for part in line) for line in lines],
        "solved": [
            not missing(c, Attempt(apply_solution(state, c.solution))) for c in tasks
        ],
        "sandbox": f"sandbox-{name}" in starts(),
        "link": decode(encode(state, True)).state == state,
        "plan": [s.minutes for s in plan([name]) if s.scenario == name],
        "csv": csv_file(state),
        "scenario file": scenario_file(state),
        "pytest": pytest_file(state, "https://example.org"),
        "handout": handout(name),
        "check": [verdict.verdict, verdict.bug, verdict.sentence, *verdict.notes],
        "page": Visit(name).text,
    }

answers = {name: told(name) for name in ("distinct_mean", "padded_loss")}
answers["home"] = Visit().text
page = Visit("sandbox").choose("sandbox-distinct_mean")
page.put("bugs-sandbox-distinct_mean", ["padded_loss", "distinct_mean"])
answers["sandbox"] = page.text
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project with the three files of both bugs dropped in."""
    there = tmp_path_factory.mktemp("project") / "gradebook"
    shutil.copytree(ROOT, there, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    for name, (title, module, scenario) in BUGS.items():
        (there / f"gradebook/bugs/{name}.py").write_text(module)
        file = SCENARIO.format(title=title, name=name, **scenario)
        (there / f"scenarios/{name}.toml").write_text(file)
        page = PAGE.format(title=title, name=name)
        (there / f"pages/{name}.py").write_text(page)
    return there


@pytest.fixture(scope="module")
def told(copy):
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=copy, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# Rooms whose tests do not go over the bugs, and tests that need a browser.
ELSEWHERE = ("browser", "classroom", "cluster", "core", "measure", "training")


@pytest.mark.long
def test_the_tests_of_rooms_that_list_the_bugs_pass_beside_them(copy):
    text = (ROOT / "README.md").read_text("utf-8")
    command = re.search(r"## Test\n.*?/python (-m pytest [^\n]*)\n", text, re.S)[1]
    command += " --ignore tests/bugs/test_new_bug.py"
    command += "".join(f" --ignore tests/{room}" for room in ELSEWHERE)
    done = subprocess.run(
        [sys.executable, *command.split()], cwd=copy, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_their_numbers_are_those_of_a_hand(told):
    assert [told[name]["stage"] for name in BUGS] == ["baseline", "weight"]
    correct, faulty = told["distinct_mean"]["advantages"]
    assert correct == pytest.approx([0.5, 0.5, 0.5, -1.5])
    assert faulty == pytest.approx([1, 1, 1, -1])
    first, second = told["padded_loss"]["advantages"]
    assert first == second
    assert told["padded_loss"]["losses"] == pytest.approx([0.2357023, 0.1767767])
    assert told["distinct_mean"]["solved"] == [True]


def test_a_faulty_baseline_is_not_explained_by_the_setting(told):
    first, baseline, *_ = told["distinct_mean"]["formula"]
    assert first == "(1.000 − 0.500) / 0.500 = +1.000"
    assert "correct for this setting: 0.750" in baseline and "mean of" not in baseline


def test_what_is_taken_home_is_of_the_new_bug(told):
    mean = told["distinct_mean"]
    assert "faulty_baseline" in mean["csv"].splitlines()[0]
    assert 'bug = "distinct_mean"' in mean["scenario file"]
    assert "def zero_sum(" in mean["pytest"]
    assert "groups.at_rows(groups.mean(score))" in mean["handout"]
    assert "rows times width" in told["padded_loss"]["handout"]


def test_the_check_knows_both(told):
    verdict, bug, sentence, *_ = told["distinct_mean"]["check"]
    assert (verdict, bug) == ("asks", "distinct_mean")
    assert "a mean over distinct rewards" in sentence
    verdict, bug, _, *notes = told["padded_loss"]["check"]
    assert (verdict, bug) == ("correct", "")
    silent = [note for note in notes if "leave no trace" in note]
    assert len(silent) == 1 and silent[0].startswith("Not checked: ")
    assert "Padded loss" in silent[0]


def test_plans_links_pages_home_and_sandbox_have_both(told):
    for name, (title, *_) in BUGS.items():
        assert told[name]["plan"] == [60 - 4 - 5]
        assert told[name]["link"] and told[name]["sandbox"]
        assert title in told["home"] and title in told[name]["page"]
    assert "groups.at_rows(groups.mean(score))" in told["distinct_mean"]["page"]
    assert "1 / tokens.double()" in told["padded_loss"]["page"]
    assert "`baseline`, `weight`" in told["sandbox"]
