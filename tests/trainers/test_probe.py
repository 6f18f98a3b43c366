"""gradebook.probe: what functions compute, which laws they keep, which bug
gives their numbers. The functions are written by hand in advantages.py."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl

import advantages
import pytest
import torch

import gradebook
from gradebook.__main__ import main
from gradebook.analysis.comparison import compared
from gradebook.cases.link import decode
from gradebook.core.errors import GradebookError
from gradebook.trainers import child


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """No deadline ends a call because the machine is busy."""
    monkeypatch.setattr(child, "A_CALL", 600.0)
    monkeypatch.setattr(child, "STARTING", 600.0)


def test_grpo_is_recognized_with_its_settings():
    judged = gradebook.probe(advantages.grpo, {"estimator": "grpo"})
    assert judged.convention == {
        "baseline": "group_mean",
        "scale": "group_std",
        "ddof": "1",
        "eps": "0.0001",
        "second": "",
        "lone_row": "zero",
        "missing": "left out",
        "float_type": "float64",
        "ragged": "by prompt",
    }
    assert set(judged.laws.values()) == {"holds"}
    assert judged.matches and not judged.bugs and judged.exit_code == 0


def test_groups_cut_by_position_are_partial_groups():
    judged = gradebook.probe(advantages.by_fours)
    assert list(judged.bugs) == ["partial_groups"]
    assert judged.laws["lost_row"] == judged.laws["other_prompts"] == "broken"
    assert judged.laws["order"] == "broken"
    assert judged.convention["ragged"] == "by position"
    shown = judged.bugs["partial_groups"]
    # The smallest batch: a stride of the larger group's size takes a row of
    # the other one, or leaves a tail that keeps its rewards.
    assert sum(map(len, shown.rewards)) < 11 and len(shown.rewards) == 2
    assert shown.advantages == advantages.by_fours(shown.rewards)
    state = decode(dict(parse_qsl(shown.link.partition("?")[2])), "sandbox").state
    both = compared(state)
    flat = [a for group in shown.advantages for a in group]
    assert both.faulty.advantage.tolist() == pytest.approx(flat)
    assert both.correct.advantage.tolist() != pytest.approx(flat)
    assert shown.link in str(judged)
    assert shown.link.replace("&", "&amp;") in judged._repr_html_()
    assert judged.exit_code == 1


def test_a_missing_reward_that_counts_as_0_is_unscored_rows():
    judged = gradebook.probe(advantages.missing_is_zero, {"estimator": "grpo"})
    assert judged.matches is False
    assert list(judged.bugs) == ["unscored_rows"]
    assert judged.laws["missing"] == "broken"
    assert judged.convention["missing"] == "counts as 0"
    (group, *_) = judged.bugs["unscored_rows"].rewards
    # A missing reward has counted as 0 in its group's mean.
    mean = sum(r or 0 for r in group) / len(group)
    due = [(r or 0) - mean for r in group]
    assert judged.bugs["unscored_rows"].advantages[0] == pytest.approx(due)


def test_maxrl_breaks_the_shift_by_convention_and_refuses_missing_rewards():
    judged = gradebook.probe(advantages.maxrl)
    assert judged.convention["scale"] == "group_mean"
    assert judged.laws["shift"] == "by convention"
    assert judged.laws["missing"] == "refused"
    assert not judged.bugs


def test_a_division_by_a_mean_below_0_breaks_the_order():
    judged = gradebook.probe(advantages.maxrl)
    assert judged.laws["rising"] == "broken" and judged.exit_code == 1
    assert max(judged.shown["rising"].rewards[0]) <= 0


def test_a_floor_is_no_grpo_without_eps():
    judged = gradebook.probe(advantages.floored)
    assert judged.computes == "GRPO (ddof 1, eps 0.05 as the least)"


@pytest.mark.parametrize(
    "function, computes",
    [
        (advantages.own_eps, "GRPO (ddof 1, eps 0.003)"),
        (advantages.own_eps_inside, "GRPO (ddof 1, eps 0.003 inside the root)"),
    ],
)
def test_an_eps_of_ones_own_is_no_bug(function, computes):
    judged = gradebook.probe(function)
    assert (judged.computes, judged.bugs, judged.exit_code) == (computes, {}, 0)


def test_a_clamp_is_said_as_a_clamp():
    judged = gradebook.probe(advantages.clamped)
    assert (judged.computes, judged.exit_code) == ("", 2)
    said = "rows have an advantage of ±1, and GRPO gives them a larger size."
    assert said in judged.left_over
    assert judged.laws["zero_sum"] == judged.laws["scale"] == "by convention"


def test_a_slipped_sign_keeps_the_law_of_scale_and_breaks_the_order():
    judged = gradebook.probe(advantages.turned)
    assert (
        judged.left_over == "With the opposite sign, that is GRPO (ddof 1, eps 1e−6)."
    )
    assert (judged.laws["scale"], judged.laws["rising"]) == ("holds", "broken")


def test_an_unknown_function_is_judged_by_no_other_ones_scale():
    assert gradebook.probe(advantages.less_the_first).laws["scale"] == "holds"


def test_nan_for_a_missing_reward_is_no_answer_and_no_violation():
    judged = gradebook.probe(advantages.spreads_nan)
    assert judged.laws["missing"] == "refused" and judged.computes == "Dr. GRPO"


def test_trls_normalized_rloo_is_no_swapped_scale():
    assert list(gradebook.probe(advantages.rloo_normalized).bugs) == ["unscored_rows"]


def test_a_declaration_that_nobody_knows_is_refused():
    with pytest.raises(GradebookError, match="estimator"):
        gradebook.probe(advantages.grpo, {"estimator": "grppo"})


@pytest.mark.parametrize(
    "hostile, what",
    [
        (lambda groups: groups["none"], "TypeError: list indices"),
        (lambda groups: groups[0], "no groups of numbers"),
        (lambda groups: [[0.0, *group] for group in groups], "another shape"),
        (lambda groups: [["0.5" for _ in group] for group in groups], "text"),
        (lambda groups: [[math.nan for _ in group] for group in groups], "NaN"),
        (lambda groups: [[math.inf for _ in group] for group in groups], "infinity"),
        (lambda groups: groups.pop(), "changed its argument"),
    ],
)
def test_a_hostile_function_gets_what_it_did_as_its_answer(hostile, what):
    judged = gradebook.probe(hostile)
    assert "cannot be loaded in another process" in judged.notes[0]
    assert what in judged.troubles["0/1 rewards"]
    assert judged.exit_code == 2 and not judged.computes
    assert "holds" not in judged.laws.values()
    assert what in str(judged) and "<li>" in judged._repr_html_()


@pytest.mark.parametrize(
    "function, limit, seconds, what",
    [
        (advantages.sleeps, "A_CALL", 0.5, "took longer than"),
        (advantages.ends, "A_CALL", 600.0, "ended its process"),
        (advantages.grpo, "STARTING", 0.0, "no process in 0 seconds"),
    ],
)
def test_a_function_is_not_called_again_if_its_process_sleeps_ends_or_starts_slowly(
    function, limit, seconds, what, monkeypatch
):
    monkeypatch.setattr(child, limit, seconds)
    judged = gradebook.probe(function)
    assert what in judged.troubles["equal groups"]
    assert "not called" in judged.troubles["0/1 rewards"]
    assert not judged.computes and not judged.notes
    first, second, *others = str(judged).splitlines()
    assert first == "Computes none of the known computations."
    assert second.startswith("On equal groups: ") and what in second
    assert second.endswith("The function was not called again.")
    assert not any("not called" in line for line in others)


def test_a_function_that_forks_and_prints_can_be_probed(capfd):
    judged = gradebook.probe(advantages.forks_and_prints)
    assert judged.computes == "GRPO (ddof 1, eps 0.0001)"
    assert not judged.troubles and not judged.notes
    assert capfd.readouterr().out == "", "standard output is the probe's"
    judged = gradebook.probe(advantages.gives_a_function)
    assert "no groups of numbers" in judged.troubles["0/1 rewards"]
    assert judged.exit_code == 2


def test_tensors_with_a_gradient_are_numbers():
    def dr_grpo(groups):
        rewards = [torch.tensor(g, requires_grad=True) for g in groups]
        return [r - r.mean() for r in rewards]

    judged = gradebook.probe(dr_grpo)
    # A tensor of whole numbers has no mean and no gradient: every reward is a float.
    assert {*judged.troubles} == {"a missing reward", "a missing group"}
    assert judged.computes.startswith("Dr. GRPO")


# Bugs of lengths and of ends, and those that no known computation resembles


def as_shown(judged, name):
    """The faulty engine's advantages on the page that shows a bug's smallest batch."""
    query = judged.bugs[name].link.partition("?")[2]
    faulty = compared(decode(dict(parse_qsl(query)), "sandbox").state).faulty
    return faulty.advantage.tolist()


PARTS = {"lengths": "rows_without_a_token", "finished": "unfinished_rows"}


@pytest.mark.parametrize(
    "function, takes, name",
    [
        (advantages.zeroes_masked_rows, "lengths", "rejected_rows"),
        (advantages.zeroes_unfinished_rows, "finished", "no_eos_outliers"),
    ],
)
def test_rows_that_get_0_and_vote_are_a_bug(function, takes, name):
    judged = gradebook.probe(function, **{takes: True})
    assert judged.convention[PARTS[takes]] == "count, and get 0"
    assert (judged.computes, judged.exit_code) == ("GRPO (ddof 1, eps 0.0001)", 1)
    assert list(judged.bugs) == [name]
    shown = judged.bugs[name]
    # Two rows, 0 and 1, are 0.5 from their mean, and √0.5 is the deviation.
    flat = [value for group in shown.advantages for value in group]
    assert sorted(map(abs, flat)) == pytest.approx([0.0, 0.5 / (0.5**0.5 + 1e-4)])
    assert as_shown(judged, name) == pytest.approx(flat)
    assert takes in shown.sentence and takes in str(judged)


@pytest.mark.parametrize(
    "function, takes, word",
    [
        (advantages.leaves_masked_rows_out, "lengths", "left out"),
        (advantages.knows_no_masks, "lengths", "count"),
        (advantages.leaves_unfinished_rows_out, "finished", "left out"),
        (advantages.knows_no_masks, "finished", "count"),
    ],
)
def test_marked_rows_that_are_left_out_or_count_like_others_are_no_bug(
    function, takes, word
):
    judged = gradebook.probe(function, **{takes: True})
    assert judged.convention[PARTS[takes]] == word
    assert judged.computes == "GRPO (ddof 1, eps 0.0001)"
    assert (judged.bugs, judged.exit_code) == ({}, 0)
    decides = {"left out": "only whether there is a token", "count": "not used"}
    if takes == "lengths":
        assert judged.convention["lengths"] == decides[word]


def test_one_bug_of_lengths_and_one_of_ends_are_both_named():
    judged = gradebook.probe(advantages.zeroes_both, lengths=True, finished=True)
    assert {*judged.bugs} == {"rejected_rows", "no_eos_outliers"}


def test_blocks_of_finished_rows_are_filtered_first():
    judged = gradebook.probe(advantages.filters_first, finished=True)
    assert list(judged.bugs) == ["filtered_first"] and judged.exit_code == 1
    assert judged.computes == "Dr. GRPO"
    what = "ValueError: 10 rows do not divide by 4"
    assert judged.troubles["unfinished rows of 0 or 1"] == what
    flat = [a for g in judged.bugs["filtered_first"].advantages for a in g]
    assert as_shown(judged, "filtered_first") == pytest.approx(flat)


@pytest.mark.parametrize(
    "function", [advantages.whitened_over_padding, advantages.whitened_with_masks]
)
def test_a_mean_over_padding_is_the_padded_mean(function):
    judged = gradebook.probe(function, lengths=True)
    assert list(judged.bugs) == ["padded_mean"] and judged.exit_code == 1
    name = "the REINFORCE++ baseline (ddof 0 of the whitening)"
    assert judged.left_over == f"With the bug Padded mean, that is {name}."
    assert not judged.computes
    shown = judged.bugs["padded_mean"]
    flat = [a for group in shown.advantages for a in group]
    assert as_shown(judged, "padded_mean") == pytest.approx(flat)


def test_a_bug_that_changes_every_group_is_named_with_what_it_changes():
    judged = gradebook.probe(advantages.without_parentheses)
    assert list(judged.bugs) == ["missing_parentheses"] and judged.exit_code == 1
    name = "GRPO (ddof 1, eps 0.0001)"
    assert judged.left_over == f"With the bug Missing parentheses, that is {name}."
    (group,) = judged.bugs["missing_parentheses"].rewards
    # 0.5 over √0.5 is taken from 0 and from 1.
    assert group == [0, 1]
    (values,) = judged.bugs["missing_parentheses"].advantages
    less = 0.5 / (0.5**0.5 + 1e-4)
    assert values == pytest.approx([-less, 1 - less])


TWO = ("correct", "format")


def test_a_weighted_sum_of_rewards_is_probed_like_one_reward():
    declared = {"estimator": "grpo"}
    judged = gradebook.probe(advantages.normalizes_the_sum, declared, rewards=TWO)
    assert judged.computes == "GRPO (ddof 1, eps 0.0001)"
    said = "summed as they are: 1 correct + 0.5 format"
    assert judged.convention["rewards"] == said and said in str(judged)
    assert judged.convention["missing"] == "left out"
    assert {*judged.laws.values()} == {"holds"}
    assert (judged.matches, judged.bugs, judged.exit_code) == (True, {}, 0)


def test_rewards_that_are_normalized_and_then_summed_are_gdpo():
    judged = gradebook.probe(
        advantages.sums_the_normalized, {"estimator": "grpo"}, rewards=TWO
    )
    each = "each reward normalized in its group (eps 0.0001)"
    summed = "summed with the weights 1 and 0.5, the sum normalized over the batch"
    assert judged.computes == f"GDPO ({each}, {summed}, ddof 1, eps 0.0001)"
    assert (judged.matches, judged.bugs, judged.exit_code) == (False, {}, 1)
    kept = ("order", "zero_sum", "flat", "scale", "missing", "rising")
    assert {judged.laws[law] for law in kept} == {"holds"}
    assert judged.laws["other_prompts"] == "by convention"
    found = gradebook.probe(
        advantages.sums_the_normalized, {"estimator": "gdpo"}, rewards=TWO
    )
    assert (found.matches, found.exit_code) == (True, 0)


def test_the_readmes_function_of_several_rewards_gets_the_readmes_answer():
    readme = Path(gradebook.__file__).parent / "trainers" / "README.md"
    blocks = re.findall(r"```\w*\n(.*?)```", readme.read_text("utf-8"), re.S)
    (at,) = [n for n, block in enumerate(blocks) if "def normalized(" in block]
    names: dict = {"__name__": "readme"}
    exec(blocks[at], names)
    judged = gradebook.probe(names["advantages"], rewards=TWO, lengths=True)
    assert str(judged).splitlines()[0] == blocks[at + 1].strip()
    assert judged.exit_code == 0


def test_a_product_of_rewards_is_no_weighted_sum_and_no_bug():
    judged = gradebook.probe(advantages.multiplies, rewards=TWO)
    assert (judged.computes, judged.bugs, judged.exit_code) == ("", {}, 2)
    assert "No weighted sum of the rewards" in judged.left_over
    assert judged.laws["rising"] == "by convention"


def test_several_rewards_and_lengths_that_decide_nothing():
    judged = gradebook.probe(
        advantages.of_three_with_lengths, rewards=(*TWO, "repeated"), lengths=True
    )
    terms = "1 correct + 0.5 format - 0.2 repeated"
    assert judged.convention["rewards"] == f"summed as they are: {terms}"
    assert judged.convention["lengths"] == "not used"
    assert judged.computes == "GRPO (ddof 1, eps 0.0001)" and judged.exit_code == 0


def test_a_baseline_that_weights_rows_by_their_length_is_opo():
    judged = gradebook.probe(advantages.opo, {"estimator": "opo"}, lengths=True)
    assert (judged.computes, judged.convention["lengths"]) == ("OPO", "used")
    assert judged.laws["order"] == judged.laws["rising"] == "holds"
    assert judged.laws["zero_sum"] == "by convention"
    assert (judged.matches, judged.bugs, judged.exit_code) == (True, {}, 0)


def test_a_length_in_the_reward_is_said_and_accused_of_nothing():
    judged = gradebook.probe(advantages.shorter_is_better, lengths=True)
    assert (judged.computes, judged.bugs, judged.exit_code) == ("", {}, 2)
    assert "each token of a row changes its reward by -0.01" in judged.left_over
    assert judged.laws["rising"] == judged.laws["flat"] == "by convention"


def test_advantages_over_the_length_are_said_to_be_so():
    judged = gradebook.probe(advantages.per_token, lengths=True)
    assert (judged.computes, judged.bugs, judged.exit_code) == ("", {}, 2)
    assert (
        judged.left_over == "Times the row's length, that is GRPO (ddof 1, eps 0.0001)."
    )


@pytest.mark.parametrize(
    "names", ["correct", ["a"], ["a", "a"], ["a", 1], list("nine") * 3]
)
def test_names_of_rewards_are_two_to_eight_different_ones(names):
    with pytest.raises(GradebookError, match="2 to 8 different names"):
        gradebook.probe(advantages.multiplies, rewards=names)


def test_recorded_outputs_have_one_reward_and_no_lengths():
    with pytest.raises(GradebookError, match="gradebook.check reads a table"):
        gradebook.probe(outputs=[([[1, 0]], [[0.5, -0.5]])], lengths=True)


def test_a_function_that_takes_other_arguments_gets_its_error_as_an_answer():
    judged = gradebook.probe(advantages.opo, rewards=TWO)
    assert "missing 1 required positional" in judged.troubles["several rewards"]
    assert (judged.computes, judged.exit_code) == ("", 2)
    assert "holds" not in judged.laws.values()


def test_recorded_outputs_are_judged_and_a_law_without_a_pair_is_not_measured():
    groups = [[1.25, -0.5, 0.75, 2.0], [0.0, -1.125, 0.375, 0.25]]
    judged = gradebook.probe(outputs=[(groups, advantages.grpo(groups))])
    assert judged.convention["baseline"] == "group_mean"
    assert judged.laws["lost_row"] == "not measured"
    assert judged.laws["zero_sum"] == "holds"
    uneven = [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]]
    pairs = [(groups, advantages.by_fours(groups))]
    pairs.append((uneven, advantages.by_fours(uneven)))
    assert list(gradebook.probe(outputs=pairs).bugs) == ["partial_groups"]


@pytest.mark.parametrize(
    "law",
    gradebook.laws(
        advantages.missing_is_zero, expected={"missing": "a missing reward is a 0"}
    ),
)
def test_laws_are_pytest_parameters_and_an_expected_exception_must_occur(law):
    law()


def test_the_command_prints_and_gives_the_checks_exit_codes(capsys, monkeypatch):
    monkeypatch.syspath_prepend("tests/trainers")
    assert main(["probe", "advantages:grpo", "--declared", "estimator=grpo"]) == 0
    assert "holds: " in capsys.readouterr().out
    assert main(["probe", "advantages:missing_is_zero", "--format", "json"]) == 1
    (judged,) = json.loads(capsys.readouterr().out).values()
    assert list(judged["bugs"]) == ["unscored_rows"]
    assert main(["probe", "advantages:missing_is_zero", "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::error title=")
    given = ["--rewards", "correct,format", "--declared", "estimator=gdpo"]
    assert main(["probe", "advantages:sums_the_normalized", *given]) == 0
    assert "Computes GDPO" in capsys.readouterr().out
    assert main(["probe", "advantages:opo", "--lengths"]) == 0
    assert "lengths: used" in capsys.readouterr().out
    assert main(["probe", "advantages:zeroes_both", "--lengths", "--finished"]) == 1
    assert "No-EOS outliers gives these numbers" in capsys.readouterr().out
    for name in ("advantages:none_such", "advantages", "advantages:time"):
        assert main(["probe", name]) == 2
        assert "expected package.module:function" in capsys.readouterr().err
    assert main(["probe"]) == 2


@pytest.mark.long
def test_a_script_may_probe_at_its_top_level(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import gradebook\n"
        "def rewards(groups):\n"
        "    return [[reward or 0.0 for reward in group] for group in groups]\n"
        "print(gradebook.probe(rewards))\n"
    )
    there = os.environ | {"PYTHONPATH": str(Path(gradebook.__file__).parents[1])}
    ran = subprocess.run(
        [sys.executable, script], env=there, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "cannot be loaded in another process" in ran.stdout
