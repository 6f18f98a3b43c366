"""The check asks before it accuses: fifteen made logs, what each must be told,
and made logs of formulas inside and outside the space, with faults."""

from pathlib import Path

import formulas
import pytest
from asking import named, verdict_on

from gradebook.logs.log import check_log

ASKS = Path(__file__).parent / "asks"

TOLD = {
    "batch-zscore.csv": (0, "correct", "a batch z-score", "Whole batch"),
    "leave-one-out-over-std.csv": (0, "correct", "leave-one-out over", ""),
    "grpo-then-whitened.parquet": (0, "correct", "GRPO, then whitened", ""),
    "prompt-drawn-twice.csv": (0, "correct", "grouped by draw", ""),
    "uid-for-each-row.csv": (0, "correct", "grouped by prompt text", ""),
    "completed-means-success.csv": (2, "asks", "If `completed` says", "No-EOS"),
    "row-for-each-turn.csv": (2, "asks", "If `trajectory_id` says", "Fan-out"),
    "padding-copies.csv": (0, "correct", "without the copies", ""),
    "float32-scores-near-1000.csv": (0, "correct", "float32 rounding", ""),
    "whole-batch-two-steps.csv": (2, "asks", "Was it reconfigured", "Whole batch"),
    "all-zero-advantages.csv": (2, "cannot tell", "all advantages are 0", ""),
    "advantage-is-reward.csv": (2, "asks", "rewards themselves", "One uid"),
    "rounded-to-4.csv": (0, "correct", "GRPO (ddof 1", "rounded to 4 decimals"),
    "float16.parquet": (0, "correct", "GRPO (ddof 1", "stored as float16"),
    "overlong-filter.csv": (2, "asks", "If `truncated` says", "No-EOS outliers"),
}


@pytest.mark.parametrize("name", TOLD)
def test_each_made_log_is_told_what_it_is(name):
    code, verdict, words, more = TOLD[name]
    said = check_log([ASKS / name])
    assert (said.exit_code, said.verdict) == (code, verdict)
    assert words in said.sentence and more in said.sentence


@pytest.mark.parametrize("name", ["no_eos_outliers", "rejected_rows"])
def test_a_declaration_of_how_rows_count_turns_the_question_into_a_suspect(name):
    """The column has to be named by hand, too: a guess stays a question."""
    _, _, frame = formulas.fault(5, name)
    column, ours, theirs = {
        "no_eos_outliers": ("eos", "truncated", "truncated"),
        "rejected_rows": ("length", "length", "response_length"),
    }[name]
    declared = {"estimator": "grpo", "counts": column}
    assert verdict_on(frame, declared=declared).verdict == "asks"
    trusted = {ours: theirs, column: theirs} if column == ours else {ours: theirs}
    said = verdict_on(frame, columns=trusted, declared=declared)
    assert (said.exit_code, said.bug) == (1, name)
    undeclared = verdict_on(frame, columns=trusted)
    assert (undeclared.exit_code, undeclared.bug) == (2, name)


@pytest.mark.parametrize("seed", range(6))
def test_no_innocent_is_accused_and_its_name_is_told(seed):
    name, estimator, frame = formulas.innocent(seed)
    said = verdict_on(frame)
    assert said.exit_code == 0, (seed, name, said.sentence)
    assert estimator in named(said), (seed, name, said.sentence)


@pytest.mark.parametrize("seed", range(4))
def test_a_formula_that_nobody_knows_is_never_named(seed):
    name, frame = formulas.unknown(seed)
    said = verdict_on(frame)
    assert said.exit_code == 2, (seed, name, said.sentence)
    assert not said.bug, (seed, name, said.sentence)


@pytest.mark.parametrize("bug", formulas.faulty())
def test_structure_proves_a_fault_and_the_others_are_asked_about(bug):
    _, proved, frame = formulas.fault(1, bug)
    said = verdict_on(frame)
    if proved:
        assert (said.exit_code, said.bug) == (1, bug), said.sentence
    else:
        assert said.exit_code != 1 and bug in (said.bug, *said.asks), said.sentence


def test_a_wrong_declaration_is_told_what_computes_the_log():
    frame = formulas.fault(3, "swapped_scale")[2]  # Dr. GRPO
    said = verdict_on(frame, declared={"estimator": "grpo"})
    assert (said.exit_code, said.verdict) == (1, "other")
    assert "Dr. GRPO" in said.sentence and said.asks == ("swapped_scale",)
    right = verdict_on(frame, declared={"estimator": "dr_grpo"})
    assert (right.exit_code, right.verdict) == (0, "correct")


def test_the_opposite_sign_is_said():
    frame = formulas.fault(3, "swapped_scale")[2]
    said = verdict_on(frame.assign(advantage=-frame["advantage"]))
    assert said.exit_code == 2 and "opposite sign" in said.sentence
