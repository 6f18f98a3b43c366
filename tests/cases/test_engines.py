"""Several bugs in one engine: each one's stage, and two in one stage."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch

import gradebook
from gradebook import bugs as engines
from gradebook.bugs import several, swap, swaps
from gradebook.core.errors import GradebookError
from gradebook.engine.grouping import CONDITIONS, counted_without
from gradebook.engine.pipeline import STAGES

COUNTED = ("no_eos_outliers", "rejected_rows")
COUNTED_BUGS = [
    name for name in gradebook.BUGS if gradebook.bug(name).stage == "counted"
]


def in_different_stages(names):
    return len({gradebook.bug(name).stage for name in names}) == len(names)


# Row 2 has no token, row 3 no end, row 4 neither.
ONE_PROMPT = gradebook.Batch(
    prompt=[0] * 5,
    reward=[1.0, 2.0, 6.0, 100.0, -9.0],
    mask=[[1], [1], [0], [1], [0]],
    eos=[True, True, True, False, False],
    settings=gradebook.Settings(scale="none", mask_no_eos=True),
)


def test_without_a_bug_it_is_the_correct_engine():
    assert several([]) == gradebook.CORRECT
    assert swaps([]) == ()


@pytest.mark.parametrize("name", gradebook.BUGS)
def test_one_bug_is_its_own_engine(name):
    assert several([name]) == gradebook.bug(name).engine
    assert swaps([name]) == (swap(name),)


def test_two_bugs_act_together_unless_they_share_a_stage():
    for names in combinations(gradebook.BUGS, 2):
        first, second = (gradebook.bug(name) for name in names)
        if first.stage == second.stage and not (first.drops and second.drops):
            with pytest.raises(GradebookError, match="expected one bug"):
                several(names)
            continue
        engine = several(names)
        for stage in STAGES:
            same = getattr(engine, stage) is getattr(gradebook.CORRECT, stage)
            assert same == (stage not in (first.stage, second.stage)), names
        if in_different_stages(names):
            for own in (first, second):
                assert getattr(engine, own.stage) is own.faulty, names


@pytest.mark.parametrize("name", COUNTED_BUGS)
def test_a_faulty_counted_stage_drops_what_it_says(name):
    own = gradebook.bug(name)
    assert own.drops and set(own.drops) <= set(CONDITIONS)
    credited = gradebook.CORRECT.credited(ONE_PROMPT)
    by_rule = counted_without(frozenset(own.drops))(ONE_PROMPT, credited)
    assert own.faulty(ONE_PROMPT, credited).tolist() == by_rule.tolist()


@pytest.mark.parametrize(
    "names, voters, mean",
    [
        ((), [0, 1], 1.5),
        (COUNTED[:1], [0, 1, 3], 103 / 3),
        (COUNTED[1:], [0, 1, 2], 3.0),
        (COUNTED, [0, 1, 2, 3, 4], 20.0),
    ],
)
def test_both_faults_of_counted_let_every_row_vote(names, voters, mean):
    trace = gradebook.run(several(names), ONE_PROMPT)
    assert trace.counted.nonzero().flatten().tolist() == voters
    assert trace.baseline[0].item() == pytest.approx(mean)
    assert trace.credited.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    "names, advantage",
    [
        ((), [-1, 1, 0, 0]),
        (["rejected_rows"], [-2, 0, 0, 0]),
        (["partial_groups"], [-1, 1, 0, 0]),
        # Rows 2 and 3 are one stride, and row 2 votes: 10 - (4 + 10) / 2.
        (["rejected_rows", "partial_groups"], [-1, 1, 0, 3]),
    ],
)
def test_bugs_of_two_stages_act_together(names, advantage):
    batch = gradebook.Batch(
        prompt=["A", "A", "A", "B"],
        reward=[0.0, 2.0, 4.0, 10.0],
        mask=[[1], [1], [0], [1]],
        settings=gradebook.Settings(scale="none", group_size=2),
    )
    trace = gradebook.run(several(names), batch)
    torch.testing.assert_close(
        trace.advantage, torch.tensor(advantage, dtype=torch.float64)
    )


def test_each_swapped_stage_is_one_bug_with_the_whole_engine():
    found = swaps(["zero_std_kl", "rejected_rows", "no_eos_outliers"])
    assert [b.stage for b in found] == ["counted", "trained"]
    assert [b.name for b in found] == [
        "rejected_rows and no_eos_outliers",
        "zero_std_kl",
    ]
    engine = several(["zero_std_kl", *COUNTED])
    assert [b.engine for b in found] == [engine, engine]
    for one in found:
        assert one.correct is getattr(gradebook.CORRECT, one.stage)
        assert one.faulty is getattr(engine, one.stage)


def test_an_unknown_bug_is_an_error():
    for function in (several, swaps):
        with pytest.raises(GradebookError, match="key 'bug': expected one"):
            function(["partial_groups", "partial_group"])


def test_bugs_of_one_stage_that_drop_no_condition_are_refused(monkeypatch):
    monkeypatch.setattr(engines, "swap", lambda n: replace(swap(n), drops=()))
    with pytest.raises(GradebookError) as raised:
        several(COUNTED)
    assert str(raised.value) == (
        "key 'bugs': expected one bug in the stage counted, found"
        " no_eos_outliers and rejected_rows"
    )
