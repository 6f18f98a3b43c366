"""The script that Streamlit runs for every visit: navigation, style, the page."""

from contextlib import nullcontext

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.ui.parts import address, shell
from gradebook.ui.server import TURNS

shell.configure()
page = st.navigation(shell.navigation(), position="top")
st.html(shell.STYLE)
queue = st.empty()
shell.present()
address.elsewhere(page.url_path)
address.keep_room()


def waits(before: int) -> None:
    """Says that the page waits for its turn."""
    pages = "page is" if before == 1 else "pages are"
    text = f"The server is busy: {before} {pages} before yours."
    queue.html(f'<p class="gb-queue" role="status">{text}</p>')


with TURNS.turn(waits) if page.url_path in BUGS else nullcontext():
    queue.empty()
    page.run()
shell.present_foot()
