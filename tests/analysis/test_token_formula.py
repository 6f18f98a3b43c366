"""A token's formula: from the row's number to the token's advantage, for both engines.
The numbers were worked out by hand."""

from dataclasses import replace

import pytest

from gradebook.analysis.comparison import compare
from gradebook.analysis.token_credit import owed
from gradebook.analysis.token_formula import worked_token
from gradebook.bugs import swap
from gradebook.cases.scenario import load, names

CASES = [name for name in names() if load(name).settings.credit != "row"]


def written(name, row, token):
    """Both engines' formulas as lines of text."""
    case = load(name)
    sides = worked_token(compare(swap(case.bug), case.batch()), row, token)
    return [["".join(part.text for part in line) for line in side] for side in sides]


def test_the_whitening_of_a_token_has_its_mean_and_its_deviation():
    # Returns of the 8 unmasked tokens: correct 1 1 1 1 0 0 0 0, faulty 0 0 1 1 0 0
    # 0 0. Deviations with ddof 1: sqrt(8 * 0.25 / 7) and
    # sqrt((2 * 0.5625 + 6 * 0.0625) / 7).
    correct, faulty = written("tool_wall", 0, 0)
    of = "is the mean of the returns of the step's 8 unmasked tokens,"
    assert correct[:3] == [
        "(1.000 − 0.500) / 0.535 = +0.935",
        f"0.500 {of} 0.535 is their deviation",
        "return: +1.000",
    ]
    assert faulty[:3] == [
        "(0.000 − 0.250) / 0.463 = −0.540",
        f"0.250 {of} 0.463 is their deviation",
        "return: 0.000: a masked token ends the sum before anything is paid",
    ]
    for lines in (correct, faulty):
        assert lines[-1] == "row 0: +1.000 is its score, without a baseline"


def test_a_return_is_a_sum_of_surprises_and_each_is_taken_apart():
    # The critic says 0.5, (0 of the tool's token), 0.75; gamma 1, lambda 0.5.
    correct, faulty = written("tool_steps", 0, 0)
    assert correct[:4] == [
        "0.250 + 0.5 × 0.250 = +0.375",
        "the sum goes through the row's unmasked tokens",
        "token 0: paid 0 + 0.75 (value of the next) − 0.5 (its value) = +0.250",
        "token 2: paid 1 + 0 (value of the next) − 0.75 (its value) = +0.250",
    ]
    assert faulty[:3] == [
        "−0.500 + 0.5 × 0.750 + 0.25 × 0.250 = −0.062",
        "the sum goes through all tokens of the response",
        "token 0: paid 0 + 0 (value of the next) − 0.5 (its value) = −0.500",
    ]


def test_a_price_of_the_kl_is_in_what_a_token_is_paid():
    # Two words of the tool, each with logp - ref_logp = 2 and the price 0.5.
    _, faulty = written("tool_text", 0, 0)
    assert "advantage: −1.000 − 1.000 + 1.000 = −1.000" in faulty
    assert "token 1: paid 0 − 0.5 × 2 (logp − ref logp) = −1" in faulty


def test_a_token_that_gets_nothing_of_the_row_says_what_the_row_has():
    # Rewards 1 and 0 of the rollouts: (1 - 0.5) / sqrt(0.5) = 0.707.
    correct, faulty = written("borrowed_mask", 0, 3)
    assert correct[:2] == [
        "+0.707 is the row's number, at each of its unmasked tokens",
        "row 0: (1.000 − 0.500) / 0.707 = +0.707",
    ]
    assert faulty[0] == "0.000: this engine gives the token nothing of the row's +0.707"
    assert faulty[1] == correct[1]


def test_a_push_is_followed_to_the_rows_number():
    # Rewards 1 and 0, no division: A = 0.5.
    correct, _ = written("live_weight", 0, 2)
    assert correct[0] == "0.500 + 0.000 = +0.500"
    assert "row 0: (1.000 − 0.500) / 1.000 = +0.500" in correct


def test_a_sum_of_advantages_and_the_slope_of_a_weight_are_taken_apart():
    # Rewards 1 1 0 have A = 1/3 1/3 -2/3. At token 1 row 0 has ended.
    correct, faulty = written("wrong_axis", 1, 1)
    words = "trained with the sum of the advantages of"
    both = f"{words} rows 1 and 2 at token 1: +0.333 − 0.667 = −0.333"
    assert both in faulty and not any(line.startswith(words) for line in correct)
    _, first = written("wrong_axis", 0, 0)
    column = "rows 0, 1 and 2 at token 0: +0.333 + 0.333 − 0.667 = 0.000"
    assert f"{words} {column}" in first
    # The surrogate is -A logp = -0.5 * -2, and the slope of the weight 1 is 1.
    correct, faulty = written("live_weight", 0, 2)
    adds = "the weight's own slope adds −(surrogate × slope of the weight)"
    assert f"{adds} = −(1.000 × 1.000) = −1.000" in faulty
    assert not any(line.startswith(adds) for line in correct)


@pytest.mark.parametrize("name", names())
def test_only_an_engine_that_adds_up_advantages_is_said_to(name):
    case = load(name)
    both = compare(swap(case.bug), case.batch())
    if both.batch.logp is None or both.batch.mask.sum() > 100:
        pytest.skip("no push, or too many tokens to write")
    for row, token in both.batch.mask.nonzero().tolist():
        sides = worked_token(both, row, token)
        for side in sides[: 1 if case.bug == "wrong_axis" else 2]:
            starts = [line[0].text for line in side]
            assert not any(text.startswith("trained with the sum") for text in starts)


@pytest.mark.parametrize("name", CASES)
def test_the_terms_of_the_sum_add_up_to_the_return_of_every_token(name):
    case = load(name)
    both = compare(swap(case.bug), case.batch())
    for trace in (both.correct, both.faulty):
        for row, token in both.batch.mask.nonzero().tolist():
            found = owed(both.batch, trace, row, token)
            total = sum(term.factor * term.surprise for term in found.terms)
            assert total == pytest.approx(float(trace.token_return[row, token]))


def test_a_return_that_no_known_sum_gives_is_shown_as_it_is():
    case = load("tool_steps")
    both = compare(swap(case.bug), case.batch())
    stages = {**both.faulty.tokens(), "token_return": both.faulty.token_return + 1}
    faulty = replace(both.faulty, tokens=lambda: stages)
    odd = replace(both, faulty=faulty)
    assert owed(odd.batch, odd.faulty, 0, 0) is None
    # Faulty: -0.0625 before, and 1 more.
    text = "".join(part.text for part in worked_token(odd, 0, 0)[1][0])
    assert text == "return +0.938, advantage −0.062"
