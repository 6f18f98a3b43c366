"""What a learner takes home is readable elsewhere, and says the truth."""

import math
import re
import shutil
import tomllib
from dataclasses import replace
from functools import partial

import pytest
from output.typed import LINK, NASTY, labelled, opened, read

import gradebook
from gradebook.analysis.comparison import compared
from gradebook.cases import scenario as scenarios
from gradebook.cases.edits import replace_rows
from gradebook.cases.scenario import FOLDER, case, names, starts
from gradebook.cases.state import start
from gradebook.cases.table import Table
from gradebook.core.errors import GradebookError
from gradebook.engine.pipeline import CHAPTERS
from gradebook.output.csv_file import csv_file, rows_file
from gradebook.output.pytest_file import pytest_file
from gradebook.output.scenario_file import scenario_file

# CSV


def test_a_row_has_every_stage_of_both_engines():
    rows = read(csv_file(opened("partial_groups")))
    assert len(rows) == 12
    stages = {name.partition("_")[2] for name in rows[0]}
    names = [*rows[0]]
    assert names.index("t1") < names.index("correct_score")
    assert {*CHAPTERS["rows"]} <= stages
    row = rows[10]
    assert (row["row"], row["prompt"], row["reward"]) == ("10", "C", "2.0")
    # (2 - 25.75) / 49.5067 and (2 - 1) / 1
    assert float(row["faulty_baseline"]) == 25.75
    assert float(row["correct_baseline"]) == 1.0
    assert float(row["faulty_advantage"]) == pytest.approx(-0.47973, abs=1e-4)
    assert float(row["correct_advantage"]) == pytest.approx(1, abs=1e-4)


def test_the_gradient_is_listed_token_by_token():
    rows = read(csv_file(opened("zero_std_kl")))
    # beta / 10 * (1 - exp(ln 2)) = -0.004 on a token of a flat group
    assert float(rows[0]["faulty_kl_gradient_t1"]) == pytest.approx(-0.004)
    assert float(rows[0]["correct_kl_gradient_t1"]) == 0
    assert float(rows[0]["faulty_kl_gradient_t3"]) == 0  # masked
    rows = read(csv_file(opened("double_normalization-subsample")))
    assert (rows[1]["correct_advantage"], rows[1]["kept_steps"]) == ("", "0")


@pytest.mark.parametrize("label", NASTY)
def test_no_prompt_is_a_formula(label):
    state = labelled(opened("partial_groups"), [label])
    rows = read(csv_file(state))
    assert len(rows) == 12
    for piece in re.split(r"[;\t\r\n]", rows[0]["prompt"]):
        assert piece.strip()[:1] not in tuple("=+-@")
    plain = label.strip().replace("'", "")
    assert rows[0]["prompt"].replace("'", "") == plain


# Scenario file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of scenarios/, for a file to be put into."""
    shutil.copytree(FOLDER, tmp_path / "scenarios")
    monkeypatch.setattr(scenarios, "FOLDER", tmp_path / "scenarios")
    return tmp_path / "scenarios"


def loaded(state, folder):
    path = folder / f"{state.scenario.bug}-mine.toml"
    path.write_bytes(scenario_file(state).encode())
    return gradebook.load(path)


@pytest.mark.parametrize("name", names())
def test_a_scenario_file_gives_the_same_state(name, tmp_path):
    state = opened(name, eps=0.5)
    back = start(loaded(state, tmp_path))
    assert back.settings == state.settings
    assert back.table == state.table
    assert back.row == state.row
    both = compared(back)
    for side in ("correct", "faulty"):
        advantages = getattr(both, side).advantage.tolist()
        finite = [v if math.isfinite(v) else math.nan for v in advantages]
        expected = getattr(back.scenario.expected, side)
        assert expected == pytest.approx(finite, nan_ok=True)


def test_in_scenarios_it_is_a_variant_of_its_page(folder):
    for bug in gradebook.BUGS:
        loaded(opened(bug), folder)
        variants = {variant.name: variant for variant in scenarios.variants(bug)}
        mine = variants[f"{bug}-mine"]
        assert mine.variant and mine.title.startswith("A copied batch")
        assert mine.kind == "face" and "differ" in mine.claim
    edited = scenario_file(opened("partial_groups", eps=0.5))
    assert "An edited batch" in edited and "was edited" in edited
    (folder / "partial_groups-other.toml").write_text(edited)
    assert len(scenarios.variants("partial_groups")) == 7


def test_the_answer_is_about_the_selected_row(tmp_path):
    mine = loaded(opened("partial_groups-full"), tmp_path)
    assert mine.kind == "hides" and "agree" in mine.claim
    state = opened("partial_groups")
    for row, answer in ((0, "Yes"), (10, "No")):
        mine = loaded(replace(state, row=row), tmp_path)
        assert mine.focus == row
        assert mine.prediction.choices[mine.prediction.answer] == answer
        assert mine.prediction.said[mine.prediction.answer].startswith("Right: ")
    assert mine.lesson == (
        "4 of 12 rows differ in advantage; the sign flips on row 10."
    )


@pytest.mark.parametrize("label", NASTY)
def test_a_label_comes_back_from_the_file(label, tmp_path):
    state = labelled(opened("partial_groups"), [label, "B"])
    mine = loaded(state, tmp_path)
    assert mine.rows["prompt"][0] == label.strip()
    assert "assert" not in tomllib.loads(scenario_file(state))


@pytest.mark.parametrize("name", starts())
def test_a_start_of_the_sandbox_is_a_case_of_the_chosen_bug(name, tmp_path):
    state = replace(start(case(name)), bugs=("rejected_rows",))
    path = tmp_path / "rejected_rows-mine.toml"
    path.write_text(scenario_file(state), "utf-8")
    back = gradebook.load(path)
    assert back.bug == "rejected_rows" and start(back).table == state.table
    assert back.rule[:40] in pytest_file(state, LINK)


def test_what_no_file_can_hold_is_refused():
    state = opened("rejected_rows")
    lone = Table.of_columns({"prompt": ["\ud800"] * state.rows}, state.table.cells)
    with pytest.raises(GradebookError) as refused:
        scenario_file(replace(state, table=lone, row=0))
    assert refused.value.key == "text"


def test_any_number_of_bugs_but_one_is_refused():
    for write in (scenario_file, partial(pytest_file, link=LINK)):
        for bugs in ((), ("partial_groups", "zero_std_kl")):
            with pytest.raises(GradebookError, match="exactly one bug"):
                write(replace(start(case("sandbox")), bugs=bugs))


@pytest.mark.parametrize("name", ["live_weight", "tool_wall", "no_eos_outliers"])
def test_the_rows_as_a_file_can_be_pasted_back(name):
    state = start(case(name))
    text = rows_file(state)
    assert not any(line.startswith(("=", "+", "-", "@")) for line in text.splitlines())
    back = replace_rows(state, text)
    assert back.table.values() == state.table.values()
