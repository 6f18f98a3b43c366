"""What must hold whatever the batch, with drawn batches and settings."""

import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, find, given
from hypothesis import settings as profile
from hypothesis import strategies as st

import gradebook
from gradebook import CORRECT, ESTIMATORS, Batch, Settings
from gradebook.core.settings import CHOICES

stable = profile(
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
REPLICAS = {name: gradebook.bug(name).engine for name in gradebook.BUGS}
COUPLED = ("batch_std", "nonzero_share")
TOKENS = 3

# Quarters add and subtract without rounding, so that a flat group is flat.
rewards = st.integers(-20, 20).map(lambda n: n / 4)
any_settings = st.one_of(
    st.sampled_from(list(ESTIMATORS.values())),
    st.builds(
        Settings,
        **{name: st.sampled_from(CHOICES[name]) for name in CHOICES},
        eps=st.sampled_from([1e-6, 1e-4, 0.5]),
        group_size=st.sampled_from([None, 1, 2, 3]),
        min_group_size=st.sampled_from([1, 1, 2]),
        mask_no_eos=st.booleans(),
        reward_bias=st.sampled_from([0, -0.5]),
        reward_scaling=st.sampled_from([1, 2]),
        reward_clip=st.sampled_from([None, None, 6]),
        beta=st.sampled_from([0, 0.1]),
        accumulation=st.sampled_from([1, 2]),
    ),
)


@st.composite
def columns(draw, least=1, most=9):
    """The rows of a batch, by column; row 0 has its tokens and its EOS."""
    count = draw(st.integers(least, most))

    def each(cell, n=count):
        return draw(st.lists(cell, min_size=n, max_size=n))

    rejected = each(st.sampled_from([False, False, False, True]))
    mask = [each(st.booleans(), TOKENS) for _ in range(count)]
    mask = [
        [0] * TOKENS if out else [1, *m[1:]] for out, m in zip(rejected, mask)
    ]
    mask[0] = [1] * TOKENS
    steps = each(st.integers(1, 4))
    logp = each(st.integers(-8, -1).map(lambda n: n / 4), count * TOKENS)
    apart = each(st.integers(-4, 4).map(lambda n: n / 4), count * TOKENS)
    logp = torch.tensor(logp, dtype=torch.float64).reshape(count, TOKENS)
    gap = torch.tensor(apart, dtype=torch.float64).reshape(count, TOKENS)
    return {
        "prompt": each(st.integers(0, 2)),
        "reward": each(rewards),
        "mask": mask,
        "eos": [True, *each(st.sampled_from([True, True, False]))][:count],
        "steps": steps,
        "kept_steps": [
            min(n, k) for n, k in zip(steps, each(st.integers(0, 4)))
        ],
        "step": each(st.sampled_from([0, 0, 0, 1])),
        "logp": logp,
        "ref_logp": logp + gap,
    }


def traced(rows, settings, engine=CORRECT):
    """The trace, or none where the step has too few tokens to whiten."""
    batch = Batch(**rows, settings=settings)
    try:
        return gradebook.run(engine, batch)
    except gradebook.GradebookError:
        assume(not settings.whiten_tokens)
        raise


def taken(rows, order):
    return {
        name: values[order]
        if isinstance(values, torch.Tensor)
        else [values[i] for i in order]
        for name, values in rows.items()
    }


def near(found, expected):
    torch.testing.assert_close(
        found, expected, rtol=1e-7, atol=1e-7, equal_nan=True
    )


FLOATS = ("score", "baseline", "scale", "standardized", "advantage")
PER_ROW = (*FLOATS, "credited", "counted", "trained", "gradient")


@pytest.mark.parametrize(
    "engine", ["correct", *(n for n in REPLICAS if n != "partial_groups")]
)
@stable
@given(columns(), any_settings, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(engine, rows, settings, random):
    engine = REPLICAS.get(engine, CORRECT)
    order = list(range(len(rows["reward"])))
    random.shuffle(order)
    straight = traced(rows, settings, engine)
    shuffled = traced(taken(rows, order), settings, engine)
    # A second division by rounding dust has no digits to compare.
    dusty = engine is REPLICAS["double_normalization"]
    for name in PER_ROW:
        a, b = getattr(straight, name)[order], getattr(shuffled, name)
        if dusty and name in ("advantage", "gradient"):
            assume(bool((a - b).nan_to_num().abs().max() < 1e-7))
        near(b, a)
    near(shuffled.loss, straight.loss)


def test_row_order_does_matter_to_strides():
    rows = {"prompt": [0, 0, 1, 1], "reward": [0, 1, 4, 5]}
    engine = REPLICAS["partial_groups"]
    straight = traced(rows, Settings(), engine).baseline.tolist()
    mixed = traced(taken(rows, [0, 2, 1, 3]), Settings(), engine).baseline
    # By pairs in order: (0, 1), (4, 5), then (0, 4), (1, 5).
    assert straight == [0.5, 0.5, 4.5, 4.5]
    assert mixed.tolist() == [2, 2, 3, 3]


# A constant falls out where the score itself is compared only with its own
# group: not in `none`, which has no baseline; not in GPG, where a score that
# becomes zero changes the share; and not for a lone row that passes raw.
IMMUNE = [
    "grpo",
    "grpo_vectorized",
    "dr_grpo",
    "rloo",
    "rloo_vectorized",
    "opo",
    "grpo_passk",
    "reinforce_plus_plus_baseline",
]


@pytest.mark.parametrize("estimator", IMMUNE)
@stable
@given(columns(), rewards)
def test_a_constant_on_one_prompt_changes_nothing(estimator, rows, constant):
    settings = Settings(**{**ESTIMATORS[estimator], "lone_row": "zero"})
    shifted = [
        r + constant if prompt == rows["prompt"][0] else r
        for r, prompt in zip(rows["reward"], rows["prompt"])
    ]
    before = traced(rows, settings)
    after = traced({**rows, "reward": shifted}, settings)
    near(after.advantage, before.advantage)
    near(after.gradient, before.gradient)


@pytest.mark.parametrize("estimator", ["none", "gpg"])
def test_a_constant_does_change_the_others(estimator):
    settings = ESTIMATORS[estimator]
    before = traced({"prompt": [0, 0], "reward": [0, 1]}, settings)
    after = traced({"prompt": [0, 0], "reward": [1, 2]}, settings)
    assert not before.advantage.equal(after.advantage)


def test_a_constant_passes_through_a_lone_row_that_stays_raw():
    rows = {"prompt": [0], "reward": [2]}
    found = traced(rows, ESTIMATORS["rloo"]).advantage
    assert found.tolist() == [2]
    found = traced({**rows, "reward": [5]}, ESTIMATORS["rloo"]).advantage
    assert found.tolist() == [5]


def moved(rows, settings, engine, row, reward):
    """Others' advantages before and after another reward of one row."""
    changed = list(rows["reward"])
    changed[row] = reward
    before = traced(rows, settings, engine).advantage
    after = traced({**rows, "reward": changed}, settings, engine).advantage
    others = [i for i in range(len(changed)) if i != row]
    return before[others], after[others]


@stable
@given(columns(least=2), any_settings, rewards, st.data())
def test_a_row_that_is_not_counted_moves_nobody(rows, settings, reward, data):
    settings = Settings(**{**settings, "mask_no_eos": True})
    counted = traced(rows, settings).counted
    silent = (~counted).nonzero().flatten().tolist()
    assume(silent)
    row = data.draw(st.sampled_from(silent))
    before, after = moved(rows, settings, CORRECT, row, reward)
    assert before.nan_to_num().equal(after.nan_to_num())
    assert before.isnan().equal(after.isnan())


@pytest.mark.parametrize("name", ["no_eos_outliers", "rejected_rows"])
def test_a_row_that_is_not_counted_moves_others_in_the_replica(name):
    settings = Settings(mask_no_eos=True)
    silences = {
        "no_eos_outliers": lambda rows: not rows["eos"][-1],
        "rejected_rows": lambda rows: not any(rows["mask"][-1]),
    }

    def leaks(rows):
        if not silences[name](rows):
            return False
        row = len(rows["reward"]) - 1
        if traced(rows, settings).counted[row]:
            return False
        far = rows["reward"][row] + 3
        before, after = moved(rows, settings, REPLICAS[name], row, far)
        apart = (before - after).nan_to_num().abs()
        return bool((apart > 1e-3).any())

    example = find(
        columns(least=2, most=4),
        leaks,
        settings=profile(stable, max_examples=2000, phases=[Phase.generate]),
    )
    row = len(example["reward"]) - 1
    far = example["reward"][row] + 3
    before, after = moved(example, settings, CORRECT, row, far)
    assert before.nan_to_num().equal(after.nan_to_num())


@stable
@given(columns(most=4), any_settings, st.integers(1, 4), st.booleans())
def test_full_contiguous_groups_are_equal_bit_by_bit(
    rows, settings, size, configured
):
    # Each row stands for a prompt of its own, `size` rows wide, and the
    # rewards within it go up by a third: sums round.
    count = len(rows["reward"])
    order = [i for i in range(count) for _ in range(size)]
    order.sort(key=lambda i: rows["step"][i])
    wide = taken(rows, order)
    wide["prompt"] = [f"prompt {i}" for i in order]
    wide["reward"] = [r + (n % size) / 3 for n, r in enumerate(wide["reward"])]
    chosen = {"group_size": size if configured else None}
    settings = Settings(**{**settings, **chosen, "min_group_size": 1})
    correct = traced(wide, settings)
    faulty = traced(wide, settings, REPLICAS["partial_groups"])
    assert correct.group.equal(faulty.group)
    for name in PER_ROW:
        a, b = getattr(correct, name), getattr(faulty, name)
        assert a.isnan().equal(b.isnan())
        assert a.nan_to_num().equal(b.nan_to_num())


def share_of_a_token(rows, settings, trained, row):
    """TRUTH.md, section 5, read literally, in plain Python."""
    step = rows["step"][row]
    here = [i for i, s in enumerate(rows["step"]) if s == step]
    learn = [i for i in here if trained[i] and rows["kept_steps"][i] > 0]
    length = [sum(mask) for mask in rows["mask"]]
    if settings.loss == "dapo":
        return 1 / sum(length[i] for i in here)
    share = {
        "grpo": len(here) * length[row],
        "bnpo": sum(length[i] for i in learn),
        "dr_grpo": len(here) * (settings.max_tokens or TOKENS),
    }[settings.loss]
    return 1 / (share * settings.accumulation)


@pytest.mark.parametrize("engine", ["correct", "zero_std_kl"])
@stable
@given(columns(), any_settings, st.sampled_from(CHOICES["loss"]))
def test_the_gradient_has_its_closed_form(engine, rows, settings, loss):
    # beta * (1 - exp(ref - logp)) * weight, and -A * weight.
    settings = Settings(
        **{**settings, "loss": loss, "beta": 0.1, "min_group_size": 1}
    )
    found = traced(rows, settings, REPLICAS.get(engine, CORRECT))
    gap = rows["ref_logp"] - rows["logp"]
    policy, kl = torch.zeros_like(gap), torch.zeros_like(gap)
    trained = found.trained.tolist()
    for row, advantage in enumerate(found.advantage.tolist()):
        if not trained[row] or rows["kept_steps"][row] == 0:
            continue
        weight = share_of_a_token(rows, settings, trained, row)
        m = torch.tensor(rows["mask"][row])
        policy[row] = m * -advantage * weight
        kl[row] = m * 0.1 * (1 - gap[row].exp()) * weight
    torch.testing.assert_close(found.policy_gradient, policy)
    torch.testing.assert_close(found.kl_gradient, kl)
    torch.testing.assert_close(found.gradient, policy + kl)


@pytest.mark.parametrize("engine", ["correct", *REPLICAS])
@stable
@given(columns(), any_settings, st.lists(rewards, min_size=9, max_size=9))
def test_the_stages_take_a_leading_dimension(engine, rows, settings, other):
    engine = REPLICAS.get(engine, CORRECT)
    settings = Settings(**{**settings, "min_group_size": 1})
    count = len(rows["reward"])
    variants = [rows["reward"], other[:count], rows["reward"][::-1]]
    apart = [
        traced({**rows, "reward": reward}, settings, engine)
        for reward in variants
    ]
    batch = Batch(**rows, settings=settings)
    first = apart[0]
    counted, group = first.counted, first.group
    score = torch.stack([trace.score for trace in apart])
    for wide, of in (
        (score, lambda name: [getattr(t, name) for t in apart]),
        (score[None], lambda name: [[getattr(t, name) for t in apart]]),
    ):
        baseline = engine.baseline(batch, wide, counted, group)
        scale = engine.scale(batch, wide, counted, group, baseline)
        standardized = engine.standardized(
            wide, first.credited, baseline, scale
        )
        advantage = engine.advantage(batch, standardized, first.credited)
        trained = engine.trained(batch, wide, counted, group)
        found = {
            "baseline": baseline,
            "scale": scale,
            "standardized": standardized,
            "advantage": advantage,
            "trained": trained,
        }
        for name, value in found.items():
            expected = of(name)
            if isinstance(expected[0], list):
                expected = torch.stack(expected[0])[None]
            else:
                expected = torch.stack(expected)
            near(value.expand_as(expected), expected)


@pytest.mark.parametrize("engine", ["correct", *REPLICAS])
@stable
@given(columns(), any_settings)
def test_stages_leave_their_inputs_alone(engine, rows, settings):
    batch = Batch(**rows, settings=settings)
    names = [*rows]
    before = {name: getattr(batch, name).clone() for name in names}
    engine = REPLICAS.get(engine, CORRECT)
    try:
        once, twice = (gradebook.run(engine, batch) for _ in range(2))
    except gradebook.GradebookError:
        assume(False)
    for name in names:
        assert getattr(batch, name).equal(before[name])
    for name in PER_ROW:
        a, b = getattr(once, name), getattr(twice, name)
        assert a.nan_to_num().equal(b.nan_to_num())
