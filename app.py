"""Gradebook's app. `streamlit run app.py` imports this file to serve it, and
runs it for every learner."""

import os

# Set before torch is imported: small batches gain nothing from threads, and
# thirty learners on a few cores lose time to them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if __name__ == "__main__":
    from gradebook.ui.parts.shell import app as page

    page()
else:
    import asyncio
    import gc
    import importlib
    from contextlib import asynccontextmanager

    import streamlit as st
    from starlette.routing import Route

    def answered_by(name):
        """An endpoint; its module is imported when somebody asks."""

        async def endpoint(request):
            return importlib.import_module(name).answer(request)

        return endpoint

    def prepare():
        """Imports what a page needs, and takes it out of garbage collection,
        which would visit all of torch's objects each time."""
        import gradebook.ui.pages.bug  # noqa: F401

        gc.collect()
        gc.freeze()

    def tidy(loop):
        """Frees once a minute what learners who left have used."""
        gc.collect()
        loop.call_later(60, tidy, loop)

    @asynccontextmanager
    async def lifespan(_server):
        """The server answers its first visitor while torch is imported."""
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, prepare)
        loop.call_later(60, tidy, loop)
        yield {}

    routes = {
        "/board-program/{version}/{name}": "gradebook.ui.board.program",
        "/card-pictures/{version}/{name}": "gradebook.ui.parts.thumbnail",
        "/room-news/{room}": "gradebook.ui.rooms.news",
    }
    base = st.get_option("server.baseUrlPath").strip("/")
    below = f"/{base}" if base else ""
    files = [Route(below + path, answered_by(n)) for path, n in routes.items()]
    app = st.App(__file__, lifespan=lifespan, routes=files)
