"""What a log's advantages are called, and what is said about it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from logs.made import NEEDED, made

import gradebook
from gradebook.core.errors import GradebookError
from gradebook.core.settings import ESTIMATORS
from gradebook.logs.log import check_log
from gradebook.logs.read.sources import Source
from gradebook.logs.verdict.what_if import by_bug, sentences

TRL = Path(__file__).parents[1] / "logs" / "trl-group"
COLUMNS = [
    "step",
    "verdict",
    "bug",
    "ties",
    "estimator",
    "residual",
    "correct_residual",
    "row",
]


def checked(frame, **said):
    data = frame.to_csv(index=False).encode()
    return check_log([Source("log.csv", data=data)], **said)


def ties(verdict):
    return {tie.name: tie.why for tie in verdict.ties}


# A real log


@pytest.fixture(scope="module")
def real():
    """The verdict on twelve steps that TRL logged."""
    return check_log([TRL])


def test_a_real_log_is_correct_in_its_trainers_convention(real):
    found = real
    assert found.verdict == "correct" and found.exit_code == 0
    assert found.sentence.startswith(
        "These are GRPO advantages in TRL's convention, correct, largest residual 1e-07"
    )
    assert found.settings["ddof"] == 1 and found.settings["eps"] == 1e-4
    assert (found.steps_judged, found.rows) == (12, 192)


def test_the_weights_of_a_real_log_are_found(real):
    assert real.weights == (1.0, 0.5)


def test_a_real_log_says_what_it_cannot_tell(real):
    found = ties(real)
    assert "a step with a partial group would tell" in (found["partial_groups"])
    assert "zero_std_kl" not in found


def test_zero_std_kl_is_said_once():
    for frame in (made(), made("rejected_rows")):
        notes = checked(frame).notes
        assert sum("ero-std KL" in note for note in notes) == 1


def test_wrong_weights_fit_nothing():
    found = check_log([TRL], weights=(0.1, 1.0))
    assert found.verdict == "none fits" and found.exit_code == 2


# Logs that the engines made

OTHERS = ("dr_grpo", "rloo", "grpo_passk")
SHOWS = [(bug, "grpo") for bug in sorted(NEEDED)]
SHOWS += [
    pytest.param(bug, name, marks=pytest.mark.long)
    for bug in sorted(NEEDED)
    for name in (*OTHERS, *(["opo"] if bug == "partial_groups" else []))
]


@pytest.mark.parametrize("bug, estimator", SHOWS)
def test_a_bug_is_named_under_each_estimator(bug, estimator):
    found = checked(made(bug, estimator))
    assert (found.verdict, found.bug) == ("suspect", bug)
    assert estimator in (found.estimator, *ties(found))
    assert found.residual < 1e-5 and found.correct_residual > 0.01
    assert found.steps_fitted == found.steps_judged == 6
    assert found.exit_code == 1
    assert "zero_std_kl" not in ties(found)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_each_estimator_is_correct(estimator):
    found = checked(made(estimator=estimator))
    assert found.verdict == "correct" and found.exit_code == 0
    assert estimator in (found.estimator, *ties(found))


@pytest.mark.parametrize(
    "eps, ddof, whose",
    [
        (1e-4, 1, "TRL"),
        (1e-5, 1, "AReaL"),
        (1e-6, 1, "verl"),
        (1e-9, 0, "GEM"),
    ],
)
def test_the_convention_is_told_where_it_shows(eps, ddof, whose):
    frame = made(steps=20, eps=eps, ddof=ddof)
    frame["reward"] /= 1000  # so that eps shows in float32
    settings = gradebook.Settings(eps=eps, ddof=ddof)
    batch = gradebook.Batch(
        prompt=frame["prompt"].tolist(),
        reward=frame["reward"].tolist(),
        step=frame["step"].tolist(),
        settings=settings,
    )
    numbers = gradebook.run(gradebook.CORRECT, batch).advantage
    frame["advantage"] = numbers.float().double().numpy()
    found = checked(frame)
    assert found.verdict == "correct"
    assert f"in {whose}'s convention" in found.sentence


def test_the_worked_example_of_the_issue():
    rewards = [0.5, -0.5, 1, -1, 2, -2, 0, 3, 0, 1, 2, 100]
    prompts = [0] * 4 + [1] * 4 + [2] * 3 + [3]
    settings = gradebook.Settings(eps=1e-5, group_size=4)
    batch = gradebook.Batch(prompts, rewards, settings=settings)
    faulty = gradebook.bug("partial_groups").engine
    frame = pd.DataFrame(
        {
            "step": 17,
            "prompt": prompts,
            "reward": rewards,
            "advantage": gradebook.run(faulty, batch).advantage.numpy(),
        }
    )
    found = checked(frame)
    assert found.bug == "partial_groups" and found.step == 17
    assert "group size 4" in found.sentence
    assert found.correct_residual == pytest.approx(1.5, abs=0.02)
    assert found.flips == 1  # row 10; row 9 is 0 in the correct engine


def test_the_group_size_is_the_one_whose_strides_fit():
    assert "group size 4" in checked(made("partial_groups", steps=2)).sentence


def test_strides_of_each_steps_largest_group_are_told():
    chance = np.random.default_rng(0)
    prompts = {1: [0] * 4 + [1] * 3 + [2] * 4, 2: [0] * 3 + [1] * 2 + [2] * 3}
    frames = []
    for step, prompt in prompts.items():
        reward = chance.normal(size=len(prompt)).round(3)
        settings = gradebook.Settings(eps=1e-5)  # no group size
        batch = gradebook.Batch(prompt, reward.tolist(), settings=settings)
        faulty = gradebook.bug("partial_groups").engine
        advantage = gradebook.run(faulty, batch).advantage.numpy()
        rows = {"prompt": prompt, "reward": reward, "advantage": advantage}
        frames.append(pd.DataFrame({"step": step, **rows}))
    found = checked(pd.concat(frames))
    assert (found.verdict, found.bug) == ("suspect", "partial_groups")
    assert "group size: the largest group of each step" in found.sentence


def test_noise_fits_nothing_and_the_closest_is_named():
    frame = made()
    noise = np.random.default_rng(1).normal(size=len(frame))
    frame["advantage"] = noise
    found = checked(frame)
    assert found.verdict == "none fits" and found.bug == ""
    assert found.sentence.startswith("None of the known computations fits")
    assert found.residual > 0.1


def test_one_wrong_cell_is_not_called_correct():
    frame = made()
    frame.loc[30, "advantage"] += 0.01
    found = checked(frame)
    assert found.verdict == "none fits"
    assert (found.frame["verdict"] == "none fits").sum() == 1
    assert "5 of 6 steps" in found.sentence


def test_two_conventions_in_one_log_are_not_one_correct_computation():
    frame = pd.concat(
        [
            made(steps=3),
            made(estimator="dr_grpo", steps=3).assign(
                step=lambda rows: rows["step"] + 3
            ),
        ]
    )
    found = checked(frame)
    assert found.verdict == "none fits"
    assert "Steps 1 to 3: GRPO in verl's convention, correct" in found.sentence
    assert "steps 4 to 6: Dr. GRPO, correct" in found.sentence


# Cannot tell


def test_a_log_in_which_nothing_varies_tells_nothing():
    frame = made()
    frame["reward"], frame["advantage"] = 1.0, 0.0
    found = checked(frame)
    assert found.verdict == "cannot tell" and "nothing varies" in (found.sentence)
    assert found.exit_code == 2


def test_a_log_without_advantages_tells_nothing():
    found = checked(made().drop(columns="advantage"))
    assert found.verdict == "cannot tell"
    assert "no advantages" in found.sentence


def test_where_the_engines_would_differ_without_advantages():
    frame = made("partial_groups").drop(columns="advantage")
    found = checked(frame, group_size=4).what_if
    assert {"estimator", "bug"} <= set(found.columns)
    strided = found[found["bug"] == "partial_groups"]
    assert len(strided) and not (found["bug"] == "zero_std_kl").any()


# The frame, the JSON


def test_the_frame_of_check_has_one_row_a_step():
    frame = made("rejected_rows")
    found = gradebook.check(frame)
    assert list(found.columns) == COLUMNS
    assert found["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert set(found["verdict"]) <= {"correct", "suspect"}
    assert set(found["bug"]) <= {"rejected_rows", ""}


def test_check_leaves_its_input_as_it_is():
    frame = made()
    before = frame.copy(deep=True)
    gradebook.check(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_cell_that_is_no_number_is_named():
    frame = made().astype({"reward": object})
    frame.loc[7, "reward"] = "seven"
    with pytest.raises(GradebookError, match="'reward', row 7.*'seven'"):
        gradebook.check(frame)


@pytest.mark.parametrize("bug", ["", "partial_groups"])
def test_the_json_is_strict(bug):
    text = checked(made(bug)).to_json()
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["bug"] == bug
    assert {"sentence", "verdict", "residual", "ties"} <= set(found)


def test_the_order_of_columns_and_steps_in_pieces_changes_nothing(
    monkeypatch,
):
    whole = checked(made(seed=2, steps=8, lone_row="zero", eps=1e-4))
    monkeypatch.setattr("gradebook.logs.read.whole_steps.ROWS", 16)
    parts = checked(made(seed=2, steps=8, lone_row="zero", eps=1e-4))
    assert parts.sentence == whole.sentence and parts.ties == whole.ties


def test_what_only_a_later_part_calls_for_is_tried_on_the_first(
    monkeypatch,
):
    """The first step is clipped by nothing; a later one is."""
    frame = made(steps=4, seed=3)
    frame.loc[frame["step"] == 4, "reward"] *= 30
    settings = gradebook.Settings(eps=1e-6, reward_clip=20.0)
    batch = gradebook.Batch(
        prompt=frame["prompt"].tolist(),
        reward=frame["reward"].tolist(),
        step=frame["step"].tolist(),
        settings=settings,
    )
    numbers = gradebook.run(gradebook.CORRECT, batch).advantage
    frame["advantage"] = numbers.numpy()
    assert checked(frame).verdict == "correct"
    monkeypatch.setattr("gradebook.logs.read.whole_steps.ROWS", 16)
    assert checked(frame).verdict == "correct"


def test_without_advantages_the_verdict_says_where_engines_would_differ():
    """Groups a a a a, b b b, c: strides of four end at the c, alone in no
    stride, whose raw reward 1 is its correct advantage."""
    frame = pd.DataFrame(
        {
            "input": list("aaaabbbb") + list("aaaabbbc"),
            "output": "some text",
            "score": [0, 1, 0, 1, 1, 0, 0, 1] + [0, 1, 0, 1, 1, 0, 0, 1.0],
            "step": [1] * 8 + [2] * 8,
        }
    )
    found = checked(frame)
    assert found.verdict == "cannot tell" and found.exit_code == 2
    lines = by_bug(found.what_if)
    lines = lines[lines["bug"] == "partial_groups"]
    grpo = lines[lines["estimator"] == "grpo"].iloc[0]
    assert (grpo["steps"], grpo["of"], grpo["step"]) == (1, 2, 2)
    # correct: b is 1 0 0 with mean 1/3, std 0.57735; c alone keeps its 1.
    # strides: 1 0 0 1 with mean 1/2, std 0.57735.
    rows = found.what_if.query(
        "step == 2 and estimator == 'dr_grpo' and bug == 'partial_groups'"
    )
    assert rows["rows_off"].item() == 4
    assert (rows["correct"].item(), rows["faulty"].item()) == (1.0, 0.5)
    told = [s for s in sentences(found.what_if) if "Partial groups" in s]
    assert len(told) == 1 and "step 2" in told[0]
    plain = json.loads(found.to_json())["what_if"]
    assert [w["steps"] for w in plain if w["bug"] == "partial_groups"] == [1] * 3
