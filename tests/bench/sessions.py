"""Learners without a browser: real Streamlit sessions over websockets.

Each joins a bug's page, then types another reward into the selected row's
field about every five seconds, as the page's own front end would send it.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

THINK = 5.0
"""Seconds between two edits of a learner, give or take half."""


class Learner:
    """One session."""

    def __init__(self, socket, path: str) -> None:
        self.socket = socket
        parts = urlsplit(path)
        self.page, self.query, self.hash = parts.path, parts.query, ""
        self.fields: dict[str, tuple[str, str]] = {}

    async def run(self, field: str = "", text: str = "") -> float:
        """Runs the page, with a text in one field; milliseconds."""
        message = BackMsg()
        asked = message.rerun_script
        asked.page_name, asked.query_string = self.page, self.query
        asked.page_script_hash = self.hash
        if field:
            name, asked.fragment_id = self.fields[field]
            state = asked.widget_states.widgets.add(id=name)
            state.string_value = text
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(
                await asyncio.wait_for(self.socket.recv(), 60)
            )
            kind = answer.WhichOneof("type")
            if kind == "script_finished" and (
                answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                return (time.perf_counter() - start) * 1000
            if kind == "navigation":
                self.hash = answer.navigation.page_script_hash
            if kind == "delta":
                self._note(answer.delta)

    def _note(self, delta) -> None:
        """Remembers the text fields' ids and fragments by their keys."""
        if delta.WhichOneof("type") != "new_element":
            return
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "exception":
            raise RuntimeError(element.exception.message)
        if kind == "text_input":
            full = element.text_input.id
            key = full.split("-", 2)[-1]
            self.fields[key] = (full, delta.fragment_id)


async def learners(
    address: str,
    path: str,
    count: int,
    stop: threading.Event,
    ready: threading.Event,
) -> dict[str, Any]:
    """Runs `count` learners until `stop`; `ready` is set when all have
    joined and edited once. How many edits there were, and how long, to the
    end of the page's run."""
    times: list[float] = []
    errors: list[BaseException] = []
    joined = [0]
    url = address.replace("http", "ws") + "/_stcore/stream"

    async def one(seed: int) -> None:
        chance = random.Random(seed)
        try:
            async with connect(
                url, subprotocols=["streamlit"], max_size=2**26
            ) as socket:
                learner = Learner(socket, path)
                await learner.run()
                name = next(f for f in learner.fields if "reward-" in f)
                await learner.run(name, "2.5")
                joined[0] += 1
                if joined[0] == count:
                    ready.set()
                while not stop.is_set():
                    await asyncio.sleep(THINK * chance.uniform(0.5, 1.5))
                    value = str(round(chance.uniform(0, 9), 1))
                    times.append(await learner.run(name, value))
        except Exception as error:
            errors.append(error)
            ready.set()

    await asyncio.gather(*(one(seed) for seed in range(count)))
    p50, p95 = np.percentile(times or [np.nan], [50, 95])
    return {
        "edits": len(times),
        "p50": float(p50),
        "p95": float(p95),
        "errors": len(errors),
        "error": str(errors[0]) if errors else "",
    }
