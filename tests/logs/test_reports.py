"""Logs made from the formulas of public reports: trainer and number stand in a file's
name. Each answer is what the report's formula is."""

from pathlib import Path

import pandas as pd
import pytest
from asking import verdict_on

from gradebook.logs.log import check_log

REPORTS = Path(__file__).parent / "reports"

GDPO_OVER_TOKENS = "match GDPO (each reward normalized in its group (eps 1e−6)"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": {"reward": "acc_reward + format_reward"}},
        {"weights": (1, 1)},
        {"columns": {"reward": "acc_reward + format_reward"}, "weights": (1, 1)},
    ],
)
def test_equal_questions_about_several_rewards_get_one_answer(options):
    found = check_log([REPORTS / "l02-verl-6497-gdpo-tokens.csv"], **options)
    assert (found.exit_code, found.estimator) == (0, "gdpo")
    assert GDPO_OVER_TOKENS in found.sentence
    assert "the sum normalized over tokens, ddof 1" in found.sentence
    assert not found.asks and not found.bug


@pytest.mark.parametrize(
    "declared, code", [({}, 0), ({"estimator": "gdpo"}, 0), ({"estimator": "grpo"}, 1)]
)
def test_rewards_that_are_normalized_each_are_gdpo_and_no_whole_batch(declared, code):
    log = REPORTS / "l03-trl-normalize-then-sum.csv"
    found = check_log([log], declared=declared)
    assert (found.exit_code, found.weights) == (code, (1, 0.5))
    assert "match GDPO" in found.sentence and "Whole batch" not in found.sentence
    assert ("you declared estimator=grpo" in found.sentence) == (code == 1)


def test_gdpo_is_not_what_a_sum_of_rewards_gives():
    log = REPORTS / "l12a-trl-5352-functions.csv"
    found = check_log([log], declared={"estimator": "gdpo"})
    assert (found.exit_code, found.verdict) == (1, "other")


def test_weights_are_what_each_group_gives():
    found = check_log([REPORTS / "l12a-trl-5352-functions.csv"])
    assert (found.exit_code, found.estimator) == (0, "grpo")
    assert found.weights == (0.7, 0.3)


def test_a_division_by_a_negative_mean_is_said_to_turn_every_prompt():
    found = check_log([REPORTS / "l18-trl-5026-maxrl.csv"])
    assert (found.exit_code, found.estimator) == (0, "maxrl")
    assert "In 20 of 20 prompts whose rewards differ, the best row" in found.sentence


def test_statistics_over_pieces_of_a_prompt_are_asked_about():
    found = check_log([REPORTS / "l19-tunix-816-micro-groups.csv"])
    assert (found.exit_code, found.verdict) == (2, "asks")
    assert found.bug == "partial_groups"
    assert "(the bug Partial groups, GRPO, group size 4)" in found.sentence
    # The strides explain the order of the rows; no other design has to.
    assert "Three designs" not in found.sentence


@pytest.mark.parametrize("divided", [True, False])
def test_advantages_with_the_opposite_sign_are_no_weights_below_0(divided):
    """The log's weights are 0.7 and 0.3; undivided, its advantages would be the sums
    less their means."""
    frame = pd.read_csv(REPORTS / "l12a-trl-5352-functions.csv")
    total = 0.7 * frame["accuracy_reward"] + 0.3 * frame["length_reward"]
    place = frame.groupby("step").cumcount() // 4
    if not divided:
        group = [frame["step"], place]
        frame["advantage"] = total - total.groupby(group).transform("mean")
    frame["advantage"] *= -1
    found = verdict_on(frame)
    assert (found.exit_code, found.verdict) == (2, "none fits")
    assert found.weights == (0.7, 0.3)
    assert "fits with the opposite sign" in found.near


@pytest.mark.parametrize(
    "log, columns, sentence",
    [
        (
            "l06-prime-2702-length-penalty.jsonl",
            {"prompt": "example_id", "length": "completion_len"},
            "The advantages depend on the length: within a prompt,",
        ),
        (
            "l07-skyrl-1507-stepwise.jsonl",
            {},
            "GRPO fits the last row of each rollout",
        ),
        (
            "l13-trl-5889-rloo-kl.csv",
            {},
            "In each prompt the logged advantages minus those of RLOO add up to 0.",
        ),
        (
            "l33-clipped-advantages.csv",
            {},
            "64 rows have an advantage of ±1, and GRPO gives them a larger size.",
        ),
    ],
)
def test_if_nothing_fits_the_pattern_of_the_differences_is_said(log, columns, sentence):
    found = check_log([REPORTS / log], columns=columns)
    assert (found.exit_code, found.verdict) == (2, "none fits")
    assert found.near.startswith(sentence)
