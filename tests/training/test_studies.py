"""What training runs say: the effect, its words, and the studies' files."""

import math
from dataclasses import replace

import pytest

from gradebook.core.errors import GradebookError
from gradebook.core.settings import Settings
from gradebook.training import study as studies
from gradebook.training.study import (
    MORE,
    SAME,
    effect,
    question,
    sentence,
    studied,
    study,
    t_quantile,
)

# The numbers of an effect, and its words


def test_the_interval_is_student_s():
    """Differences 1, 2, 3: mean 2, standard error 1 / sqrt 3. Quantiles
    from the usual tables."""
    assert t_quantile(0.975, 3) == pytest.approx(3.182, abs=0.005)
    assert t_quantile(0.975, 7) == pytest.approx(2.365, abs=0.005)
    assert t_quantile(0.975, 15) == pytest.approx(2.131, abs=0.001)
    assert t_quantile(0.975, 31) == pytest.approx(2.040, abs=0.001)
    found = effect([0.0] * 8, [1, 2, 3, 4, 5, 6, 7, 8])
    assert found.difference == 4.5
    assert found.half_width == pytest.approx(2.365 * 2.4495 / 2.8284, rel=2e-3)
    assert found.kind == MORE
    # 0.005 more on average, with 0.009 for its standard error.
    assert effect([0.5] * 4, [0.52, 0.49, 0.49, 0.52]).kind == SAME


def test_a_seed_that_diverged_is_left_out_and_counted():
    found = effect([0.5, 0.5, 0.5], [0.4, math.nan, 0.2])
    assert (found.seeds, found.diverged) == (2, 1)
    assert found.difference == pytest.approx(-0.2)


def words(correct, faulty, bug="partial_groups", value=1.0):
    its = study(bug)
    found = effect(correct, faulty)
    return sentence(its.slider.in_words(value), 50, its.measured, found, "faulty")


def test_the_headline_has_size_and_interval_or_says_that_there_is_no_difference():
    said = words([0.9] * 4, [0.68, 0.66, 0.67, 0.67])
    assert said == (
        "With 1 % of the rollouts lost, the success rate of the faulty run is 23"
        " points lower after 50 updates (95\u00a0% interval 22 to 24, 4 seeds)."
    )
    said = words([0.5, 0.6, 0.5, 0.6], [0.51, 0.59, 0.49, 0.61])
    assert "4 seeds show no difference after 50 updates" in said
    assert "−1.8 to +1.8 points" in said
    assert "the runs are identical" in words([0.5, 0.6], [0.5, 0.6])
    assert "diverged" in words([0.5, 0.5], [math.nan, math.nan])


def test_an_engine_named_for_what_it_does_is_named_after_the_noun():
    names = ("with the guard", "as written")
    its = study("zero_std_kl")
    asked = question(its.slider.in_words(0.04), 200, its.measured, names)
    assert asked == (
        "With beta 0.04: after 200 updates, does the run as written keep more"
        " unscored letters in use than the run with the guard?"
    )


# The studies


def test_the_first_study_is_the_one_whose_sign_turns():
    assert studied()[:2] == ("no_eos_outliers", "partial_groups")


@pytest.mark.parametrize("bug", studied())
def test_a_studys_slider_changes_the_run_and_can_reach_its_default(bug):
    slider, at = study(bug).slider, study(bug).at
    for value in (slider.default, slider.least, slider.most):
        assert any(value == pytest.approx(stop) for stop in slider.values)
    (low, *less), (high, *more) = at(slider.least), at(slider.most)
    assert less != more or low.reward.tolist() != high.reward.tolist()
    assert "{}" in slider.phrase


def test_a_slider_s_percent_is_a_share():
    _, on, settings = study("partial_groups").at(5.0)
    assert (on.lost, settings.group_size) == (0.05, 8)
    _, _, settings = study("zero_std_kl").at(0.1)
    assert settings == replace(Settings(eps=1e-4), beta=0.1)


def test_an_error_in_a_studys_file_names_its_key(monkeypatch, tmp_path):
    text = (studies.STUDIES / "partial_groups.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("measure =")]
    wrong = "\n".join(["measure = 'speed'", *lines])
    (tmp_path / "partial_groups.toml").write_text(wrong)
    monkeypatch.setattr(studies, "STUDIES", tmp_path)
    with pytest.raises(GradebookError) as caught:
        study.__wrapped__("partial_groups")
    assert "key 'measure': expected one of success" in str(caught.value)
    assert "partial_groups.toml" in str(caught.value)


def test_a_bug_without_a_study_is_refused():
    with pytest.raises(GradebookError, match="bug"):
        study("nothing")
