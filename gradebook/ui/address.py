"""The link is the page's whole state: taken in on arrival, and written
into the address after every change, so that the browser's Back undoes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gradebook.link import decode, encode, fits
from gradebook.scenario import Scenario, load
from gradebook.ui import drafts, predict, words
from gradebook.ui.drafts import Draft

OTHERS = ("room", "present")
"""Parameters of an address that are not the page's state."""


def arrive(bug: str) -> None:
    """Takes a link, or the browser's Back and Forward, into the session.

    An address that differs from the one written last was not changed by
    an edit, unless this very run brought one: then the browser is merely
    behind.
    """
    here = _here()
    query = _query()
    if here.get("bug") != bug:
        fresh = encode(drafts.of(load(bug)).origin, covered=True)
        here.clear()
        here |= {"bug": bug, "query": query, "code": fresh, "problems": ()}
        if query:
            _take(bug, query)
    elif query != here["query"] and _standing(bug) == here["standing"]:
        here["query"] = query
        _take(bug, query)


def depart(bug: str) -> None:
    """Writes the session's state into the address, where it changed."""
    here = _here()
    draft = _draft(bug)
    code = encode(draft.state, predict.covered(bug))
    if code != here["code"] and fits(code):
        kept = {k: v for k, v in st.query_params.items() if k in OTHERS}
        st.query_params.from_dict({**code, **kept})
        here |= {"query": code, "code": code, "problems": ()}
    here["standing"] = _standing(bug)


def problems() -> None:
    """What the link said that was not understood."""
    said = _here().get("problems", ())
    if said:
        lines = "  \n".join(words.plain(text) for text in said)
        st.warning(f"The link is not understood in full.  \n{lines}")


def case(bug: str) -> Scenario:
    """The case of the bug that stands on the page."""
    cases = st.session_state.setdefault("cases", {})
    return load(cases.get(bug, bug))


def _take(bug: str, query: dict[str, str]) -> None:
    here = _here()
    found = decode(query, default=bug) if query else None
    if found is None:
        _stand(bug, drafts.of(load(bug)).origin)
    elif found.state.scenario.bug != bug:
        other = found.state.scenario.name
        here["problems"] = (
            f"The link is of {other!r}, which is another page's case; this"
            " page stands as it was.",
            *found.problems,
        )
        return
    else:
        here["problems"] = found.problems
        _stand(bug, found.state)
        if not found.covered and predict.covered(bug):
            predict.answer(bug, predict.SKIPPED)
    here["code"] = encode(_draft(bug).state, predict.covered(bug))


def _stand(bug: str, state: Any) -> None:
    """The state on the page: by the history where it holds it, so that
    Back is an undo, else as one more edit."""
    st.session_state.setdefault("cases", {})[bug] = state.scenario.name
    draft = drafts.of(state.scenario)
    near = [i for i, s in enumerate(draft.states) if s.same_batch(state)]
    if near:
        draft.go(min(near, key=lambda i: abs(i - draft.at)))
        draft.select(state.row)
    else:
        draft.become(state)


def _draft(bug: str) -> Draft:
    return drafts.of(case(bug))


def _standing(bug: str) -> tuple[Any, ...]:
    """What an edit would change. Compared by identity of the state."""
    draft = _draft(bug)
    return (draft.scenario.name, id(draft.state), predict.covered(bug))


def _query() -> dict[str, str]:
    shown = st.query_params.to_dict()
    return {k: v for k, v in shown.items() if k not in OTHERS}


def _here() -> dict[str, Any]:
    return st.session_state.setdefault("address", {})
