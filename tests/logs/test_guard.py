"""The guard judges each step as it is trained."""

import subprocess
import sys
import warnings

import pytest
import torch

import gradebook
from gradebook.core.columns import COLUMNS
from gradebook.logs.judging.space import EngineRuns
from gradebook.logs.log import check_log

# Two prompts. By hand: (1 - 0.5) / 1 = 0.5, and with the deviation of 1 and
# 0, which is the root of 1/2, 0.5 / 0.7071 = 0.7071.
ROWS = {"prompt": ["a", "a", "b", "b"], "reward": [1.0, 0.0, 3.0, 5.0]}
CENTRED = [0.5, -0.5, -1.0, 1.0]
DIVIDED = [0.7071068, -0.7071068, -0.7071068, 0.7071068]
DR_GRPO = {"scale": "none"}


def given(batch, advantage):
    """A batch as the arguments of the guard and the recorder."""
    names = {*COLUMNS} - {"step", "logp", "ref_logp"}
    return {name: getattr(batch, name) for name in names} | {"advantage": advantage}


def test_a_healthy_step_runs_little(monkeypatch):
    guard = gradebook.Guard(declared={"estimator": "grpo"}, action="raise")
    guard.step(0, **ROWS, advantage=DIVIDED)
    ran = []
    original = EngineRuns.compute
    monkeypatch.setattr(
        EngineRuns, "compute", lambda s, r: ran.append(r) or original(s, r)
    )
    monkeypatch.setattr("gradebook.logs.guard.judge", None)
    guard.step(1, **ROWS, advantage=DIVIDED)
    assert 1 <= len(ran) <= 8 and guard.finding is None


def test_a_bug_is_named_with_the_sentence_of_the_check(tmp_path):
    scenario = gradebook.load("partial_groups")
    record = gradebook.bug("partial_groups")
    batch, settings = scenario.batch(), dict(scenario.settings)
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
    (finding,) = found
    assert (finding.step, finding.verdict) == (7, verdict.verdict)
    assert finding.sentence == verdict.sentence
    assert finding.correct == pytest.approx(correct[finding.row].item())
    assert finding.trained == pytest.approx(faulty[finding.row].item())


def test_the_sentence_has_the_row_and_its_numbers():
    guard = gradebook.Guard(declared={"scale": "group"}, action="raise")
    guard.step(3, **ROWS, advantage=DIVIDED)
    with pytest.raises(gradebook.WrongAdvantages) as error:
        guard.step(4, **ROWS, advantage=CENTRED)
    said = str(error.value)
    assert "Step 4, row 2: correct −0.707, trained −1.000." in said
    assert guard.finding is error.value.finding
    # A guard that has found something says no more.
    assert guard.step(5, **ROWS, advantage=CENTRED) is guard.finding


def test_without_a_declaration_only_structure_is_warned_of():
    """Numbers that nobody knows may be somebody's design; r - mean / std is
    nobody's. By hand: the means are 0.5 and 4, the deviations 0.7071 and
    1.4142, so mean / deviation is 0.7071 and 2.8284."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guard = gradebook.Guard()
        guard.step(0, **ROWS, advantage=[0.9, -0.1, -1.0, 1.0])
        guard.step(1, **ROWS, advantage=CENTRED)
    assert guard.finding is None
    three = {"prompt": [*"aaabbb"], "reward": [1.0, 0.0, 0.5, 3.0, 5.0, 4.5]}
    # Means 0.5 and 25/6, deviations 0.5 and 1.040833, quotients 1 and 4.003204.
    wrong = [0.0, -1.0, -0.5, 3 - 4.003204, 5 - 4.003204, 4.5 - 4.003204]
    with pytest.warns(RuntimeWarning, match="Missing parentheses"):
        guard.step(2, **three, advantage=wrong)
    assert guard.finding.bug == "missing_parentheses"


def test_a_question_never_acts():
    """No-EOS outliers may be a wanted filter. By hand: the mean of 3, 0 and
    0 is 1, and the unfinished row gets 0."""
    rows = {"prompt": ["a"] * 3, "reward": [3.0, 0.0, 0.0]}
    ends = [True, True, False]
    told = {"estimator": "dr_grpo"}
    guard = gradebook.Guard(declared=told, action="raise")
    assert guard.step(0, **rows, eos=ends, advantage=[2.0, -1.0, 0.0]) is None
    told = {"estimator": "dr_grpo", "counts": "eos"}
    guard = gradebook.Guard(declared=told, action="raise")
    with pytest.raises(gradebook.WrongAdvantages, match="No-EOS outliers"):
        guard.step(0, **rows, eos=ends, advantage=[2.0, -1.0, 0.0])


def test_the_guard_acts_on_numbers_that_nothing_fits_if_there_is_a_declaration():
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    with pytest.raises(gradebook.WrongAdvantages, match="row 0: correct") as error:
        guard.step(0, **ROWS, advantage=[2.5, -2.5, -0.3, 0.3])
    assert "below" not in str(error.value) and "page" not in str(error.value)


def test_a_step_may_be_the_first_with_a_truncated_row_that_is_masked():
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
    # A mean of 0.05; the types move the first two rewards by a tenth.
    guard = gradebook.Guard(declared={"scale": "none"}, action="raise")
    rows = {"prompt": [0] * 4, "advantage": [100.25, -100.65, 0.25, 0.15]}
    reward = torch.tensor([100.3, -100.6, 0.3, 0.2]).to(kind)
    assert guard.step(0, **rows, reward=reward) is None


def test_a_step_of_equal_rewards_settles_nothing():
    guard = gradebook.Guard(declared=DR_GRPO, action="raise")
    flat = {"prompt": ["a", "a"], "reward": [1.0, 1.0]}
    assert guard.step(0, **flat, advantage=[0.0, 0.0]) is None
    assert guard.step(1, **ROWS, advantage=CENTRED) is None
    none = {"prompt": [], "reward": [], "advantage": []}
    assert guard.step(2, **none) is None


def test_a_row_without_a_reward_is_not_scored():
    """By hand: the mean of 1 and 0 is 0.5, and the third row has none."""
    told = {**DR_GRPO, "counts": "scored"}
    guard = gradebook.Guard(declared=told, action="raise")
    rows = {"prompt": [0, 0, 0], "reward": [1.0, 0.0, None]}
    assert guard.step(0, **rows, advantage=[0.5, -0.5, 0.0]) is None
    with pytest.raises(gradebook.WrongAdvantages):
        guard.step(1, **rows, advantage=[2 / 3, -1 / 3, -1 / 3])


def test_bad_arguments_are_raised_or_warned_of_once():
    bad = ROWS | {"advantage": [1.0]}
    with pytest.raises(gradebook.GradebookError, match="4 rows"):
        gradebook.Guard(declared=DR_GRPO, action="raise").step(0, **bad)
    guard = gradebook.Guard()
    with pytest.warns(RuntimeWarning, match="could not judge step 0") as warned:
        guard.step(0, **bad)
        guard.step(1, **bad)
    assert len(warned) == 1
    for refused, words in (
        ({"action": "shout"}, "warn, raise"),
        ({"declared": {"estimator": "grop"}}, "estimator"),
        ({"action": "raise"}, "configured with"),
        ({"action": print}, "configured with"),
    ):
        with pytest.raises(gradebook.GradebookError, match=words):
            gradebook.Guard(**refused)


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
