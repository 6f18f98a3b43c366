"""The law on the batch in front of you, and challenges to try on it."""

from __future__ import annotations

import streamlit as st

from gradebook.analysis.challenges import apply_solution, judge
from gradebook.analysis.comparison import Comparison
from gradebook.analysis.laws import Broken, Held, Outcome, laws
from gradebook.analysis.shrink import shrink
from gradebook.bugs import Swap
from gradebook.cases.scenario import Challenge, load
from gradebook.core.errors import GradebookError
from gradebook.core.formatting import minus
from gradebook.engine.pipeline import CORRECT
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import Draft
from gradebook.ui.parts.sections import table


def law(bug: Swap, comparison: Comparison, evaluation: bool) -> None:
    """Each law in words, and what both engines make of it here."""
    if not laws(bug.name):
        return
    said = words.TRAINING_BATCH if evaluation else ""
    st.markdown(words.titled("The law", said))
    body = []
    for one in laws(bug.name):
        said = one.words + (" (disputed)" if one.disputed else "")
        cells = [said]
        for engine in (CORRECT, bug.engine):
            cells.append(_outcome(one.check(engine, comparison.batch)))
        body.append(cells)
    table(["what must hold", "correct", "faulty"], body)


def _outcome(found: Outcome) -> str:
    if isinstance(found, Held):
        return f"✓ holds. {minus(found.sentence)}"
    if isinstance(found, Broken):
        return f"✗ broken. {minus(found.sentence)}"
    return f"says nothing here. {found.reason}"


def challenges(draft: Draft, comparison: Comparison, stale: bool) -> None:
    """What to try, judged on the batch as it stands."""
    tasks = draft.scenario.challenges
    main = load(draft.scenario.bug)
    if not tasks and main.challenges:
        said = "The challenges start from the case “The report”."
        st.markdown(words.titled("Try it", said))
        return
    if not tasks:
        return
    said = (
        "Each starts from the unedited case: press Reset first. The checker"
        " looks at the batch as it stands above. A solution replaces it, and"
        " Undo brings yours back."
    )
    st.markdown(words.titled("Try it", said))
    for at, task in enumerate(tasks):
        with st.container(border=True, key=f"try-{draft.scenario.name}-{at}"):
            _challenge(draft, task, at, comparison, stale)


def solved(name: str) -> int:
    """How many challenges of the case this session has solved."""
    return sum(case == name for case, _ in _solved())


def _solved() -> set[tuple[str, int]]:
    """Case and place of each challenge that was solved."""
    return st.session_state.setdefault("solved", set())


def _challenge(
    draft: Draft,
    task: Challenge,
    at: int,
    comparison: Comparison,
    stale: bool,
) -> None:
    name = (draft.scenario.name, at)
    missing = "Mend the batch first."
    if not stale:
        verdict = judge(task, draft.state, comparison)
        missing = verdict.missing
        if verdict.solved:
            _solved().add(name)
    done = name in _solved()
    now = not missing
    count = len(draft.scenario.challenges)
    mark = "✓ solved" if done else f"{at + 1} of {count}"
    said = (
        f"**{words.plain(task.title)}** · {mark}  \n{words.plain(task.goal)}"
    )
    if now:
        said += "\n\n✓ The batch above solves it."
    elif draft.edited:
        said += f"\n\nNot yet: {words.plain(missing)}"
    st.markdown(said)
    if task.hint:
        st.html(words.folded("Hint", task.hint))
    st.button(
        "Show a solution",
        key=f"solve-{draft.scenario.name}-{at}",
        on_click=_solve,
        args=(draft, task),
    )


def _solve(draft: Draft, task: Challenge) -> None:
    draft.become(apply_solution(draft.origin, task.solution))


def shrinking(draft: Draft, bug: Swap) -> None:
    """A button that reduces the batch to the smallest that shows it."""
    said = (
        "Reduces the batch to the smallest one, with the roundest numbers,"
        " that still shows the bug in the same way. Undo brings yours back."
    )
    st.markdown(words.titled("Shrink it", said))
    key = f"shrunk-{draft.scenario.name}"
    if st.button("Shrink the batch", key=f"shrink-{draft.scenario.name}"):
        _shrink(draft, bug, key)
    state, told = st.session_state.get(key, (None, ()))
    if told and draft.state.same_batch(state):
        count = "1 step" if len(told) == 1 else f"{len(told)} steps"
        with st.expander(count):
            st.markdown("\n".join(f"1. {words.plain(s)}" for s in told))


def _shrink(draft: Draft, bug: Swap, key: str) -> None:
    sentences: list[str] = []
    state = draft.state
    try:
        with st.status("Shrinking", expanded=True) as status:
            for step in shrink(bug, draft.state):
                state = step.state
                sentences.append(step.sentence)
                said = f"Step {len(sentences)}: {step.sentence}"
                status.update(label=words.plain(said))
    except GradebookError as error:
        st.error(words.plain(words.place(error)))
        return
    if not sentences:
        st.markdown(
            "There is nothing to shrink: the batch does not show the bug, or"
            " is as small as it gets."
        )
        return
    st.session_state[key] = state, sentences
    draft.become(state)
    st.rerun()
