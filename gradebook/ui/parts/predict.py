"""Predict, then reveal: a question before anything faulty is shown.

An answer opens the bug everywhere in the session, and so does skipping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from gradebook.cases.scenario import Scenario
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.parts.terms import terms

SKIPPED = -1


def answers() -> dict[str, int]:
    """Bug -> the choice that was made, or SKIPPED."""
    return keys.ANSWERS.get()


def covered(bug: str) -> bool:
    """The learner has neither answered nor skipped yet."""
    return bug not in answers()


def answer(bug: str, choice: int, case: str = "") -> None:
    """The learner's choice, or SKIPPED; `case` is whose question it was."""
    answers()[bug] = choice
    keys.ASKED.get()[bug] = case or bug


def cover(bug: str) -> None:
    """The question is asked again."""
    answers().pop(bug, None)


def guess(scenario: Scenario) -> int:
    """The choice made on this case's question, else SKIPPED."""
    asked = keys.ASKED.get().get(scenario.bug)
    if asked != scenario.name:
        return SKIPPED
    return answers().get(scenario.bug, SKIPPED)


def ask(
    scenario: Scenario,
    edited: bool,
    pick: Callable[[int], None],
    now: str = "",
) -> None:
    """The scenario's question, its choices, and a way past them.

    pick  called with the choice that is made, or SKIPPED
    now   what the correct engine gives, in a sentence
    """
    asked = scenario.prediction
    lead = "The question is about the original batch. " if edited else ""
    with st.container(key=f"predict-{scenario.bug}"):
        st.markdown(
            f"{now} {lead}  \n**Predict before you look:**"
            f" {words.plain(asked.question)}",
            help=terms(now, asked.question),
        )
        choices(
            {
                f"choice-{scenario.bug}-{choice}": text
                for choice, text in enumerate(asked.choices)
            },
            pick,
            skip=f"skip-{scenario.bug}",
        )


def choices(
    offered: Mapping[str, str], pick: Callable[[int], None], skip: str = ""
) -> None:
    """A question's choices as a line of buttons.

    offered  the buttons' keys, each with its text
    pick     called with the number of the choice
    skip     the key of a button that calls it with SKIPPED; '' for none
    """
    with st.container(horizontal=True, key="choices"):
        for choice, (key, text) in enumerate(offered.items()):
            st.button(words.plain(text), key=key, on_click=pick, args=(choice,))
        if skip:
            st.button(
                "Skip, show me",
                key=skip,
                on_click=pick,
                args=(SKIPPED,),
                type="tertiary",
            )


def verdict(scenario: Scenario, numbers: str = "") -> None:
    """The guess beside the truth, why it is so, and the rule to carry home.

    numbers  both engines' numbers for the row of the question, in a sentence
             that says which batch they are from: it may be edited by now
    """
    asked = scenario.prediction
    truth = words.plain(_inside(asked.choices[asked.answer]))
    chosen = guess(scenario)
    if chosen == SKIPPED:
        said = f"{words.plain(asked.question)} **Answer: {truth}.**"
    elif chosen == asked.answer:
        said = f"You said **{truth}**, and that is right."
    else:
        mine = words.plain(_inside(asked.choices[chosen]))
        said = f"You said **{mine}**. It is **{truth}**."
    with st.container(border=True, key="verdict"):
        st.markdown(
            f"{said} {numbers} {words.plain(asked.why)}  \n"
            f"**The rule:** {words.plain(scenario.rule)}",
            help=terms(asked.why, scenario.rule),
        )


def _inside(choice: str) -> str:
    """A choice inside a sentence: its first word begins small, unless it is
    a name or an abbreviation."""
    first, *rest = choice.split(" ", 1)
    if first[:1].isupper() and (len(first) == 1 or first[1:].islower()):
        return " ".join([first[0].lower() + first[1:], *rest])
    return choice
