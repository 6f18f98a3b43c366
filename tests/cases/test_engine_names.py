"""The engines are called correct only where that is not in question."""

from dataclasses import replace

import gradebook
from gradebook.cases.state import start


def test_most_cases_have_a_correct_and_a_faulty_engine():
    state = start(gradebook.load("partial_groups"))
    assert state.engine_names == ("correct", "faulty")


def test_a_disputed_report_names_the_engines_for_what_they_do():
    for name in ("zero_std_kl", "zero_std_kl-bnpo"):
        state = start(gradebook.load(name))
        assert state.engine_names == ("with the guard", "as written")


def test_with_eos_by_width_the_names_claim_no_more_than_its_flags_allow():
    flagged = start(gradebook.load("no_eos_outliers-longest"))
    assert flagged.engine_names[0] == "correct by the flags"
    off = replace(flagged, typed={**flagged.typed, "eos_by_width": False})
    assert off.engine_names == ("correct", "faulty")
