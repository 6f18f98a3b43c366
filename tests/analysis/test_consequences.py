"""Training runs: the tasks, the exact measures, and what each bug does."""

import math
from dataclasses import replace

import pytest
import torch

from gradebook.analysis.consequences import training
from gradebook.analysis.consequences.effect import (
    LESS,
    MORE,
    SAME,
    effect,
    sentence,
    t_quantile,
)
from gradebook.analysis.consequences.environments import lock, ramble, spell
from gradebook.analysis.consequences.measures import (
    letters_in_use,
    success,
    wasted_turns,
)
from gradebook.analysis.consequences.study import Run, studied, study
from gradebook.analysis.consequences.training import (
    Training,
    batch_at,
    frames,
)
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors gain nothing from threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def at_update(run, *updates):
    """measure -> effect at each of these updates."""
    found = {}
    for frame in frames(run):
        if frame.update in updates:
            found[frame.update] = {
                name: effect(*values) for name, values in frame.values.items()
            }
        if len(found) == len(updates):
            break
    return found


# Exact measures, against numbers worked out by hand


def test_a_word_succeeds_with_the_product_of_its_three_chances():
    """Chances 0.9, 0.8, .. 0.2 for each of two letters and EOS."""
    task = spell()
    by_hand = sum((n / 10) ** 3 for n in range(2, 10)) / 8
    assert float(success(task, task.chance)) == pytest.approx(by_hand)


def test_free_letters_add_only_the_chance_not_to_stop_early():
    task = spell(free=2)
    by_hand = sum((n / 10) ** 3 for n in range(2, 10)) / 8 * 0.98**2
    assert float(success(task, task.chance)) == pytest.approx(by_hand)
    assert float(letters_in_use(task, task.chance)) == pytest.approx(7)


def test_a_lock_that_needs_one_turn_opens_unless_it_is_quit_first():
    """Prompt 0 needs one right action (0.85) and quits with 0.05: over
    eight turns 0.85 (1 - 0.1^8) / 0.9."""
    task = lock()
    only = replace(task, solvable=torch.arange(8) == 0)
    by_hand = 0.85 * (1 - 0.1**8) / 0.9
    assert float(success(only, task.chance)) == pytest.approx(by_hand)


def test_turns_without_a_solution_end_by_quitting_or_after_eight():
    """(1 - 0.95^8) / 0.05 turns."""
    task = lock(failure=-0.1, unsolvable=2)
    by_hand = (1 - 0.95**8) / 0.05
    assert float(wasted_turns(task, task.chance)) == pytest.approx(by_hand)


def test_a_ramble_succeeds_where_the_answer_comes_before_eos():
    """Prompt 0: said by token k and ended by token 8, summed by hand over
    the number of tokens before the answer."""
    task = ramble()
    only = replace(task, solvable=torch.arange(8) == 0)
    said, eos = 0.4, 0.12
    by_hand = sum(
        (1 - said - eos) ** before * said * (1 - (1 - eos) ** (7 - before))
        for before in range(8)
    )
    assert float(success(only, task.chance)) == pytest.approx(by_hand)


def test_what_is_sampled_has_the_exact_chance():
    """Rewards of 4096 rollouts beside the exact success, within four
    standard errors."""
    made = Training(Run("partial_groups", 0.0), range(16))
    policy = made.own.detach().log_softmax(-1)
    batch, _ = made.batches(policy, next(made.luck))[0]
    exact = float(success(made.task, made.task.chance))
    share = float(batch.reward.mean())
    error = math.sqrt(exact * (1 - exact) / batch.rows)
    assert batch.rows == 16 * 8 * 8
    assert abs(share - exact) < 4 * error


def test_a_quarter_to_a_third_of_the_rollouts_is_rejected_at_the_start():
    made = Training(Run("rejected_rows", 0.0), range(16))
    policy = made.own.detach().log_softmax(-1)
    batch, _ = made.batches(policy, next(made.luck))[0]
    rejected = 1 - batch.mask.any(-1).double().mean()
    assert 0.24 < float(rejected) < 0.36


# The update


def test_one_update_is_the_optimizer_s_step_along_the_engine_s_gradient():
    """Central differences of the loss, with the advantages held fixed."""
    made = Training(Run("partial_groups", 0.0, "sgd"), [3])
    before = [table.detach().clone() for table in made.tables]
    luck = next(made.luck)
    made.luck = iter([luck])
    policy = sum(before).log_softmax(-1)
    batch, _ = made.batches(policy, luck)[0]
    chosen = made._rollouts(policy, luck).chosen[0]
    advantage = training.run(CORRECT, batch).advantage
    tokens = int(batch.mask.sum())

    def loss(own):
        logp = (own + before[1]).log_softmax(-1).reshape(-1)[chosen]
        return float(-(logp * batch.mask * advantage[:, None]).sum() / tokens)

    made.advance()
    step = before[0] - made.own.detach()
    for place in ((0, 0, 0, 0, 4), (0, 0, 3, 1, 3), (0, 0, 7, 2, 7)):
        high, low = before[0].clone(), before[0].clone()
        high[place] += 1e-5
        low[place] -= 1e-5
        slope = (loss(high) - loss(low)) / 2e-5
        assert float(step[place]) == pytest.approx(slope, abs=1e-8)


def test_a_long_gradient_is_shortened_to_length_one():
    made = Training(Run("partial_groups", 5.0, "sgd"), range(4))
    before = [table.detach().clone() for table in made.tables]
    made.advance()
    moved = sum(
        (a - b.detach()).square().flatten(2).sum(-1)
        for a, b in zip(before, made.tables)
    ).sqrt()
    assert bool((moved <= 1 + 1e-6).all())
    assert float(moved[1].max()) == pytest.approx(1, abs=1e-3)


def test_a_seed_has_the_same_luck_alone_and_among_others():
    together = Training(Run("no_eos_outliers", 1.1), range(4))
    alone = Training(Run("no_eos_outliers", 1.1), [2])
    for _ in range(3):
        together.advance()
        alone.advance()
    pair = together.own.detach()[:, 2], alone.own.detach()[:, 0]
    torch.testing.assert_close(*pair, rtol=0, atol=1e-12)


def test_equal_runs_are_equal_to_the_last_digit():
    run = Run("rejected_rows", 1.0, "adam", 8)
    made = frames(run), frames(run)
    for _ in range(4):
        assert next(made[0]) == next(made[1])


def test_a_seed_that_diverges_leaves_the_others_alone():
    plain = Training(Run("partial_groups", 0.0), range(2))
    broken = Training(Run("partial_groups", 0.0), range(2))
    with torch.no_grad():
        broken.own[1, 0, 3] = math.nan
    for made in (plain, broken):
        made.advance()
        made.advance()
    good, bad = plain.frame().values["success"], broken.frame().values
    assert math.isnan(bad["success"][1][0])
    assert bad["success"][0] == good[0]
    assert bad["success"][1][1] == pytest.approx(good[1][1], abs=1e-12)


def test_the_batch_of_an_update_is_the_one_that_was_trained_on():
    """The first update's rewards come from the reference policy, and are
    the same for both engines; later the batch is the faulty run's."""
    run = Run("partial_groups", 5.0, "adam", 8)
    made = Training(run, range(8))
    made.advance()
    policy = (made.own + made.shared).detach().log_softmax(-1)
    batch, _ = made.batches(policy, next(made.luck))[1]
    of_seed = batch.step == 6
    alone = batch_at(run, seed=6, update=2)
    assert alone.reward.tolist() == batch.reward[of_seed].tolist()
    assert alone.mask.tolist() == batch.mask[of_seed].tolist()
    assert alone.prompt.tolist() == batch.prompt[of_seed].tolist()


# What each bug does: a small size of the figures


@pytest.mark.parametrize(
    "bug, value, update, measure, kind, least, most",
    [
        ("no_eos_outliers", 0.0, 100, "success", MORE, 0.0, 0.05),
        ("no_eos_outliers", 1.5, 50, "success", LESS, 0.7, 1.0),
        ("partial_groups", 5.0, 50, "success", LESS, 0.25, 0.42),
        ("zero_std_kl", 0.04, 150, "letters_in_use", MORE, 0.3, 1.2),
        ("double_normalization", -0.1, 200, "wasted_turns", MORE, 0.8, 2.6),
        ("rejected_rows", 1.0, 50, "success", LESS, 0.04, 0.14),
    ],
)
def test_the_effect_has_the_prototype_s_direction_and_size(
    bug, value, update, measure, kind, least, most
):
    found = at_update(Run(bug, value, "adam", 8), update)[update][measure]
    assert found.kind == kind
    assert least < abs(found.difference) < most


@pytest.mark.parametrize(
    "bug, value", [("partial_groups", 0.0), ("zero_std_kl", 0.0)]
)
def test_a_bug_that_is_off_changes_nothing_at_all(bug, value):
    run = Run(bug, value, "adam", 8)
    assert all(one.exact for one in at_update(run, 30)[30].values())


def test_without_dust_the_second_normalization_wastes_no_turns():
    run = Run("double_normalization", -0.25, "adam", 8)
    assert at_update(run, 200)[200]["wasted_turns"].kind == SAME


# The numbers of an effect, and its words


def test_the_interval_is_student_s():
    """Differences 1, 2, 3: mean 2, standard error 1 / sqrt 3. Quantiles
    from the usual tables."""
    assert t_quantile(0.975, 7) == pytest.approx(2.365, abs=0.005)
    assert t_quantile(0.975, 15) == pytest.approx(2.131, abs=0.001)
    assert t_quantile(0.975, 31) == pytest.approx(2.040, abs=0.001)
    found = effect([0.0] * 8, [1, 2, 3, 4, 5, 6, 7, 8])
    assert found.difference == 4.5
    assert found.half_width == pytest.approx(2.365 * 2.4495 / 2.8284, rel=2e-3)
    assert found.kind == MORE


def test_a_seed_that_diverged_is_left_out_and_counted():
    found = effect([0.5, 0.5, 0.5], [0.4, math.nan, 0.2])
    assert (found.seeds, found.diverged) == (2, 1)
    assert found.difference == pytest.approx(-0.2)


def words(correct, faulty, bug="partial_groups", value=1.0):
    return sentence(study(bug), value, effect(correct, faulty), 50, "faulty")


def test_the_headline_says_size_and_interval():
    said = words([0.9] * 4, [0.68, 0.66, 0.67, 0.67])
    assert said == (
        "With 1 % of the rollouts lost the faulty run solves 23 points less"
        " after 50 updates (95 % interval 22 to 24)."
    )


def test_the_headline_says_that_nothing_can_be_shown():
    said = words([0.5, 0.6, 0.5, 0.6], [0.51, 0.59, 0.49, 0.61])
    assert "no difference after 50 updates that 4 seeds can show" in said
    assert "−1.8 to +1.8 points" in said


def test_the_headline_says_exactly_no_difference():
    assert "exactly no difference" in words([0.5, 0.6], [0.5, 0.6])


def test_the_headline_says_that_a_run_diverged():
    assert "diverged" in words([0.5, 0.5], [math.nan, math.nan])


# The studies


def test_the_first_study_is_the_one_whose_sign_turns():
    assert studied()[:2] == ("no_eos_outliers", "partial_groups")


@pytest.mark.parametrize("bug", studied())
def test_a_study_s_slider_sets_something_and_stands_at_its_own_values(bug):
    one = study(bug)
    slider = one.slider
    for value in (slider.default, slider.off, slider.least, slider.most):
        assert slider.nearest(value) == pytest.approx(value)
        one.at(value)
    task = one.at(slider.least), one.at(slider.most)
    assert (
        task[0][1:] != task[1][1:]
        or task[0][0].reward.tolist() != task[1][0].reward.tolist()
    )
    assert "{}" in slider.phrase


def test_a_slider_s_percent_is_a_share():
    _, on, settings = study("partial_groups").at(5.0)
    assert on.lost == 0.05
    assert settings.group_size == 8
    _, _, settings = study("zero_std_kl").at(0.1)
    assert settings == replace(Settings(eps=1e-4), beta=0.1)


def test_a_bug_without_a_study_is_told():
    with pytest.raises(GradebookError, match="bug"):
        study("nothing")
