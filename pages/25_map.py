"""Map: Home, whose map is the index of the bugs."""

import streamlit as st

from gradebook.ui.parts.address import page_files

st.switch_page(page_files()["home"])
