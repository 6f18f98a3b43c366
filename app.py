"""Starts the app."""

import streamlit as st
from starlette.middleware import Middleware

from gradebook.ui.security import Security
from gradebook.ui.server import VISIT, lifespan, routes

before = [Middleware(Security)]
app = st.App(VISIT, lifespan=lifespan, routes=routes(), middleware=before)
