"""Every stage of the correct engine, with numbers worked out by hand."""

import math
from dataclasses import replace
from itertools import product

import pytest
from engine.traces import OFF, ON, close, trace

from gradebook import CORRECT, ESTIMATORS, Batch, GradebookError, Settings, run
from gradebook.engine.grouping import present

# score


def test_the_bias_is_added_before_the_scaling_and_the_clip_cuts_last():
    # (7 + 1) * 2 = 16 is cut to 5, (-9 + 1) * 2 = -16 to -5, (1 + 1) * 2 = 4 passes.
    found = trace([0, 0, 0], [7, -9, 1], reward_bias=1, reward_scaling=2, reward_clip=5)
    close(found.score, [5, -5, 4])


# present


def test_an_evaluation_takes_each_prompts_first_row_of_each_step():
    evaluation = Settings(evaluation=True)
    batch = Batch(list("ABABC"), [1.0, 2, 3, 4, 5], settings=evaluation)
    assert present(batch).tolist() == [True, True, False, False, True]
    batch = Batch(list("AAA"), [1.0, 2, 3], step=[0, 1, 1], settings=evaluation)
    assert present(batch).tolist() == [True, True, False]


# credited and counted

STATES = {
    "prompt": [0, 0, 0, 0],
    "reward": [1, 2, 3, 4],
    "mask": [ON, OFF, ON, [0, 1]],
    "eos": [1, 1, 0, 1],
}


def test_a_rejected_row_and_a_masked_row_without_eos_have_no_credit():
    for masked in (True, False):
        found = trace(**STATES, mask_no_eos=masked)
        assert found.credited.tolist() == [True, False, not masked, True]


# group


def test_groups_are_prompts_in_order_of_appearance():
    found = trace([7, 3, 7, -1], [1, 2, 3, 4])
    assert found.group.tolist() == [0, 1, 0, 2]
    named = trace(["b", "a", "b", ""], [1, 2, 3, 4])
    assert named.group.tolist() == [0, 1, 0, 2]


def test_one_prompt_in_two_steps_is_two_groups():
    found = trace([0, 0, 0, 0], [1, 3, 10, 30], step=[5, 2, 5, 2])
    assert found.group.tolist() == [0, 1, 0, 1]
    close(found.baseline, [5.5, 16.5, 5.5, 16.5])


# baselines


@pytest.mark.parametrize(
    "baseline, expected",
    [
        # Prompt 0 scores 1, 2, 6 with 1, 2, 1 tokens; prompt 1: 5, 7.
        ("group_mean", [3, 3, 3, 6, 6]),
        ("batch_mean", [4.2] * 5),  # 21 / 5
        ("leave_one_out", [4, 3.5, 1.5, 7, 5]),
        # (1 + 4 + 6) / 4 = 2.75; (2 * 5 + 7) / 3 = 17/3.
        ("length_weighted_mean", [2.75, 2.75, 2.75, 17 / 3, 17 / 3]),
        ("second_best", [1, 2, 2, 5, 5]),
        ("none", [0, 0, 0, 0, 0]),
    ],
)
def test_baseline(baseline, expected):
    mask = [[1, 0], ON, [0, 1], ON, [1, 0]]
    found = trace([0, 0, 0, 1, 1], [1, 2, 6, 5, 7], mask=mask, baseline=baseline)
    close(found.baseline, expected)


@pytest.mark.parametrize(
    "baseline", ["group_mean", "leave_one_out", "length_weighted_mean"]
)
def test_a_lone_row_passes_raw_or_becomes_zero(baseline):
    # Row 0 is alone; row 1 is the only one of its group that counts.
    rows = {"prompt": [0, 1, 1], "reward": [3, -4, 100], "mask": [[1], [1], [0]]}
    for lone_row, compared, advantage in (("raw", 0, 1), ("zero", 1, 0)):
        found = trace(**rows, baseline=baseline, scale="none", lone_row=lone_row)
        close(found.baseline[:2], [3 * compared, -4 * compared])
        close(found.advantage, [3 * advantage, -4 * advantage, 0])


@pytest.mark.parametrize(
    "rewards, tokens, baseline, advantage",
    [
        # The best is -1, the runner-up -3.
        ([-5, -1, -3], [1, 1, 1], [-5, -3, -3], [0, 2, 0]),
        # A tie for the best leaves no winner.
        ([4, 4, 1], [1, 1, 1], [4, 4, 1], [0, 0, 0]),
        # A rejected row neither wins nor is the runner-up.
        ([9, 4, 1], [0, 1, 1], [9, 1, 1], [0, 3, 0]),
    ],
)
def test_the_best_row_is_measured_from_the_runner_up(
    rewards, tokens, baseline, advantage
):
    rows = {"mask": [[n] for n in tokens], "baseline": "second_best", "scale": "none"}
    found = trace([0] * 3, rewards, **rows)
    close(found.baseline, baseline)
    close(found.advantage, advantage)


# scales


@pytest.mark.parametrize(
    "variance, settings",
    [
        # 1, 2 | 6, 7: each group's squares are 0.5 about its mean.
        (0.5, {}),
        (0.25, {"ddof": 0}),
        (0.5, {"baseline": "leave_one_out"}),
        # Less the other row: -1, 1.
        (2, {"baseline": "leave_one_out", "spread_about": "baseline"}),
        # All four: mean 4, squares 9 + 4 + 4 + 9; about the groups' means 1.
        (26 / 3, {"scale": "batch_std"}),
        (1 / 3, {"scale": "batch_std", "spread_about": "baseline"}),
    ],
)
def test_the_spread_is_of_the_group_or_the_batch_about_mean_or_baseline(
    variance, settings
):
    found = trace([0, 0, 1, 1], [1, 2, 6, 7], eps=0, **settings)
    close(found.scale, [math.sqrt(variance)] * 4)


def test_eps_is_added_outside_the_root():
    # std of 1, 3 is sqrt(2); inside the root it would be sqrt(2.5).
    found = trace([0, 0], [1, 3], eps=0.5)
    close(found.scale, [math.sqrt(2) + 0.5] * 2)


@pytest.mark.parametrize("scale", ["group_std", "batch_std"])
def test_one_counted_row_has_spread_1_with_ddof_1_and_0_with_ddof_0(scale):
    rows = {"prompt": [0, 0], "reward": [5, 9], "mask": [[1], [0]]}
    close(trace(**rows, scale=scale, eps=0.25).scale, [1.25, 1.25])
    close(trace(**rows, scale=scale, eps=0.25, ddof=0).scale, [0.25, 0.25])
    rows["mask"] = [[0], [0]]
    close(trace(**rows, scale=scale, eps=0.25).scale, [1.25, 1.25])


def test_the_nonzero_share_is_over_the_counted_rows_of_the_batch():
    # Counted: 1, 0, 0, 2, 0 of two prompts; two of five are non-zero.
    found = trace(
        [0, 0, 0, 1, 1, 1],
        [1, 0, 0, 2, 0, 9],
        mask=[[1]] * 5 + [[0]],
        scale="nonzero_share",
    )
    close(found.scale, [0.4] * 6)


def test_the_nonzero_share_is_one_row_at_least_and_exact_in_float64():
    # A third in float32 is off by 1e-8, here as from none to one of three.
    close(trace([0] * 3, [0, 0, 5], scale="nonzero_share").scale, [1 / 3] * 3)
    close(trace([0] * 3, [0, 0, 0], scale="nonzero_share").scale, [1 / 3] * 3)


# whitening

WHITE = ESTIMATORS["reinforce_plus_plus_baseline"]


def test_whitening_weighs_tokens():
    # Scores 0, 1 with 1 and 3 tokens, about the group mean: -0.5, 0.5.
    # Token mean (-0.5 + 3 * 0.5) / 4 = 0.25. Variance
    # (0.75^2 + 3 * 0.25^2) / 4 = 0.1875, times 4/3 = 0.25.
    mask = [[1, 0, 0], [1, 1, 1]]
    found = trace([0, 0], [0, 1], mask=mask, settings=WHITE)
    root = math.sqrt(0.25 + 1e-8)
    close(found.advantage, [-0.75 / root, 0.25 / root])


def test_the_eps_of_whitening_is_inside_the_root():
    # Scores -1e-4, 1e-4: variance 1e-8 * 2/1 = 2e-8, with eps 3e-8.
    # Outside the root it would be 1e-4 / (sqrt(2e-8) + 1e-8) = 0.7071.
    found = trace([0, 0], [-1e-4, 1e-4], settings=WHITE)
    close(found.advantage, [-1 / math.sqrt(3), 1 / math.sqrt(3)], 1e-9)


@pytest.mark.parametrize("ddof, least, tokens", [(1, 2, 1), (0, 1, 0)])
def test_too_few_tokens_cannot_be_whitened(ddof, least, tokens):
    rows = {"mask": [[tokens], [0]], "step": [4, 4], "whiten_ddof": ddof}
    with pytest.raises(GradebookError) as caught:
        trace([0, 0], [1, 2], settings=WHITE, **rows)
    said = f"{least} unmasked token{'s' * ddof} or more, found {tokens}"
    message = "key 'mask': step 4 cannot be whitened: expected "
    assert str(caught.value) == message + said


@pytest.mark.parametrize("ddof, variance", [(1, 12 / 3), (0, 12 / 4)])
def test_the_variance_over_tokens(ddof, variance):
    # Tokens 4, 0, 0, 0: mean 1, squares 9 + 1 + 1 + 1 = 12.
    rows = {"mask": [[1, 0, 0], [1, 1, 1]], "baseline": "none", "whiten_ddof": ddof}
    root = math.sqrt(variance + 1e-8)
    found = trace([0, 0], [4, 0], settings=WHITE, **rows)
    close(found.advantage, [3 / root, -1 / root])


# kept_steps


@pytest.mark.parametrize("engine", ["correct", "double_normalization"])
def test_a_row_without_transitions_has_no_value_but_shapes_its_group(engine):
    rows = {"kept_steps": [2, 0, 1], "engine": engine, "scale": "none"}
    found = trace([0, 0, 0], [1, 2, 3], **rows)
    close(found.standardized, [-1, 0, 1])
    assert found.advantage.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "over, values",
    [
        # Over two rows, over 2 and 10 transitions (m = -2/3, s = sqrt(5)/3),
        # over 2 and 2 of them.
        ("rows", [1, -1]),
        ("steps", [2.236068, -0.447214]),
        ("kept_steps", [1, -1]),
        ("none", [1, -1]),
    ],
)
def test_what_the_second_normalization_runs_over(over, values):
    rows = {"steps": [2, 10], "kept_steps": [2, 2], "ddof": 0, "eps": 1e-9}
    found = trace([0, 0], [4, 2], "double_normalization", second_over=over, **rows)
    close(found.advantage, values, 1e-6)


# rows in no group


@pytest.mark.parametrize(
    "baseline",
    ["group_mean", "leave_one_out", "length_weighted_mean", "second_best"],
)
def test_a_row_in_no_group_is_divided_by_eps_alone(baseline):
    for about, ddof in product(("mean", "baseline"), (0, 1)):
        settings = {"baseline": baseline, "spread_about": about, "ddof": ddof}
        rows = {"engine": "partial_groups", "group_size": 2, "eps": 1e-3}
        found = trace([0, 0, 1], [1, 3, 2], **rows, **settings)
        assert found.group.tolist() == [0, 0, -1]
        assert found.baseline[2] == 0
        close(found.advantage[2:], [2000])
        raw = trace([0, 0, 1], [1, 3, 2], **rows, **settings, scale="none")
        close(raw.advantage[2:], [2])


# Baselines and scales over the step, and the places of eps

UNEQUAL = {"prompt": [0, 0, 1, 1], "reward": [1.0, 3.0, 4.0, 8.0]}


def test_the_mean_of_the_batchs_other_rows():
    # The sum is 16; each row leaves out its own score: (16 - x) / 3.
    batch = Batch(**UNEQUAL, settings=Settings(baseline="batch_others", scale="none"))
    means = [5.0, 13 / 3, 4.0, 8 / 3]
    assert run(CORRECT, batch).baseline.tolist() == pytest.approx(means)


def test_the_batchs_deviation_of_the_advantages():
    # Distances from the group's mean are -1, 1, -2, 2: squares add up to 10.
    for ddof, variance in ((1, 10 / 3), (0, 10 / 4)):
        settings = Settings(scale="advantage_std", ddof=ddof, eps=0.0)
        trace = run(CORRECT, Batch(**UNEQUAL, settings=settings))
        assert trace.scale.tolist() == pytest.approx([variance**0.5] * 4)


def test_the_groups_mean_as_a_scale():
    # MaxRL: (1 - 2) / (2 + 0.5), .., (8 - 6) / (6 + 0.5).
    settings = Settings(scale="group_mean", eps=0.5)
    trace = run(CORRECT, Batch(**UNEQUAL, settings=settings))
    due = [-1 / 2.5, 1 / 2.5, -2 / 6.5, 2 / 6.5]
    assert trace.advantage.tolist() == pytest.approx(due)


@pytest.mark.parametrize(
    "place, scales",
    [
        ("after", [2**0.5 + 2.0, 8**0.5 + 2.0]),
        ("inside", [(2 + 2.0) ** 0.5, (8 + 2.0) ** 0.5]),
        ("least", [2.0, 8**0.5]),
    ],
)
def test_eps_after_the_root_inside_it_or_as_the_least_deviation(place, scales):
    # Variances with ddof 1: 2 in the first group, 8 in the second.
    settings = Settings(eps=2.0, eps_at=place)
    trace = run(CORRECT, Batch(**UNEQUAL, settings=settings))
    assert trace.scale[[0, 2]].tolist() == pytest.approx(scales)


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_second_normalization_over_rows(ddof):
    # Advantages -1, 1, -2, 2 whatever the masks: mean 0, squares 10.
    settings = Settings(scale="none", whiten_tokens=True, whiten_over="rows")
    settings = replace(settings, whiten_ddof=ddof, whiten_eps="after", eps=0.25)
    mask = [[True, True], [True, False], [True, False], [True, True]]
    trace = run(CORRECT, Batch(**UNEQUAL, mask=mask, settings=settings))
    deviation = (10 / (4 - ddof)) ** 0.5 + 0.25
    due = [x / deviation for x in (-1, 1, -2, 2)]
    assert trace.advantage.tolist() == pytest.approx(due)


def test_a_second_normalization_over_kept_transitions():
    # Weights 1, 1, 2, 0: the mean is (-1 + 1 - 4) / 4 = -1, the squares about it
    # 0 + 4 + 2 * 1 = 6, over 4 transitions 1.5 with ddof 0. The last row kept none.
    settings = Settings(scale="none", whiten_tokens=True, whiten_over="transitions")
    settings = replace(settings, whiten_ddof=0)
    batch = Batch(**UNEQUAL, kept_steps=[1, 1, 2, 0], settings=settings)
    advantage = run(CORRECT, batch).advantage.tolist()
    root = (1.5 + 1e-8) ** 0.5
    assert advantage[:3] == pytest.approx([0.0, 2 / root, -1 / root])
    assert math.isnan(advantage[3])
