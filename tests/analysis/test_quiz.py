"""Batches without a name: where the engines differ on them, and which bug it is."""

import pytest

import gradebook
from gradebook.analysis import quiz
from gradebook.cases.scenario import load, variants

VARIANTS = {c.name: bug for bug in gradebook.BUGS for c in variants(bug) if c.variant}
LEARNT = ("partial_groups", "double_normalization", "no_eos_outliers")


@pytest.mark.parametrize(
    "name, answer",
    [
        ("partial_groups-full", quiz.NOWHERE),
        ("kl_sign-first_step", quiz.NOWHERE),
        ("kl_sign-k1", "On every row"),
        # Row 0 has not moved; row 1's tokens are clipped.
        ("moving_anchor-overshot_blame", "On row 1 alone"),
        # A lone row: the call, token 0, and the answer, token 5.
        ("tool_steps-no_critic", "On token 0 alone"),
    ],
)
def test_where_the_engines_differ_is_one_of_the_choices(name, answer):
    asked = quiz.where(load(name))
    assert asked.choices[asked.answer] == answer


@pytest.mark.parametrize("name", VARIANTS)
def test_a_batch_offers_two_to_four_places_and_always_nowhere(name):
    asked = quiz.where(load(name)) if quiz._runs(load(name)) else None
    if asked:
        assert asked.choices[0] == quiz.NOWHERE
        assert 2 <= len({*asked.choices}) == len(asked.choices) <= 4
        hides = load(name).kind == "hides"
        assert not hides or asked.answer == 0


@pytest.mark.parametrize("bug", sorted({*VARIANTS.values()}))
def test_a_bug_with_variants_has_another_batch_until_all_were_seen(bug):
    first = quiz.another(bug, ())
    assert first.bug == bug and first.variant
    seen = [case.name for case in variants(bug)]
    assert quiz.another(bug, seen) is None
    assert quiz.another(bug, [first.name]) is not first


def test_a_checkpoint_has_one_answer():
    for bugs in (LEARNT, (*LEARNT, "rejected_rows", "zero_std_kl"), ("kl_sign",)):
        case, asked = quiz.checkpoint(bugs)
        assert case.variant and case.bug in bugs
        assert asked.choices == (*(load(b).title for b in bugs), quiz.NO_BUG)
        fitting = quiz.explained_by(case, bugs)
        named = [load(bug).title for bug in fitting] or [quiz.NO_BUG]
        assert named == [asked.choices[asked.answer]]


def test_a_batch_that_hides_its_bug_is_explained_by_none():
    assert quiz.explained_by(load("partial_groups-full"), LEARNT) == []
    tail = load("partial_groups-tail")
    assert quiz.explained_by(tail, LEARNT) == ["partial_groups"]


def test_only_settings_that_act_on_the_batch_are_named():
    # Without a division neither ddof nor eps acts, without a second normalization its
    # deviation does not, and every row has its EOS as the log says.
    bugs = ("partial_groups", "double_normalization", "no_eos_outliers")
    case, _ = quiz.checkpoint(bugs)
    assert case.settings.scale == "none" and not case.settings.whiten_tokens
    acting = quiz.acting(case, bugs)
    assert {"baseline", "scale", "mask_no_eos"} <= {*acting}
    assert {"ddof", "eps", "whiten_ddof", "whiten_eps"}.isdisjoint(acting)
    # Who would normalize twice would do it over these: that acts with one of the bugs,
    # so it is named whatever the answer is.
    assert "second_over" in acting
