"""After the class: each question with its votes, as a page, a handout and a link."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from gradebook.classroom.after import AskedQuestion, of_room, text
from gradebook.classroom.store import Room
from gradebook.core.formatting import minus
from gradebook.ui.parts import address, words
from gradebook.ui.parts.widget import download

PARAMETER = "after"
"""The parameter of the link of such a page."""
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;"
    "padding:0 1rem}table{border-collapse:collapse;margin:.4rem 0}"
    "th,td{padding:.1rem 1rem .1rem 0;text-align:left;font-weight:400}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "tr.answer td{font-weight:700}h2{font-size:1.15rem;margin:1.6rem 0 .2rem}"
)


def page(questions: Sequence[AskedQuestion]) -> None:
    """The page of a class's link."""
    st.header("After the class", anchor=False)
    if not questions:
        st.markdown("This link names no question that this version knows.")
        return
    again = [question for question in questions if question.is_hard]
    if again:
        st.markdown("**Look at these again.** Fewer than half of the votes were right.")
        with st.container(horizontal=True):
            for question in again:
                _link(question)
    st.html(_body(questions))


def offered(room: Room) -> None:
    """The lead's way to that page: its link, and the same as a file."""
    questions = of_room(room)
    if not questions:
        return
    link, _ = address.for_others(address.whole({PARAMETER: text(questions)}))
    st.markdown("The page after the class, whose link outlives the room:")
    st.code(link, language=None, wrap_lines=True)
    download("Handout", "gradebook-class.html", partial(handout, questions))


def handout(questions: Sequence[AskedQuestion]) -> str:
    """The page as one HTML file."""
    again = ", ".join(
        _text(question.title) for question in questions if question.is_hard
    )
    look = f"<p><b>Look at these again:</b> {again}.</p>" if again else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>'
        "<title>After the class</title><h1>After the class</h1>"
        f"{look}{_body(questions)}</html>"
    )


def _body(questions: Sequence[AskedQuestion]) -> str:
    label = 'tabindex="0" role="region" aria-label="The questions and their votes"'
    return f'<div class="gb" {label}>{"".join(map(_question, questions))}</div>'


def _question(asked: AskedQuestion) -> str:
    step = asked.step
    columns = [asked.before, asked.votes] if asked.before else [asked.votes]
    heads = ["first vote", "second vote"] if asked.before else ["votes"]
    rows = "<tr><th>answer</th>" + "".join(f"<th>{head}</th>" for head in heads)
    for n, choice in enumerate(step.choices):
        mark, kind = (" ✓", ' class="answer"') if n == step.answer else ("", "")
        counts = "".join(f'<td class="n">{votes[n]}</td>' for votes in columns)
        rows += f"</tr><tr{kind}><td>{_text(choice)}{mark}</td>{counts}"
    text = f"<h2>{_text(asked.title)}</h2><p>{_text(step.ask)}</p>"
    text += f"<table>{rows}</tr></table>"
    return text + (f"<p><b>The rule.</b> {_text(asked.rule)}</p>" if asked.rule else "")


def _text(text: str) -> str:
    return words.safe(minus(text))


def _link(question: AskedQuestion) -> None:
    """A link to what the question was about."""
    step, files = question.step, address.page_files()
    name = step.bug or step.page
    if name in files:
        st.page_link(files[name], label=words.plain(question.title))
    else:
        st.markdown(words.plain(question.title))
