"""Gradebook's app: `streamlit run app.py`.

Streamlit imports this file to serve it, and runs it for every learner.
"""

import os

# Before torch: small batches gain nothing from threads, and thirty learners
# on a few cores lose by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if __name__ == "__main__":
    from gradebook.ui.parts.shell import app as page

    page()
else:
    import gc
    import importlib
    import threading
    import time
    from contextlib import asynccontextmanager

    import streamlit as st
    from starlette.middleware import Middleware

    FIRST_NUMBER = 1
    """Seconds in which a page that waits for the engine says its first
    number, before pandas, which it does not need for it, is imported."""

    CHUNK = 2**20

    def imported():
        """Imports all that a page needs, and takes it out of garbage
        collection: Streamlit collects after every run of a page, and over
        torch's objects that costs ten times a small page, for everybody."""
        for module, then in (
            ("gradebook.ui.pages.bug", FIRST_NUMBER),
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

    class FilesAtOnce:
        """Streamlit's own files, read where they are sent.

        Starlette opens, reads and closes a file in other threads, each of
        which waits for the one that imports torch; a page has seventy. It
        leaves that to a server that knows ASGI's extension "pathsend",
        https://asgi.readthedocs.io/en/stable/extensions.html#path-send
        """

        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            async def answered(message):
                if message["type"] != "http.response.pathsend":
                    return await send(message)
                body = {"type": "http.response.body", "more_body": True}
                with open(message["path"], "rb") as file:
                    while chunk := file.read(CHUNK):
                        await send({**body, "body": chunk})
                await send({**body, "body": b"", "more_body": False})

            known = {
                "http.response.pathsend": {},
                **scope.get("extensions", {}),
            }
            await self.app({**scope, "extensions": known}, receive, answered)

    app = st.App(
        __file__, lifespan=beside, middleware=[Middleware(FilesAtOnce)]
    )
