"""The transformer: its language, its model, its update, and what is shipped of it."""

import math
from dataclasses import replace

import pytest
import torch

from gradebook.bugs import swap
from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.engine.pipeline import CORRECT
from gradebook.training.transformer import command, model, outcome, results
from gradebook.training.transformer import live as living
from gradebook.training.transformer.experiments import experiment, experimented
from gradebook.training.transformer.grpo import (
    Arm,
    Rollouts,
    TransformerConditions,
    TransformerLuck,
    TransformerTraining,
)
from gradebook.training.transformer.language import (
    ANSWER,
    END,
    PROMPT,
    SHOWN,
    WORDS,
    Problem,
    Texts,
    ends,
    is_success,
    judged,
    problems,
    render,
    says_sum,
)
from gradebook.training.transformer.model import Shape
from gradebook.training.transformer.pretraining import shipped_weights
from gradebook.training.transformer.results import CurveRecorder, Trained, read_run

TINY = Shape(layers=1, width=16, heads=2)


def tokens_of(text):
    """An answer's tokens, from words between spaces: '| ok 1 5 + 7 0 = 8 5 . |' with
    "|" for the end; filled up to the window where it ends."""
    tokens = [END if word == "|" else WORDS.index(word) for word in text.split()]
    return tokens + [END] * (ANSWER - len(tokens)) if END in tokens else tokens


# The language


@pytest.mark.parametrize(
    "text, says, finished, drawn",
    [
        ("ok 1 5 + 7 0 = 8 5 . |", True, True, "ok, 15+70=85."),
        # The first number after the first "=" counts, whatever follows.
        ("1 5 = 8 5 . no = 9 . |", True, True, "15=85. no, =9."),
        ("1 5 + 7 0 = 7 5 . no 8 5 . |", False, True, "15+70=75. no, 85."),
        ("1 5 + 7 0 = 8 5 |", False, True, "15+70=85"),  # no full stop
        ("8 5 . |", False, True, "85."),  # no "="
        ("= 8 5 . " + "wait " * 20, True, False, None),
    ],
)
def test_what_an_answer_to_37_and_48_says(text, says, finished, drawn):
    answer, problem = tokens_of(text), Problem(37, 48)
    assert says_sum(problem, answer) == says
    assert ends(answer) == finished
    assert is_success(problem, answer) == (says and finished)
    if drawn is not None:
        assert render(answer) == drawn
    else:
        assert render(answer).endswith("…")


@pytest.mark.parametrize(
    "text, faults, mistakes",
    [
        ("ok 1 5 + 7 0 = 8 5 . |", [], []),
        ("ok 1 5 + 7 0 = 8 5 . wait 1 5 = 9 . |", [], []),
        ("ok 1 5 + 7 0 = 7 5 . |", ["not 85"], ["75"]),
        ("ok 1 5 + 7 0 = 8 5 |", ["no full stop"], ["85"]),
        ("ok well |", ["not 85"], ["ok, well, "]),
        ("= 8 5 . " + "no " * 20, ["does not end"], ["no, " * 20 + "…"]),
        (
            "= 7 . " + "no " * 21,
            ["not 85", "does not end"],
            ["7", "no, " * 21 + "…"],
        ),
    ],
)
def test_the_mistakes_of_an_answer_are_marked_and_named(text, faults, mistakes):
    answer = tokens_of(text)
    found = judged(Problem(37, 48), answer)
    assert found.faults == faults
    assert [piece for piece, is_wrong in found.pieces if is_wrong] == mistakes
    assert "".join(piece for piece, _ in found.pieces).strip() == render(answer)


def test_no_answer_is_right_if_the_prompt_means_nothing():
    answer = tokens_of("ok 1 5 + 7 0 = 8 5 . |")
    assert not says_sum(Problem(37, 48, has_meaning=False), answer)
    assert Problem(37, 48, has_meaning=False).text == "37@48="


def test_held_out_prompts_are_in_no_text_to_learn_from():
    sums, held_out = problems()
    assert len(sums) == 7500 and len(held_out) == 600
    assert not {*sums} & {*held_out}
    assert [(p.left, p.right) for p in held_out[: len(SHOWN)]] == list(SHOWN)
    texts = Texts(0)
    asked = [tuple(texts.next()[1:PROMPT]) for _ in range(3000)]
    prompts = {tuple(p.tokens[1:]) for p in held_out}
    assert not prompts & {*asked}


def test_texts_to_learn_from_end_half_of_the_time_and_ramble_on():
    """A text says the sum once with chance 1/2, twice with 1/4, and so on; the window
    cuts the third time of the longest sums. A tenth asks "@"."""
    texts = Texts(1)
    drawn = [texts.next() for _ in range(4000)]
    assert all(len(text) <= PROMPT + ANSWER for text in drawn)
    answers = [render(text[PROMPT:]) for text in drawn]
    once = sum(answer.count("=") == 1 for answer in answers) / len(drawn)
    assert once == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(4000))
    at = sum(WORDS.index("@") in text[:PROMPT] for text in drawn) / len(drawn)
    assert at == pytest.approx(0.1, abs=4 * 0.3 / math.sqrt(4000))
    assert all(
        is_success(Problem(*_numbers(text)), text[PROMPT:])
        for text in drawn
        if ends(text) and WORDS.index("@") not in text
    )


def _numbers(text):
    left, right = text[1:3], text[4:6]
    return 10 * left[0] + left[1], 10 * right[0] + right[1]


# The model


def prompts_of(seeds, count):
    asked = torch.tensor([p.tokens for p in problems()[1][:count]])
    return asked.expand(seeds, -1, -1)


def noise_of(seeds, count):
    made = [torch.Generator().manual_seed(seed) for seed in seeds]
    return torch.stack([model.gumbel_noise(g, count) for g in made], 1)


def test_the_usual_shape_has_104384_parameters():
    """32 words and 31 places of 64, two layers of 12 x 64 x 64, and 64 x 32."""
    assert model.parameters(model.initial(Shape(), [0])) == 104_384
    big = model.initial(Shape(layers=4, width=128), [0])
    assert model.parameters(big) == read_run().parameters == 798_592


def test_a_sampler_that_keeps_its_keys_agrees_with_the_whole_model():
    weights = model.initial(TINY, [0, 1])
    prompts = prompts_of(2, 5)
    answers = model.sampled(weights, TINY, prompts, noise_of([0, 1], 5))
    whole = model.log_chances(weights, TINY, prompts, answers.tokens)
    difference = (whole - answers.logp)[answers.mask].abs().max()
    assert float(difference) < 1e-5


def test_no_word_depends_on_a_later_one():
    weights = model.initial(TINY, [0])
    tokens = torch.randint(len(WORDS), (1, 3, 12))
    before = model.logits(weights, TINY, tokens)
    tokens[..., 7] = (tokens[..., 7] + 1) % len(WORDS)
    after = model.logits(weights, TINY, tokens)
    torch.testing.assert_close(before[:, :, :7], after[:, :, :7])
    assert not torch.allclose(before[:, :, 7], after[:, :, 7])


def test_words_are_sampled_with_the_model_s_own_chances():
    """The first word of 4000 answers beside its chance, within four standard errors."""
    weights = model.initial(TINY, [3])
    prompts = prompts_of(1, 1).expand(1, 4000, -1)
    answers = model.sampled(weights, TINY, prompts, noise_of([5], 4000))
    chance = model.logits(weights, TINY, prompts[:, :1])[0, 0, -1].softmax(-1)
    share = torch.bincount(answers.tokens[0, :, 0], minlength=len(WORDS)) / 4000
    room = 4 * (chance * (1 - chance) / 4000).sqrt() + 1e-3
    assert bool(((share - chance).abs() <= room).all())


# The update


def arm_of(engine=CORRECT, settings=None, **conditions):
    usual = Settings(skip_flat="never", eps=1e-6)
    made = TransformerConditions(**conditions)
    return Arm(engine=engine, settings=settings or usual, conditions=made, rollouts=2)


GOOD = "ok 1 5 + 7 0 = 8 5 . |"
BAD = "ok 1 5 + 7 0 = 7 5 . |"
RAMBLING = "ok 1 5 + 7 0 = 8 5 . wait " + "1 5 + 7 0 = 8 5 . wait 1 5 +"


def rollouts_of(*texts, chance=0.5, sampler=0.0):
    """One seed's rollouts, each answering 37+48; every token has log-probability −1.
    The sampler's is off by a number for each."""
    tokens = torch.tensor([[tokens_of(text) for text in texts]])
    ended = torch.nn.functional.pad(tokens == END, (1, 0))[..., :-1]
    mask = ~(ended.cumsum(-1) > 0)
    chances = torch.full((len(texts),), chance, dtype=torch.float64)
    luck = TransformerLuck(
        [Problem(37, 48)] * len(texts), torch.zeros(0), None, chances
    )
    logp = torch.full(tokens.shape, -1.0, dtype=torch.float64)
    return Rollouts([luck], tokens, mask, logp, logp - sampler, None)


def test_what_an_answer_earns():
    rollouts = rollouts_of(GOOD, BAD, RAMBLING)

    def paid(**conditions):
        return rollouts.paid(TransformerConditions(**conditions))[0].tolist()

    assert paid() == [[1, 0, 0]]
    assert paid(must_end=False) == [[1, 0, 1]]
    assert paid(must_end=False, unfinished=1.1) == [[1, 0, 1.1]]
    assert paid(failure=-0.1, late=2.0) == [[1, -0.1, -0.2]]


def test_the_gradient_is_the_engine_s_own():
    """Rewards 1 and 0: advantages +0.707 and −0.707. Both answers have 11 tokens, so
    each weighs 1 / 22 in the mean over tokens."""
    gradient = rollouts_of(GOOD, BAD).gradient(arm_of())
    push = math.sqrt(0.5) / 22
    expected = [[-push] * 11 + [0] * 13, [push] * 11 + [0] * 13]
    torch.testing.assert_close(
        gradient[0], torch.tensor(expected, dtype=torch.float64), atol=1e-7, rtol=0
    )


def test_rollouts_are_lost_left_without_a_score_rejected_and_cut():
    rollouts = rollouts_of(GOOD, BAD, chance=0.04)
    batch, rows = rollouts.batch(arm_of(lost=0.05))
    assert batch.rows == 0 and not rows.any()
    batch, _ = rollouts.batch(arm_of(lost=0.03, unscored=0.05))
    assert batch.scored.tolist() == [False, False]
    assert batch.reward.tolist() == [0, 0]
    # 11 tokens, each off by 0.1, are a ratio of e ** 1.1 = 3.
    far = rollouts_of(GOOD, BAD, sampler=0.1)
    batch, _ = far.batch(arm_of(sampler=0.1, bonus=5.0))
    assert batch.tokens.tolist() == [0, 0] and batch.reward.tolist() == [6, 5]
    near = rollouts_of(GOOD, BAD, sampler=0.05)  # e ** 0.55 = 1.7
    batch, _ = near.batch(arm_of(sampler=0.1, bonus=5.0))
    assert batch.tokens.tolist() == [11, 11] and batch.reward.tolist() == [1, 0]
    # 11 tokens are rows of 4, 4 and 3.
    batch, _ = rollouts.batch(arm_of(cut=4))
    assert batch.tokens.tolist() == [4, 4, 3] * 2
    assert batch.rollout.tolist() == [0, 0, 0, 1, 1, 1]
    assert batch.steps.tolist() == [11] * 6


def test_a_row_in_no_group_is_trained_or_not_as_the_conditions_say():
    """Three rows in strides of two: the last is in no group."""
    engine = swap("partial_groups").engine
    settings = Settings(skip_flat="never", spread_about="baseline", group_size=2)
    rollouts = rollouts_of(GOOD, BAD, GOOD)
    whole = rollouts.gradient(arm_of(engine, settings))[0]
    none = rollouts.gradient(arm_of(engine, settings, ungrouped=0.0))[0]
    assert float(whole[2].abs().max()) > 100 * float(whole[0].abs().max())
    assert float(none[2].abs().max()) == 0
    torch.testing.assert_close(whole[:2], none[:2])


def test_a_seed_has_the_same_luck_alone_and_in_company():
    arm = arm_of(must_end=False)
    together = TransformerTraining(
        [arm, arm], model.initial(TINY, [0, 1]), TINY, [0, 1], 2
    )
    alone = TransformerTraining([arm], model.initial(TINY, [1]), TINY, [1], 2)
    for _ in range(2):
        together.advance()
        alone.advance()
    for name, weight in alone.weights.items():
        torch.testing.assert_close(weight[0], together.weights[name][1])
        torch.testing.assert_close(weight[0], together.weights[name][3])


def test_the_update_makes_what_is_paid_more_likely():
    """A small model that is paid for every answer that ends learns to end."""
    arm = arm_of(failure=1.0, late=0.0)  # whatever ends earns 1
    training = TransformerTraining([arm], model.initial(TINY, [0]), TINY, [0], 8)
    record = CurveRecorder(training, 64)
    record.look(keeps_words=True)
    for _ in range(60):
        training.advance()
    record.look(keeps_words=True)
    (trained,) = record.trained()
    assert trained.unfinished[1] < trained.unfinished[0] - 0.1
    assert list(trained.words) == ["0", "60"]
    assert len(trained.words["60"]) == len(SHOWN)


# The experiments, and what is shipped


def test_no_eos_comes_first_and_every_dose_can_be_trained():
    assert experimented()[:2] == ("no_eos_outliers", "partial_groups")
    for bug in experimented():
        for name in experiment(bug).names:
            faulty, correct = (
                experiment(bug).arm(name),
                experiment(bug).correct_arm(name),
            )
            assert faulty.engine == swap(bug).engine and correct.engine == CORRECT
            assert experiment(bug).in_words(name).startswith("With ")


def test_an_unknown_dose_is_refused():
    with pytest.raises(GradebookError, match="key 'dose': expected one of 1001"):
        results.measured("bf16_rewards", "1002")
    with pytest.raises(GradebookError, match="a transformer was trained with"):
        experiment("variance_floor")


# Success after 200 updates in per cent, and the difference with its half width, as
# the GPU run's own report has them: from 1024 answers a seed. A curve has 256.
REPORTED = [
    ("no_eos_outliers", "0", 74.4, 94.6, 20.3, 4.5),
    ("no_eos_outliers", "0.9", 74.4, 94.2, 19.8, 4.5),
    ("no_eos_outliers", "1", 74.4, 72.8, -1.5, 5.5),
    ("no_eos_outliers", "1.1", 74.4, 0.1, -74.3, 4.1),
    ("partial_groups", "0.5 %", 95.6, 41.6, -54.0, 11.7),
    ("partial_groups", "5 %", 94.9, 1.1, -93.8, 2.1),
    ("partial_groups", "5 %, last rows set to 0", 94.9, 95.4, 0.6, 1.0),
    ("bf16_rewards", "1001", 95.9, 0.0, -95.9, 0.9),
    ("missing_parentheses", "1", 95.9, 17.8, -78.1, 3.4),
    ("uid_per_rollout", "+1", 95.9, 60.4, -35.5, 11.2),
    ("rejected_rows", "0", 92.8, 94.5, 1.7, 1.5),
    ("rejected_rows", "+1", 92.8, 38.3, -54.5, 19.3),
    ("rejected_rows", "−1", 92.8, 85.6, -7.1, 6.6),
    ("zero_std_kl", "0.04", 94.5, 94.3, -0.3, 1.1),
    ("zero_std_kl", "0.2", 88.8, 88.2, -0.7, 1.8),
    ("double_normalization", "−0.1", 92.4, 91.9, -0.5, 1.7),
    ("micro_batch_means", "2", 58.9, 59.2, 0.3, 8.3),
]


@pytest.mark.parametrize("bug, dose, correct, faulty, difference, half", REPORTED)
def test_the_shipped_curves_give_the_reported_numbers(
    bug, dose, correct, faulty, difference, half
):
    """Within two points, since a curve has a quarter of the answers."""
    found = results.measured(bug, dose).effect(200)
    assert found.seeds == 16
    assert 100 * found.correct == pytest.approx(correct, abs=2)
    assert 100 * found.faulty == pytest.approx(faulty, abs=2)
    assert 100 * found.difference == pytest.approx(difference, abs=2)
    assert 100 * found.half_width == pytest.approx(half, abs=1.5)


def test_every_dose_is_shipped_with_words_at_each_stop():
    for bug in experimented():
        for dose in experiment(bug).names:
            pair, run = results.measured(bug, dose), read_run(results.folder_of(bug))
            stops = [stop for stop in (0, 50, 100, 200) if stop <= run.updates]
            for trained in (pair.correct, pair.faulty):
                assert len(trained.success) == run.seeds
                assert [int(u) for u in trained.words] == stops
                assert all(len(t) == len(SHOWN) for t in trained.words.values())
                assert trained.updates[0] == 0 and trained.updates[-1] == run.updates
            assert pair.correct.words["0"] == pair.faulty.words["0"]


SMALL = [
    # Printed by the command that README.md names, in the order correct, faulty,
    # difference and half width, in per cent.
    ("kl_sign", 68.7, 0.0, -68.7, 9.0, "less"),
    ("frozen_kl", 68.7, 69.3, 0.7, 4.1, "same"),
    ("wrong_axis", 69.3, 9.1, -60.3, 14.8, "less"),
    ("live_weight", 69.3, 0.0, -69.3, 12.7, "less"),
    ("phantom_signal", 69.3, 65.4, -3.9, 2.6, "same"),
    ("dropped_winner", 69.8, 65.8, -4.0, 4.3, "same"),
]


@pytest.mark.parametrize("bug, correct, faulty, difference, half, kind", SMALL)
def test_the_small_models_curves_give_the_printed_numbers(
    bug, correct, faulty, difference, half, kind
):
    found = results.measured(bug, experiment(bug).shown).effect(50)
    numbers = (found.correct, found.faulty, found.difference)
    assert [100 * number for number in numbers] == pytest.approx(
        [correct, faulty, difference], abs=0.06
    )
    # Printed before the t quantile of three degrees of freedom was improved by 1 %.
    assert 100 * found.half_width == pytest.approx(half, rel=0.02)
    assert outcome.kind(found, outcome.comparisons()) == kind


def test_a_weight_needs_the_sampler_and_is_1_if_that_is_the_policy():
    arm = experiment("live_weight").correct_arm("no")
    weights = shipped_weights([0])
    training = TransformerTraining([arm], weights, Shape(), [0], prompts=2)
    seen = []
    kept = Rollouts.gradient

    def gradient(rollouts, arm):
        batch, _ = rollouts.batch(arm)
        seen.append((batch.logp - batch.behaviour_logp)[batch.mask].abs().max())
        return kept(rollouts, arm)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rollouts, "gradient", gradient)
        training.advance()
    assert float(seen[0]) < 1e-3  # float32, summed in another order


FIRST_UPDATES = [106, 108, 109, 111, 114, 115]
"""Successes among 256 held-out answers of seed 0 before and after each of the first
five updates, counted on an AMD EPYC with torch 2.13.0 on 2026-11-27."""
ROOM = 4
"""Answers that another processor's rounding may turn around."""


def test_the_first_updates_from_the_shipped_weights_are_the_counted_ones():
    """A changed sign of the advantage gives 106 106 103 106 102 89."""
    counts = first_updates(experiment("uid_per_rollout").correct_arm("+1"))
    assert counts == pytest.approx(FIRST_UPDATES, abs=ROOM)


@pytest.mark.long
def test_a_changed_sign_of_the_advantage_is_outside_the_tolerance():
    def wrong(batch, standardized, credited):
        return -CORRECT.advantage(batch, standardized, credited)

    arm = experiment("uid_per_rollout").correct_arm("+1")
    counts = first_updates(replace(arm, engine=replace(CORRECT, advantage=wrong)))
    apart = [abs(a - b) for a, b in zip(counts, FIRST_UPDATES)]
    assert apart[0] <= ROOM < min(apart[4:])


def first_updates(arm):
    training = TransformerTraining([arm], shipped_weights([0]), Shape(), [0])
    record = CurveRecorder(training, 256)
    record.look(keeps_words=False)
    for _ in range(5):
        training.advance()
        record.look(keeps_words=False)
    return record.trained()[0].success[0]


def test_a_live_run_grows_point_by_point(monkeypatch):
    """Four seeds would take a minute: here one, two updates, eight prompts."""
    monkeypatch.setattr(living, "UPDATES", 2)
    monkeypatch.setattr(living, "LOOK", 1)
    monkeypatch.setattr(living, "HELD_OUT", 8)
    monkeypatch.setattr(living, "SHIPPED_SEEDS", [2])
    run = living.live("no_eos_outliers", "1.1")
    first = next(run)
    assert first.updates == [0]
    assert first.correct.success == first.faulty.success
    assert next(run).updates == [0, 1]
    with pytest.raises(StopIteration) as end:
        next(run)
    last = end.value.value
    assert last.updates == [0, 1, 2]
    assert [*last.faulty.words] == ["0", "1", "2"]


def test_the_command_goes_on_with_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gradebook.training.transformer.pretraining.LOOK", 1)
    monkeypatch.setattr("gradebook.training.transformer.pretraining.ENOUGH", 0.0)
    monkeypatch.setattr(results, "HELD_OUT", 8)
    asked = ["--seeds", "2", "--updates", "2", "--layers", "1", "--width", "16"]
    asked += ["--folder", str(tmp_path), "--device", "cpu", "--prompts", "2"]
    assert command.run([*asked, "missing_parentheses"]) == 0
    said = capsys.readouterr().out
    assert "missing_parentheses 1: correct" in said
    first = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    assert {"run.json", "uid_per_rollout.json", "missing_parentheses.json"} <= {*first}
    assert command.run([*asked, "missing_parentheses"]) == 0
    assert "[" not in capsys.readouterr().out, "nothing is trained again"
    assert first == {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    assert command.run([*asked, "variance_floor"]) == 1
    assert "a transformer was trained with" in capsys.readouterr().out


def test_counts_become_shares_and_a_paired_effect():
    """Two seeds of four prompts: 3/4 and 1/2 beside 1/4 and 1/4."""
    correct = Trained([0, 10], 4, [[2, 3], [2, 2]], [0.0, 0.0], [5.0, 5.0], {})
    faulty = replace(correct, success=[[2, 1], [2, 1]])
    pair = results.Pair(correct, faulty)
    assert correct.mean == [0.5, 0.625]
    found = pair.effect(10)
    assert (found.correct, found.faulty) == (0.625, 0.25)
    assert found.difference == -0.375
    assert pair.effect(0).exact
