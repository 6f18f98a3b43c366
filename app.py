"""Gradebook's app: `streamlit run app.py`.

Streamlit imports this file to serve it, and runs it for every learner.
"""

import os

# Before torch: small batches gain nothing from threads, and thirty learners
# on a few cores lose by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if __name__ == "__main__":
    from gradebook.ui.shell import app as page

    page()
else:
    import importlib
    import sys
    import threading
    from contextlib import asynccontextmanager

    import streamlit as st

    def warm():
        """Imports the engine; the server often has its turn meanwhile."""
        usual = sys.getswitchinterval()
        sys.setswitchinterval(0.0005)
        importlib.import_module("gradebook.ui.warm").warm()
        sys.setswitchinterval(usual)

    @asynccontextmanager
    async def warmed(_server):
        """The engine is imported beside the server's start, not before."""
        threading.Thread(target=warm, daemon=True).start()
        yield {}

    app = st.App(__file__, lifespan=warmed)
