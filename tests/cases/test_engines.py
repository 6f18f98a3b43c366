"""Several bugs in one engine: each one's stage, and two in one stage."""

from itertools import combinations

import pytest
import torch

import gradebook
from gradebook.cases import engines
from gradebook.cases.engines import several, swaps
from gradebook.core.errors import GradebookError

COUNTED = ("no_eos_outliers", "rejected_rows")
SUBSETS = [
    names
    for size in range(len(gradebook.BUGS) + 1)
    for names in combinations(gradebook.BUGS, size)
]

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
    assert swaps([name]) == (gradebook.bug(name),)


@pytest.mark.parametrize("names", SUBSETS, ids="+".join)
def test_every_set_of_bugs_swaps_its_stages_and_no_other(names):
    engine = several(names)
    swapped = {gradebook.bug(name).stage for name in names}
    for stage in engines.STAGES:
        same = getattr(engine, stage) is getattr(gradebook.CORRECT, stage)
        assert same == (stage not in swapped)
    for name in names:
        own = gradebook.bug(name)
        if not set(COUNTED) <= set(names) or own.stage != "counted":
            assert getattr(engine, own.stage) is own.faulty
    gradebook.run(engine, ONE_PROMPT)


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


def test_order_and_repeats_do_not_matter():
    names = ["zero_std_kl", *COUNTED, "partial_groups"]
    assert several(names) == several(names[::-1] + names)


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


def test_bugs_of_one_stage_without_a_common_form_are_refused(monkeypatch):
    monkeypatch.setattr(engines, "TOGETHER", {})
    with pytest.raises(GradebookError) as raised:
        several(COUNTED)
    assert str(raised.value) == (
        "key 'bugs': expected one bug in the stage counted, found"
        " no_eos_outliers and rejected_rows"
    )
