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
    from contextlib import asynccontextmanager

    import streamlit as st
    from starlette.routing import Route

    async def program(request):
        """The board's program: files that a browser loads once."""
        from gradebook.ui.board.program import file

        return file(request.path_params["name"])

    async def card_picture(request):
        """A card's small picture, drawn when a browser asks for it."""
        from gradebook.ui.parts.thumbnail import file

        return file(request.path_params["name"])

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

    files = [
        Route("/board-program/{version}/{name}", program),
        Route("/card-pictures/{version}/{name}", card_picture),
    ]
    app = st.App(__file__, lifespan=lifespan, routes=files)
