"""Is the run still learning? Counts worked out by hand."""

import json
import warnings

import pytest
from logs.made import made

from gradebook.__main__ import main
from gradebook.core.errors import GradebookError
from gradebook.logs import surfaces
from gradebook.logs.guard import Guard
from gradebook.logs.log import check_log
from gradebook.logs.read.rows import pasted

# Three steps of two prompts, a rollout's reward each; b of step 3 has one row less.
REWARDS = {
    1: {"a": [0, 1, 0], "b": [0, 0, 0]},
    2: {"a": [1, 1, 1], "b": [0.5, 0.5, 0.5]},
    3: {"a": [0, 0, 0], "b": [1, 1]},
}


def log(header="step,prompt,reward", cells=lambda reward: f"{reward}"):
    lines = [header]
    for step, prompts in REWARDS.items():
        for prompt, rewards in prompts.items():
            lines += [f"{step},{prompt},{cells(r)}" for r in rewards]
    return pasted("\n".join(lines))


@pytest.fixture(scope="module")
def verdict():
    return check_log([log()])


def test_prompts_are_counted_by_step_and_by_what_they_share(verdict):
    steps = verdict.signal.steps.set_index("step")
    assert steps["teach"].tolist() == [1, 0, 0]
    assert steps["wrong"].tolist() == [1, 0, 1]
    assert steps["right"].tolist() == [0, 1, 1]
    assert steps["same"].tolist() == [0, 1, 0]
    assert verdict.signal.shares.tolist() == [0.5, 1, 1]
    assert verdict.signal.few_from == 1


def test_each_fact_is_a_sentence(verdict):
    assert verdict.signal.sentences == (
        "5 of 6 prompts have equal rewards: they teach nothing.",
        "Of these prompts, in 2 every reward is the lowest of the log and in 2 every"
        " reward is the highest of the log.",
        "In the last third of the steps, 2 of 2 prompts have no two rewards that"
        " differ.",
        "From step 2 on, fewer than one in five teach.",
        "1 prompt has fewer rows than the 3 that most prompts have.",
    )


VISITS = (
    ("a", 1),
    ("a", 1),
    ("b", 0),
    ("b", 0),
    ("a", 0),
    ("a", 0),
    ("b", 1),
    ("b", 0),
)


def test_prompts_that_come_again_count_each_time_in_a_log_without_steps():
    """Rewards differ in the last visit alone; of all visits of a prompt, in both."""
    rows = [f"{prompt},{reward}" for prompt, reward in VISITS]
    verdict = check_log([pasted("\n".join(["prompt,reward", *rows]))])
    first, *_, last = verdict.signal.sentences
    assert first.startswith("3 of 4 prompts have equal rewards")
    assert last.startswith("Prompts come again")
    of_a_step = check_log(
        [pasted("\n".join(["step,prompt,reward", *(f"1,{r}" for r in rows)]))]
    )
    assert of_a_step.signal.sentences[0] == "Rewards differ in each of the 2 prompts."


def test_a_log_without_advantages_opens_with_what_it_shows(verdict):
    text = surfaces.text(verdict, verbose=False)
    assert f"{surfaces.LEARNING} 5 of 6 prompts" in text
    assert "the engines would differ" not in text


def test_every_surface_says_it(verdict, tmp_path, capsys):
    first = verdict.signal.sentences[0]
    assert json.loads(verdict.to_json())["signal"]["sentences"][0] == first
    assert first in surfaces.report(verdict)
    assert first in surfaces.github(verdict, "run") and first in surfaces.junit(
        verdict, "r"
    )
    path = tmp_path / "run.csv"
    path.write_bytes(log().data)
    assert main(["check", str(path)]) == 2
    assert first in capsys.readouterr().out


def test_a_function_that_varies_while_the_sum_does_not():
    """a + b is 1 in every row of the second prompt; only b differs in the third."""
    rows = ["step,prompt,accuracy_reward,b_reward"]
    rows += ["1,x,0,0", "1,x,1,1", "1,y,0,1", "1,y,1,0", "1,z,1,0", "1,z,1,0.5"]
    verdict = check_log([pasted("\n".join(rows))])
    accuracy, other = verdict.signal.functions
    assert (accuracy.alone, accuracy.of, accuracy.missing, accuracy.teach) == (
        1,
        1,
        1,
        2,
    )
    assert (other.alone, other.missing) == (1, 0)
    assert accuracy.sentence.startswith(
        "`accuracy_reward` differs in 1 of the 1 prompt"
    )


def test_a_phantom_signal_is_said():
    rows = ["step,prompt,accuracy_reward,b_reward"]
    rows += ["1,x,0,0", "1,x,1,1", "1,z,1,0", "1,z,1,0.5"]
    accuracy, _ = check_log([pasted("\n".join(rows))]).signal.functions
    assert accuracy.sentence == (
        "In 1 of the 2 prompts that teach, only other rewards differ:"
        " `accuracy_reward` is the same for all rows."
    )


def test_rows_that_the_loss_masks_and_configured_sizes_are_counted():
    """2 of 4 rows have no unmasked token."""
    rows = ["prompt,reward,advantage,response_mask"]
    rows += ['a,0,-0.5,"[1, 1]"', 'a,1,0.5,"[0, 0]"', 'b,0,0,"[1]"', 'b,0,0,"[0]"']
    signal = check_log([pasted("\n".join(rows))], group_size=3).signal
    assert (signal.masked, signal.size, signal.small) == (0.5, 3, 2)
    assert "2 prompts have fewer rows than the 3 configured." in signal.sentences
    assert "The loss masks 50.0% of the rows." in signal.sentences
    assert signal.sizes == (0.25, 0.25)


def test_the_guard_warns_once_at_the_share_that_it_was_given():
    guard = Guard(equal=0.5)
    rows = {"prompt": [0, 0, 1, 1], "advantage": [-1.0, 1.0, 0.0, 0.0]}
    with pytest.warns(RuntimeWarning, match="1 of 2 prompts has equal rewards"):
        guard.step(1, reward=[0.0, 2.0, 1.0, 1.0], **rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guard.step(2, reward=[0.0, 2.0, 1.0, 1.0], **rows)
        assert Guard().step(1, reward=[0.0, 2.0, 1.0, 1.0], **rows) is None
    with pytest.raises(GradebookError, match="a share"):
        Guard(equal=2.0)


def test_steps_that_were_left_out_are_said_in_the_verdict():
    log = made(steps=2)
    lines = log.to_csv(index=False).split("\n")
    lines[2] = lines[2].replace(",", ",,", 1)
    verdict = check_log([pasted("\n".join(lines))])
    assert surfaces.judged(verdict) == "Judged 1 of 2 steps."
    assert "Judged 1 of 2 steps." in surfaces.text(verdict, verbose=False)
