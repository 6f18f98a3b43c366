"""The address of a bug's page or of the sandbox is the link of its state.

A page reads its address once, when the visitor arrives at it, and writes it
after every change. It is written in place, so the browser's Back leaves the
page; undo is the board's.
A page has the name that its address has: the bug's, or 'sandbox'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import streamlit as st

from gradebook.cases import scenario as scenarios
from gradebook.cases.link import VERSION, decode, encode, excess, fits, query_string
from gradebook.cases.scenario import Scenario
from gradebook.classroom.codes import new_code
from gradebook.ui import keys
from gradebook.ui.board.program import stub
from gradebook.ui.parts import drafts, predict, words

OTHERS = ("room", "present")
"""Parameters of an address that are not the page's state."""

write = st.components.v2.component("gradebook_address", js=stub("address"))


def arrive(page: str) -> None:
    """Takes the link that the visitor came with into the session."""
    query = None if _led(page) else arrived(page)
    if query:
        _take(page, query)


def arrived(page: str) -> dict[str, str] | None:
    """The link that the visitor came to the page with; None where there is none,
    and once the page was drawn."""
    here = keys.ADDRESS.get()
    if here.get("page") == page:
        return None
    here.clear()
    here["page"] = page
    return own_query() or None


def elsewhere(page: str) -> None:
    """Notes that the visitor left every other page."""
    here = keys.ADDRESS.get()
    if here.get("page") != page:
        here.clear()


def depart(page: str) -> None:
    """Writes the session's state into the address, unless it is the page's
    case as it came."""
    if _led(page):
        return
    here, draft = keys.ADDRESS.get(), drafts.of(case(page))
    code = encode(draft.state, covered=True)
    if here.setdefault("code", code) != code:
        here |= {"code": code, "problems": ()}
    as_it_came = encode(drafts.of(scenarios.case(page)).origin, covered=True)
    put({} if code == as_it_came else code)


def put(query: Mapping[str, str]) -> None:
    """Writes the page's own parameters into its address, in place. The browser
    does it, since Streamlit only adds entries to the browser's history; the
    server hears of it with the next run. A query that is too long for a link
    leaves the address as it is."""
    if fits(query):
        _in_place({**query, **_others()})


def keep_room() -> None:
    """Writes the room back into an address that the navigation took it from."""
    if keys.ROOM.get() and "room" not in st.query_params:
        repeated = {key: st.query_params.get_all(key) for key in own_query()}
        _in_place({**repeated, **_others()}, "write-address-room")


def _others() -> dict[str, str]:
    others = {k: v for k, v in st.query_params.items() if k in OTHERS}
    room = keys.ROOM.get()
    return {**others, "room": room} if room else others


def _in_place(query: Mapping[str, str | list[str]], key: str = "write-address") -> None:
    # The browser writes it once for each pair of these, and not again in a run
    # that has nothing to say about the address. What has nothing to write from
    # the start is not there: the page is drawn sooner.
    came, due = query_string(st.query_params.to_dict()), query_string(query)
    here = keys.ADDRESS.get()
    if came != due or key in here:
        here[key] = True
        write(key=key, data=[{"came": came, "query": due}])


def own_query() -> dict[str, str]:
    """The page's own parameters, as they stand in the address."""
    return {k: v for k, v in st.query_params.to_dict().items() if k not in OTHERS}


def whole(query: Mapping[str, str]) -> str:
    """The page's address with these parameters, to be sent."""
    here = str(st.context.url or "").split("?")[0]
    return f"{here}?{query_string(query)}"


def problems() -> None:
    """Names what could not be understood in the page's link."""
    unread(keys.ADDRESS.get().get("problems", ()))


def unread(problems: Sequence[str]) -> None:
    """Says what of a link could not be understood."""
    if problems:
        lines = "  \n".join(words.plain(text) for text in problems)
        st.warning(f"Parts of this link could not be read.  \n{lines}")


def case(page: str) -> Scenario:
    """The case that stands on the page."""
    return scenarios.case(keys.CASES.get().get(page, page))


def _take(page: str, query: dict[str, str]) -> None:
    link = decode(query, default=page)
    scenario = link.state.scenario
    problems = [*link.problems]
    if scenarios.page_of(scenario) != page:
        problems = [
            f"This link belongs to another page, to the case {scenario.name!r}."
            " This page is unchanged.",
            *problems,
        ]
    else:
        keys.CASES.get()[page] = scenario.name
        draft = drafts.of(scenario)
        if not link.state.same(draft.state):
            draft.become(link.state)
        if not link.covered and predict.covered(scenario.name):
            predict.progress().answer(scenario.name, predict.SKIPPED)
    keys.ADDRESS.get()["problems"] = problems


def _led(page: str) -> bool:
    """The learner follows the lead on this page."""
    return case(page).name in keys.FOLLOWED.get()


# The address of a game's page is the link of the game, and that of the training runs
# the link of the run


Game = TypeVar("Game")

SEED = 8
"""Characters of a seed."""
LONGEST = 40


def new_seed() -> str:
    """The seed of a new game."""
    return new_code(SEED)


def seed_of(query: Mapping[str, str]) -> str:
    """The link's seed, or a new one where it has none that is usable."""
    found = query.get("seed", "")
    usable = found.isascii() and found.isalnum() and len(found) <= LONGEST
    return found if usable else new_seed()


def game(
    page: str,
    key: keys.Key[Game | None],
    read: Callable[[Mapping[str, str]], Game],
) -> Game:
    """The session's game under the key, or the one that the address
    describes; a new one with a seed of its own where there is neither."""
    query, kept = arrived(page), key.get()
    if query or kept is None:
        kept = read(query or {})
        key.put(kept)
    return kept


def put_link(link: Mapping[str, str]) -> None:
    """Writes the game's link into the address; says where it is too long."""
    query = {"v": VERSION, **link}
    if not fits(query):
        st.markdown(words.plain(excess(query)))
    put(query)


def whole_link(link: Mapping[str, str]) -> str:
    """The link with this page's address in front of it, to be sent."""
    return whole({"v": VERSION, **link})
