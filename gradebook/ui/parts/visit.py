"""The script that Streamlit runs for every visit: navigation, style, the page."""

import streamlit as st

from gradebook.ui.parts import address, present, shell
from gradebook.ui.turns import turn

shell.configure()
page = st.navigation(shell.navigation(), position="top")
st.html(shell.STYLE)
present.view()
address.elsewhere(page.url_path)
address.keep_room()
with turn(page.url_path):
    page.run()
present.leave()
