"""A bug's page, made from its scenarios."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gradebook.analysis.challenges import apply_solution
from gradebook.bugs import BUGS
from gradebook.cases.link import query_string
from gradebook.cases.scenario import Scenario, load
from gradebook.cases.table import Table
from gradebook.training.transformer.experiments import experimented
from gradebook.ui import keys
from gradebook.ui.board import lesson as board_lesson
from gradebook.ui.board.component import below, board
from gradebook.ui.parts import (
    address,
    affected,
    controls,
    drafts,
    family,
    report,
    stages,
    unnamed,
    words,
)
from gradebook.ui.parts.address import bug_files, page_files
from gradebook.ui.parts.desk import DESK, PAGE, first_place, query_of
from gradebook.ui.parts.drafts import PageDraft, Progress
from gradebook.ui.parts.widget import shortcuts, showing
from gradebook.ui.rooms import bar as room
from gradebook.ui.rooms import seat
from gradebook.ui.turns import turn


def bug_page(name: str) -> None:
    address.arrive(name)
    room.follow(name)
    scenario, main = address.case(name), load(name)
    draft = drafts.of(scenario)
    room.bar(scenario)
    covered = drafts.covered(scenario.name)
    address.unread()
    with st.container(horizontal=True, key="title-line", vertical_alignment="bottom"):
        st.title(words.plain(main.title), anchor=False, width="content")
        st.html(f'<p class="gb-facts">{report.facts(scenario)}</p>', width="stretch")
        if not drafts.covered(main.name):
            _cases(draft)
        settings = st.container(width="content")
    lesson(draft)
    stage = st.container(key="stage")
    formulas = st.container() if covered else _story(draft)
    had_other_batch = draft.has_other_batch
    if not covered:
        report.opinion(scenario)
    rest(draft, (covered, had_other_batch), settings, stage, formulas)
    if not covered:
        _end(name, draft.origin.table)


def _cases(draft: PageDraft[Scenario]) -> None:
    scenario, titles = draft.scenario, unnamed.titles(draft.scenario.bug)
    shown = "another batch" if draft.has_other_batch else titles[scenario.name]

    def pick(name: str) -> None:
        keys.CASES.get()[scenario.bug] = name
        st.rerun()

    label, key = f"Case: {shown}", f"cases-{scenario.bug}"
    menu = st.popover(label, key=key, type="tertiary", on_change="rerun")
    if menu.open:
        menu.pills(
            "Case",
            list(titles),
            format_func=titles.__getitem__,
            required=True,
            label_visibility="collapsed",
            **showing(f"case-{scenario.bug}", scenario.name, pick, "default"),
        )


def _story(draft: PageDraft[Scenario]) -> DeltaGenerator:
    """What happened, beside the code. The place for the formulas."""
    scenario = draft.scenario
    left, right = st.columns([9, 10], gap="large")
    where = "this case's batch" if scenario.variant else "the report's batch"
    title = f"### What happened in {where}\n\n"
    parts = [(title, scenario.story), ("", scenario.lesson)]
    if draft.has_other_batch:
        parts = [("### What the faulty engine does\n\n", scenario.mechanism)]
    for head, text in parts:
        body = words.plain(text) if draft.has_other_batch else words.pointed(text)
        left.markdown(head + body, help=words.terms(text), unsafe_allow_html=True)
    with left:
        family.same_rule(scenario)
    with right:
        report.the_code(draft.swap, load(scenario.bug))
    return left.container()


@st.fragment(key="rest")
def rest(
    draft: PageDraft[Scenario], drawn: tuple[bool, bool], *places: DeltaGenerator
) -> None:
    """What a finished edit draws again, apart from the board: in the `places` of the
    settings, the opened stage and the formulas. Every element here costs each edit
    time; what edits do not change is outside. After an Undo of a batch that came
    from elsewhere, which the page was `drawn` with, the whole page."""
    name, (settings, stage, formulas) = draft.scenario.bug, places
    covered, had_other_batch = drawn
    with turn(), draft.lock:
        if draft.has_other_batch != had_other_batch:
            st.rerun()
        is_open = False
        if not covered:
            label, key = "Settings", f"settings-{name}"
            menu = settings.popover(label, key=key, type="tertiary", on_change="rerun")
            if is_open := bool(menu.open):
                with menu:
                    controls.switches(draft)
            with stage, below(draft, "opened-stage"):
                stages.opened(draft)
            if not draft.page.stage:
                with formulas:
                    stages.workings(draft)
            if not seat.code():
                solved = drafts.PROGRESS.get().solved.get(draft.scenario.name)
                unnamed.transfer(name, bool(solved), draft.origin.table)
            _more(draft)
        top = keys.OPENED.get()
        keys.OPENED.drop()
        acts = {
            "back": partial(stages.step, draft, -1),
            "on": partial(stages.step, draft, 1),
            "reveal": partial(room.space, draft.scenario),
        }
        shortcuts(draft, acts, top=top)
        link = query_string(address.link_of(name))
        room.move(name, draft.scenario.name, link, draft.page.stage)
        # The lead's batch goes to the room, and of a link that could not be read
        # nothing is said any more once the batch is edited.
        always = is_open or seat.leads() or bool(address.unread_link())
        shown, progress = _outside(draft, drafts.PROGRESS.get()), drafts.PROGRESS.get()
        draft.channel.is_behind = lambda: (
            always
            or bool(draft.page.stage or draft.page.opened)
            or _outside(draft, progress) != shown
        )


def _outside(draft: PageDraft[Scenario], progress: Progress) -> tuple[Any, ...]:
    """What the page shows of the draft outside the board: it tells whether a finished
    edit must run the page. Open parts, the formula and the address are not in it."""
    name, page = draft.scenario.name, draft.page
    is_solved = bool(progress.solved.get(name))
    return (
        draft.has_other_batch,
        progress.covered(name),
        is_solved,
        page.stage,
        page.opened,
    )


def _affected(scenario: Scenario) -> None:
    """Which trainers have the bug, and an exercise in finding it in code."""
    affected.affected(scenario)
    family.reading(scenario)


def _more(draft: PageDraft[Scenario]) -> None:
    """Parts that open in place, one at a time, and the way to the training runs."""
    parts: dict[str, tuple[str, Callable[[], None]]] = {
        "affected": ("Am I affected?", partial(_affected, draft.scenario)),
        "home": ("Take it home", partial(report.take_home, draft)),
        "deeper": ("Go deeper", partial(stages.deeper, draft)),
    }

    def turn(part: str) -> None:
        draft.page.opened = "" if draft.page.opened == part else part

    with st.container(
        horizontal=True, gap="medium", key="more", vertical_alignment="center"
    ):
        for part, (label, _) in parts.items():
            label += " ▾" * (draft.page.opened == part)
            key, turned = f"more-{part}", (part,)
            st.button(label, key, on_click=turn, args=turned, type="tertiary")
            if part == "affected" and (bug := draft.scenario.bug) in experimented():
                last, file = DESK.get().place, page_files()[PAGE]
                query = query_of(last if last.bug == bug else first_place(bug))
                st.page_link(file, label="Does it matter?", query_params=query)
    if draft.page.opened:
        with st.container(key="opened"):
            parts[draft.page.opened][1]()


@st.fragment(key="heart")
def lesson(draft: PageDraft[Scenario]) -> None:
    """The board of the draft. An answer draws the whole page again."""
    progress, name = drafts.PROGRESS.get(), draft.scenario.name
    draft.channel.acts = {
        "next": partial(_next_task, draft, progress),
        "solution": partial(_solve, draft, progress),
        "stage": partial(stages.choose, draft),
    }

    # What a message needs of the session: it comes outside of the session's run.
    learns, leads = seat.learning(), seat.leads()
    votes = learns or leads

    def answered(choice: int, place: float | None) -> None:
        choice, place = board_lesson.answered(draft, votes, choice, place)
        room.pick(draft.scenario, choice, place)
        st.rerun()

    code, me, mark = seat.code(), seat.SEAT.get(), address.mine()

    def note() -> None:
        """The lead's reveal, as the learner's answer; a challenge that is solved."""
        if learns and progress.covered(name):
            led = seat.rooms().known(code)  # an edit waits for no database
            if led and name in led.revealed:
                mine = led.seat(me)
                vote = mine.votes.get(name, drafts.SKIPPED)
                progress.answer(name, vote, mine.places.get(name))
        board_lesson.note_solved(draft, progress)

    def seen() -> dict[str, Any]:
        shown = board_lesson.lesson(draft, progress, votes, guessed=not leads)
        room.on_board(shown, name, code, leads)
        brought = _brought(draft, shown["covered"], mark)
        return shown | brought | {"progress": progress.text()}

    draft.channel.note = note
    with draft.lock:
        note()
    choices = board_lesson.choices_of(draft, votes)
    board(draft, seen, answered, choices)


def _next_task(
    draft: PageDraft[Scenario], progress: Progress, _: Mapping[str, Any]
) -> None:
    """The next challenge that is not solved, from the original batch."""
    count = len(draft.scenario.challenges)
    solved = progress.solved.get(draft.scenario.name, ())
    here = board_lesson.chosen(draft, progress)
    others = [(here + by) % count for by in range(1, count + 1)]
    unsolved = [task for task in others if task not in solved]
    draft.page.challenge = (unsolved or others)[0]
    draft.reset()


def _solve(
    draft: PageDraft[Scenario], progress: Progress, _: Mapping[str, Any]
) -> None:
    """Shows a solution. Each of its changes is an edit that can be undone."""
    name, task = draft.scenario.name, board_lesson.chosen(draft, progress)
    if task not in progress.solved.get(name, ()):
        progress.shown.setdefault(name, set()).add(task)
    state = draft.origin
    for change in draft.scenario.challenges[task].solution:
        state = apply_solution(state, [change])
        draft.become(state)


def _brought(draft: PageDraft[Scenario], covered: bool, mark: str) -> dict[str, Any]:
    """The parts around the board that come with the board's data: the page's address,
    and the formula once the answer is uncovered."""
    formula = {} if covered else {"formula": stages.formula(draft)}
    query = query_string(address.own_query(draft, mark))
    return formula | {"address": (query, address.OTHERS)}


def _end(here: str, rows: Table) -> None:
    """How many bugs are revealed, and what comes next. `rows` are those that the board
    began with."""
    done, following = drafts.PROGRESS.get().uncovered(), address.next_bug(here)
    stops = ""
    for name in bug_files():
        label = "here" if name == here else "next" if name == following else ""
        look = "done" if name in done else "open"
        stops += f'<i class="{look}"><span>{label}</span></i>'
    label = "Check your own run"
    if following is not None:
        label = f"Next bug: {words.plain(load(following).title)}"

    def go_on() -> None:
        if st.button(label, type="primary", key="next-bug"):
            unnamed.leave(here)
            st.switch_page(page_files()[following or "check"])

    with st.container(horizontal=True, key="the-end", vertical_alignment="center"):
        count = f"<b>{len(done)} of {len(BUGS)}</b>revealed"
        st.html(f'<div class="gb-count">{count}</div>', width="content")
        st.html(f'<div class="gb-line" aria-hidden="true">{stops}</div>')
        if seat.code():  # a room has its own order
            go_on()
    if not seat.code():
        with st.container(key="what-is-due"):
            unnamed.at_the_end(go_on, rows)
