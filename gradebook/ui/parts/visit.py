"""The script that Streamlit runs for every visit: navigation, style, the page."""

from contextlib import nullcontext

import streamlit as st

from gradebook.bugs import BUGS
from gradebook.ui.parts import address, shell
from gradebook.ui.server import turn

shell.configure()
page = st.navigation(shell.navigation(), position="top")
st.html(shell.STYLE)
shell.present()
address.elsewhere(page.url_path)
address.keep_room()
with turn() if page.url_path in BUGS else nullcontext():
    page.run()
shell.present_foot()
