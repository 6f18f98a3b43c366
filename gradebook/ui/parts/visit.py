"""The script that Streamlit runs for every visit: navigation, style, the page."""

from contextlib import nullcontext

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.ui.parts import address, shell
from gradebook.ui.server import turn

# A page icon of its own asks no server. It is a file, since for an emoji Streamlit
# first reads the list of all emojis.
st.set_page_config(page_title="Gradebook", page_icon=shell.ICON, layout="wide")
page = st.navigation(shell.navigation(), position="top")
st.html(shell.STYLE)
if shell.presenting():
    st.html(shell.PRESENT_STYLE)
address.enter(page.url_path)
address.keep_room()
with turn() if page.url_path in BUGS else nullcontext():
    page.run()
if shell.presenting():
    shell.present_foot()
