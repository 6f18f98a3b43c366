"""The script that Streamlit runs for every visit: navigation, style, the page."""

import streamlit as st

from gradebook.ui.parts import address, present, shell

shell.configure()
page = st.navigation(shell.navigation(), position="top")
st.html(shell.STYLE)
present.view()
address.elsewhere(page.url_path)
address.keep_room()
page.run()
present.leave()
