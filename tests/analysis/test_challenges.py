"""Challenges: every solution works, nothing is solved beforehand, and a
checker sees what was edited."""

from dataclasses import replace

import pytest

import gradebook
from gradebook.analysis.challenges import (
    CHECKERS,
    Verdict,
    apply_solution,
    edits,
    judge,
)
from gradebook.cases.scenario import (
    CHECKS,
    AddRow,
    Cell,
    Challenge,
    RemoveRow,
    Setting,
    names,
)
from gradebook.cases.state import start

ALL = [
    (name, challenge)
    for name in names()
    for challenge in gradebook.load(name).challenges
]
IDS = [f"{name}-{challenge.check}" for name, challenge in ALL]


def state(name):
    return start(gradebook.load(name))


def tried(name, check, *changes, **switches):
    """The verdict of a check on a scenario after some changes."""
    now = apply_solution(state(name), changes)
    challenge = Challenge("x", "y", check, changes)
    return judge(challenge, replace(now, **switches))


def reward(row, value):
    return Cell(row, "reward", value)


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_its_solution_solves_it(name, challenge):
    now = apply_solution(state(name), challenge.solution)
    assert judge(challenge, now) == Verdict(True, "")


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_it_is_not_solved_to_begin_with(name, challenge):
    found = judge(challenge, state(name))
    assert not found.solved
    assert found.missing.endswith(".") and len(found.missing) <= 80


@pytest.mark.parametrize("name, challenge", ALL, ids=IDS)
def test_no_step_of_the_solution_is_idle(name, challenge):
    for place in range(len(challenge.solution)):
        rest = [*challenge.solution]
        del rest[place]
        try:
            now = apply_solution(state(name), rest)
            assert not judge(challenge, now).solved
        except gradebook.GradebookError:
            pass  # what is left is no batch


@pytest.mark.parametrize("bug", gradebook.BUGS)
def test_every_bug_has_three_or_more(bug):
    challenges = gradebook.load(bug).challenges
    assert len(challenges) >= 3
    assert len({one.check for one in challenges}) == len(challenges)
    for one in challenges:
        assert len(one.title) <= 40
        assert one.goal.endswith(".") and "!" not in one.goal + one.hint


def test_the_registry_is_what_scenario_files_may_name():
    assert tuple(CHECKERS) == CHECKS
    assert {challenge.check for _, challenge in ALL} == set(CHECKS)
    assert all(name == f.__name__ for name, f in CHECKERS.items())


def test_the_surprises_of_the_brief_are_among_them():
    found = {(name, challenge.check) for name, challenge in ALL}
    assert found >= {
        ("partial_groups", "turned_from_outside"),
        ("partial_groups", "divides_and_bites"),
        ("double_normalization", "moved_by_lengths"),
        ("no_eos_outliers", "agree_by_one_reward"),
        ("rejected_rows", "leaks_at_reward_zero"),
        ("zero_std_kl", "neighbours_change"),
    }


# What a checker sees


@pytest.mark.parametrize(
    "changes, missing",
    [
        # Row 9 at -200 turns row 10 as well, but is of its own prompt.
        ([reward(9, -200.0)], "Row 9 is of row 10's own prompt."),
        ([reward(11, 0.0), reward(9, 0.5)], "2 rewards are changed."),
        (
            [reward(11, 0.0), Cell(0, "prompt", "E")],
            "Change one reward and nothing else.",
        ),
        (
            [reward(11, 0.0), Setting("eps", 1e-3)],
            "Change one reward and nothing else.",
        ),
        (
            [reward(11, 0.0), RemoveRow(0)],
            "Change one reward and nothing else.",
        ),
        ([reward(11, 50.0)], "Row 10 keeps its faulty sign."),
        ([reward(0, 50.0)], "Row 10 keeps its faulty sign."),
    ],
)
def test_row_10_turns_by_row_11_only(changes, missing):
    found = tried("partial_groups", "turned_from_outside", *changes)
    assert found == Verdict(False, missing)


def test_a_switch_is_an_edit():
    solved = tried("no_eos_outliers", "agree_by_one_reward", reward(1, 1.0))
    assert solved.solved
    found = tried(
        "no_eos_outliers",
        "agree_by_one_reward",
        reward(1, 1.0),
        detector=True,
    )
    assert found.missing == "Change one reward and nothing else."


@pytest.mark.parametrize(
    "name, check, changes, missing",
    [
        (
            "no_eos_outliers",
            "agree_by_one_reward",
            [reward(1, 2.0)],
            "differ in the advantage",
        ),
        (
            "no_eos_outliers",
            "agree_by_one_reward",
            [reward(0, 1.5), reward(1, 1.5)],
            "2 rewards",
        ),
        (
            "no_eos_outliers",
            "agree_by_one_reward",
            [Cell(1, "eos", True)],
            "one reward",
        ),
        (
            "no_eos_outliers",
            "agree_by_one_setting",
            [Setting("mask_no_eos", False), Setting("eps", 0.1)],
            "2 settings",
        ),
        (
            "no_eos_outliers",
            "leaks_without_outlier",
            [reward(1, 1.0)],
            "agree",
        ),
        (
            "rejected_rows",
            "agree_by_settings",
            [Setting("baseline", "none"), Setting("scale", "none")],
            "Without a baseline",
        ),
        (
            "rejected_rows",
            "turned_by_silent_rows",
            [reward(1, 200.0)],
            "Row 1 has a say",
        ),
        (
            "rejected_rows",
            "turned_by_silent_rows",
            [reward(0, 50.0)],
            "has turned",
        ),
        (
            "rejected_rows",
            "leaks_at_reward_zero",
            [Cell(0, "mask", [1, 1, 1])],
            "No row is rejected",
        ),
        (
            "rejected_rows",
            "leaks_into_another_prompt",
            [AddRow({"prompt": "B", "reward": 0.0, "mask": [1, 1, 1]})],
            "agrees in both",
        ),
        (
            "partial_groups",
            "divides_and_bites",
            [RemoveRow(11)],
            "11 rows do not divide",
        ),
        (
            "partial_groups",
            "divides_and_bites",
            [RemoveRow(8)] * 4,
            "does not bite",
        ),
        (
            "partial_groups",
            "divides_and_bites",
            [RemoveRow(11), Setting("group_size", 11)],
            "Leave the settings",
        ),
        (
            "partial_groups",
            "faulty_explodes",
            [Setting("eps", 1e-9)],
            "Leave the settings",
        ),
        (
            "no_eos_outliers",
            "faulty_explodes",
            [
                reward(0, 1000.0),
                AddRow(
                    {
                        "prompt": "A",
                        "reward": -1000.0,
                        "eos": True,
                        "mask": [1, 0, 0],
                    }
                ),
            ],
            "A correct one is 1e+03, too",
        ),
        (
            "double_normalization",
            "moved_by_lengths",
            [Cell(1, "steps", 11), Cell(1, "kept_steps", 11)],
            "Row 0 is at +2.345",
        ),
        (
            "double_normalization",
            "moved_by_lengths",
            [reward(0, 5.0)],
            "nothing else",
        ),
        (
            "double_normalization",
            "agree_by_lengths",
            [Cell(0, "kept_steps", 0), Cell(1, "kept_steps", 0)],
            "keeps at least one",
        ),
        (
            "double_normalization",
            "signal_from_nothing",
            [reward(0, 0.1), reward(1, 0.1)],
            "largest faulty",
        ),
        (
            "double_normalization",
            "signal_from_nothing",
            [
                Cell(1, "prompt", "B"),
                Setting("baseline", "none"),
                Setting("scale", "none"),
            ],
            "sees a signal as well",
        ),
        (
            "zero_std_kl",
            "neighbours_change",
            [Setting("loss", "dr_grpo")],
            "agree",
        ),
        (
            "zero_std_kl",
            "neighbours_change",
            [Setting("loss", "bnpo"), Setting("beta", 0.1)],
            "nothing else",
        ),
        (
            "zero_std_kl",
            "blanked_by_the_fix",
            [reward(0, 0.0)],
            "trains 4 rows",
        ),
        (
            "zero_std_kl",
            "blanked_by_the_fix",
            [reward(3, 1.0), Setting("beta", 0.0)],
            "Leave the settings",
        ),
    ],
)
def test_a_near_miss_says_what_is_missing(name, check, changes, missing):
    found = tried(name, check, *changes)
    assert not found.solved
    assert missing in found.missing


@pytest.mark.parametrize(
    "changes, missing",
    [([Setting("loss", loss)], "agree") for loss in ("grpo", "dr_grpo")]
    + [([Setting("loss", "dapo")], "Change the loss type")],
)
def test_only_bnpo_moves_the_neighbours(changes, missing):
    found = tried("zero_std_kl", "neighbours_change", *changes)
    assert missing in found.missing and not found.solved


def test_three_means_three_though_eps_takes_a_hair_of_it():
    longer = [Cell(1, "steps", 18), Cell(1, "kept_steps", 18)]
    assert tried("double_normalization", "moved_by_lengths", *longer).solved


def test_a_tail_or_a_longer_row_solves_it_another_way():
    plain = {"prompt": "D", "reward": 0.0}
    added = [AddRow(plain)] * 4
    assert tried("partial_groups", "divides_and_bites", *added).solved
    tail = [AddRow(plain), AddRow(plain | {"reward": 5.0})]
    assert tried("partial_groups", "faulty_explodes", *tail).solved


@pytest.mark.parametrize("check", CHECKS)
def test_an_empty_batch_solves_nothing(check):
    two = state("no_eos_outliers")
    now = apply_solution(two, [RemoveRow(0), RemoveRow(0)])
    challenge = Challenge("x", "y", check, ())
    assert judge(challenge, now) == Verdict(False, "There are no rows.")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", names())
def test_every_check_answers_on_every_scenario(check, name):
    challenge = Challenge("x", "y", check, ())
    found = judge(challenge, state(name))
    assert found.solved or found.missing.endswith(".")


# Edits, and applying a solution


def test_edits_are_told_by_value():
    before = state("partial_groups")
    table = before.table.with_cell(11, "reward", "100.0")
    assert edits(before, replace(before, table=table)) == edits(before, before)
    found = edits(before, apply_solution(before, [reward(3, 7.0)]))
    assert found.cells == {(3, "reward")} and found.only_cells
    found = edits(
        before,
        apply_solution(before, [Setting("ddof", 0), RemoveRow(11)]),
    )
    assert found.settings == {"ddof"} and found.rows == -1
    assert not found.only_settings


def test_a_mask_is_one_column():
    before = state("rejected_rows")
    now = apply_solution(before, [Cell(0, "mask", [1, 0, 1])])
    assert edits(before, now).cells == {(0, "mask")}
    assert now.batch().mask[0].tolist() == [True, False, True]


def test_a_solution_leaves_the_state_it_starts_from():
    before = state("no_eos_outliers")
    kept = [row.cells for row in before.table.rows]
    changes = [
        reward(0, 2.5),
        Cell(1, "eos", True),
        Setting("reward_clip", 3.0),
        Setting("mask_no_eos", False),
        AddRow({"prompt": "B", "reward": 1, "eos": False, "mask": [1, 1, 0]}),
        RemoveRow(1),
    ]
    now = apply_solution(before, changes)
    assert [row.cells for row in before.table.rows] == kept
    assert before.same(state("no_eos_outliers"))
    batch = now.batch()
    assert batch.reward.tolist() == [2.5, 1.0]
    assert batch.prompt.tolist() == [0, 1]
    assert batch.eos.tolist() == [True, False]
    assert batch.settings.reward_clip == 3.0
    assert batch.settings.mask_no_eos is False
    assert now.table.headers == before.table.headers
    assert now.typed["reward_clip"] == "3"


def test_the_selected_row_stays_inside():
    before = replace(state("partial_groups"), row=11)
    assert apply_solution(before, [RemoveRow(0)]).row == 10


def test_a_row_that_is_gone_is_an_error():
    with pytest.raises(gradebook.GradebookError, match="row 12"):
        apply_solution(state("partial_groups"), [reward(12, 1.0)])


def test_an_unreadable_state_is_an_error():
    name, challenge = ALL[0]
    before = state(name)
    table = before.table.with_cell(0, "reward", "many")
    with pytest.raises(gradebook.GradebookError, match="reward"):
        judge(challenge, replace(before, table=table))


def test_a_challenge_stays_with_its_file():
    for name in names():
        scenario = gradebook.load(name)
        assert bool(scenario.challenges) is not scenario.variant
