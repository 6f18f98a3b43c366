"""The bugs are chosen from by trainer, stage, status and trace in a log."""

import pytest
from one_a_stage import SHIPPED

import gradebook
from gradebook.cases.catalogue import FILTERS, choices, chosen
from gradebook.engine.pipeline import STAGES


@pytest.mark.parametrize(
    "wanted, expected",
    [
        # SHELF.md's table names these, in the order they are asked in.
        (
            {"trainer": "miles"},
            ["fan_out", "sharded_whitening", "whole_batch"],
        ),
        (
            {"trainer": "slime"},
            ["fan_out", "sharded_whitening", "whole_batch"],
        ),
        ({"status": "disputed"}, ["zero_std_kl"]),
        ({"status": "by design"}, ["fan_out"]),
        (
            {"trainer": "miles", "status": "fixed", "stage": "counted"},
            ["fan_out"],
        ),
        # Open in slime, fixed in miles, by design in verl.
        (
            {"trainer": "slime", "status": "open", "stage": "counted"},
            ["fan_out"],
        ),
        ({"trainer": "verl", "status": "fixed", "stage": "counted"}, []),
        ({"status": "not confirmed"}, ["uid_per_rollout"]),
        ({"log": "no"}, ["micro_batch_means", "zero_std_kl"]),
        ({"stage": "scale", "trainer": "TRL"}, ["swapped_scale"]),
        ({"stage": "loss", "log": "yes"}, []),
    ],
)
def test_each_filter_keeps_what_the_records_say(wanted, expected):
    assert chosen(SHIPPED, wanted) == expected


def test_no_filter_keeps_all_in_their_order():
    names = [*reversed(gradebook.BUGS)]
    assert chosen(names, dict.fromkeys(FILTERS, "")) == names


def test_every_choice_finds_a_bug_and_every_bug_is_found():
    for name in FILTERS:
        found = [chosen(gradebook.BUGS, {name: c}) for c in choices(name)]
        assert all(found)
        assert {*gradebook.BUGS} == {bug for names in found for bug in names}


def test_trainers_stand_alphabetically_and_stages_as_they_run():
    assert choices("trainer")[:2] == ("AReaL", "GEM")
    stages = {gradebook.bug(name).stage for name in gradebook.BUGS}
    assert list(choices("stage")) == [s for s in STAGES if s in stages]


def test_a_log_with_a_prompt_id_is_enough_or_more_columns_are_needed():
    yes = chosen(gradebook.BUGS, {"log": "yes"})
    more = chosen(gradebook.BUGS, {"log": "with more columns"})
    assert "partial_groups" in yes and "float32_dust" in yes
    assert "unscored_rows" in more and "padded_mean" in more
