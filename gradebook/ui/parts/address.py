"""The pages, and their addresses.

The address of a page is the link of what the page shows: a state, a game or a training
run. A page reads it once, when the visitor arrives, and writes it after every change,
in place, so the browser's Back leaves the page; undo is the board's.
"""

import secrets
import socket
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit

import streamlit as st

from gradebook.analysis.comparison import compared, furthest
from gradebook.bugs import BUGS
from gradebook.cases import scenario as scenarios
from gradebook.cases.link import VERSION, decode, encode, excess, query_string
from gradebook.cases.scenario import Scenario
from gradebook.cases.state import Opened, State, start
from gradebook.core import PROJECT
from gradebook.core.errors import GradebookError
from gradebook.ui import keys
from gradebook.ui.parts import drafts, words
from gradebook.ui.parts.drafts import PageDraft
from gradebook.ui.program import stub
from gradebook.ui.security import ROOM, seat_of

PRESENT = "present"
BY = "by"
"""Marks an address as written for one browser: see `mine`."""
OTHERS = (ROOM, PRESENT)
"""Parameters of an address that are not the page's own."""

write = st.components.v2.component("gradebook_address", js=stub("address"))


@cache
def titles() -> dict[str, str]:
    """Name -> title of the pages that pages/order.toml names, in its order."""
    return tomllib.loads((PROJECT / "pages" / "order.toml").read_text("utf-8"))


@cache
def page_files() -> dict[str, Path]:
    """Name -> page file, in the order of pages/order.toml. Pages that it does not name
    come last. Raises KeyError with a name that has no file."""
    files = {file.stem: file for file in sorted(PROJECT.glob("pages/*.py"))}
    return {name: files.pop(name) for name in titles()} | files


def bug_files() -> dict[str, Path]:
    return {name: file for name, file in page_files().items() if name in BUGS}


def next_bug(after: str = "") -> str | None:
    """The next bug that is not revealed yet; None if all are."""
    names = list(bug_files())
    start = names.index(after) + 1 if after in names else 0
    around = names[start:] + names[:start]
    return next(filter(drafts.covered, around), None)


def navigation() -> dict[str, list]:
    home, *others = page_files().items()
    pages: dict[str, list] = {"": [st.Page(home[1], title="Home", default=True)]}
    for name, file in others:
        page = st.Page(file, title=page_title(name), url_path=name)
        section = "The bugs" if name in BUGS else "The tools"
        pages.setdefault(section, []).append(page)
    return pages


def page_title(name: str) -> str:
    """The title in pages/order.toml; of a page that it does not name, the title of the
    bug's case, or the file's name."""
    # The bugs are named there, too: to read all their cases for the titles would delay
    # a started server's first page by 0.1 s (2026-11-28).
    if name in titles():
        return titles()[name]
    return scenarios.load(name).title if name in BUGS else name


def presenting() -> bool:
    """The address asks for the presenter view."""
    return st.query_params.get(PRESENT) == "1"


def carried() -> dict[str, str]:
    """The parameters that every link passes on: the presenter view."""
    return {PRESENT: "1"} if presenting() else {}


def page_link(page: str, label: str) -> None:
    """A link to the page as it comes."""
    st.page_link(page_files()[page], label=label, query_params=carried())


def enter(page: str) -> None:
    """Notes that the visitor is at the page, and left every other one."""
    if keys.ADDRESS.get().get("page") != page:
        keys.ADDRESS.put({"page": page, "unread": True})


def arrived() -> dict[str, str]:
    """The link that the visitor came with; empty without one, and once read."""
    if not keys.ADDRESS.get().pop("unread", False):
        return {}
    address = st.query_params.to_dict()
    return {name: text for name, text in address.items() if name not in OTHERS}


def mine() -> str:
    """The mark that an address was written for this browser; '' for a browser without a
    seat. With the mark a reload goes on with the learner's own edits. Whoever is sent
    the link gets a batch from elsewhere."""
    seat = seat_of(st.context.cookies)
    return sha256(f"address of {seat}".encode()).hexdigest()[:6] if seat else ""


def arrive(page: str) -> None:
    """Takes the link of a state that the visitor came with into the session."""
    if not (query := arrived()):
        return
    link, by_visitor = decode(query, default=page), query.get(BY, "") == mine() != ""
    name, problem, state = link.state.scenario.name, link.problem, link.state
    if scenarios.page_of(state.scenario) == page:
        is_edited = not state.same_batch(start(state.scenario))
        if is_edited and not by_visitor and page in BUGS:
            state = from_elsewhere(
                state, "This batch came with a link.", "row" in query
            )
        take(state, link.covered)
    else:
        problem = f"It belongs to another page, to the case {name!r}."
    keys.ADDRESS.get()["problem"] = problem


def unread_link() -> str:
    """The part of the visitor's link that could not be understood; '' if there is
    none."""
    return keys.ADDRESS.get().get("problem", "")


def unread() -> None:
    """Says which part of the link could not be understood."""
    if message := unread_link():
        st.warning(f"This link could not be read.  \n{words.as_typed(message)}")


def from_elsewhere(state: State, source: str, is_selected: bool = False) -> State:
    """The state as a batch that is not the case's own. The row on which the engines
    are furthest apart is selected, unless one was chosen. `source` says where it
    came from."""
    if not is_selected:
        try:
            row, token = furthest(compared(state))
            state = replace(state, row=row, token=token)
        except GradebookError:  # the board says why
            pass
    return replace(state, opened=Opened(source, state))


def open_batch(state: State, source: str) -> NoReturn:
    """Goes to the state's page, with it in the learner's own draft. `source` says where
    it came from."""
    page = scenarios.page_of(state.scenario)
    take(from_elsewhere(state, source), covered=page not in BUGS)
    keys.OPENED.put(source)
    st.switch_page(page_files()[page])


def take(state: State, covered: bool) -> PageDraft:
    """The learner's own draft of the state's case, with the state, on its page."""
    case = state.scenario
    keys.CASES.get()[scenarios.page_of(case)] = case.name
    draft = drafts.of(case)
    if state != draft.state or (state.opened is None) == draft.has_other_batch:
        draft.become(state)
        draft.page.guess = None
    if not covered:
        drafts.PROGRESS.get().answer(case.name, drafts.SKIPPED)
    return draft


def depart(page: str) -> dict[str, str]:
    """Writes the session's state into the address. The link of the state."""
    put(own_query(drafts.of(case(page)), mine()))
    return link_of(page)


def link_of(page: str) -> dict[str, str]:
    """The link of the session's state. Once that has changed, nothing more is said of
    the link that the visitor came with."""
    here, code = keys.ADDRESS.get(), encode(drafts.of(case(page)).state, covered=True)
    if here.setdefault("code", code) != code:
        here |= {"code": code, "problem": ""}
    return code


def own_query(draft: PageDraft[Scenario], mark: str) -> dict[str, str]:
    """The parameters that a page's address gets from the draft: none of a case as it
    came, and none if they are too long for a link. `mark` is `mine` of the browser."""
    page, code = scenarios.page_of(draft.scenario), encode(draft.state, covered=True)
    if code == encode(start(scenarios.case(page)), covered=True):
        return {}
    query = code | ({BY: mark} if mark and not draft.has_other_batch else {})
    return {} if excess(query) else query


def put(query: Mapping[str, str]) -> None:
    """Writes the page's own parameters into its address, none if they are too long for
    a link. The browser does it in place: Streamlit adds to its history."""
    if excess(query):
        query = {}
    # The browser writes it once for each pair of these. Skip the component until there
    # is something to write: the page appears sooner.
    address, here = st.query_params.to_dict(), keys.ADDRESS.get()
    others = {name: address[name] for name in OTHERS if name in address}
    arrival, due = query_string(address), query_string({**query, **others})
    if arrival != due or "written" in here:
        here["written"] = True
        write(key="write-address", data=[{"arrival": arrival, "query": due}])


def whole(query: Mapping[str, str]) -> str:
    """The page's full address with these parameters."""
    here = str(st.context.url or "").split("?")[0]
    return f"{here}?{query_string(query)}"


HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
"""Names by which every machine calls itself."""


def for_others(link: str) -> tuple[str, str]:
    """The link as other machines can open it, and a warning if none of them can."""
    parts = urlsplit(link)
    if parts.hostname not in HERE:
        return link, ""
    listens = st.get_option("server.address") or ""
    if listens in HERE and listens != "0.0.0.0":
        return link, (
            "Only this machine can open this link. Start the server with"
            " --server.address 0.0.0.0, so that others can."
        )
    if (host := own_address()) in HERE:
        return link, (
            "Only this machine can open this link, which has no address in a network."
        )
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"{host}{port}").geturl(), (
        f"Others reach this machine at {host}. If they do not, its firewall may refuse"
        " them, or it is in another network."
    )


def own_address() -> str:
    """This machine's address in its network, by which it would reach another one.
    Nothing is sent. 127.0.0.1 if it is in none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # an address for documentation
        except OSError:
            return "127.0.0.1"
        return str(asked.getsockname()[0])


def case(page: str) -> Scenario:
    return scenarios.case(keys.CASES.get().get(page, page))


AnyGame = TypeVar("AnyGame")


def game(
    key: keys.Key[AnyGame | None], read: Callable[[Mapping[str, str]], AnyGame]
) -> AnyGame:
    """The address's game, else the session's under the key, else a new one."""
    query, held = arrived(), key.get()
    if query or held is None:
        held = read(query)
        key.put(held)
    return held


def seed_of(query: Mapping[str, str]) -> str:
    """The link's seed, or a new one if it has none that is usable."""
    seed = query.get("seed", "")
    usable = seed.isascii() and seed.isalnum() and len(seed) <= 40
    return seed if usable else secrets.token_hex(4).upper()


def game_link(seed: str, **others: str) -> dict[str, str]:
    return {"v": VERSION, "seed": seed, **others}


def colleague(what: str, seed: str) -> None:
    st.markdown(f"{what} for a colleague, from the start:")
    st.code(whole(game_link(seed)), language=None, wrap_lines=True)
