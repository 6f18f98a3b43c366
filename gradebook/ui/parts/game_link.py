"""The address of a game's page is the link of the game, and that of the
training runs the link of the run.

The page reads the address when it is opened and after the browser's Back or
Forward, and writes it after every change. What the page begins with is
written in place, so Back leaves the page at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Mapping
from typing import Protocol, TypeVar

import streamlit as st

from gradebook.cases.link import VERSION, excess, fits
from gradebook.classroom.room import ALPHABET
from gradebook.ui import keys
from gradebook.ui.parts import address, words


class Standing(Protocol):
    """A game says what an act of the visitor changes."""

    @property
    def standing(self) -> Hashable: ...


Game = TypeVar("Game", bound=Standing)

SEED = 8
"""Characters of a seed."""
LONGEST = 40


def new_seed() -> str:
    """The seed of a new game."""
    return "".join(secrets.choice(ALPHABET) for _ in range(SEED))


def seed_of(query: Mapping[str, str]) -> str:
    """The link's seed, or a new one where it has none that is usable."""
    found = query.get("seed", "")
    usable = found.isascii() and found.isalnum() and len(found) <= LONGEST
    return found if usable else new_seed()


def game(
    page: str,
    key: keys.Key[Game | None],
    read: Callable[[dict[str, str]], Game],
    new: Callable[[str], Game],
) -> Game:
    """The session's game under the key, or the one that the address
    describes; a new one with a seed of its own where there is neither."""
    found = key.get()
    standing = None if found is None else found.standing
    query = address.arrived(page, standing)
    if query is not None:
        found = read(query)
    elif found is None:
        found = new(new_seed())
    key.put(found)
    return found


def depart(page: str, link: Mapping[str, str], standing: Hashable) -> None:
    """Writes the game's link into the address; says where it is too long."""
    here, query = keys.ADDRESS.get(), {"v": VERSION, **link}
    start = here.setdefault("start", query)
    if not fits(query):
        st.markdown(words.plain(excess(query)))
    elif query == start and not address.own_query():
        address.in_place(page, query)
        here["query"] = query
    elif query != address.own_query():
        address.write(query)
        here["query"] = query
    here["standing"] = standing


def whole(link: Mapping[str, str]) -> str:
    """The link with this page's address in front of it, to be sent."""
    return address.whole({"v": VERSION, **link})
