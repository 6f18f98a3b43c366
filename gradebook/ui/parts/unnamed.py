"""Batches without a name: what was learnt on one is tried on another.

After a solved challenge, and some bugs after a missed prediction, a variant of the bug
asks whether the engines differ, and where. After three and after five bugs a checkpoint
asks which bug is in a trainer, if any. Each batch is judged once, as a table; both
engines' numbers come with the answer.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from gradebook.analysis import quiz
from gradebook.bugs import BUGS
from gradebook.cases.scenario import Scenario, load, variants
from gradebook.cases.state import TEXTS, start, title
from gradebook.cases.table import Table
from gradebook.core.columns import COLUMNS, as_text, titled
from gradebook.core.formatting import minus, settled, signed
from gradebook.output.figures import NARROW, picture
from gradebook.output.panels import telling, token_panel
from gradebook.ui import keys
from gradebook.ui.parts import address, drafts, words
from gradebook.ui.parts.drafts import SKIPPED, Progress
from gradebook.ui.parts.widget import into_view, markup, table

LATER = 2
"""So many further bugs are revealed before a missed prediction comes back."""
FROM_A_BATCH = "This batch: do the engines differ? Where?"
OTHER_ROWS = "This is not the batch on the board above."
SAME_ROWS = (
    "These are the rows that the board above began with. Its settings and its trainer"
    " may be others."
)


# What is due


def missed(progress: Progress) -> list[str]:
    """The bugs whose consequence was predicted wrongly, in order."""
    wrong = []
    for name, guess in progress.guesses.items():
        if name in BUGS and guess.choice not in (
            SKIPPED,
            load(name).prediction.answer,
        ):
            wrong.append(name)
    return wrong


def seen(progress: Progress) -> tuple[str, ...]:
    """The cases whose numbers the learner knows."""
    return (*progress.guesses, *progress.unnamed)


def titles(bug: str) -> dict[str, str]:
    """The bug's cases by name -> what a menu calls them. A title gives the answer away,
    so a case has a number until it was judged."""
    progress, called = drafts.PROGRESS.get(), {bug: "The report"}
    for number, case in enumerate(variants(bug)[1:], 2):
        is_known = not progress.covered(case.name) or case.name in progress.unnamed
        called[case.name] = words.plain(case.title) if is_known else f"Batch {number}"
    return called


def came_back(progress: Progress, bug: str) -> bool:
    """Another batch of the bug was judged without its name."""
    return any(case.name in progress.unnamed for case in variants(bug))


def checkpoint_due(progress: Progress) -> int:
    """The number of bugs of the checkpoint that is due; 0 for none."""
    guessed = [name for name in progress.guesses if name in BUGS]
    for count in quiz.CHECKPOINTS:
        if len(guessed) >= count and _key(count) not in progress.unnamed:
            return count if quiz.checkpoint(tuple(guessed[:count])) else 0
    return 0


def comeback_due(progress: Progress) -> Scenario | None:
    """Another batch of a bug that was missed some bugs ago."""
    guessed = [name for name in progress.guesses if name in BUGS]
    for bug in missed(progress):
        later = len(guessed) - 1 - guessed.index(bug) >= LATER
        if later and not came_back(progress, bug):
            case = quiz.another(bug, seen(progress))
            if case is not None:
                return case
    return None


def _key(count: int) -> str:
    return f"checkpoint-{count}"


# What is shown


def transfer(bug: str, solved: bool, above: Table) -> None:
    """Once a challenge of the bug is solved: the same question of one more batch.
    `above` are the rows that the page's board began with."""
    progress, here = drafts.PROGRESS.get(), keys.UNNAMED.get()
    name = here.get(bug)
    if name is None and (not solved or came_back(progress, bug)):
        return
    case = load(name) if name else quiz.another(bug, seen(progress))
    if case is None:
        return
    if name is None:
        label = "Solved. Now one more batch: do the engines differ there?"
        open_it = partial(here.__setitem__, bug, case.name)
        st.button(label, key="transfer", on_click=open_it)
        return
    with st.container(border=True, key="unnamed"):
        _asked_where(case, above)
        into_view("unnamed", case.name)


def at_the_end(following: Callable[[], None], above: Table) -> None:
    """The checkpoint or the batch that is due before the next bug; `following` draws
    the way to that bug. `above` are the rows that the page's board began with."""
    progress, here = drafts.PROGRESS.get(), keys.UNNAMED.get()
    if "checkpoint" in here:
        with st.container(border=True, key="unnamed-end"):
            _asked_which(int(here["checkpoint"]), above)
            into_view("unnamed-end", f"checkpoint-{here['checkpoint']}")
        following()
    elif "again" in here:
        with st.container(border=True, key="unnamed-end"):
            _asked_where(load(here["again"]), above)
            into_view("unnamed-end", here["again"])
        following()
    elif count := checkpoint_due(progress):
        label = f"Checkpoint after {count} bugs: which is it, if any?"
        act = partial(here.__setitem__, "checkpoint", str(count))
        st.button(label, "checkpoint", type="primary", on_click=act)
    elif case := comeback_due(progress):
        label = "One batch more, of a bug that you missed"
        act = partial(here.__setitem__, "again", case.name)
        st.button(label, "again", type="primary", on_click=act)
    else:
        following()


def leave(bug: str) -> None:
    """Closes what was opened on the bug's page: the learner goes on."""
    for name in ("checkpoint", "again", bug):
        keys.UNNAMED.get().pop(name, None)


def _asked_where(case: Scenario, above: Table) -> None:
    progress, question = drafts.PROGRESS.get(), quiz.where(case)
    st.markdown(words.titled(FROM_A_BATCH, level=3))
    if case.name not in progress.unnamed:
        st.markdown(f"**What the faulty engine does:** {words.plain(case.mechanism)}")
    batch(case, above)
    if case.name in progress.unnamed:
        _answered(case, progress.unnamed[case.name], question)
        return

    def answer(choice: int) -> None:
        progress.unnamed[case.name] = choice == question.answer

    _choices(f"unnamed-{case.name}", question, answer)


def _asked_which(count: int, above: Table) -> None:
    progress, key = drafts.PROGRESS.get(), _key(count)
    guessed = [name for name in progress.guesses if name in BUGS]
    due = quiz.checkpoint(tuple(guessed[:count]))
    if due is None:
        return
    case, question = due
    st.markdown(
        words.titled(f"Checkpoint: which of the {count} bugs, if any?", level=3)
    )
    batch(case, above, guessed[:count])
    if key in progress.unnamed:
        _answered(case, progress.unnamed[key], question)
        return

    def answer(choice: int) -> None:
        progress.unnamed[key] = choice == question.answer

    _choices("checkpoint", question, answer)


def _choices(name: str, question: quiz.Question, pick: Callable[[int], None]) -> None:
    """The choices as a line of buttons. Two questions can be open on one page."""
    with st.container(horizontal=True, key=f"choices-{name}"):
        for number, text in enumerate(question.choices):
            key = f"{name}-{number}"
            st.button(words.plain(text), key, on_click=pick, args=(number,))


def batch(case: Scenario, above: Table, bugs: Sequence[str] = ()) -> None:
    """The batch as a table, whether it is the one of the board above, and the settings
    in which it is not the report's. If one of several bugs is asked for: the trainer's
    numbers, and the settings that act."""
    rows, settings = case.rows, case.settings
    st.markdown(SAME_ROWS if rows == above else OTHER_ROWS)
    head, body = [titled(name) for name in rows.columns], []
    cells = [_texts(name, rows[name]) for name in rows.columns]
    lead, names = "Other settings than the report's", [*settings]
    report = load(case.bug).settings
    if bugs:
        by_row = case.lines == "row"
        head.append("the trainer's advantage" if by_row else "the trainer's push")
        both = quiz.comparison(case)
        cells.append([_result(x) for x in quiz.trained_with(both, case).tolist()])
        lead, names = "Settings", quiz.acting(case, tuple(bugs))
    else:
        names = [name for name in names if settings[name] != report[name]]
    for row, line in enumerate(zip(*cells)):
        body.append([str(row), *line])
    table(["row", *head], body, heads=1, label="the batch")
    if names:
        shown = (_setting(name, settings[name]) for name in names)
        st.caption(words.plain(f"{lead}. {'; '.join(shown)}."))


def _setting(name: str, value: Any) -> str:
    """A setting in words: in a sentence if it has one, else by its title."""
    texts = TEXTS[name]
    if isinstance(value, bool) and "yes" in texts:
        return texts["yes" if value else "no"]
    if "said" in texts and value is not None:
        return texts["said"].format(_value(value))
    return f"{title(name)}: {_value(value)}"


def _value(value: Any) -> str:
    """A cell or a setting as text; a flag as yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return minus(as_text(value)) or "none"


def _texts(name: str, cells: Iterable[Any]) -> list[str]:
    """A column's cells as text, a mask as 110."""
    if COLUMNS[name].kind == "tokens":
        return ["".join("1" if bit else "0" for bit in mask) for mask in cells]
    return [*map(_value, cells)]


def _result(value: float | list[float]) -> str:
    values = value if isinstance(value, list) else [value]
    return minus(" ".join(signed(settled(x)) for x in values))


def _answered(case: Scenario, right: bool, question: quiz.Question) -> None:
    """Whether the answer was right, what it is, and both engines' numbers."""
    reply = "Right." if right else "Not quite."
    answer = question.choices[question.answer]
    st.markdown(
        f"**{reply} {words.plain(answer)}.** {words.plain(case.claim)}"
        f" {words.plain(case.prediction.why)}"
    )
    both = quiz.comparison(case)
    labels = None
    panel = telling(both, case.telltale.kind)
    prompts = [*case.rows["prompt"]]
    if case.lines != "row":
        panel, places = token_panel(both, case.lines)
        labels = [f"row {row}, token {token}" for row, token in places]
        prompts = [str(row) for row, _ in places]
    drawn = picture(panel, prompts, labels=labels, plot=NARROW)
    alt = words.safe(f"{panel.title} of both engines on this batch")
    frame = f'<div class="gb-unnamed" role="img" aria-label="{alt}">{drawn}</div>'
    markup(frame, key=f"unnamed-{case.name}")
    label = f"Open it on the board: {words.plain(case.title)}"
    if st.button(label, key=f"open-{case.name}", type="tertiary"):
        leave(case.bug)
        address.take(start(case), covered=False)
        st.switch_page(address.page_files()[case.bug])
