"""The loss and its gradient, with log-ratios of ln 2 so that it can be done
by hand: at ref - logp = ln 2 a token's KL is 2 - ln 2 - 1 = 1 - ln 2 and its
gradient 1 - 2 = -1; at -ln 2 they are ln 2 - 1/2 and 1 - 1/2 = 1/2.
"""

import math
from dataclasses import replace

import pytest
import torch

import gradebook
from gradebook import CORRECT, Batch, Settings

FAULTY = gradebook.bug("zero_std_kl").engine
LN2 = math.log(2)
UP, DOWN = 1 - LN2, LN2 - 0.5  # KL if the reference is above, below
DR = {"scale": "none", "beta": 0.5}
FLAT_SPREAD = 2**-0.5  # two scores s, -s have std s * sqrt(2)

# Prompt 0 scores 0 and 2 (advantages -1, 1), prompt 1 is flat. Tokens a row:
# 1, 3, 2, 2; every token's reference is ln 2 above, in row 1 below.
ROWS = {
    "prompt": [0, 0, 1, 1],
    "reward": [0, 2, 5, 5],
    "mask": [[1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0]],
    "logp": [[-2.0] * 3] * 4,
    "ref_logp": [
        [-2 + LN2] * 3,
        [-2 - LN2] * 3,
        [-2 + LN2] * 3,
        [-2 + LN2] * 3,
    ],
}


def trace(engine=CORRECT, rows=ROWS, **settings):
    batch = Batch(**rows, settings=Settings(**{**DR, **settings}))
    return gradebook.run(engine, batch)


def by_rows(gradient):
    """The one value that a row's unmasked tokens share, row by row."""
    mask = torch.tensor(ROWS["mask"], dtype=torch.bool)
    assert (gradient[~mask] == 0).all()
    for row, m in zip(gradient, mask):
        assert row[m].unique().numel() == 1
    return [float(row[m][0]) for row, m in zip(gradient, mask)]


def near(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-15)


# A token's weight in rows 0..3, and in the faulty engine.
WEIGHTS = {
    # Four rows' means: 1/(4*1), 1/(4*3), 1/(4*2).
    "grpo": ([1 / 4, 1 / 12, 1 / 8, 1 / 8], [1 / 4, 1 / 12, 1 / 8, 1 / 8]),
    # Four tokens are trained, eight in the faulty engine.
    "bnpo": ([1 / 4] * 4, [1 / 8] * 4),
    # 4 rows by 3 tokens.
    "dr_grpo": ([1 / 12] * 4, [1 / 12] * 4),
    # Eight tokens before any row is left out.
    "dapo": ([1 / 8] * 4, [1 / 8] * 4),
}
ADVANTAGE = [-1, 1, 0, 0]
TOKENS = [1, 3, 2, 2]
KL = [UP, DOWN, UP, UP]
SLOPE = [-1, 0.5, -1, -1]


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("engine", [CORRECT, FAULTY])
def test_loss_and_gradient_by_hand(loss, engine):
    w = WEIGHTS[loss][engine is FAULTY]
    rows = range(4) if engine is FAULTY else range(2)
    found = trace(engine, loss=loss)
    assert found.trained.tolist() == [r in rows for r in range(4)]
    policy = sum(-ADVANTAGE[r] * TOKENS[r] * w[r] for r in rows)
    kl = sum(0.5 * KL[r] * TOKENS[r] * w[r] for r in rows)
    assert found.policy_loss.tolist() == near([policy])
    assert found.kl_loss.tolist() == near([kl])
    assert float(found.loss) == near(policy + kl)
    push = [-ADVANTAGE[r] * w[r] if r in rows else 0 for r in range(4)]
    pull = [0.5 * SLOPE[r] * w[r] if r in rows else 0 for r in range(4)]
    assert by_rows(found.policy_gradient) == near(push)
    assert by_rows(found.kl_gradient) == near(pull)


@pytest.mark.parametrize(
    "loss, divisor", [("grpo", 4), ("bnpo", 4), ("dr_grpo", 4), ("dapo", 1)]
)
def test_accumulation_divides_every_loss_but_dapo(loss, divisor):
    once = trace(loss=loss)
    four = trace(loss=loss, accumulation=4)
    assert float(four.loss) == near(float(once.loss) / divisor)
    assert four.gradient.tolist() == [
        near((row / divisor).tolist()) for row in once.gradient
    ]


def test_max_tokens_is_the_width_of_dr_grpo():
    # 4 rows by 10 tokens instead of 3: 1/40 a token.
    found = trace(loss="dr_grpo", max_tokens=10)
    assert by_rows(found.policy_gradient) == near([1 / 40, -1 / 40, 0, 0])
    for loss in ("grpo", "bnpo", "dapo"):
        same = trace(loss=loss, max_tokens=10).gradient
        assert same.equal(trace(loss=loss).gradient)


def test_beta_0_needs_no_reference_and_hides_the_bug():
    rows = {k: v for k, v in ROWS.items() if k != "ref_logp"}
    correct = trace(rows=rows, beta=0)
    faulty = trace(FAULTY, rows=rows, beta=0)
    assert correct.gradient.equal(faulty.gradient)
    assert float(correct.kl_loss) == 0
    assert (correct.kl_gradient == 0).all()
    assert float(correct.loss) == near(-0.25)


def test_without_logp_there_is_no_loss():
    rows = {name: ROWS[name] for name in ("prompt", "reward", "mask")}
    found = trace(rows=rows)
    assert found.loss is None
    assert found.policy_loss is None
    assert found.gradient is None


# trained


@pytest.mark.parametrize(
    "std, kept", [(0.0, False), (1e-8, False), (2e-8, True), (1.1e-8, True)]
)
@pytest.mark.parametrize("scale", ["group_std", "none"])
def test_a_spread_of_at_most_1e_8_is_zero(std, kept, scale):
    # s and -s: mean 0, squares 2 s^2 over 1, std s * sqrt(2). One part in
    # 1e9 under the threshold keeps rounding out of it.
    s = std * FLAT_SPREAD * (1 - 1e-9)
    rows = {"prompt": [0, 0], "reward": [s, -s]}
    found = trace(rows=rows, scale=scale, ddof=0, beta=0)
    assert found.trained.tolist() == [kept, kept]


@pytest.mark.parametrize(
    "evaluation, skip, correct",
    [
        # Prompt A is flat: 6 of 10 tokens are left. 0.04 (exp(ln 2) - ln 2 - 1)
        # is 0.0122741, whatever the number of tokens; 6 / 10 of it 0.0073645.
        (False, "always", 0.0073645),
        (False, "training", 0.0073645),
        (False, "never", 0.0122741),
        # One row per prompt: every group is a lone row, so nothing is left.
        (True, "always", 0.0),
        (True, "training", 0.0122741),
        (True, "never", 0.0122741),
    ],
)
def test_when_flat_groups_leave_the_loss(evaluation, skip, correct):
    batch = gradebook.load("zero_std_kl").batch()
    batch = batch.under(replace(batch.settings, evaluation=evaluation, skip_flat=skip))
    right = gradebook.run(gradebook.CORRECT, batch)
    wrong = gradebook.run(gradebook.bug("zero_std_kl").engine, batch)
    assert float(right.loss) == pytest.approx(correct, abs=1e-7)
    assert float(wrong.loss) == pytest.approx(0.0122741, abs=1e-7)
    assert wrong.advantage.isnan().tolist() == [False, evaluation] * 2


def test_rounding_is_flat_in_float64_and_not_in_float32():
    # Seven times 100.1 in float32: std 8.2e-6 (test_reported_numbers).
    assert not trace(rows={"prompt": [0] * 7, "reward": [0.1] * 7}).trained.any()
    rows = {"prompt": [0] * 7, "reward": torch.full((7,), 100.1)}
    assert trace(rows=rows).trained.all()


@pytest.mark.parametrize("lone_row", ["raw", "zero"])
def test_a_lone_row_trains_if_it_keeps_its_raw_score(lone_row):
    rows = {"prompt": [0, 1, 1], "reward": [3, 1, 2]}
    found = trace(rows=rows, lone_row=lone_row, beta=0)
    assert found.trained.tolist() == [lone_row == "raw", True, True]
    assert trace(FAULTY, rows=rows).trained.tolist() == [True, True, True]


def test_a_flat_group_in_a_mixed_batch_trains_under_batch_std():
    found = trace(scale="batch_std")
    assert found.trained.tolist() == [True] * 4
    rows = {"prompt": [0, 1, 0, 1], "reward": [1, 2, 4, 4], "step": [0, 0, 1, 1]}
    found = trace(rows=rows, scale="batch_std")
    assert found.trained.tolist() == [True, True, False, False]


def test_a_row_in_no_group_is_trained():
    # It has no group whose spread could be zero, and an advantage.
    rows = {"prompt": [0, 0, 1], "reward": [1, 2, 3]}
    engine = gradebook.bug("partial_groups").engine
    found = trace(engine, rows, group_size=2)
    assert found.trained.tolist() == [True] * 3


def test_rows_without_eos_train():
    # Rows 0, 1 count: mean 1. Row 2 has advantage 0 and its KL.
    rows = {
        "prompt": [0] * 3,
        "reward": [0, 2, 100],
        "eos": [1, 1, 0],
        "logp": [[-1.0]] * 3,
        "ref_logp": [[-1 + LN2]] * 3,
    }
    found = trace(rows=rows, mask_no_eos=True)
    assert found.trained.tolist() == [True] * 3
    assert found.policy_gradient.flatten().tolist() == near([1 / 3, -1 / 3, 0])
    assert found.kl_gradient.flatten().tolist() == near([-1 / 6] * 3)


# rows without a transition, masked tokens, extremes

THREE = {
    "prompt": [0] * 3,
    "reward": [1, 2, 3],
    "logp": [[-1.0]] * 3,
    "ref_logp": [[-1 + LN2]] * 3,
    "kept_steps": [1, 0, 1],
}


@pytest.mark.parametrize(
    "engine", [CORRECT, gradebook.bug("double_normalization").engine]
)
def test_a_row_without_transitions_does_not_enter_the_loss(engine):
    found = trace(engine, THREE)
    assert found.gradient[1].tolist() == [0]
    assert math.isfinite(found.loss)
    assert found.gradient.isfinite().all()


@pytest.mark.parametrize("bad", [-math.inf, math.nan, math.inf, -1e300])
def test_masked_tokens_may_hold_anything(bad):
    def spoilt(values):
        return [
            [v if m else bad for v, m in zip(row, mask)]
            for row, mask in zip(values, ROWS["mask"])
        ]

    for name in ("logp", "ref_logp"):
        rows = {**ROWS, name: spoilt(ROWS[name])}
        for engine in (CORRECT, FAULTY):
            for loss in WEIGHTS:
                clean = trace(engine, loss=loss)
                found = trace(engine, rows, loss=loss)
                assert found.loss.equal(clean.loss)
                assert found.gradient.equal(clean.gradient)


def test_a_row_that_is_not_trained_cannot_overflow_the_gradient():
    # exp(-1 + 1e4) is infinite, in the flat rows 2 and 3.
    far = [[-2.0] * 3] * 2 + [[-1e4] * 3] * 2
    found = trace(rows={**ROWS, "logp": far})
    assert found.gradient.isfinite().all()
    assert found.gradient[2:].tolist() == [[0] * 3] * 2
    assert trace(FAULTY, {**ROWS, "logp": far}).kl_loss.isinf().all()


def test_nothing_trained_has_loss_0_and_gradient_0():
    flat = {**ROWS, "reward": [5, 5, 5, 5]}
    none = {**ROWS, "mask": [[0] * 3] * 4}
    for rows in (flat, none):
        for loss in WEIGHTS:
            found = trace(rows=rows, loss=loss)
            assert float(found.loss) == 0
            assert (found.gradient == 0).all()


def test_the_batch_keeps_its_log_probabilities_in_every_grad_mode():
    logp = torch.tensor(ROWS["logp"], requires_grad=True)
    with torch.no_grad():
        found = trace(rows={**ROWS, "logp": logp})
    assert logp.grad is None
    assert not found.loss.requires_grad and not found.gradient.requires_grad
    assert found.gradient.equal(trace().gradient)


# steps


def test_losses_stay_with_their_steps_when_rows_are_dropped():
    # Step 9 appears first by a lone row that goes, step 7 goes whole. By dapo:
    # 8: scores 2, 3 with tokens 1 and 2: (0.5 * 1 - 0.5 * 2) / 3 = -1/6.
    # 9: scores 0, 4 with tokens 2 and 1: (2 * 2 - 2 * 1) / 3 = 2/3.
    rows = {
        "prompt": list("xyaaaa"),
        "step": [9, 7, 8, 8, 9, 9],
        "reward": [1, 1, 2, 3, 0, 4],
        "mask": [[1, 0], [1, 0], [0, 1], [1, 1], [1, 1], [1, 0]],
        "logp": [[-1.0] * 2] * 6,
    }
    found = trace(rows=rows, beta=0, min_group_size=2)
    assert found.policy_loss.tolist() == near([2 / 3, 0, -1 / 6])
    assert found.kl_loss.tolist() == [0, 0, 0]
