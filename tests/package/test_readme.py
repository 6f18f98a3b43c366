"""The READMEs are true: their code runs, and their files, numbers and keys exist."""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gradebook
from gradebook.__main__ import main, parser
from gradebook.cases import case, home_case, reports, rules, scenario, schema
from gradebook.cases.status import Checked, Status, Version
from gradebook.classroom import plan
from gradebook.core.formatting import signed
from gradebook.training import study
from gradebook.training.transformer import experiments, grpo

ROOT = Path(__file__).parents[2]
PAPERS = {
    name: (ROOT / name).read_text("utf-8")
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "scenarios/README.md",
        "gradebook/logs/README.md",
        "gradebook/trainers/README.md",
        "gradebook/classroom/README.md",
    )
}
README, LOGS = PAPERS["README.md"], PAPERS["gradebook/logs/README.md"]
TRAINERS = PAPERS["gradebook/trainers/README.md"]
SECTIONS = [
    "One bug in four rows",
    "Run it",
    "Check your own run",
    "What you can do",
    "The bugs",
    "Watch your own trainer",
    "How far to trust it",
    "Use it in Python",
    "Test",
    "More",
]


def block(paper: str, marker: str, language: str = "python") -> str:
    """The paper's only code block of that language with the marker in it."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", paper, re.S | re.M)
    (only,) = [text for text in blocks if marker in text]
    return only


def test_the_readme_has_its_ten_sections():
    assert re.findall(r"^## (.*)", README, re.M) == SECTIONS


def test_the_ci_finds_one_command_under_test():
    (section,) = re.findall(r"^## Test\n(.*?)^## ", README, re.S | re.M)
    (command,) = re.findall(r"^```sh\n(.*?)\n```", section, re.S | re.M)
    assert "tests/requirements.txt" in command and "-m pytest" in command


def test_the_four_rows_are_the_engines_numbers():
    loaded = gradebook.load("partial_groups")
    batch = loaded.batch()
    engines = gradebook.CORRECT, gradebook.bug("partial_groups").engine
    advantages = [gradebook.run(engine, batch).advantage for engine in engines]
    section = README.partition("## Run it")[0]
    rows = re.findall(r"^\| \**(\d+)\** \| (.*) \|$", section, re.M)
    assert [int(number) for number, _ in rows] == [8, 9, 10, 11]
    cells = loaded.rows.cells
    for number, text in rows:
        row = int(number)
        prompt, reward, *shown = text.replace("*", "").split(" | ")
        assert prompt == cells["prompt"][row]
        assert float(reward) == float(cells["reward"][row])
        assert shown == [signed(float(values[row])) for values in advantages]


def test_the_table_of_bugs_names_the_first_five_with_their_needs_and_status():
    (section,) = re.findall(r"^## The bugs\n(.*?)^## ", README, re.S | re.M)
    rows = [line.strip("| ").split(" | ") for line in section.splitlines()]
    rows = [row for row in rows if len(row) == 5][1:]
    order = tomllib.loads((ROOT / "pages" / "order.toml").read_text())
    first = [name for name in order if name in gradebook.BUGS][:5]
    assert len(rows) == len(first)
    for name, (title, trainer, _, needs, status) in zip(first, rows):
        bug = gradebook.bug(name)
        assert (title, trainer) == (bug.title, bug.trainer)
        # The setting that it needs is a key that the page names, too.
        (setting,) = re.findall(r"`(\w+)`", needs)[:1]
        assert any(setting in key for key in gradebook.load(name).affected.keys)
        assert status == bug.status[0].dated


def test_the_library_example_prints_what_it_says(capsys):
    exec(block(README, "gradebook.load"), {})
    printed = re.findall(r"-?[0-9]+\.[0-9]+", capsys.readouterr().out)
    assert [float(n) for n in printed[:2]] == pytest.approx([1.0, -0.48], abs=1e-3)


def test_the_recorded_example_is_correct(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(block(README, "gradebook.Recorder"), {})
    assert main(["check", "run-7"]) == 0
    assert "as declared: estimator=dr_grpo." in capsys.readouterr().out


def test_the_probed_example_prints_what_it_says(tmp_path):
    script = tmp_path / "probed.py"
    script.write_text(block(TRAINERS, "def centred", "py"))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("Dr. GRPO\n", 0), run.stderr


def test_the_checked_example_prints_what_it_says(capsys):
    command, shown = re.search(
        r"-m gradebook (check scenarios/\S+)\n```\n\n```\n(.*?)```", README, re.S
    ).groups()
    name, log = command.split()
    assert main([name, str(ROOT / log)]) == 1
    assert capsys.readouterr().out == shown


def test_the_annotations_are_what_the_check_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    command, shown = re.search(
        r"```sh\ngradebook (check [^\n]* --format github)\n```\n\n```\n(.*?)```",
        LOGS,
        re.S,
    ).groups()
    assert main(shlex.split(command)) == 1
    assert capsys.readouterr().out.startswith(shown)
    assert main(shlex.split(command.replace("github", "junit"))) == 1
    assert block(LOGS, "<testsuites", "xml") in capsys.readouterr().out


def test_commands_and_options_that_are_shown_exist():
    _, commands = next(
        (action.dest, action.choices)
        for action in parser()._actions
        if action.dest == "command"
    )
    options = {o for a in commands["check"]._actions for o in a.option_strings}
    table = set(re.findall(r"^\| `(--[a-z-]+)", LOGS, re.M))
    assert table == options - {"-h", "--help"}
    for paper in PAPERS.values():
        for name in re.findall(r"(?:^|`)gradebook ([a-z]+)\b", paper, re.M):
            assert name in commands


def test_code_for_a_cluster_compiles_and_names_what_exists():
    for marker in ("dask.bag", "ray.data"):
        code = block(LOGS, marker, "py")
        compile(code, marker, "exec")
        for name in re.findall(r"gradebook\.(\w+)", code):
            assert hasattr(gradebook, name)


@pytest.mark.parametrize("paper", PAPERS)
def test_files_that_a_paper_names_exist(paper):
    text, folder = PAPERS[paper], (ROOT / paper).parent
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (folder / link.split()[0]).exists(), link
    named = re.findall(r"`([a-z_0-9]+/[a-z_/0-9-]*(?:\.(?:py|toml|md|conf))?)`", text)
    for name in named + re.findall(r"python (tests/\S+\.py)", text):
        top, places = name.split("/")[0], (ROOT, ROOT / "gradebook", folder)
        if any((place / top).exists() for place in places):  # not a trainer's file
            assert any((place / name).exists() for place in places), name


FILES = {
    "A bug's file, key by key": (
        *(
            scenario.Scenario,
            schema.Source,
            schema.Lesson,
            case.Affected,
            case.BugRecord,
        ),
        *(case.Prediction, case.Telltale, case.Dispute, case.Kin, case.Challenge),
        *(case.Edits, case.Change, case.Bounds, case.Agree, case.Differ, case.Equal),
        *(case.Crash, case.Expected, case.Reading, Status, Checked, Version),
    ),
    "Add an alarm": (reports.Alarm, reports.AlarmEvidence),
    "Add a study": (study.Study, study.Slider, study.TabularConditions),
    "Add a study of a transformer": (
        *(experiments.Experiment, experiments.Dose, grpo.TransformerConditions),
    ),
    "Rules and plans": (rules.Rule, plan.TitledPlan, plan.Shelf),
    "Home": (home_case.HomeCase,),
}


def kinds_of(part):
    for kind in part.__subclasses__():
        yield from (kind, *kinds_of(kind))


def test_every_table_of_a_file_is_in_a_section():
    explained = {part for parts in FILES.values() for part in parts}
    # The keys of a base are those of its subclasses; what code makes is no file.
    inherited = {base for part in explained for base in part.__mro__}
    made = {scenario.PlainCase, scenario.Bug}
    of_gradebook = {
        kind
        for kind in kinds_of(schema.FilePart)
        if kind.__module__.startswith("gradebook.")
    }
    assert of_gradebook - inherited - made == set()


@pytest.mark.parametrize("section", FILES)
def test_every_key_of_a_file_is_explained(section):
    paper = PAPERS["scenarios/README.md"]
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", paper, re.S | re.M)
    keys = {f.name for part in FILES[section] for f in dataclasses.fields(part)}
    missing = {key for key in keys - {"name", "path"} if f"{key}`" not in text}
    tables = {key for key in missing if f"[{key}]" in text}
    assert missing - tables == set()


def test_pictures_are_no_part_of_the_package():
    assert not list((ROOT / "gradebook").rglob("*.png"))


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [name.split(" :: ")[-1] for name in PROJECT["classifiers"]]


def test_the_readme_names_the_pythons_that_are_declared():
    assert f">={PYTHONS[0]}" == PROJECT["requires-python"]
    *others, last = PYTHONS
    assert f"Python {', '.join(others)} or {last}" in README
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in PYTHONS


@pytest.mark.parametrize("version", PYTHONS)
def test_every_file_compiles_without_warnings(version):
    """On each declared Python that is installed here."""
    python = shutil.which(f"python{version}")
    known = subprocess.run([python or "false", "--version"], capture_output=True)
    if known.returncode:
        pytest.skip(f"Python {version} is not installed")
    files = [str(path) for path in (ROOT / "gradebook").rglob("*.py")]
    code = "import sys; [compile(open(f).read(), f, 'exec') for f in sys.argv[1:]]"
    command = [python, "-W", "error", "-X", "utf8", "-c", code, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
