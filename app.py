"""Gradebook's app: imported once to serve it, and run for every learner."""

import os

# Before torch is imported: on small batches its threads cost time.
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
            return await importlib.import_module(name).answer(request)

        return endpoint

    # Collecting garbage takes a quarter of the time of importing torch.
    gc.disable()

    def prepare(loop):
        """Imports what a page needs. No later collection looks at it."""
        try:
            import gradebook.ui.pages.bug  # noqa: F401
            from gradebook.ui.left import watch
        finally:
            gc.freeze()
            gc.enable()
        loop.call_soon_threadsafe(watch, loop)

    @asynccontextmanager
    async def lifespan(_server):
        """The server answers its first visitor while torch is imported."""
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, prepare, loop)
        yield {}

    routes = {
        "/board-edits/{epoch}": "gradebook.ui.board.component",
        "/board-program/{version}/{name}": "gradebook.ui.board.program",
        "/card-pictures/{version}/{name}": "gradebook.ui.parts.thumbnail",
        "/room-news/{room}": "gradebook.ui.rooms.news",
    }
    below = ("/" + st.get_option("server.baseUrlPath").strip("/")).rstrip("/")
    files = [
        Route(below + path, answered_by(name), methods=["GET", "POST"])
        for path, name in routes.items()
    ]
    app = st.App(__file__, lifespan=lifespan, routes=files)
