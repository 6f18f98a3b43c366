"""The script that Streamlit runs for every visit: navigation, style, the page."""

from contextlib import nullcontext

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.ui.parts import address, shell
from gradebook.ui.server import turn

shell.configure()
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
