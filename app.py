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
    import gc
    import importlib
    import threading
    import time
    from contextlib import asynccontextmanager

    import streamlit as st

    FIRST_NUMBER = 1
    """Seconds in which a page that waits for the engine says its first
    number, before pandas, which it does not need for it, is imported."""

    def imported():
        """Imports all that a page needs, and takes it out of garbage
        collection: Streamlit collects after every run of a page, and over
        torch's objects that costs ten times a small page, for everybody."""
        for module, then in (
            ("gradebook.ui.bug_page", FIRST_NUMBER),
            ("pandas", 0),
        ):
            gc.disable()
            try:
                importlib.import_module(module)
                gc.freeze()
            finally:
                gc.enable()
            time.sleep(then)

    @asynccontextmanager
    async def beside(_server):
        """The engine is imported beside the server's start, not before."""
        threading.Thread(target=imported, daemon=True).start()
        yield {}

    app = st.App(__file__, lifespan=beside)
