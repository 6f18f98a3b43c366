"""What must hold whatever the batch, with drawn batches and settings."""

import pytest
import torch
from drawn import TOKENS, any_settings, columns, rewards, taken, token_settings
from engine.traces import REPLICAS
from hypothesis import assume, given
from hypothesis import settings as trying
from hypothesis import strategies as st

import gradebook
from gradebook import CORRECT, Batch, Settings
from gradebook.core.settings import CHOICES

ONE_VOTER = ("length_weighted_mean", "second_best")
"""Baselines that look at the voting row of a rollout alone."""


def traced(rows, settings, engine=CORRECT):
    """The trace. An example is left out if the step has too few tokens
    to whiten, or if the faulty engine stops."""
    batch = Batch(**rows, settings=settings)
    try:
        return gradebook.run(engine, batch)
    except gradebook.GradebookError:
        assume(not settings.whiten_tokens and engine is CORRECT)
        raise


def near(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7, equal_nan=True)


FLOATS = ("score", "baseline", "scale", "standardized", "advantage")
PER_ROW = (*FLOATS, "credited", "counted", "trained", "token_advantage", "gradient")


def own_rollouts(rows, settings):
    """The rows, each a rollout of its own if the baseline looks at the
    voting row alone."""
    if settings.baseline not in ONE_VOTER:
        return rows
    return {**rows, "rollout": list(range(len(rows["reward"])))}


BY_PLACE = ("group", "weight")
"""Stages whose bugs may look at a row's position."""
UNORDERED = [n for n in REPLICAS if gradebook.bug(n).stage not in BY_PLACE]


@given(
    st.sampled_from(["correct", *UNORDERED]),
    columns(by_token=True),
    token_settings,
    st.randoms(use_true_random=False),
)
def test_row_order_does_not_matter(engine, rows, settings, random):
    engine = REPLICAS.get(engine, CORRECT)
    rows = own_rollouts(rows, settings)
    order = list(range(len(rows["reward"])))
    random.shuffle(order)
    # The first row of a rollout votes, so its rows keep their order.
    for one in set(rows["rollout"]):
        places = [at for at, r in enumerate(order) if rows["rollout"][r] == one]
        for at, row in zip(places, sorted(order[at] for at in places)):
            order[at] = row
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


def moved(rows, settings, engine, row, reward):
    """Others' advantages before and after another reward of one row."""
    changed = list(rows["reward"])
    changed[row] = reward
    before = traced(rows, settings, engine).advantage
    after = traced({**rows, "reward": changed}, settings, engine).advantage
    others = [i for i in range(len(changed)) if i != row]
    return before[others], after[others]


@given(columns(least=2), any_settings, rewards, st.data())
def test_a_row_without_credit_moves_nobody(rows, settings, reward, data):
    # A later piece of a rollout does not count, and is whitened all the same.
    settings = Settings(**{**settings, "mask_no_eos": True})
    credited = traced(rows, settings).credited
    silent = (~credited).nonzero().flatten().tolist()
    assume(silent)
    row = data.draw(st.sampled_from(silent))
    before, after = moved(rows, settings, CORRECT, row, reward)
    assert before.nan_to_num().equal(after.nan_to_num())
    assert before.isnan().equal(after.isnan())


@given(columns(most=4), any_settings, st.integers(1, 4), st.booleans())
def test_full_contiguous_groups_are_equal_bit_by_bit(rows, settings, size, configured):
    # Each row is a prompt of its own, `size` rows wide, and the
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
@given(columns(), any_settings, st.sampled_from(CHOICES["loss"]))
def test_the_gradient_has_its_closed_form(engine, rows, settings, loss):
    # beta * (1 - exp(ref - logp)) * weight, and -A * weight.
    settings = Settings(**{**settings, "loss": loss, "beta": 0.1, "min_group_size": 1})
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


@given(st.sampled_from(["correct", *REPLICAS]), columns(by_token=True), token_settings)
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


def outcome(engine, rows, settings):
    """The trace, or None if the engine stops."""
    try:
        return gradebook.run(engine, Batch(**rows, settings=settings))
    except gradebook.GradebookError:
        return None


def exactly(found, expected):
    assert found.dtype == expected.dtype
    assert found.isnan().equal(expected.isnan())
    assert found.nan_to_num().equal(expected.nan_to_num())


@trying(max_examples=100)
@given(
    st.sampled_from(["correct", *REPLICAS]),
    columns(most=12, by_token=True),
    token_settings,
)
def test_many_steps_in_one_call_give_exactly_what_each_gives_alone(
    engine, rows, settings
):
    engine = REPLICAS.get(engine, CORRECT)
    # A generation that feeds two steps is one denominator for both (dapo).
    rows = {**rows, "generation": rows["step"]}
    places = {}
    for row, step in enumerate(rows["step"]):
        places.setdefault(step, []).append(row)
    both = outcome(engine, rows, settings)
    alone = {s: outcome(engine, taken(rows, places[s]), settings) for s in places}
    if both is None or None in alone.values():
        assert both is None and None in alone.values()
        return
    for number, (step, trace) in enumerate(alone.items()):
        for name in (*PER_ROW, "policy_gradient", "kl_gradient"):
            exactly(getattr(both, name)[places[step]], getattr(trace, name))
        # The same rows share a group, whatever its number.
        a, b = both.group[places[step]], trace.group
        assert (a[:, None] == a).equal(b[:, None] == b) and (a < 0).equal(b < 0)
        for name in ("policy_loss", "kl_loss"):
            part = getattr(trace, name)
            exactly(getattr(both, name)[number], part.sum())
    total = sum(float(trace.loss) for trace in alone.values())
    assert float(both.loss) == pytest.approx(total, rel=1e-12, abs=1e-15)
