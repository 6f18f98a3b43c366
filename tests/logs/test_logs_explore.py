"""A checked log's worst steps, one step's rows, the report, the test file."""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from asking import verdict_on
from logs.made import NEEDED, made

import gradebook
from gradebook.analysis.comparison import compare
from gradebook.cases.scenario import load
from gradebook.core.errors import GradebookError
from gradebook.logs.explore import failing_test, state_of, step_rows, worst_steps
from gradebook.logs.log import check_log
from gradebook.logs.read.rows import pasted
from gradebook.logs.surfaces import report, worst_lines


@cache
def checked(bug="", **made_with):
    frame = made(bug, **made_with)
    return frame, verdict_on(frame)


def test_there_is_one_row_per_step_in_order_and_worst_steps_are_listed_first():
    frame, verdict = checked("rejected_rows")
    assert verdict.frame["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert verdict.frame["rows"].tolist() == frame.groupby("step").size().tolist()
    off = worst_steps(verdict, 3)["correct_residual"].tolist()
    assert off == sorted(off, reverse=True)
    assert off[0] == verdict.frame["correct_residual"].max()


@pytest.mark.parametrize("bug", sorted({*NEEDED} - {"double_normalization"}))
def test_a_step_as_a_page_loads_it_gives_the_logged_numbers(bug):
    frame, verdict = checked(bug, steps=3)
    assert verdict.bug == bug
    step = worst_steps(verdict)["step"].iloc[0]
    rows = step_rows(verdict, step)
    assert rows.bug == bug and not rows.note
    logged = frame[frame["step"] == step]
    assert list(map(float, rows.table["reward"])) == logged["reward"].tolist()
    assert rows.logged.tolist() == logged["advantage"].tolist()
    assert [rows.row] == verdict.frame.query("step == @step")["row"].tolist()
    comparison = compare(gradebook.bug(bug), rows.table.batch(rows.settings))
    away = comparison.faulty.advantage.numpy() - rows.logged
    assert np.abs(away / np.maximum(1, np.abs(rows.logged))).max() < 1e-5
    assert not comparison.agree
    if bug == "partial_groups":
        assert rows.settings.group_size == 4


def test_a_large_step_is_reduced_to_whole_groups_around_the_worst_row():
    _, verdict = checked("rejected_rows", steps=1, groups=60)
    rows = step_rows(verdict, 1, most=20)
    shown = len(rows.table)
    assert 4 <= shown <= 20 and shown % 4 == 0
    assert f"{240 - shown} of the step's 240 rows are left out" in rows.note
    away = np.abs(rows.correct - rows.logged)
    assert away.max() == verdict.frame["correct_residual"][0]


def test_the_worst_row_is_shown_if_its_group_is_too_large():
    _, verdict = checked("missing_parentheses", steps=1, groups=60)
    rows = step_rows(verdict, 1, most=1)
    away = np.abs(rows.correct - rows.logged)
    assert away.tolist() == [verdict.frame["correct_residual"][0]]


def test_a_window_of_a_large_step_flips_as_the_whole_does():
    _, verdict = checked("partial_groups", steps=1, groups=60)
    rows = step_rows(verdict, 1, most=40)
    faulty = gradebook.bug("partial_groups").engine
    numbers = gradebook.run(faulty, rows.table.batch(rows.settings)).advantage.numpy()
    whole = len(rows.table) // 4 * 4
    assert np.allclose(numbers[:whole], rows.logged[:whole], atol=1e-4)


def test_long_responses_are_shown_as_one_token():
    frame = made("rejected_rows", steps=1)
    frame["response_length"] *= 100
    rows = step_rows(verdict_on(frame), 1)
    assert "t2" not in rows.table.headers and "longer than" in rows.note


def test_a_step_that_is_not_there_is_named():
    with pytest.raises(GradebookError, match="found '<b>'"):
        step_rows(checked()[1], "<b>")


def test_the_test_file_holds_the_failing_step_with_the_fewest_rows():
    frame, verdict = checked("partial_groups")
    off = verdict.frame[verdict.frame["verdict"] == "suspect"]
    sizes = frame.groupby("step").size()[off["step"]]
    rewards = frame[frame["step"] == sizes.idxmin()]["reward"]
    text = failing_test(verdict)
    assert all(f"{reward:g}" in text for reward in rewards)
    with pytest.raises(GradebookError, match="names a suspect"):
        failing_test(checked()[1])


def test_a_step_of_another_computation_is_compared_with_the_declaration():
    """Rewards 3 1 of one prompt and 1 -1 of another: over the batch, mean 1 and
    deviation 2 ** 0.5; by prompt, each is 1 from its mean, and the
    deviation is 1 with ddof 0, as the batch's is."""
    root = 2**0.5
    columns = {"step": np.repeat(range(6), 4), "prompt": list("aabb") * 6}
    columns |= {"reward": [3, 1, 1, -1, 0, 2, 2, 4] * 3}
    columns |= {"advantage": [root, 0, 0, -root, -root, 0, 0, root] * 3}
    verdict = verdict_on(pd.DataFrame(columns), declared={"estimator": "grpo"})
    assert verdict.verdict == "other"
    rows = step_rows(verdict, 0)
    assert rows.logged == pytest.approx([root, 0, 0, -root])
    assert rows.correct == pytest.approx([1, -1, 1, -1], abs=1e-5)
    assert rows.bug == "whole_batch"
    both = compare(gradebook.bug(rows.bug), state_of(rows, load(rows.bug)).batch())
    assert both.correct.advantage.tolist() == pytest.approx(rows.correct, abs=1e-5)
    assert both.faulty.advantage.tolist() == pytest.approx(rows.logged, abs=1e-5)


def test_the_report_needs_nothing_else():
    page = report(checked("partial_groups")[1])
    assert "default-src 'none'" in page and "url(" not in page
    assert not re.search("<(script|link|img|iframe|a|object)\\b|src=|href=", page)


def test_text_of_a_log_is_escaped_in_the_report():
    frame = made(steps=2)
    frame["step"] = [f"<script>alert({s})</script>" for s in frame["step"]]
    frame = frame.rename(columns={"reward": "<b>r"}).assign(advantage=2.5)
    verdict = verdict_on(frame, name="<i>.csv", columns={"reward": "<b>r"})
    page = report(verdict)
    assert "<script" not in page and "<b>" not in page and "<i>" not in page
    assert "&lt;script&gt;" in page and "&lt;b&gt;r" in page


@pytest.mark.parametrize(
    "declared, off",
    [
        # By hand: GRPO of 0 and 1 is -0.707 and 0.707.
        ({"estimator": "grpo"}, "off by 5.71 from the declared computation"),
        ({}, "from the closest computation"),
    ],
)
def test_a_log_that_nothing_fits_says_from_what_its_rows_are_off(declared, off):
    rows = [("a", 0, 5), ("a", 1, -3), ("b", 0, 2.5), ("b", 3, 0.4)]
    lines = [f"0,{prompt},{reward},{advantage}" for prompt, reward, advantage in rows]
    verdict = check_log(
        [pasted("\n".join(["step,prompt,reward,advantage", *lines]))], declared=declared
    )
    assert verdict.verdict == "none fits"
    first = worst_lines(verdict)[0]
    assert first.startswith("Step 0, row 0: off by ") and off in first
