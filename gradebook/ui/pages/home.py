"""Home: what this is, the five bugs at a glance, where to start."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from gradebook.analysis.comparison import compare
from gradebook.cases.record import bug
from gradebook.cases.scenario import Scenario, load
from gradebook.output.figures import RowPicture, card_figure, squashes
from gradebook.ui.parts import numbers, predict, tryit, words
from gradebook.ui.parts.pictures import chart, ink, panels, summary
from gradebook.ui.parts.primer import primer


def home() -> None:
    """The way in."""
    from gradebook.ui.parts.shell import bug_files

    files = bug_files()
    st.title("Gradebook")
    st.markdown(
        "Reinforcement-learning trainers compare each rollout's reward with"
        " its group's mean and spread, and several well-known ones got that"
        " silently wrong: no crash, no warning, and rollouts pushed the"
        f" wrong way. Here are {_count(len(files))} of those bugs, live: a"
        " **correct** engine (filled circle) and a **faulty** one (open"
        " diamond) on the same batch, row by row. Change a reward or a mask"
        " and watch where, and why, the two part."
    )
    primer()
    st.header(f"The {_count(len(files))}")
    hidden = [name for name in files if predict.covered(name)]
    if hidden:
        st.markdown(
            "The cards show the correct side. Open one, predict the faulty"
            " side, and it shows here too."
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        if hidden:
            st.button(
                "Uncover all without predicting",
                key="uncover",
                on_click=_uncover,
                args=(hidden,),
            )
        listed = numbers.wanted("the cards' numbers", "cards")
    cards = [lambda n=n: _card(load(n), files[n], listed) for n in files]
    cards.append(lambda: _start(files))
    for start in range(0, len(cards), 3):
        for part, card in zip(st.columns(3), cards[start : start + 3]):
            with part, st.container(border=True, height="stretch"):
                card()


def _uncover(bugs: list[str]) -> None:
    for bug_name in bugs:
        predict.answer(bug_name, predict.SKIPPED)


def _start(files: dict) -> None:
    """Where to start."""
    first = next(iter(files))
    title = words.plain(load(first).title)
    said = (
        f"Alone: open **{title}**, the"
        " clearest of them, and set row 11's reward from 100 to 0.\n\n"
        "With a team: show a page, ask which rows will move and to which"
        " side, then change the reward. Each page holds cases that hide the"
        " bug and cases that show another face of it, the line of code that"
        " did it, and an answer to “am I affected?”.\n\n"
        "Nothing you type leaves the machine that serves this page."
    )
    st.markdown(words.titled("Where to start", said))
    st.page_link(files[first], label=f"Start with {title}")


def _count(number: int) -> str:
    small = ("no", "one", "two", "three", "four", "five", "six", "seven")
    return small[number] if number < len(small) else str(number)


def _solved(scenario: Scenario) -> str:
    """What this session has done with the bug."""
    if predict.covered(scenario.bug):
        return "Not opened yet."
    guess = predict.guess(scenario)
    said = "Guessed otherwise: look again."
    if guess == predict.SKIPPED:
        said = "Seen, without a guess."
    elif guess == scenario.prediction.answer:
        said = "✓ Predicted."
    solved, count = tryit.solved(scenario.name), len(scenario.challenges)
    mark = "✓ " if solved == count > 0 else ""
    return f"{said} {mark}{solved} of {count} challenges solved."


def _card(scenario: Scenario, file: object, listed: bool) -> None:
    st.markdown(f"## {words.plain(scenario.title)}")
    st.markdown(
        f"{words.STATUS[scenario.status]} {words.plain(scenario.trainer)}"
    )
    comparison = compare(bug(scenario.bug), scenario.batch())
    kind = scenario.telltale.kind
    drawn = panels(comparison, kind)
    hidden = predict.covered(scenario.bug)
    small = RowPicture(
        panels=drawn,
        prompts=[str(row["prompt"]) for row in scenario.rows],
        symlog=not hidden and squashes(drawn) is not None,
        covered=hidden,
        ink=ink(),
    )
    said = summary(comparison, kind)
    if hidden:
        said = "The correct side; predict the faulty one."
    chart(
        card_figure(small),
        key=f"card-picture-{scenario.name}",
        config={"displayModeBar": False, "staticPlot": True},
        alt=f"{scenario.title}: {said}",
    )
    st.markdown(said)
    if listed:
        small = replace(small, panels=drawn[-1:])
        numbers.shown(f"card-{scenario.name}", numbers.of_rows(small))
    st.markdown(words.plain(scenario.claim))
    does = "Predict:" if hidden else "Open"
    st.page_link(file, label=f"{does} {words.plain(scenario.title)}")
    st.markdown(_solved(scenario))
