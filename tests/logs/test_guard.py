"""The guard judges each step as it is trained."""

import subprocess
import sys
import warnings
from collections import Counter

import pytest
import torch

import gradebook
from gradebook.logs.candidates.runs import StageRuns
from gradebook.logs.candidates.trials import Trials
from gradebook.logs.guard import _logged
from gradebook.logs.log import check_log
from gradebook.logs.recording.intake import step_rows

# Two prompts. By hand: (1 - 0.5) / 1 = 0.5, and with the deviation of 1 and
# 0, which is the root of 1/2, 0.5 / 0.7071 = 0.7071.
ROWS = {"prompt": ["a", "a", "b", "b"], "reward": [1.0, 0.0, 3.0, 5.0]}
CENTRED = [0.5, -0.5, -1.0, 1.0]
DIVIDED = [0.7071068, -0.7071068, -0.7071068, 0.7071068]
DR_GRPO = {"scale": "none"}


def given(batch, advantage):
    """A batch as the arguments of the guard and the recorder."""
    names = ("prompt", "reward", "mask", "eos", "scored", "rollout", "rank")
    more = ("text", "steps", "kept_steps")
    columns = {name: getattr(batch, name) for name in (*names, *more)}
    return columns | {"advantage": advantage}


def test_a_healthy_step_is_no_finding():
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    for step in range(3):
        assert guard.step(step, **ROWS, advantage=CENTRED) is None
    assert guard.finding is None


def test_a_healthy_step_starts_no_search(monkeypatch):
    ran = Counter()
    original = StageRuns.trace

    def counted(self, candidate):
        ran[candidate] += 1
        return original(self, candidate)

    monkeypatch.setattr(StageRuns, "trace", counted)
    guard = gradebook.Guard(declared={"estimator": "grpo"}, action="raise")
    guard.step(0, **ROWS, advantage=DIVIDED)
    ran.clear()
    guard.step(1, **ROWS, advantage=DIVIDED)
    assert not ran


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_a_bug_is_named_with_the_sentence_of_the_check(name, tmp_path):
    record = gradebook.bug(name)
    if not record.in_advantages:
        pytest.skip("leaves no trace in advantages")
    scenario = gradebook.load(name)
    batch = scenario.batch()
    settings = dict(scenario.settings)
    correct = gradebook.run(gradebook.CORRECT, batch).advantage
    faulty = gradebook.run(record.engine, batch).advantage
    found = []
    guard = gradebook.Guard(declared=settings, action=found.append)
    guard.step(0, **given(batch, correct))
    assert not found
    guard.step(7, **given(batch, faulty))
    with gradebook.Recorder(tmp_path, declared=settings, strict=True) as recorder:
        recorder.step(7, **given(batch, faulty))
    verdict = check_log([tmp_path])
    if verdict.verdict == "correct":  # within rounding of the rewards
        assert not found
        return
    (finding,) = found
    assert finding.sentence == verdict.sentence
    assert (finding.step, finding.bug) == (7, verdict.bug)
    if verdict.verdict == "suspect":
        assert finding.bug == name
        assert finding.row == verdict.row
    assert finding.correct == pytest.approx(correct[finding.row].item())
    assert finding.trained == pytest.approx(faulty[finding.row].item())


def test_signs_rule_out_only_what_would_not_fit():
    """On some bugs' own cases, with their advantages and with others. It
    rests on scales that are never negative, whatever the bug."""
    passed_over = 0
    for name in gradebook.BUGS[::5]:
        batch = gradebook.load(name).batch()
        faulty = gradebook.run(gradebook.bug(name).engine, batch).advantage
        for advantage in (faulty, torch.linspace(-1, 1, batch.rows)):
            rows = step_rows(given(batch, advantage))
            trials = Trials(_logged(0, rows))
            trials.likely()
            for candidate in trials.fits:
                trace = trials.trace(candidate)
                if trace is None:
                    continue
                assert not (trace.scale < 0).any()
                if trials.opposed(candidate):
                    passed_over += 1
                    assert not trials.ruler.fit(trace).loose.any()
    assert passed_over > 100


def test_the_row_and_its_numbers_are_told():
    guard = gradebook.Guard(declared={"scale": "group"}, action="raise")
    guard.step(3, **ROWS, advantage=DIVIDED)
    with pytest.raises(gradebook.WrongAdvantages) as error:
        guard.step(4, **ROWS, advantage=CENTRED)
    said = str(error.value)
    assert "Step 4, row 2: correct −0.707, trained −1.000." in said
    assert guard.finding is error.value.finding
    # A guard that has found something says no more.
    assert guard.step(5, **ROWS, advantage=CENTRED) is guard.finding


def test_a_broken_law_is_told_where_no_bug_is_known():
    guard = gradebook.Guard()
    with pytest.warns(RuntimeWarning, match="add up to") as caught:
        guard.step(0, **ROWS, advantage=[0.9, -0.1, -1.0, 1.0])
    (said,) = {str(one.message) for one in caught}
    # By hand: 0.9 - 0.1 = 0.8, where 0 is right.
    assert "The advantages of row 0's prompt add up to +0.800." in said
    assert guard.finding.bug == ""


def test_numbers_that_break_no_law_are_left_alone_unless_declared():
    odd = [2.5, -2.5, -0.3, 0.3]  # no listed trainer divides so
    assert gradebook.Guard(action="raise").step(0, **ROWS, advantage=odd) is (None)
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    with pytest.raises(gradebook.WrongAdvantages, match="row 0: correct"):
        guard.step(0, **ROWS, advantage=odd)


def test_a_convention_that_changes_during_the_run_is_told():
    guard = gradebook.Guard(action="raise")
    chance = torch.Generator().manual_seed(0)
    reward = torch.rand(32, generator=chance, dtype=torch.float64)
    prompt = torch.arange(32) // 4
    batch = gradebook.Batch(prompt, reward)
    advantage = gradebook.run(gradebook.CORRECT, batch).advantage
    away = reward - reward.view(8, 4).mean(1).repeat_interleave(4)
    guard.step(0, prompt=prompt, reward=reward, advantage=advantage)
    with pytest.raises(gradebook.WrongAdvantages):
        guard.step(1, prompt=prompt, reward=reward, advantage=away)


def test_a_row_that_never_ended_may_be_masked_from_its_first_step_on():
    """By hand: without the last row, 1 and 0 have mean 0.5, and it gets 0.
    The step before has no such row, so it cannot tell what becomes of one."""
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    guard.step(0, **ROWS, eos=[True] * 4, advantage=CENTRED)
    rows = {"prompt": ["a"] * 3, "reward": [1.0, 0.0, -1.0]}
    ends = [True, True, False]
    found = guard.step(1, **rows, eos=ends, advantage=[0.5, -0.5, 0.0])
    assert found is None


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_the_rounding_of_a_coarse_type_is_no_fault(kind):
    guard = gradebook.Guard(declared={"scale": "group"}, action="raise")
    coarse = torch.tensor(DIVIDED).to(kind)
    assert guard.step(0, **ROWS, advantage=coarse) is None


def test_a_step_that_tells_nothing_settles_nothing():
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    flat = {"prompt": ["a", "a"], "reward": [1.0, 1.0]}
    assert guard.step(0, **flat, advantage=[0.0, 0.0]) is None
    assert guard.step(1, **ROWS, advantage=CENTRED) is None
    none = {"prompt": [], "reward": [], "advantage": []}
    assert guard.step(2, **none) is None


def test_a_row_without_a_reward_is_not_scored():
    """By hand: the mean of 1 and 0 is 0.5, and the third row has none."""
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    rows = {"prompt": [0, 0, 0], "reward": [1.0, 0.0, None]}
    assert guard.step(0, **rows, advantage=[0.5, -0.5, 0.0]) is None
    with pytest.raises(gradebook.WrongAdvantages):
        guard.step(1, **rows, advantage=[2 / 3, -1 / 3, -1 / 3])


def test_bad_arguments_are_raised_or_warned_of_once():
    bad = ROWS | {"advantage": [1.0]}
    with pytest.raises(gradebook.GradebookError, match="4 rows"):
        gradebook.Guard(action="raise").step(0, **bad)
    guard = gradebook.Guard()
    with pytest.warns(RuntimeWarning, match="could not judge step 0"):
        guard.step(0, **bad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guard.step(1, **bad)
    with pytest.raises(gradebook.GradebookError, match="warn, raise"):
        gradebook.Guard(action="shout")
    with pytest.raises(gradebook.GradebookError, match="estimator"):
        gradebook.Guard(declared={"estimator": "grop"})


def test_a_label_that_changes_its_kind_is_a_bad_argument():
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    guard.step(0, **ROWS, advantage=CENTRED)
    numbers = ROWS | {"prompt": [0, 0, 1, 1], "advantage": CENTRED}
    with pytest.raises(gradebook.GradebookError, match="strings, as in"):
        guard.step(1, **numbers)


def test_a_healthy_step_needs_neither_pandas_nor_pyarrow_nor_streamlit():
    program = f"""
import sys, gradebook
guard = gradebook.Guard(declared={DR_GRPO}, action="raise")
guard.step(0, **{ROWS}, advantage={CENTRED})
print([m for m in ("pandas", "pyarrow", "streamlit") if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
