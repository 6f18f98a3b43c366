"""The address of a bug's page or of the sandbox is the link of its state.

The page reads the address when it is opened, and writes it after every
change. Each change is one entry of the browser's history, so Back is undo.
What changes nothing in the batch as it came, such as an answer, is written in
place, so Back leaves the page at once.
A page has the name that its address has: the bug's, or 'sandbox'.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import streamlit as st

from gradebook.cases import sandbox
from gradebook.cases.link import decode, encode, fits, in_words, query_string
from gradebook.cases.scenario import Scenario
from gradebook.core.errors import shown
from gradebook.ui import keys
from gradebook.ui.parts import drafts, predict, words
from gradebook.ui.parts.drafts import Draft

OTHERS = ("room", "present")
"""Parameters of an address that are not the page's state."""


def arrive(page: str) -> None:
    """Takes a link, or the browser's Back and Forward, into the session.

    The browser went back or forward where its address differs from the one
    that was written last. Where the run before also brought an edit, the
    browser only does not know the new address yet.
    """
    if _led(page):
        return  # the page shows the lead's batch, not the learner's
    here, came = _here(), _here().get("page") == page
    query = arrived(page, _standing(page))
    if not came:
        own = drafts.of(sandbox.case(page)).origin
        here |= {"code": encode(own, covered=True), "problems": ()}
    if query is not None and came and _too_far(page, query):
        _draft(page).undo()
    elif query is not None:
        _take(page, query)
    if own_query() == here["query"]:
        here |= {"known": True, "standing": _standing(page)}


def arrived(page: str, standing: Hashable) -> dict[str, str] | None:
    """The address, where the visitor came with it: by a link, or by Back or
    Forward. None where it is the one that was written last.

    standing  what an act of the visitor would have changed. Where it did
              change, the browser only does not know the new address yet.
    """
    here, query = _here(), own_query()
    if here.get("page") != page:
        here.clear()
        here |= {"page": page, "query": query}
        return query or None
    if query == here["query"] or standing != here.get("standing"):
        return None
    here["query"] = query
    return query or here.get("start", query)


def elsewhere(page: str) -> None:
    """Forgets the address of another page, so that a learner who comes back
    to that page by the navigation finds it as it was."""
    here = _here()
    if here.get("page") != page:
        here.clear()


def depart(page: str, edited: bool = False) -> None:
    """Writes the session's state into the address, where it changed.

    edited  a widget or the board caused this run. Then an address that
            differs from the one written last is out of date and is written
            again; otherwise the next run would take it for Back.
    """
    if _led(page):
        return
    here, query = _here(), own_query()
    covered = predict.covered(page)
    code = encode(_draft(page).state, covered)
    here["known"] |= query == here["query"]
    behind = edited and query != here["query"]
    own = drafts.of(sandbox.case(page)).origin
    if not query and not behind and code == encode(own, covered):
        here["code"] = code
        if not covered:
            in_place(page, code)
            here["query"] = code
    elif (code != here["code"] or behind) and fits(code):
        write(code)
        here |= {"query": code, "code": code, "problems": ()}
        here["known"] = False
    here["standing"] = _standing(page)


def write(query: Mapping[str, str]) -> None:
    """Puts the page's own parameters into the address, beside the others."""
    kept = {k: v for k, v in st.query_params.items() if k in OTHERS}
    if keys.ROOM.get():
        kept["room"] = keys.ROOM.get()
    st.query_params.from_dict({**query, **kept})


def in_place(page: str, parameters: Mapping[str, str]) -> None:
    """Adds parameters to the page's address without a new entry of the
    browser's history. The browser does it, since Streamlit only adds
    entries; the server hears of it with the next run."""
    # Another page's script is another text, and so runs again.
    script = IN_PLACE % (page, json.dumps(dict(parameters)))
    st.html(script, unsafe_allow_javascript=True)


IN_PLACE = """<script>{
  // Page %s.
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(%s))
    url.searchParams.set(name, value);
  history.replaceState(history.state, '', url);
}</script>"""


def own_query() -> dict[str, str]:
    """The page's own parameters, as they stand in the address."""
    shown = st.query_params.to_dict()
    return {k: v for k, v in shown.items() if k not in OTHERS}


def whole(query: Mapping[str, str]) -> str:
    """The page's address with these parameters, to be sent."""
    here = str(st.context.url or "").split("?")[0]
    return f"{here}?{query_string(query)}"


def problems() -> None:
    """Names what could not be understood in the page's link."""
    unread(_here().get("problems", ()))


def unread(said: Sequence[str]) -> None:
    """Says what of a link could not be understood."""
    if said:
        lines = "  \n".join(words.plain(text) for text in said)
        st.warning(f"Parts of this link could not be read.  \n{lines}")


def case(page: str) -> Scenario:
    """The case that stands on the page."""
    return sandbox.case(keys.CASES.get().get(page, page))


def _take(page: str, query: dict[str, str]) -> None:
    here = _here()
    found = decode(query, default=page) if query else None
    if found is None:
        here["problems"] = ()
        _stand(page, drafts.of(sandbox.case(page)).origin)
    elif sandbox.page_of(found.state.scenario) != page:
        other = found.state.scenario.name
        here["problems"] = (
            f"This link belongs to another page, to the case {other!r}."
            " This page is unchanged.",
            *found.problems,
            *_repeated(),
        )
        return
    else:
        here["problems"] = (*found.problems, *_repeated())
        _stand(page, found.state)
        if not found.covered and predict.covered(page):
            predict.answer(page, predict.SKIPPED)
    here["code"] = encode(_draft(page).state, predict.covered(page))


def _repeated() -> list[str]:
    """What the link gives more than once. The last value is taken."""
    said = []
    for name in own_query():
        values = st.query_params.get_all(name)
        if len(values) > 1:
            said.append(
                in_words(
                    name,
                    "given once",
                    f"given {len(values)} times",
                    f"{shown(values[-1])} is taken",
                )
            )
    return said


def _stand(page: str, state: Any) -> None:
    """Puts the state on the page. A state of the history is gone back to, so
    that Back is undo; any other is one more edit."""
    keys.CASES.get()[page] = state.scenario.name
    draft = drafts.of(state.scenario)
    near = [i for i, s in enumerate(draft.states) if s.same_batch(state)]
    if near:
        draft.go(min(near, key=lambda i: abs(i - draft.at)))
        draft.select(state.row)
    else:
        draft.become(state)


def _too_far(page: str, query: dict[str, str]) -> bool:
    """The browser has never come with the last edit's address, and went to
    one from before the edit before. So Back was pressed while the address
    was on its way, and only the last edit is meant."""
    draft = _draft(page)
    if _here()["known"] or not draft.at:
        return False
    return encode(draft.states[draft.at - 1], predict.covered(page)) != query


def _led(page: str) -> bool:
    """The learner follows the lead on this page."""
    return case(page).name in keys.FOLLOWED.get()


def _draft(page: str) -> Draft:
    return drafts.of(case(page))


def _standing(page: str) -> tuple[Any, ...]:
    """What an edit would change; states are equal where they are the same
    object."""
    draft = _draft(page)
    return (draft.scenario.name, draft.state, predict.covered(page))


def _here() -> dict[str, Any]:
    return keys.ADDRESS.get()
