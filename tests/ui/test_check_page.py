"""The page "Check your run", from the example to the step on a bug's page."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from gradebook.cases.scenario import load
from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.logs.read.files import LogFile
from gradebook.logs.read.rows import pasted
from gradebook.logs.worker import Checks
from gradebook.ui.board.component import EDITING, OPEN, taken
from gradebook.ui.pages.check import checks
from gradebook.ui.parts.ask import EXAMPLES, FOLDER

NO_ADVANTAGES = "step,prompt,reward\n1,a,0\n1,a,1\n1,a,1\n2,b,1\n2,b,3\n"
ONE_TAIL = "step,prompt,reward,advantage\n" + "".join(
    f"{step},{prompt},{reward},{advantage}\n"
    for step in (1, 2, 3)
    # (reward - 2) / (1 + 1e-4), and a last row that is something else.
    for prompt, reward, advantage in (
        ("a", 1, -0.9999),
        ("a", 2, 0),
        ("a", 3, 0.9999),
        ("b", 1, -0.9999),
        ("b", 2, 0),
        ("b", 3, 0.25),
    )
)


@pytest.fixture(scope="module")
def opened(visit):
    """The page, visited once: each test begins another check on it."""
    page = visit("check")
    checks().ask([pasted(ONE_TAIL)], {}).future.result(600)  # its process is ready
    assert "The verdict" not in page.text and page.pictures == []
    return page


@pytest.fixture
def page(opened):
    yield opened
    for field in ("declared", "columns", "weights", "size"):
        opened.app.session_state[f"check-{field}"] = ""


def paste(page, text):
    page.app.session_state["checking"] = None
    return page.put("check-text", text)


def links(page):
    return [one.proto.label.replace("\\", "") for one in page.app.get("page_link")]


@pytest.mark.parametrize(
    "example, head, bug",
    [
        ("trl", "A known computation", ""),
        ("lost-rollouts", "◆ Suspect: Partial groups", "partial_groups"),
        ("rejected-answers", "? A question: Rejected rows", "rejected_rows"),
    ],
)
def test_an_example_is_checked_by_one_click(page, example, head, bug):
    page.click(f"check-example-{example}")
    assert head in page.text
    assert "<td>12 of 12</td>" in page.text
    assert "✓" not in page.text
    # One mark per step.
    _, drawn = page.pictures  # the signal, then the timeline
    assert sum(len(trace["x"]) for trace in drawn["data"]) == 12
    if bug:
        title = load(bug).title
        assert f"Read about the bug: {title}" in links(page)


def test_a_step_opens_on_the_bugs_page_and_says_what_it_is(page):
    page.click("check-example-lost-rollouts")
    page.click("check-open-first")
    try:
        assert page.app.title[0].value == "Partial groups"
        page.case = "partial_groups"
        assert len(page.board["rows"]) == 12  # step 4 lost 4 of 16
        said = "These rows are step 4 of the example"
        assert page.board["source"].startswith(said)
    finally:
        page.go("check")
    # The verdict is still there.
    assert "◆ Suspect: Partial groups" in page.text


def test_a_chosen_step_shows_its_groups(page):
    page.click("check-example-lost-rollouts")
    page.put("check-step", "7")
    # TRUTH of the log: row 6 of step 7 is off by 1.13, and its sign flips.
    assert "Step 7: the logged advantages beside" in page.text
    assert page.text.count("FLIP") == 1
    labels = [button.label for button in page.app.button]
    assert "Open step 7 on the page Partial groups" in labels


def test_declared_settings_change_the_verdict(page):
    log = "step,prompt,reward,advantage\n" + "".join(
        f"{step},{prompt},{reward},{float(reward) - mean}\n"
        for step in (1, 2, 3)
        for prompt, rewards in (("a", (0, 1, 5)), ("b", (2, 2, 8)))
        for mean in [sum(rewards) / 3]
        for reward in rewards
    )
    paste(page, log)
    assert "✓" not in page.text
    assert "The advantages match Dr. GRPO." in page.text
    assert "If you configured that, nothing is wrong." in page.text
    assert (
        "If GRPO was configured, these are the numbers of the bug Swapped scale."
        in page.text
    )
    page.put("check-declared", "estimator=grpo, scale=group")
    assert "◇ Not what was declared" in page.text
    page.put("check-declared", "scale=grup")
    assert any("grup" in said for said in page.errors)
    page.go("").go("check")
    assert page.widget("check-declared").value == "scale=grup"


def test_colour_and_tick_come_with_the_answer(page):
    page.click("check-example-trl")
    assert "✓" not in page.text
    assert page.pictures[-1]["data"][0]["marker"]["color"] == "gray"
    page.put("check-estimator", "GRPO")
    try:
        assert "✓ Correct" in page.text
        assert "as declared: estimator=grpo" in page.text
        assert page.pictures[-1]["data"][0]["marker"]["color"] != "gray"
        page.put("check-estimator", "TRL 1.16.0, grpo, scale_rewards=group")
        assert "✓ Correct" in page.text
        page.put("check-estimator", "TRL 1.16.0, grpo, scale_rewards=none")
        assert "◇ Not what was declared" in page.text
        page.put("check-estimator", "I don't know")
        assert "✓" not in page.text
        assert "The advantages match GRPO (ddof 1, eps 0.0001)." in page.text
        assert "If you configured that, nothing is wrong." in page.text
    finally:
        page.put("check-estimator", None)


@pytest.mark.parametrize(
    "key, head",
    [
        ("check-confirm", "◆ Suspect: Rejected rows"),
        pytest.param("check-deny", "? Nothing fits", marks=pytest.mark.long),
    ],
)
def test_what_a_column_means_is_answered_by_a_button(page, key, head):
    page.click("check-example-rejected-answers")
    text = page.text.replace("\\", "")
    assert "If `response_length` is 0 for rejected rollouts" in text
    assert "--declared" not in text
    page.click(key)
    assert head in page.text
    assert "You said: " in page.text
    assert "check-confirm" not in page.buttons
    page.click("check-take-back")
    assert "? A question" in page.text and "You said: " not in page.text


def test_a_log_without_advantages_draws_no_timeline(page):
    paste(page, NO_ADVANTAGES)
    assert "? Cannot tell" in page.text
    (signal,) = page.pictures
    assert {bars["type"] for bars in signal["data"]} == {"bar"}
    assert "Rewards differ in each of the 2 prompts." in page.text
    assert "What each engine would compute" in page.text
    assert load("swapped_scale").title in page.text


def test_a_broken_log_ends_in_a_sentence(page):
    paste(page, "x,y\n1,2\n")
    (error,) = page.errors
    assert error.startswith("There is no verdict.")
    assert "expected a column of rewards" in error
    assert "Choose it under Columns." in error and "--column" not in error
    assert page.widget("check-column-reward").options == ["none", "x: 1", "y: 2"]
    assert page.app.get("progress") == [] and "check-cancel" not in page.buttons
    assert page.widget("check-text").value == "x,y\n1,2\n"


def test_a_check_that_was_ended_can_be_repeated(page, monkeypatch):
    def pressed(*_):
        raise GradebookError("the run was ended")

    with monkeypatch.context() as patch:
        patch.setattr(Checks, "ask", pressed)
        paste(page, ONE_TAIL)
    assert "no verdict" in page.errors[0]
    page.click("check-again")
    assert (
        "? Nothing fits" in page.text
        and "Near miss: GRPO fits 15 of the 18 rows" in page.text
    )
    assert "Only the last rows of each step do not fit" in page.text


def test_every_example_is_shipped():
    assert {path.name for path in FOLDER.iterdir()} == {"README.md", *EXAMPLES}


def test_a_search_can_be_ended_between_two_candidates():
    source = pasted(ONE_TAIL)

    def stop(share, steps):
        assert steps == 0
        raise InterruptedError

    with pytest.raises(InterruptedError):
        check_log([source], progress=stop)
    assert check_log([source]).verdict == "none fits"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_another_learners_edit_is_answered_while_a_check_keeps_the_worker_busy(
    visit, tmp_path
):
    """The log is a pipe, which ends after the edit is answered."""
    log, other = tmp_path / "log.csv", visit("partial_groups").board
    os.mkfifo(log)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(checks().ask, [LogFile(log.name, log)], {})
        with log.open("w") as rest:  # when the worker has opened it for reading
            edit = {"n": 1, "do": "cell", "row": 0, "column": "reward", "value": "7"}
            message = {"epoch": other["epoch"], "edits": [edit]}
            answer = EDITING.submit(taken, OPEN[other["epoch"]], message).result(300)
            assert answer["ack"] == 1
            assert not asked.result(300).is_done(0)
            rest.write(ONE_TAIL)
    assert len(asked.result().future.result(300).frame) == 3
