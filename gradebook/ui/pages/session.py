"""The lead's page: a room, the hour as a plan, the handouts."""

import math
import time
from functools import partial
from typing import Any

import segno
import streamlit as st

from gradebook.cases.link import query_string
from gradebook.cases.scenario import load
from gradebook.classroom.after import read
from gradebook.classroom.plan import MINUTES, PlanStep, asked
from gradebook.classroom.room import LENGTH
from gradebook.classroom.store import MOST_SEATS, Room
from gradebook.core.formatting import minus
from gradebook.core.lazy_pandas import pd
from gradebook.output.handout import handout
from gradebook.ui import keys
from gradebook.ui.parts import words
from gradebook.ui.parts.address import bug_files, for_others, page_link, whole
from gradebook.ui.parts.widget import download
from gradebook.ui.rooms import after_page, bar, plans, seat
from gradebook.ui.rooms.news import news
from gradebook.ui.rooms.plans import notes


def session() -> None:
    st.title("Session")
    if after_class := st.query_params.get(after_page.PARAMETER):
        after_page.page(read(after_class))
        st.header("A session of your own", anchor=False)
    st.markdown(
        f"A session takes {MINUTES} minutes, or as many as you have. It works"
        " for a team at one screen and for a room of learners. Ask first, let"
        " everyone answer, then reveal. People remember what they predicted."
    )
    st.header("The room")
    if not after_class:  # who reads it stays where they are
        bar.follow("session")
    bar.problem()
    room = seat.here()
    if not seat.code() and not seat.cut_off():
        _door()
    elif room and seat.leads():
        _lead(room)
    else:
        waits = "The lead has not opened a bug yet. This page waits."
        bar.about("", "You are in it." if room and room.position else waits)
    if not seat.learning():
        st.header("The plan")
        plans.plans()
    if after_class:
        return
    st.header("Handouts")
    st.markdown(
        "One page for each bug, to print or to send: its claim, batch,"
        " picture, formula, code and rule. Each is one HTML file that"
        " works offline."
    )
    with st.container(horizontal=True):
        for bug in bug_files():
            title, file = words.plain(load(bug).title), f"gradebook-{bug}.html"
            download(title, file, partial(handout, bug))


def _door() -> None:
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown(
            f"**Learn.** Type the code of {LENGTH} characters that the lead shows."
        )
        with st.form("room-door", border=False, enter_to_submit=True):
            st.text_input("Code", key="room-code", max_chars=12)
            if st.form_submit_button("Join", key="room-join"):
                seat.join(seat.normal(keys.widget("room-code")))
                st.rerun()
    with right.container(border=True, height="stretch"):
        st.markdown(
            "**Lead.** Open a room, which has a short code. The server counts"
            " the learners' predictions without names, and deletes them with the"
            " room: when you close it, or a day after it was last used."
        )
        st.button("Open a room", key="room-open", on_click=seat.open_room)
        st.markdown("To lead a room on another device, open your own link there.")


def _lead(room: Room) -> None:
    link, warning = for_others(whole({seat.ROOM: f"{room.code}.{room.token}"}))
    notes_here = keys.LEAD_NOTES.get()
    if notes_here:
        _notes(room)
    with st.container(border=True, key="room-panel"):
        code, picture = st.columns([3, 1], vertical_alignment="center")
        with code:
            st.html(f'<div class="gb-code">{words.safe(room.code)}</div>')
            st.markdown("Learners scan the picture, open this link, or type the code:")
            st.code(link, language=None, wrap_lines=True)
            if warning:
                st.markdown(warning)
        drawn = segno.make(link, micro=False).svg_data_uri(scale=4, light="white")
        picture.html(f'<img alt="The link as a QR code" src="{drawn}">')
        if not notes_here:
            news(room)
        page_link("bug_or_not", "Play “Bug or not?” with the room")
        with st.expander("Settings of the room"):
            _settings(room)
        with st.expander("Results"):
            _results(room)
        with st.expander("Your notes on another device"):
            _own_link(room)
        with st.container(horizontal=True):
            reset = partial(seat.act, "reset")
            st.button("Reset for the next class", key="room-reset", on_click=reset)
            st.button(
                "Close the room and delete its votes",
                key="room-close",
                on_click=seat.close,
            )


def _notes(room: Room) -> None:
    """What the lead alone may read, about the question that the room is at, the way
    onward, and the votes. This page follows the other device."""
    step = asked(room.position.question) if room.position else None
    with st.container(border=True, key="room-notes"):
        st.markdown("**Your notes.** Learners do not see this page.")
        if step is None:
            st.markdown("They appear here when the other device opens a question.")
            news(room)
            return
        st.markdown(f"**{words.plain(step.title or step.ask)}**")
        number, steps = plans.number_of(step.question)
        with st.container(horizontal=True):
            bar.reveal(room, step.question)
            if number and number < len(steps):
                following = steps[number]
                label = f"Next: {words.plain(following.title)}"
                go = partial(_take_the_class, following)
                st.button(label, key=f"notes-next__at__{number}", on_click=go)
        news(room, step.question)
        for line in notes(step):
            st.markdown(line)


def _take_the_class(step: PlanStep) -> None:
    """Moves the room to the step: the other device and the followers go there."""
    page, link = plans.place(step)
    seat.act("move", page, step.question, query_string(link))


def _own_link(room: Room) -> None:
    st.markdown(
        "Open your own link on a phone or a laptop that nobody sees: it has your notes"
        " on each question, with the answers, and follows this browser. It leads, too."
        " Show the link to nobody."
    )
    if key := keys.LEAD_KEY.get():
        link, _ = for_others(whole({seat.ROOM: room.code, seat.LEAD: key}))
        st.code(link, language=None, wrap_lines=True)
    else:
        make = partial(seat.own_link, room.code)
        st.button("Make my own link", on_click=make, key="room-key")


def _settings(room: Room) -> None:
    left = max(0, math.ceil(((room.ends or 0.0) - time.time()) / 60))
    keys.show("room-locked", room.locked)
    keys.show("room-most", room.most or MOST_SEATS)
    keys.show("room-ends", left)

    def changed(field: str) -> None:
        value = keys.widget(f"room-{field}")
        if field == "ends":
            value = time.time() + 60 * value if value else None
        seat.act("change", **{field: value})

    label = "Locked: nobody new can join"
    st.toggle(label, key="room-locked", on_change=changed, args=("locked",))
    with st.container(horizontal=True):
        for label, least, most, field in (
            ("Learners at most", 1, MOST_SEATS, "most"),
            ("Timer, in minutes", 0, 600, "ends"),
        ):
            act: dict[str, Any] = {"on_change": changed, "args": (field,)}
            st.number_input(label, least, most, key=f"room-{field}", width=180, **act)


def results(room: Room) -> "pd.DataFrame":
    """Each choice of each question, in the order of their reveals: the question,
    the choice, its votes, "yes" if it is the answer, and the votes of a first vote if
    the question was asked twice."""
    rows = []
    for name in room.revealed:
        step, counts = asked(name), room.counts[name]
        if step is None:
            continue
        first = room.counts_before[name]
        for choice, text in enumerate(step.choices):
            right = "yes" if choice == step.answer else ""
            before = first[choice] if name in room.again else ""
            texts = minus(step.ask), minus(text)
            rows.append([*texts, counts[choice], right, before])
    columns = ["question", "choice", "votes", "answer", "first vote"]
    return pd.DataFrame(rows, columns=columns)


def _results(room: Room) -> None:
    frame = results(room)
    if frame.empty:
        st.markdown("Results appear here after each reveal.")
        return
    with pd.option_context("display.max_colwidth", None):
        # Show each question once, beside its choices.
        by_choice = frame.set_index(["question", "choice"])
        body = by_choice.to_html(border=0, index_names=False)
    for head in by_choice.index.names:  # pandas leaves their headings empty
        body = body.replace("<th></th>", f"<th>{head}</th>", 1)
    label = 'tabindex="0" role="region" aria-label="The class\'s predictions"'
    st.html(f'<div class="gb" {label}>{body}</div>')
    with st.container(horizontal=True):
        as_csv = partial(frame.to_csv, index=False)
        download("CSV", "gradebook-class.csv", as_csv)
    after_page.offered(room)
