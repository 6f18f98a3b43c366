"""The page of training runs: prediction, doses, tables, link, live run."""

import math
from concurrent.futures import Future
from dataclasses import replace

import pytest

from gradebook.training.study import OPTIMIZERS, Run
from gradebook.training.train import trained
from gradebook.training.transformer.results import Pair, Trained, measured
from gradebook.ui.parts.desk import (
    DESK,
    Desk,
    Place,
    first_place,
    query_of,
    read_link,
)
from gradebook.ui.parts.drafts import PROGRESS, SKIPPED, Progress

PAGE = "consequences"


def curves(page):
    """What the component of the curves and the words was given."""
    (data,) = page.sent("policies")
    return data


def test_the_page_asks_first_and_shows_what_was_trained_in_advance(visit):
    page = visit(PAGE)
    assert "Predict before you look" in page.text
    assert not page.sent("policies")
    data = curves(page.click("training-1"))
    # 0.744 and 0.001 in 1024 answers a seed; a curve has 256 of them.
    assert data["means"][0][-1] == pytest.approx(744, abs=20)
    assert data["means"][1][-1] == pytest.approx(1, abs=20)
    said = data["headlines"]["200"]
    assert said.startswith("You said worse. That is right.")
    assert "74 points lower after 200 updates" in said
    assert "798,592 parameters" in page.text and "16 seeds" in page.text
    assert "NVIDIA H100" in page.text and "the effect may differ in size" in page.text


def test_both_policies_answer_the_same_prompts_with_mistakes_marked(visit):
    page = visit(PAGE, bug="no_eos_outliers")
    data = curves(page.click("training-skip"))
    assert [prompt["text"] for prompt in data["prompts"][:3]] == [
        "31+38=",
        "39+55=",
        "57+68=",
    ]
    assert [*data["words"]] == ["0", "50", "100", "200"]
    correct, faulty = data["words"]["200"]
    assert len(correct) == len(faulty) == len(data["prompts"])
    # "sure, 14+80=94. no, 14+80=94. again, 14+…" on the GPU.
    assert faulty[1]["pieces"][0] == ["sure, 14+80=94. ", False]
    assert faulty[1]["faults"] == ["does not end"]
    assert correct[1]["faults"] == []


def test_another_dose_is_another_run_and_the_address_says_so(visit):
    page = visit(PAGE, bug="no_eos_outliers")
    page.click("training-skip")
    data = curves(page.put("training-dose-no_eos_outliers-1", "0.9"))
    assert page.app.query_params["dose"] == "0.9"
    assert "points higher" in data["headlines"]["200"]
    pair = measured("no_eos_outliers", "0.9")
    assert data["means"][1][-1] == round(1000 * pair.faulty.mean[-1])


def test_the_page_says_that_tables_and_transformer_disagree(visit):
    page = visit(PAGE, bug="micro_batch_means").click("training-skip")
    assert "Tables and transformer disagree" in page.text
    page = visit(PAGE, bug="bf16_rewards").click("training-skip")
    assert "disagree" not in page.text and "The tables:" in page.text
    # 20 points higher here, 1 point higher in the tables.
    page = visit(PAGE, bug="no_eos_outliers", dose="0.9").click("training-skip")
    assert "Tables and transformer differ in size" in page.text


def test_the_tables_open_at_the_run_of_a_link(visit):
    page = visit(PAGE, bug="no_eos_outliers", value="1.2").click("training-skip")
    assert page.app.slider[0].value == pytest.approx(1.2)
    page.app.slider[0].set_value(0.8)
    page.run()
    assert page.app.query_params["value"] == "0.8"
    page.widget("training-cancel").click()
    assert "Cancelled" in page.run().text
    assert page.widget("training-start")


def test_a_live_run_grows_and_is_cancelled(visit, monkeypatch):
    """The queue is in the way: what it has so far is drawn, and Cancel ends it."""
    asked, cancelled = [], []
    pair = measured("no_eos_outliers", "1.1")
    keep = {"words": {"0": pair.correct.words["0"]}, "updates": [0]}
    early = replace(
        pair,
        correct=replace(
            pair.correct, success=[[s[0]] for s in pair.correct.success], **keep
        ),
        faulty=replace(
            pair.faulty, success=[[s[0]] for s in pair.faulty.success], **keep
        ),
    )

    class Slow:
        def ask(self, *call):
            asked.append(call)
            return Future()

        def place(self, *call):
            return 0

        def so_far(self, *call):
            return early

        def cancel(self, *call):
            cancelled.append(call)

    monkeypatch.setattr("gradebook.ui.pages.consequences.runs", Slow)
    monkeypatch.setattr("gradebook.ui.parts.desk.runs", Slow)
    page = visit(PAGE, bug="no_eos_outliers").click("training-skip")
    page.click("live-start")
    data = curves(page)
    assert data["grows"] and data["headlines"]["0"] == "Training: 0 of 50 updates."
    assert asked[0][1:] == ("no_eos_outliers", "1.1")
    page.click("live-cancel")
    assert cancelled[-1] == asked[0]
    assert not curves(page)["grows"]


def test_a_finished_live_run_is_named_and_judged_as_one_comparison(visit, monkeypatch):
    """Four seeds, faulty less correct: -3, -4, -2 and -3 of 10 answers. The interval
    is 3 +- 3.182 * 0.816 / 2, so 17 to 43 points: a finding for one comparison, and
    none among 36, whose t quantile is 13.4."""

    def run(counts):
        words = {"0": [[]] * 24, "50": [[]] * 24}
        success = [[5, count] for count in counts]
        return Trained([0, 50], 10, success, [0.5, 0.75], [9.0, 9.0], words)

    future = Future()
    future.set_result(Pair(run([5, 6, 4, 5]), run([2, 2, 2, 2])))

    class Done:
        def ask(self, *call):
            return future

    monkeypatch.setattr("gradebook.ui.pages.consequences.runs", Done)
    page = visit(PAGE, bug="no_eos_outliers").click("training-1")
    data = curves(page.click("live-start"))
    assert not data["grows"] and len(data["prompts"]) == 24
    said = data["headlines"]["50"]
    assert said.startswith("With 1.1 instead of 1 for") and "17 to 43" in said
    assert "no finding" not in said
    assert "104,384 parameters" in page.text and "NVIDIA" not in page.text
    assert data["notes"]["50"].startswith("Of all 40 answers, 75\u00a0% do not end")
    data = curves(page.click("live-back"))
    assert len(data["prompts"]) == 6 and "NVIDIA" in page.text


def test_the_page_says_how_many_rollouts_a_prompt_had(visit):
    for bug, count in (("double_normalization", 6), ("padded_mean", 8)):
        page = visit(PAGE, bug=bug).click("training-skip")
        assert f"32 prompts with {count} rollouts" in page.text


def test_the_link_of_a_place_leads_to_that_place():
    run = Run("partial_groups", 2.5, "sgd", 32)
    for place in (
        Place("partial_groups", "0.5 %", run),
        Place("swapped_scale", first_place("swapped_scale").dose, None),
        first_place("no_eos_outliers"),
    ):
        assert read_link(query_of(place)) == (place, "")


@pytest.mark.parametrize(
    "key, text, expected",
    [
        ("value", "1e9", "a number from 0 to 20"),
        ("value", "1.3", "in steps of 0.5"),
        ("seeds", "1000000", "one of 8, 16, 32"),
        ("optimizer", "<b>", "one of adam"),
        ("dose", "6 %", "one of 0.5 %, 5 %"),
        ("bug", "x", "'bug'"),
    ],
)
def test_a_link_with_bad_values_opens_with_a_message(key, text, expected):
    place, problem = read_link({"bug": "partial_groups", key: text})
    bug = "no_eos_outliers" if key == "bug" else "partial_groups"
    assert place == first_place(bug)
    assert expected in problem


def test_a_run_that_diverges_is_shown_as_that(monkeypatch, visit):
    title, optimizer, _ = OPTIMIZERS["sgd5"]
    monkeypatch.setitem(OPTIMIZERS, "sgd5", (title, optimizer, math.inf))
    run = Run("partial_groups", 1.0, "sgd5", 8)
    place = replace(first_place(run.bug), run=run)
    progress = Progress(trained={run.bug: (SKIPPED, place.dose)})
    mine = Desk(place, results={run: trained(run)}, opens=True)
    page = visit(PAGE, {DESK.name: mine, PROGRESS.name: progress})
    assert "no number is left to compare" in page.text
    assert "8 of 8 seeds diverged" in "".join(w.value for w in page.app.warning)


def test_each_bug_s_page_links_to_its_training_runs(visit):
    links = visit("partial_groups").app.get("page_link")
    (query,) = (
        x.proto.query_string for x in links if x.proto.label == "Does it matter?"
    )
    assert "bug=partial_groups" in query
