"""Many steps in one call give exactly what each gives alone."""

from itertools import product

import pytest
import torch
from one_a_stage import BY_STAGE

import gradebook
from gradebook import CORRECT, ESTIMATORS, Batch, GradebookError, Settings
from gradebook.core.settings import CHOICES

ENGINES = {
    "correct": CORRECT,
    **{name: gradebook.bug(name).engine for name in gradebook.BUGS},
}
FEW = {"correct", *BY_STAGE.values()}
PER_ROW = (
    "score",
    "credited",
    "counted",
    "baseline",
    "scale",
    "standardized",
    "advantage",
    "trained",
    "policy_gradient",
    "kl_gradient",
    "gradient",
)
AREAL = Settings(eps=1e-5, spread_about="baseline", mask_no_eos=True)
MORE = {
    "areal": AREAL,
    "areal_batch": Settings(
        **{**AREAL, "baseline": "batch_mean", "scale": "batch_std"}
    ),
    "trl": Settings(),
    "gem": Settings(ddof=0, eps=1e-9),
    "nemo": Settings(baseline="leave_one_out", scale="others_std"),
    "skyrl": Settings(whiten_tokens=True, whiten_ddof=0, lone_row="raw"),
    "passes": Settings(micro_batch=2, loss="bnpo"),
}
SETTINGS = {**ESTIMATORS, **MORE}


def rows_of(count, seed):
    """`count` rows of one step, drawn by `seed`: few prompts with labels
    that come back in every step, rejected rows, rows without EOS, flat
    groups, rows without transitions."""
    g = torch.Generator().manual_seed(seed)

    def draw(high, *shape):
        return torch.randint(high, (count, *shape), generator=g)

    prompt = draw(3)
    reward = draw(5).double() / 3
    reward[prompt == 0] = 0.7
    mask = draw(4, 3) > 0
    mask[draw(5) == 0] = False
    mask[0] = True
    steps = draw(4) + 1
    kept_steps = torch.minimum(steps, draw(5))
    kept_steps[1:2] = 0
    logp = torch.randn(count, 3, generator=g, dtype=torch.float64)
    apart = torch.randn(count, 3, generator=g, dtype=torch.float64)
    return {
        "prompt": prompt,
        "reward": reward,
        "mask": mask,
        "eos": draw(4) > 0,
        "steps": steps,
        "kept_steps": kept_steps,
        "logp": logp,
        "ref_logp": logp + apart / 4,
        "scored": draw(6) > 0,
        "rollout": draw(4),
        "rank": draw(2),
        "text": draw(2),
    }


COUNTS = {7: 11, 2: 6, 30: 1, 4: 9}
ALONE = {step: rows_of(n, step) for step, n in COUNTS.items()}
ALONE[30]["mask"][:] = True  # a single row of three tokens
for rows in ALONE.values():
    rows["eos"][0] = rows["scored"][0] = True


def together(order):
    """Every step's rows in one batch, as `order` arranges them."""
    step = torch.cat([torch.full((n,), s) for s, n in COUNTS.items()])
    columns = {
        name: torch.cat([rows[name] for rows in ALONE.values()])[order]
        for name in ALONE[7]
    }
    return {**columns, "step": step[order]}


ROWS = sum(COUNTS.values())


def interleaved():
    """Steps in turn, each step's rows in their own order."""
    g = torch.Generator().manual_seed(3)
    where = torch.cat([torch.full((n,), s) for s, n in COUNTS.items()])
    shuffled = where[torch.randperm(ROWS, generator=g)]
    order = torch.empty(ROWS, dtype=torch.int64)
    for step in COUNTS:
        order[shuffled == step] = (where == step).nonzero().flatten()
    return order


ORDERS = {"one after another": torch.arange(ROWS), "mixed": interleaved()}


def exactly_equal(found, expected):
    assert found.dtype == expected.dtype
    assert found.isnan().equal(expected.isnan())
    assert found.nan_to_num().equal(expected.nan_to_num())


def stops(engine, settings, rows):
    try:
        gradebook.run(engine, Batch(**rows, settings=settings))
    except GradebookError:
        return True
    return False


def holds(engine, settings, order):
    batch = Batch(**together(order), settings=settings)
    if stops(engine, settings, together(order)):
        # A faulty engine that stops does so because of one of the steps.
        assert any(stops(engine, settings, rows) for rows in ALONE.values())
        return
    both = gradebook.run(engine, batch)
    sums = []
    for step, rows in ALONE.items():
        alone = gradebook.run(engine, Batch(**rows, settings=settings))
        here = batch.step == step
        for name in PER_ROW:
            exactly_equal(getattr(both, name)[here], getattr(alone, name))
        # The same rows share a group, whatever its number.
        a, b = both.group[here], alone.group
        assert (a[:, None] == a).equal(b[:, None] == b)
        assert (a < 0).equal(b < 0)
        at = int(batch.step_index[here][0])
        for name in ("policy_loss", "kl_loss"):
            part = getattr(alone, name)
            expected = (
                part[0] if part.numel() else torch.zeros_like(getattr(both, name)[at])
            )
            exactly_equal(getattr(both, name)[at], expected)
        sums.append(float(alone.loss))
    assert float(both.loss) == pytest.approx(sum(sums), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    "engine",
    [pytest.param(n, marks=() if n in FEW else pytest.mark.long) for n in ENGINES],
)
def test_steps_do_not_touch(engine):
    for settings in SETTINGS.values():
        changed = Settings(**{**settings, "beta": 0.1})
        holds(ENGINES[engine], changed, ORDERS["mixed"])
    for loss in CHOICES["loss"]:
        settings = Settings(beta=0.1, loss=loss, accumulation=2, max_tokens=8)
        holds(ENGINES[engine], settings, ORDERS["mixed"])


@pytest.mark.parametrize("engine", ["correct", "partial_groups"])
def test_steps_do_not_touch_when_groups_are_dropped(engine):
    for minimum, size in product([1, 2, 3, 4], [None, 1, 3, 4, 50]):
        changed = {"group_size": size, "min_group_size": minimum}
        for order in ORDERS.values():
            holds(ENGINES[engine], Settings(**{**AREAL, **changed}), order)


@pytest.mark.parametrize("engine", ENGINES)
def test_dropping_keeps_steps_apart_under_every_bug(engine):
    settings = Settings(min_group_size=3, beta=0.1)
    for order in ORDERS.values():
        holds(ENGINES[engine], settings, order)


def test_strides_start_anew_in_each_step():
    # Step 1 has rows 0, 2, 4 and step 0 rows 1, 3: a stride of two each and
    # one row past the last.
    batch = Batch(list("xyxyz"), [1, 2, 3, 4, 5], step=[1, 0, 1, 0, 1]).under(
        Settings(group_size=2)
    )
    found = gradebook.run(ENGINES["partial_groups"], batch)
    assert found.group.tolist() == [0, 1, 0, 1, -1]


def test_the_second_normalization_is_over_its_own_step():
    # Each step: 1, -1 (mean 0, std 1) and 10, -10 (std 10).
    batch = Batch(
        [0, 0, 0, 0],
        [1, 10, -1, -10],
        step=[0, 1, 0, 1],
        settings=ESTIMATORS["none"],
    )
    found = gradebook.run(ENGINES["double_normalization"], batch)
    assert found.advantage.tolist() == pytest.approx([1, 1, -1, -1])
