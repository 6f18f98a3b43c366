"""The numbers that settle a false alarm are computed, and are those that the
trainers gave and a hand finds."""

from dataclasses import replace

import pytest
import torch

from gradebook import GradebookError
from gradebook.analysis.report_numbers import FORMULAS, in_words, numbers
from gradebook.cases.reports import alarms
from gradebook.cases.table import Table

ALL = [
    pytest.param(alarm, at, id=f"{alarm.name}-{at}")
    for alarm in alarms()
    for at in range(len(alarm.evidence))
]


@pytest.mark.parametrize("alarm, at", ALL)
def test_the_numbers_are_those_of_the_report(alarm, at):
    evidence = alarm.evidence[at]
    values = numbers(evidence, alarm.batch()).tolist()
    assert values == pytest.approx(evidence.expected, abs=6e-4)


def test_every_alarm_but_one_has_numbers_of_the_engine():
    shown = {alarm.name: {e.show for e in alarm.evidence} for alarm in alarms()}
    beside = {name for name, shows in shown.items() if shows <= {*FORMULAS}}
    assert beside == {"mean_not_subtracted"}


def test_what_no_engine_and_no_formula_computes_is_refused():
    (alarm,) = (a for a in alarms() if a.name == "extra_brackets")
    unknown = replace(alarm.evidence[0], show="luck")
    with pytest.raises(GradebookError, match="'show': expected one of score,"):
        numbers(unknown, alarm.batch())


def test_the_numbers_follow_an_edited_batch():
    """1 1 0 0 instead of 1 0 0 1 0.5: a deviation of sqrt(1/3)."""
    (alarm,) = (a for a in alarms() if a.name == "extra_brackets")
    table = alarm.rows.take(range(4))
    batch = Table.of_columns({"reward": ["1", "1", "0", "0"]}, table.cells).batch(
        alarm.settings
    )
    for evidence in alarm.evidence:
        values = numbers(evidence, batch).tolist()
        assert values == pytest.approx([0.866, 0.866, -0.866, -0.866], abs=1e-3)


@pytest.mark.parametrize(
    "values, text",
    [
        ([1.5, -0.5, -0.5], "+1.500, \u22120.500 ×2"),
        ([0.5, 0.5], "0.500 ×2"),
        ([0.0], "0.000"),
        ([0.0098] * 4, "0.0098 ×4"),
        ([0.9, -0.9] * 2, "+0.900, \u22120.900, +0.900, \u22120.900"),
        ([0, 1, 1, 2], "0, 1 ×2, 2"),
    ],
)
def test_numbers_in_words(values, text):
    assert in_words(torch.tensor(values)) == text
