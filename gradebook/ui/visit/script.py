"""The script that Streamlit runs for every visit: navigation, style, the page."""

from contextlib import nullcontext
from pathlib import Path

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.ui.parts import address
from gradebook.ui.rooms import seat
from gradebook.ui.turns import turn

PARTS = Path(__file__).parents[1] / "parts"
# A page icon of its own asks no server. It is a file, since for an emoji Streamlit
# first reads the list of all emojis.
icon = PARTS / "icon.svg"
st.set_page_config(page_title="Gradebook", page_icon=icon, layout="wide")
page = st.navigation(address.navigation(), position="top")
st.html(PARTS / "style.css")
if address.presenting():
    st.html(PARTS / "present.css")
address.enter(page.url_path)
if page.url_path in BUGS:
    seat.here()  # a database that is slow keeps no other page waiting
with turn() if page.url_path in BUGS else nullcontext():
    page.run()
if address.presenting():

    def leave() -> None:
        st.query_params.pop(address.PRESENT, None)

    with st.container(horizontal=True, vertical_alignment="center", key="present-foot"):
        st.markdown("← and → change the stage, space reveals.")
        label = "Leave the presenter view"
        st.button(label, key="present-leave", on_click=leave, type="tertiary")
