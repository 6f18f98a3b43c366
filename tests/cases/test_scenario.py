"""Every shipped scenario: what the file says is what the engines do."""

import dataclasses
import math
from pathlib import Path

import pandas as pd
import pytest
from one_a_stage import SHIPPED

import gradebook
from gradebook.analysis.comparison import push
from gradebook.analysis.laws import LAWS
from gradebook.cases import scenario as scenarios
from gradebook.cases.scenario import (
    FROM_MAIN,
    KINDS,
    by_stage,
    by_trainer,
    load,
    names,
    variants,
)
from gradebook.engine.pipeline import STAGES

FOLDER = Path(__file__).parents[2] / "scenarios"
ALL = sorted(path.stem for path in FOLDER.glob("*.toml"))
AGREE = 1e-6


def both(name):
    """The correct and the faulty trace of a scenario's batch."""
    scenario = gradebook.load(name)
    batch = scenario.batch()
    faulty = gradebook.bug(scenario.bug).engine
    return gradebook.run(gradebook.CORRECT, batch), gradebook.run(faulty, batch)


def differ(a, b):
    if a is None and b is None:
        return False
    gap = (a - b).abs().nan_to_num(0)
    return bool((a.isnan() != b.isnan()).any() | (gap > AGREE).any())


@pytest.mark.parametrize("name", ALL)
def test_the_engines_give_what_a_hand_worked_out(name):
    expected = gradebook.load(name).expected
    assert expected.correct is not None and expected.faulty is not None
    for side, trace in zip(("correct", "faulty"), both(name)):
        found = trace.advantage.tolist()
        assert found == pytest.approx(
            getattr(expected, side), rel=1e-6, abs=5e-5, nan_ok=True
        )
        pushes = getattr(expected, f"{side}_push")
        assert (pushes is None) == (gradebook.load(name).lines == "row")
        if pushes is not None:
            found = push(gradebook.load(name).batch(), trace).tolist()
            assert found == [pytest.approx(row, abs=5e-6) for row in pushes]
        loss = getattr(expected, f"{side}_loss")
        assert (loss is None) == (trace.loss is None)
        if loss is not None:
            assert float(trace.loss) == pytest.approx(loss, abs=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_it_shows_a_difference_unless_it_hides_it(name):
    scenario, (correct, faulty) = gradebook.load(name), both(name)
    parts = ("advantage", "token_advantage", "baseline", "gradient")
    differs = any(differ(getattr(correct, p), getattr(faulty, p)) for p in parts)
    assert differs is (scenario.kind != "hides")
    if not scenario.variant:
        part = "token_advantage" if correct.gradient is None else "gradient"
        values = [getattr(trace, part)[scenario.focus] for trace in (correct, faulty)]
        assert scenario.kind == "shows" and differ(*values)


@pytest.mark.parametrize("bug", SHIPPED)
def test_every_bug_is_shown_hidden_and_has_another_face(bug):
    found = variants(bug)
    assert found[0] is gradebook.load(bug) and not found[0].variant
    order = [KINDS.index(s.kind) for s in found]
    assert order == sorted(order) and {*order} == {0, 1, 2}
    assert len({s.title for s in found}) == len(found)


def test_names_lists_every_file_main_ones_first():
    assert sorted(names()) == ALL
    count = len(gradebook.BUGS)
    assert sorted(names()[:count]) == sorted(gradebook.BUGS)
    assert {n.partition("-")[0] for n in ALL} == set(gradebook.BUGS)


def test_a_variant_in_another_folder_inherits_from_the_shipped_main_file(tmp_path):
    copy = tmp_path / "partial_groups-mine.toml"
    text = (FOLDER / "partial_groups-tail.toml").read_text()
    copy.write_text(text)
    found, main = gradebook.load(str(copy)), gradebook.load("partial_groups")
    assert found.variant and found.path == copy
    for key in FROM_MAIN:
        assert getattr(found, key) == getattr(main, key)
    assert found.rows == gradebook.load("partial_groups-tail").rows
    assert found.prediction != main.prediction
    copy.write_text(text.replace("A short tail", "The tail"))
    assert gradebook.load(copy).title == "The tail"  # read anew
    assert gradebook.load("rejected_rows") is gradebook.load("rejected_rows")


def test_a_batch_always_goes_through_the_table():
    scenario = gradebook.load("partial_groups")
    table = scenario.table()
    assert table["reward"].tolist()[:2] == ["0.5", "-0.5"]
    table.loc[11, "reward"] = "0"
    moved = scenario.batch(table)
    assert moved.reward[11] == 0
    assert scenario.batch().reward[11] == 100
    for empty in (None, math.nan, pd.NA):
        table.loc[11, "reward"] = empty
        with pytest.raises(gradebook.GradebookError, match="an empty cell"):
            scenario.batch(table)
    other = dataclasses.replace(scenario.settings, ddof=0)
    assert scenario.batch(settings=other).settings.ddof == 0


def choice_at(prediction, value):
    """The choice of a guess on the axis: the first region that holds it, or
    the nearest place."""
    for at, (low, high) in enumerate(prediction.regions):
        if low <= value <= high:
            return at
    return min(
        range(len(prediction.places)), key=lambda at: abs(prediction.places[at] - value)
    )


@pytest.mark.parametrize("name", ALL)
def test_every_guess_has_its_sentence_and_its_place(name):
    scenario = gradebook.load(name)
    question = scenario.prediction
    assert len({*question.said}) == len({*question.choices}) == len(question.choices)
    assert all(text.endswith(".") for text in question.said)
    assert question.said[question.answer].startswith("Right: ")
    assert all(one.insight.endswith(".") for one in scenario.challenges)
    assert question.places or not question.regions
    assert all(low <= high for low, high in question.regions)
    if not question.places:
        return
    expected, row, token = scenario.expected, scenario.focus, scenario.token
    correct, faulty = (float(one.advantage[row]) for one in both(name))
    if scenario.lines != "row":  # the guess is on the axis of the push
        correct = expected.correct_push[row][token]
        faulty = expected.faulty_push[row][token]
    assert choice_at(question, faulty) == question.answer
    for at, place in enumerate(question.places):
        assert choice_at(question, place) == at
        gives_away = abs(place - faulty) < 1e-3
        assert not gives_away or place == 0 or abs(correct - faulty) < 1e-6


def test_titles_are_short_and_sentences_end():
    for name in ALL:
        scenario = gradebook.load(name)
        assert len(scenario.title) <= 40, name
        for key in ("teaser", "claim", "lesson", "rule"):
            assert getattr(scenario, key).endswith("."), (name, key)
        assert 3 <= scenario.story.count(". ") + 1 <= 4, name
        assert scenario.prediction.question.endswith("?"), name
        assert "!" not in scenario.path.read_text().replace("!=", ""), name


# The record of a bug


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_a_record_is_complete(name):
    bug, main = gradebook.bug(name), gradebook.load(name)
    for key in ("title", "trainer", "status", "standing", "controls"):
        assert getattr(bug, key) == getattr(main, key)
    assert all(getattr(bug, key) == v for key, v in vars(main.record).items())
    assert bug.phrase != bug.correct_phrase
    assert bug.tells and bug.would_tell
    assert set(bug.laws) <= set(LAWS)
    assert bug.in_advantages or not bug.columns


def test_bugs_are_grouped_by_trainer_and_by_stage():
    several = "miles fixed in v0.1.0 · slime open · verl by design"
    assert gradebook.bug("fan_out").standing == several
    assert gradebook.bug("partial_groups").standing == "AReaL · fixed in v2.0.0"
    trainers, stages = by_trainer(), by_stage()
    both = {"fan_out", "sharded_whitening", "tool_text", "whole_batch"}
    assert both == {*trainers["miles"]} & {*trainers["slime"]}
    assert list(trainers)[:2] == ["AReaL", "GEM"]
    assert set(stages["counted"]) >= {"fan_out", "rejected_rows"}
    assert [*stages] == [*STAGES]
    for listed in (trainers, stages):
        assert {*gradebook.BUGS} == {bug for bugs in listed.values() for bug in bugs}


def test_a_variant_of_a_bug_that_breaks_no_named_rule_can_be_read(monkeypatch):
    main = dataclasses.replace(gradebook.load("partial_groups"), breaks="")
    monkeypatch.setattr(scenarios, "load", lambda name: main)
    variant = load(FOLDER / "partial_groups-full.toml")
    assert variant.variant and variant.breaks == "" and variant.rule == main.rule
