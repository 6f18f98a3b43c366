"""What a bug has in common with others: its rule, and the line to look for in code."""

from functools import partial

import streamlit as st

from gradebook.cases.case import PLACE
from gradebook.cases.rules import RULES
from gradebook.cases.scenario import Scenario, load, siblings
from gradebook.ui import keys
from gradebook.ui.parts import words


def same_rule(scenario: Scenario) -> None:
    """The rule that the bug breaks, and the other bugs that break it."""
    if not scenario.breaks:
        return
    rule = RULES[scenario.breaks]
    titles = ", ".join(load(name).title for name in siblings(scenario.bug))
    rule_broken = f"**{words.plain(rule.title)}.** The same rule is broken by"
    st.markdown(f"{rule_broken} {words.plain(titles)}.")


def reading(scenario: Scenario) -> None:
    """An exercise: which of three lines is right? None of them is a trainer's own."""
    exercise, bug = scenario.reading, scenario.bug
    if exercise is None:
        return
    answers = keys.READ.get()
    st.markdown(words.titled("Find it in code", words.plain(exercise.question)))
    head, tail = exercise.code.split(PLACE)
    gap = "…  ← which line?"
    st.code(f"{head}{gap}{tail}".strip("\n"), language="python")
    chosen = answers.get(bug)
    for number, line in enumerate(exercise.lines):
        mark, text = st.columns([2, 13], vertical_alignment="top")
        with text:
            st.code(line, language="python", wrap_lines=True)
        if chosen is None:
            pick = partial(answers.__setitem__, bug, number)
            key = f"read-{bug}-{number}"
            mark.button("This one", key, on_click=pick, width="stretch")
            continue
        sign = "✓" if number == exercise.answer else "✗"
        mark.markdown(f"**{sign}** {'your choice' if number == chosen else ''}")
        trainers = " This is the trainer's pattern." * (number == exercise.trainer)
        text.markdown(words.plain(exercise.said[number] + trainers))
    if chosen is None:
        st.caption("The lines are written for this page. One of the three is right.")
