"""Files that trainers write are read with nothing set by hand, and curves are told
apart from rows. formats/ has small files with exactly the writers' fields."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gradebook.core.errors import GradebookError
from gradebook.logs.log import check_log
from gradebook.logs.read.curves import as_curves, curves_of
from gradebook.logs.read.files import LogFile, step_in
from gradebook.logs.read.formats import FORMATS
from gradebook.logs.read.rows import pasted, read_files
from gradebook.logs.surfaces import text

FOLDER = Path(__file__).parent / "formats"
ROLES = {
    "open-instruct": ("prompt_idx", "reward", "advantage"),
    "prime-rl-episodes": ("group", "reward", "advantages"),
    "verifiers-traces": ("group", "reward", "advantages"),
    "prime-rl-rollouts": ("example_id", "reward", "advantage"),
    "tinker-cookbook": ("group_idx", "total_reward", None),
    "skyrl": ("input_prompt", "score", None),
    "verl-rollouts": ("input", "score", None),
    "verl-validation": ("input", "score", None),
    "wandb-table": ("prompt", "accuracy_reward", "advantage"),
}
"""Folder -> its columns of prompts, rewards and advantages."""
# Rewards of three steps of three prompts, as the files have them.
STEPS = [
    [[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]],
    [[1, 1, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1]],
    [[0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]],
]


@pytest.mark.parametrize("folder", ROLES)
def test_a_trainers_folder_is_read_with_nothing_set_by_hand(folder):
    log = read_files([FOLDER / folder])
    prompt, reward, advantage = ROLES[folder]
    assert log.columns.role["prompt"] == prompt and log.columns.rewards == (reward,)
    assert log.columns.role.get("advantage") == advantage
    assert log.broken == [] and {"prompt", "reward"} <= log.columns.trusted
    step = 10 if folder == "verl-validation" else 1
    assert log.table["step"].unique().tolist() == [step, 2 * step, 3 * step]
    rewards = np.array(STEPS, dtype=float).reshape(-1)
    if folder == "open-instruct":
        rewards *= 10
    assert log.table["reward 0"].tolist() == rewards.tolist()
    groups = log.table.groupby(["step", "prompt"], sort=False).size()
    assert groups.tolist() == [4] * 9
    if advantage and folder != "open-instruct":
        means = rewards.reshape(9, 4).mean(1).repeat(4)
        assert log.table["advantage"].tolist() == (rewards - means).tolist()


@pytest.mark.parametrize("folder", ["nemo-gym", "nemo-gym-profile"])
def test_a_line_a_task_and_a_line_a_rollout_hold_the_same_rows(folder):
    table = read_files([FOLDER / folder]).table
    assert table["reward 0"].tolist() == np.array(STEPS[0]).reshape(-1).tolist()
    assert table["length"].tolist() == [3, 4, 5, 6] * 3
    assert table.groupby("prompt").size().tolist() == [4, 4, 4]


def test_every_format_has_a_file_that_no_other_format_takes():
    folders = [*ROLES, *(f"nemo-{name}" for name in OTHERS)]
    found = [read_files([FOLDER / name]).columns.format for name in folders]
    named = {(each.trainer, each.what) for each in found if each}
    lacking = {(each.trainer, each.what) for each in FORMATS if each.lacks}
    of_fields = {(each.trainer, each.what) for each in FORMATS if each.fields}
    without_a_file = {("NeMo-Gym", "rollouts without a task's number")}
    assert of_fields == named | lacking | without_a_file


OTHERS = ("gym", "gym-profile", "rl")


@pytest.mark.parametrize(
    "folder, says",
    [
        ("openrlhf", "one sample a step"),
        ("prime-rl-token-exports", "Check the folder `rollouts`"),
    ],
)
def test_a_file_without_what_a_check_needs_says_what_to_check(folder, says):
    with pytest.raises(GradebookError, match=says):
        read_files([FOLDER / folder])


@pytest.mark.parametrize(
    "folder, files",
    [
        ("skyrl", "SkyRL's files (evaluations) hold none."),
        ("verl-rollouts", "verl's files (rollout or validation dump) hold none."),
        ("tinker-cookbook", "tinker-cookbook's files (rollout summaries) hold none."),
    ],
)
def test_who_logs_no_advantages_is_not_told_to_log_them(folder, files):
    sentence = check_log([FOLDER / folder]).sentence
    assert f"this log has no advantages. {files} Record rewards and" in sentence
    assert "Log them" not in sentence


def test_a_step_from_a_name_is_said_beside_the_columns():
    said = "Columns: step = the number in a file's or folder's name, prompt = "
    assert said in text(check_log([FOLDER / "skyrl"]), verbose=False)
    assert said not in text(check_log([FOLDER / "tinker-cookbook"]), verbose=False)


def test_an_open_instruct_folder_is_judged():
    verdict = check_log([FOLDER / "open-instruct"])
    assert (verdict.exit_code, verdict.estimator) == (0, "grpo")
    assert "ddof 0" in verdict.convention


@pytest.mark.parametrize(
    "name, step",
    [
        ("rollouts/step_7/rank_0.jsonl", 7),
        ("run_3/global_step_12_evals/math.jsonl", 12),
        ("iteration_000004/train_rollout_summaries.jsonl", 4),
        ("completions/completions_00005.parquet", 5),
        ("10.jsonl", 10),
        ("log.csv", None),
    ],
)
def test_a_step_in_a_name_is_a_step(name, step):
    assert step_in(name) == step


# A line for each group


def lines_of(*records):
    return [LogFile("log.jsonl", data="\n".join(map(json.dumps, records)).encode())]


def test_a_line_with_lists_is_a_group():
    """The rewards less the group's mean, over its deviation with ddof 0: 1 and -1, and
    for 1 0 0 the root of 2 and of 1/2. The third line was skipped."""
    thirds = [2**0.5, -(0.5**0.5), -(0.5**0.5)]
    sources = lines_of(
        {"step": 1, "rewards": [0.6, 1.0], "advantages": [-1.0, 1.0], "lr": 0.1},
        {"step": 2, "rewards": [1.0, 0.0, 0.0], "advantages": thirds},
        {"step": 2, "rewards": [1.0, 1.0], "skipped": True},
    )
    verdict = check_log(sources)
    assert (verdict.exit_code, verdict.estimator) == (0, "grpo")
    assert "ddof 0" in verdict.convention
    (equal, *_) = verdict.signal.sentences
    assert equal.startswith("1 of 3 prompts has equal rewards")
    assert any("Each line of this log is a group" in note for note in verdict.notes)


def test_lists_without_advantages_are_groups_whose_rewards_are_not_summed():
    """Rewards differ in the last line alone. Sums would differ in every prompt."""
    sources = lines_of(
        {"prompt": "a", "rewards": [1.0, 1.0]},
        {"prompt": "a", "rewards": [0.6, 0.6]},
        {"prompt": "b", "rewards": [0.0, 1.0]},
    )
    verdict = check_log(sources)
    assert verdict.signal.sentences[0].startswith("2 of 3 prompts have equal rewards")
    assert not any("taken as 0" in note for note in verdict.notes)


def test_a_reward_of_several_numbers_has_its_total_and_its_functions():
    """The totals of a differ, of b they do not; its formats do."""
    lines = [
        {"task_id": task, "reward": {"correct": c, "format": f, "total": total}}
        for task, c, f, total in (
            *(("a", 0.0, 1.0, 0.1), ("a", 1.0, 1.0, 1.1)),
            *(("b", 1.0, 0.0, 1.0), ("b", 0.9, 1.0, 1.0)),
        )
    ]
    verdict = check_log(lines_of(*lines))
    assert verdict.columns["reward"] == "reward"
    assert verdict.signal.sentences[0].startswith("1 of 2 prompts has equal rewards")
    for line in lines:
        del line["reward"]["total"]
    assert check_log(lines_of(*lines)).columns["reward"] == (
        "reward_correct + reward_format"
    )


@pytest.mark.parametrize(
    "more", [{"response_tokens": [5, 6]}, {"response": "So 4."}, {"loss_mask": [1, 1]}]
)
def test_lists_by_token_are_no_groups(more):
    lines = [
        {"prompt": prompt, "rewards": [0.0, reward], "advantages": [a, a], **more}
        for prompt, reward, a in (("a", 1, 0.5), ("a", 0, -0.5)) * 2
    ]
    verdict = check_log(lines_of(*lines))
    assert verdict.columns["prompt"] == "prompt"
    assert verdict.estimator == "dr_grpo"


# Curves


@pytest.mark.parametrize(
    "folder, trainer, tells",
    [
        ("trl-trainer-state", "TRL", "25% of the prompts have equal rewards"),
        ("verl-file-logger", "verl", "2.47487, which is 7/√8: one success in a group"),
        ("tinker-cookbook", "tinker-cookbook", "30% of the prompts have equal rewards"),
        ("two-deviations", "TRL", "0.661 beside 0.707"),
    ],
)
def test_curves_are_no_rows_and_give_the_facts_that_they_hold(folder, trainer, tells):
    verdict = check_log([FOLDER / "curves" / folder])
    assert (verdict.verdict, verdict.exit_code) == ("cannot tell", 2)
    assert "log of curves" in verdict.statement.first
    (telling,) = verdict.log.curves.tell
    assert tells in telling and telling in verdict.sentence
    assert verdict.log.curves.trainer == trainer
    assert "To check the advantages" in verdict.sentence


@pytest.mark.parametrize("name", ["after.jsonl", "zlast.jsonl"])
def test_curves_beside_rows_are_left_out_of_the_rows(tmp_path, name):
    """Before or after the rows of one prompt: 1 and 0, less their mean."""
    (curves,) = (FOLDER / "curves" / "two-deviations").rglob("*.jsonl")
    (tmp_path / name).write_text(curves.read_text("utf-8"), "utf-8")
    rows = "prompt,reward,advantage\na,1,0.5\na,0,-0.5\n"
    (tmp_path / "rows.csv").write_text(rows, "utf-8")
    found = check_log([tmp_path])
    assert (found.verdict, found.log.rows) == ("correct", 2)
    (left_out,) = found.broken
    assert name in left_out and "expected rows, found curves over steps" in left_out


def largest_advantage(*values, **others):
    """What curves with these largest advantages, one a step, tell."""
    keys = {"critic/advantages/max": values, "actor/grad_norm": [0.2] * len(values)}
    more = {name: [value] * len(values) for name, value in others.items()}
    return curves_of(pd.DataFrame(keys | more)).tell


ONE_OF_4 = "3/√4: one success in a group of 4, over a deviation with ddof 1"


def test_a_largest_advantage_with_two_explanations_gives_both():
    """One success in 4: 0.75 / √(4 * 0.1875 / 3) = 0.75 / 0.5. Four in 13: √(9/4)."""
    (told,) = largest_advantage(1.5, 1.4)
    largest = "The largest critic/advantages/max is 1.5"
    assert told.startswith(f"{largest}, which is {ONE_OF_4}; or ")
    share = "4 successes in a group of 13 or the same share of a larger one"
    assert f"√(9/4): {share}, over a deviation with ddof 0" in told
    # Of 1 -1 -1 -1 the mean is -0.5.
    assert "Rewards of 1 and −1 that no deviation divides can give it, too." in told


def test_a_float_below_an_undivided_advantage_was_divided():
    """0.75 / (0.5 + 1e-6) is 1.499997. Of 1 -1 -1 -1 the first is 1.5 in float32."""
    (told,) = largest_advantage(1.4999970197677612, 1.4)
    assert ONE_OF_4 in told and "no deviation divides" not in told


def told_of(**keys):
    """What curves of three steps tell, and whose they are."""
    curves = curves_of(pd.DataFrame({"actor/lr": [0.1] * 3, **keys}))
    return curves.tell, curves.trainer


def test_equal_rewards_of_a_test_set_are_no_training():
    """The test set has one row a prompt: all are equal. 1 of 4 prompts of the training
    is, in all environments; half of those of one."""
    good, bad = "by_group/frac_all_good", "by_group/frac_all_bad"
    keys = {f"test/env/all/{good}": [0.7, None, None]}
    keys |= {f"test/env/all/{bad}": [0.3, None, None]}
    keys |= {f"env/math/{good}": [0.5] * 3, f"env/math/{bad}": [0.0] * 3}
    keys |= {f"env/all/{good}": [0.25] * 3, f"env/all/{bad}": [0.0] * 3}
    (told,), trainer = told_of(**keys)
    assert told.startswith("At each of the 3 steps that log it, 25% of the prompts")
    assert trainer == "tinker-cookbook"


def test_a_run_without_equal_rewards_is_not_said_to_teach_nothing():
    (told,), _ = told_of(frac_reward_zero_std=[0.0, 0.0, 0.0])
    assert told.startswith("At each of the 3 steps that log it, no prompt has equal")
    assert "teach" not in told


def test_keys_that_others_use_too_name_no_trainer():
    assert told_of(frac_reward_zero_std=[0.5, 0.5, 0.5])[1] == ""
    assert told_of(**{"actor/pg_loss": [0.5, 0.5, 0.5]})[1] == ""
    assert told_of(**{"critic/rewards/mean": [0.5, 0.5, 0.5]})[1] == "verl"
    assert told_of(**{"completions/mean_length": [5.0, 5.0, 5.0]})[1] == "TRL"


def test_a_known_group_size_leaves_one_explanation():
    (of_4,) = largest_advantage(1.5, 1.4, group_size=4)
    assert ONE_OF_4 in of_4 and "ddof 0" not in of_4
    (of_26,) = largest_advantage(1.5, 1.4, **{"rollout/n": 26})
    assert "8 successes in a group of 26, over a deviation with ddof 0" in of_26
    assert "ddof 1" not in of_26


def test_a_share_of_successes_gives_no_group_size_with_ddof_0():
    """One success in 4, ddof 0: 0.75 / √0.1875 = √3, and so has 2 in 8."""
    (told,) = largest_advantage(1.7320508, 0.5)
    assert "√3: one success in a group of 4 or the same share of a larger one" in told


@pytest.mark.parametrize(
    "largest",
    [
        0.75,  # undivided, one success of rewards 0 and 1 in 4; or 10 of 16 with ddof 1
        2.475,  # three decimals may be anything
        0.0,
        2.1,  # the square is 4.41, and no group has it
    ],
)
def test_a_largest_advantage_that_groups_do_not_explain_gives_no_fact(largest):
    assert not largest_advantage(largest, 0.1)


def test_rounded_numbers_are_explained_within_their_digits():
    """7/√8 is 2.474874; 2.4749 is further off than a float."""
    (told,) = largest_advantage(2.4749, 1.62)
    assert "7/√8: one success in a group of 8" in told


def test_rows_with_a_loss_are_no_curves():
    assert as_curves(["step", "loss", "reward", "reward_std"])
    assert not as_curves(["step", "prompt", "loss", "kl", "reward", "advantage"])


# Columns are chosen by what their cells are


def read(text, **columns):
    return read_files([pasted(text)], columns).columns


def test_a_list_is_no_number_and_a_right_answer_no_reward():
    rows = (
        '{"prompt": "a", "completion": "x", "answer": 91, "steps": [1, 2],'
        ' "response_tokens": [5, 6], "score": 0.5, "advantage": 0.0}'
    )
    columns = read(f"{rows}\n{rows}\n")
    assert columns.rewards == ("score",)
    assert "length" not in columns.role and "steps" not in columns.role


def test_a_reward_repeated_at_every_token_counts_once():
    rows = [
        '{"prompt": "a", "rewards": [0.5, 0.5, 0.5], "advantage": 0}',
        '{"prompt": "a", "rewards": [1.5, 1.5], "advantage": 0}',
    ]
    repeated = read_files([pasted("\n".join(rows))]).table
    assert repeated["reward 0"].tolist() == [0.5, 1.5]
    rows[1] = '{"prompt": "a", "rewards": [0.5, 1.0], "advantage": 0}'
    summed = read_files([pasted("\n".join(rows))]).table
    assert summed["reward 0"].tolist() == [1.5, 1.5]


def test_columns_named_as_rewards_are_functions_if_no_column_is_the_reward():
    text = "uid,acc_reward,format_reward,reward_std,advantages\na,1,0,2,0\na,0,1,2,0\n"
    assert read(text).rewards == ("acc_reward", "format_reward")


def test_a_missing_reward_costs_its_row_or_its_prompt_and_not_the_log():
    """GRPO with ddof 0 of three prompts; the third's advantages are empty, since a
    reward is missing."""
    lines = ["step,prompt,reward,advantage"]
    for prompt in "ab":
        lines += [f"1,{prompt},0,-1", f"1,{prompt},1,1"]
    lines += ["1,c,,", "1,c,1,", "1,c,0,"]
    log = read_files([pasted("\n".join(lines))])
    assert (log.unscored, log.emptied, log.broken, len(log.table)) == (1, 3, [], 4)
    verdict = check_log([pasted("\n".join(lines))])
    assert (verdict.verdict, verdict.exit_code) == ("correct", 2)
    assert "1 row has no reward" in verdict.sentence
    assert "empties the advantages of its whole prompt" in verdict.sentence


def test_nan_is_no_empty_cell():
    text = "prompt,reward,advantage,length\na,1,0,NaN\na,1,0,\na,1,0,3\n"
    errors = [error.found for error in read_files([pasted(text)]).broken]
    assert errors == ["NaN", "an empty cell"]
