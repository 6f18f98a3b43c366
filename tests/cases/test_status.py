"""The state of each report: what is known, of which version, and when."""

from datetime import date

import pytest

import gradebook
from gradebook.cases.scenario import load
from gradebook.trainers.releases import measured, newest
from gradebook.ui.parts.affected import status

RECORDS = [
    pytest.param(bug, one, id=f"{bug}-{one.trainer}")
    for bug in gradebook.BUGS
    for one in load(bug).status
]


@pytest.mark.parametrize("bug, one", RECORDS)
def test_a_status_names_a_version_and_a_date(bug, one):
    assert one.report.split()[0] in ("issue", "PR")
    days = [one.seen, *(checked.on for checked in one.checked)]
    assert all(date(2024, 1, 1) <= day <= date.today() for day in days)
    for checked in one.checked:
        assert any(letter.isdigit() for letter in checked.version)
    dated = one.fixed_in.date if one.fixed_in else one.seen
    assert str(dated) in one.dated and one.dated[1:] in one.sentence
    # A report that is not fixed was seen in the newest version that was looked at.
    assert one.fixed_in or one.checked[-1].has_it


@pytest.mark.parametrize("bug, one", RECORDS)
def test_a_record_agrees_with_the_measured_releases(bug, one):
    """Of a version that was run from its wheel the table of releases says the same."""
    shows = [x for x in measured() if bug in x["bugs"] and x["trainer"] == one.trainer]
    if not shows:  # the probe cannot show this bug
        return
    for checked in one.checked:
        its = [x for x in measured() if x["version"] == checked.version]
        its = [x for x in its if x["trainer"] == one.trainer]
        if checked.by == "run" and its:
            assert any(bug in x["bugs"] for x in its) == checked.has_it
    if one.since:
        assert shows[0]["version"] >= one.since.name.split()[-1].lstrip("v")
    last = [x for x in newest() if x["trainer"] == one.trainer][-1]["version"]
    assert last in {checked.version for checked in one.checked}


def test_an_open_report_outranks_a_probe_that_shows_nothing():
    """The probe of areal 1.0.4 cannot show an unfinished row, but its code has been
    read; verl 0.9.0 was measured, and the report about verl is open."""
    answer, sentence = status("no_eos_outliers", "areal", "1.0.4")
    assert answer == "has it" and "PR 1351: open" in sentence
    answer, sentence = status("rejected_rows", "verl", "0.9.0")
    assert answer == "reported" and "PR 6452: open" in sentence


def test_a_fixed_report_and_an_affected_release_are_not_a_contradiction():
    answer, sentence = status("partial_groups", "areal", "1.0.4")
    assert answer == "has it" and "fixed in v2.0.0 (2026-07-02)" in sentence
    assert gradebook.bug("partial_groups").standing == "AReaL · fixed in v2.0.0"


def test_a_release_with_the_fix_and_one_nobody_looked_at():
    assert status("swapped_scale", "trl", "1.16.0")[0] == "fixed"
    answer, sentence = status("variance_floor", "verl", "9.9")
    assert answer == "not measured" and "fixed in v0.8.0" in sentence
    assert status("fan_out", "trl", "1.16.0")[0] == "not reported"
    assert status("partial_groups", "trl", "1.16.0")[0] == "not seen on these batches"
