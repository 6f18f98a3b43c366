"""Starts the app."""

import streamlit as st

from gradebook.ui.server import VISIT, lifespan, middleware, routes

app = st.App(VISIT, lifespan=lifespan, routes=routes(), middleware=middleware())
