"""Several bugs in one engine: two in one stage, and those of different stages that
trainers really had at the same time, with the numbers that were measured."""

from itertools import combinations

import pytest

import gradebook
from gradebook import Batch, GradebookError, Settings
from gradebook.analysis.comparison import compared
from gradebook.bugs import swapped, swaps
from gradebook.cases.link import decode, encode
from gradebook.cases.scenario import case
from gradebook.cases.scenario import combinations as shipped
from gradebook.cases.state import start
from gradebook.engine.grouping import CONDITIONS, counted_without
from gradebook.engine.pipeline import STAGES

COUNTED = ("no_eos_outliers", "rejected_rows")
COUNTED_BUGS = [n for n in gradebook.BUGS if gradebook.bug(n).stage == "counted"]

# Row 2 has no token, row 3 no end, row 4 neither.
ONE_PROMPT = Batch(
    prompt=[0] * 5,
    reward=[1.0, 2.0, 6.0, 100.0, -9.0],
    mask=[[1], [1], [0], [1], [0]],
    eos=[True, True, True, False, False],
    settings=Settings(scale="none", mask_no_eos=True),
)


@pytest.mark.parametrize("one", shipped(), ids=lambda one: one.name)
def test_the_sandbox_opens_each_combination_with_its_numbers(one):
    state = start(case(f"sandbox-{one.name}"))
    assert {*state.bugs} == {*one.bugs} and len(one.bugs) == 2
    found = compared(state)
    for side in ("correct", "faulty"):
        advantage = getattr(found, side).advantage.tolist()
        expected = getattr(one.expected, side)
        assert advantage == pytest.approx(expected, abs=2e-5)
    link = encode(state, covered=False)
    opened = decode(link, default="sandbox")
    assert not opened.problem and {*opened.state.bugs} == {*one.bugs}


def test_two_bugs_act_together_unless_they_share_a_stage():
    for names in combinations(gradebook.BUGS, 2):
        first, second = (gradebook.bug(name) for name in names)
        if first.stage == second.stage and not (first.drops and second.drops):
            with pytest.raises(GradebookError, match="expected one bug"):
                swaps(names)
            continue
        engine = swapped(names).engine
        for stage in STAGES:
            same = getattr(engine, stage) is getattr(gradebook.CORRECT, stage)
            assert same == (stage not in (first.stage, second.stage)), names
        if first.stage != second.stage:
            for bug in (first, second):
                assert getattr(engine, bug.stage) is bug.faulty, names
        assert all(part.engine == engine for part in swaps(names))


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
    trace = gradebook.run(swapped(names).engine, ONE_PROMPT)
    assert trace.counted.nonzero().flatten().tolist() == voters
    assert trace.baseline[0].item() == pytest.approx(mean)
    assert trace.credited.tolist() == [True, True, False, False, False]
