"""Does it matter? Two policies trained side by side, live."""

from __future__ import annotations

import streamlit as st

from gradebook.cases.scenario import load
from gradebook.training.effect import (
    LESS,
    MORE,
    SAME,
    question,
)
from gradebook.training.study import (
    OPTIMIZERS,
    SEEDS,
    studied,
    study,
)
from gradebook.ui.parts import address, game_link, live, words
from gradebook.ui.parts.desk import (
    Desk,
    default_run,
    desk,
    pool,
    query_of,
    read_link,
)
from gradebook.ui.parts.predict import SKIPPED, choices
from gradebook.ui.parts.widget import (
    choosing,
    picking,
    showing,
    whole_page,
)

PAGE = "consequences"
LEAD = (
    "A small policy is trained twice, with the same seeds and the same luck:"
    " once with the correct engine's advantages, once with the faulty one's."
    " The policies are tables and not language models. The direction of an"
    " effect carries over to a language model, and so does the setting at"
    " which it turns. Its size does not."
)


def consequences() -> None:
    """The whole page."""
    pool()  # its processes start while the learner reads and predicts
    mine = desk()
    _arrive(mine)
    st.title("Does it matter?")
    st.markdown(LEAD)
    address.unread(mine.problems)
    _bug(mine)
    st.markdown(words.plain(study(mine.run.bug).task))
    if mine.covered:
        _ask(mine)
    else:
        _switches(mine)
        live.live(mine)
        live.below(mine)
    game_link.depart(query_of(mine.run))


def _arrive(mine: Desk) -> None:
    """Takes a link into the session."""
    query = address.arrived(PAGE)
    if query is None:
        return
    run, mine.problems = read_link(query)
    if run != mine.run:
        mine.run = run
        mine.want(None)


def _bug(mine: Desk) -> None:
    titles = {bug: load(bug).title for bug in studied()}

    def pick(bug: str) -> None:
        mine.problems = ()
        mine.want(None)
        mine.run = default_run(bug)

    st.selectbox(
        "Bug",
        format_func=titles.__getitem__,
        **choosing("training-bug", list(titles), mine.run.bug, pick, whole_page),
    )


def _ask(mine: Desk) -> None:
    """The question, before anything faulty is trained."""
    one = study(mine.run.bug)
    names = load(mine.run.bug).engine_names
    asked = question(one, mine.run.value, names, one.report[0])
    kinds = (MORE, LESS, SAME)

    def answer(choice: int) -> None:
        kind = "" if choice == SKIPPED else kinds[choice]
        mine.guesses[mine.run.bug] = kind, mine.run
        mine.start()

    with st.container(key=f"predict-training-{mine.run.bug}"):
        st.markdown(f"**Predict before you look:** {words.plain(asked)}")
        choices(
            {
                f"training-choice-{kind}": said[:1].upper() + said[1:]
                for kind, said in zip(kinds, one.measured.choices)
            },
            answer,
            skip="skip-training",
        )


def _switches(mine: Desk) -> None:
    """The one slider, the optimizer and the number of seeds. Another
    setting starts at once."""
    slider, run = study(mine.run.bug).slider, mine.run
    left, middle, right = st.columns([2, 1, 1])
    with left:
        st.slider(
            slider.label,
            slider.least,
            slider.most,
            step=slider.step,
            format=_decimals(slider.step),
            **showing(
                f"training-value-{run.bug}",
                run.value,
                lambda value: mine.choose(value=slider.nearest(value)),
                after=whole_page,
            ),
        )
    with middle:
        st.segmented_control(
            "Optimizer",
            list(OPTIMIZERS),
            format_func=lambda name: OPTIMIZERS[name].title,
            required=True,
            **picking(
                "training-optimizer",
                run.optimizer,
                lambda name: mine.choose(optimizer=name),
                after=whole_page,
            ),
        )
    with right:
        st.segmented_control(
            "Seeds",
            list(SEEDS),
            required=True,
            **picking(
                "training-seeds",
                run.seeds,
                lambda count: mine.choose(seeds=count),
                after=whole_page,
            ),
        )
    third = study(run.bug).third
    if third:
        st.toggle(
            f"Third line: {third}",
            **showing(
                f"training-third-{run.bug}",
                run.third,
                lambda on: mine.choose(third=on),
                after=whole_page,
            ),
        )


def _decimals(step: float) -> str:
    """How the slider prints its value."""
    digits = len(f"{step:g}".partition(".")[2])
    return f"%.{digits}f"
