"""The settings of a case as widgets. A change acts at once."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from gradebook.cases import edits
from gradebook.cases.state import TEXTS, title
from gradebook.core.columns import as_text
from gradebook.core.formatting import minus
from gradebook.core.settings import CHOICES, ESTIMATORS, FLAGS, OF_ESTIMATOR
from gradebook.ui.parts import words
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.parts.widget import choosing, showing

CUSTOM = "custom"


def switches(draft: PageDraft) -> None:
    """Every control of the case, and the settings without a control that a link
    changed."""
    names, now = draft.scenario.controls, draft.state.settings
    settings(draft, names)
    fields = {*names, *(OF_ESTIMATOR if "estimator" in names else ())}
    unseen = [n for n in changed(draft) if n not in fields]
    if unseen:
        text = ", ".join(f"{title(name)} {as_text(now[name])}" for name in unseen)
        st.markdown(f"Changed by the link, without a field here: {words.plain(text)}.")


def settings(draft: PageDraft, names: Sequence[str], across: int = 3) -> None:
    """One field per setting in `names`, at most `across` in a line."""
    lines = -(-len(names) // across)
    for line in range(lines):
        parts = st.columns(-(-len(names) // lines), vertical_alignment="bottom")
        for part, name in zip(parts, names[line * len(parts) :]):
            with part:
                _widget(draft, name)


def changed(draft: PageDraft) -> list[str]:
    now, origin = draft.state.settings, draft.origin.settings
    return [name for name in now if now[name] != origin[name]]


def _widget(draft: PageDraft, name: str) -> None:
    case, now = draft.scenario.name, draft.state.settings
    if name == "padded_width":
        width, longest = draft.state.table.width, draft.state.table.used_width
        st.number_input(
            "Padded width",
            min_value=longest,
            max_value=max(longest + 4, width),
            help="Tokens in a row. One more token of padding changes no rollout.",
            **showing(f"width-{case}", width, partial(draft.do, edits.set_width)),
        )
        return
    key, take = f"set-{name}-{case}", partial(draft.do, edits.set_setting, name)
    heading, about = TEXTS[name]["title"], TEXTS[name]["help"]
    typed, why = draft.refused.get(name, ("", ""))

    def choose(name: str) -> None:
        draft.page.estimator = name
        chosen = draft.scenario.settings if name == CUSTOM else ESTIMATORS[name]
        changes = {field: chosen[field] for field in OF_ESTIMATOR}
        draft.edit(settings=replace(now, **changes))

    if name == "estimator":
        arguments = choosing(key, (*ESTIMATORS, CUSTOM), estimator(draft), choose)
        st.selectbox(heading, help=about, **arguments)
    elif name in CHOICES:
        arguments = choosing(key, CHOICES[name], now[name], take)
        st.selectbox(heading, help=about, **arguments)
    elif name in FLAGS:
        st.toggle(heading, help=about, **showing(key, now[name], take))
    else:
        text = typed if why else minus(as_text(now[name]))
        st.text_input(heading, help=about, **showing(key, text, take))
    if why:
        st.markdown(words.as_typed(why))


def estimator(draft: PageDraft) -> str:
    """The named estimator that has the draft's settings, or 'custom'."""
    now = draft.state.settings
    fitting = [
        name
        for name, settings in ESTIMATORS.items()
        if all(settings[field] == now[field] for field in OF_ESTIMATOR)
    ]
    chosen = draft.page.estimator
    return chosen if chosen in fitting else (*fitting, CUSTOM)[0]
