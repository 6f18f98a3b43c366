"""What an endpoint of the app answers."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor


def answered(answer: Coroutine):
    """The response, from a thread of its own: if tests in a browser ran
    before, this one has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, answer).result()
