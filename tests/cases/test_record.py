"""A bug's record: its stage and what its scenario file says, in one value."""

import pytest

import gradebook
from gradebook.analysis.laws import LAWS
from gradebook.cases.scenario import by_stage, by_trainer
from gradebook.engine.pipeline import STAGES


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_a_record_is_complete(name):
    bug, main = gradebook.bug(name), gradebook.load(name)
    assert bug.engine is not gradebook.CORRECT
    assert (bug.title, bug.trainer, bug.status, bug.controls) == (
        main.title,
        main.trainer,
        main.status,
        main.controls,
    )
    assert bug.phrase != bug.correct_phrase
    assert bug.tells and bug.would_tell
    assert set(bug.laws) <= set(LAWS)
    assert bug.in_advantages or not bug.columns


def test_the_record_holds_what_the_file_says():
    bug = gradebook.bug("double_normalization")
    assert bug.columns == (("steps", "kept_steps"),)
    assert bug.in_advantages and bug.couples_prompts
    assert bug.phrase == "a second normalization over transitions"
    assert bug.laws == ("zero_sum", "other_prompts")
    assert gradebook.bug("partial_groups").guesses == {"group_size": ("strides",)}
    assert gradebook.bug("partial_groups").standing == "AReaL · fixed"
    several = "miles fixed · slime open · verl by design"
    assert gradebook.bug("fan_out").standing == several
    assert not gradebook.bug("zero_std_kl").in_advantages


def test_a_record_says_what_proves_the_bug_in_a_log():
    proofs = {name: gradebook.bug(name).proof for name in gradebook.BUGS}
    assert proofs["partial_groups"] == proofs["float32_dust"] == "structure"
    assert proofs["prompt_text"] == proofs["padded_mean"] == "column"
    assert proofs["swapped_scale"] == proofs["no_eos_outliers"] == "declaration"


def test_the_bugs_stand_by_trainer_and_by_stage():
    """SHELF.md's table names those of miles and slime."""
    trainers, stages = by_trainer(), by_stage()
    assert trainers["miles"] == trainers["slime"]
    assert trainers["miles"] == ("fan_out", "sharded_whitening", "whole_batch")
    assert list(trainers)[:2] == ["AReaL", "GEM"]
    assert set(stages["counted"]) >= {"fan_out", "rejected_rows"}
    assert [*stages] == [*STAGES]
    for names in (trainers, stages):
        assert {*gradebook.BUGS} == {bug for bugs in names.values() for bug in bugs}
