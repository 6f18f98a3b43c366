"""Try it: one challenge at a time, at the board it is about."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.attempt import allowed
from gradebook.analysis.challenges import apply_solution, judge
from gradebook.analysis.shrink import shrink
from gradebook.cases.challenge import (
    AddRow,
    Cell,
    Challenge,
    Change,
    Order,
    Setting,
)
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import player, words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.player import Play
from gradebook.ui.parts.widget import button


def challenge(draft: Draft) -> None:
    """The current challenge of the case, judged on the batch as it
    stands."""
    tasks = draft.scenario.challenges
    if not tasks:
        return
    at = draft.challenge
    task = tasks[at]
    missing = "Correct the cells that cannot be read first."
    if not draft.faults:
        verdict = judge(task, draft.state, draft.comparison)
        missing = verdict.missing
        if verdict.solved:
            keys.SOLVED.get().add((draft.scenario.name, at))
    with st.container(key="try"):
        st.markdown(_task(draft, task, at))
        with st.container(key="try-status"):
            st.markdown(_status(draft, missing))
        with st.container(horizontal=True, gap="xsmall", key="try-buttons"):
            _buttons(draft, task, at)
        player.player(draft)


def solved(name: str) -> int:
    """How many challenges of the case this session has solved."""
    return sum(case == name for case, _ in keys.SOLVED.get())


def _task(draft: Draft, task: Challenge, at: int) -> str:
    """The challenge, and what may be edited."""
    count = len(draft.scenario.challenges)
    marks = "\u00a0".join(
        "✓" if (draft.scenario.name, i) in keys.SOLVED.get() else "○"
        for i in range(count)
    )
    said = (
        f"**Try it, {at + 1} of {count}: {words.plain(task.title)}** {marks}"
        f"  \n{words.plain(task.goal)}"
    )
    if task.edits is not None:
        said += f"  \n{words.plain(allowed(task.edits))}"
    return said


def _status(draft: Draft, missing: str) -> str:
    """What is still missing. It always stands there: a line that came with
    the first edit would move the board under the hand."""
    if not missing:
        return "**✓ Solved.** This batch meets the goal."
    if draft.edited:
        return f"**Not yet.** {words.plain(missing)}"
    return "**Not yet.** Nothing is edited."


def needs_settings(draft: Draft) -> bool:
    """The current challenge is about settings."""
    tasks = draft.scenario.challenges
    wanted = tasks[draft.challenge].edits if tasks else None
    return bool(wanted and wanted.settings)


def _buttons(draft: Draft, task: Challenge, at: int) -> None:
    name, count = draft.scenario.name, len(draft.scenario.challenges)
    button(
        "Reset",
        f"try-reset-{name}",
        draft.reset,
        disabled=not draft.edited,
        help="Every challenge starts from the original batch.",
    )
    if count > 1:
        number = (at + 1) % count
        button("Next challenge", f"try-next-{name}", _show, draft, number)
    if task.hint:
        with st.popover("Hint"):
            st.markdown(words.plain(task.hint))
    button(
        "Show a solution",
        f"solve-{name}-{at}",
        _solve,
        draft,
        task,
        help="Plays it on the board, one edit at a time. Undo brings your batch back.",
    )


def _show(draft: Draft, at: int) -> None:
    draft.challenge = at
    draft.reset()


def _solve(draft: Draft, task: Challenge) -> None:
    """Plays the solution from the case as it came."""
    state, steps = draft.origin, []
    for change in task.solution:
        state = apply_solution(state, [change])
        steps.append((_change(change), state))
    player.start(draft, Play("The solution", steps))


def _change(change: Change) -> str:
    """One edit of a solution, in words."""
    if isinstance(change, Setting):
        return f"Set {change.setting} to {_typed(change.value)}."
    if isinstance(change, AddRow):
        return "Add a row at the end."
    if isinstance(change, Order):
        order = ", ".join(map(str, change.order))
        return f"Put the rows in the order {order}."
    if isinstance(change, Cell):
        value = _typed(change.value)
        return f"Set {change.column} of row {change.row} to {value}."
    return f"Remove row {change.remove_row}."


def _typed(value: object) -> str:
    """A value as a person types it; a mask as 1 1 0."""
    if isinstance(value, (list, tuple)):
        return " ".join(f"{number:g}" for number in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).removesuffix(".0")


def shrinking(draft: Draft) -> None:
    """A button that reduces the batch to the smallest that shows it."""
    st.markdown(
        "Reduces the batch to the smallest one, with the roundest numbers,"
        " that still shows the bug in the same way, and plays the reduction"
        " on the board. Undo brings yours back."
    )
    if st.button("Shrink the batch", key=f"shrink-{draft.scenario.name}"):
        _shrink(draft)


def _shrink(draft: Draft) -> None:
    steps = []
    try:
        with st.status("Shrinking", expanded=True) as status:
            for found in shrink(draft.state):
                steps.append((found.sentence, found.state))
                said = f"Step {len(steps)}: {found.sentence}"
                status.update(label=words.plain(said))
    except GradebookError as error:
        st.error(words.plain(words.place(error)))
        return
    if not steps:
        st.markdown(
            "There is nothing to shrink: the batch does not show the bug, or"
            " is already as small as it gets."
        )
        return
    player.start(draft, Play("Shrunk", steps))
    st.rerun()
