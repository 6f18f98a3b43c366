"""The address of a game's page is the link of the game, and that of the
training runs the link of the run.

The page reads the address when the visitor arrives, and writes it in place after
every change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import streamlit as st

from gradebook.cases.link import VERSION, excess, fits
from gradebook.classroom.codes import new_code
from gradebook.ui import keys
from gradebook.ui.parts import address, words

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
    query, kept = address.arrived(page), key.get()
    if query or kept is None:
        kept = read(query or {})
        key.put(kept)
    return kept


def depart(link: Mapping[str, str]) -> None:
    """Writes the game's link into the address; says where it is too long."""
    query = {"v": VERSION, **link}
    if not fits(query):
        st.markdown(words.plain(excess(query)))
    address.put(query)


def whole(link: Mapping[str, str]) -> str:
    """The link with this page's address in front of it, to be sent."""
    return address.whole({"v": VERSION, **link})
