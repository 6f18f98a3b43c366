"""Learners without a browser: real Streamlit sessions over websockets, and
edits over HTTP.

Each joins a bug's page and then edits a reward on its board again and again,
with the messages that the board itself would send.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

QUICK = 0.15
"""Seconds that an idle server's answer takes at most. While a hand moves, the
board waits after an answer as long as it took beyond that."""
AGAIN = 3.0
"""Seconds until a message without an answer goes out again."""


class Learner:
    """One session."""

    def __init__(self, socket, path: str) -> None:
        self.socket = socket
        parts = urlsplit(path)
        self.page, self.query, self.hash = parts.path, parts.query, ""
        self.keys, self.asked = ("", ""), 0
        self.line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None
        self.line = None
        self.data: dict[str, Any] = {}
        self.bytes: Counter[str] = Counter()
        self.cookie = ""

    async def open(self) -> float:
        """Opens the page; milliseconds until it is drawn."""
        return await self._run(BackMsg())

    async def edit(self, row: int, value: str, final: bool = True) -> float:
        """Gives a row another reward; milliseconds until the board's answer
        is there. After it the rest of the page follows if the answer says that it
        is behind, unless a drag goes on and the edit is not `final`."""
        edit = {
            "n": self.data["ack"] + 1,
            "do": "cell",
            "row": row,
            "column": "reward",
            "value": value,
        }
        if not final:
            edit["gesture"] = 1
        sent = {"epoch": self.data["epoch"], "edits": [edit]}
        self.bytes = Counter()
        start = time.perf_counter()
        self.data = json.loads(await self._post(json.dumps(sent)))
        took = (time.perf_counter() - start) * 1000
        if final and self.data["behind"]:
            self.asked += 1
            await self._send(self.keys, {"settled": self.asked})
        return took

    async def _post(self, message: str) -> bytes:
        """The answer to the board's message. A server that does not know the
        draft is asked again later, as browsers do: a proxy that found the
        session's own server too busy had asked another one."""
        while True:
            with suppress(json.JSONDecodeError):
                answer = await self._once(message)
                json.loads(answer)
                return answer
            await asyncio.sleep(AGAIN)

    async def _once(self, message: str) -> bytes:
        """The answer, over a line that stays open. The server closes an idle
        line after five seconds; if it does so just now, the message is sent
        again on a new one, as browsers do."""
        if self.line is not None and not self.line[0].at_eof():
            try:
                return await self._posted(message, *self.line)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
        host, port = self.socket.remote_address[:2]
        self.line = await asyncio.open_connection(host, port)
        return await self._posted(message, *self.line)

    async def _posted(
        self,
        message: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bytes:
        host, port = self.socket.remote_address[:2]
        body = message.encode()
        head = (
            f"POST /board-edits/{self.data['epoch']} HTTP/1.1",
            f"Host: {host}:{port}",
            "Accept-Encoding: gzip",
            f"Cookie: {self.cookie}",
            f"Content-Length: {len(body)}",
        )
        writer.write("\r\n".join((*head, "", "")).encode() + body)
        answered = await reader.readuntil(b"\r\n\r\n")
        fields = dict(
            field.lower().split(b": ", 1) for field in answered.split(b"\r\n")[1:-2]
        )
        content = await reader.readexactly(int(fields[b"content-length"]))
        self.bytes["the board"] += len(answered) + len(content)
        if fields.get(b"content-encoding") == b"gzip":
            content = gzip.decompress(content)
        return content

    async def _send(self, component: tuple[str, str], value: Any) -> float:
        """A component's state, which makes its fragment run."""
        message = BackMsg()
        name, fragment = component
        state = message.rerun_script.widget_states.widgets.add(id=name)
        state.json_value = json.dumps(value)
        message.rerun_script.fragment_id = fragment
        return await self._run(message)

    async def _run(self, message: BackMsg) -> float:
        asked = message.rerun_script
        asked.page_name, asked.query_string = self.page, self.query
        asked.page_script_hash = self.hash
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            received = await asyncio.wait_for(self.socket.recv(), 60)
            answer = ForwardMsg()
            answer.ParseFromString(received)
            kind = answer.WhichOneof("type")
            self.bytes[_part(answer)] += len(received)
            if kind == "script_finished" and (
                answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                return (time.perf_counter() - start) * 1000
            self._heard(kind, answer)

    def _heard(self, kind: str | None, answer: ForwardMsg) -> None:
        """Takes in a message of the page's run."""
        if kind == "navigation":
            self.hash = answer.navigation.page_script_hash
        if kind == "delta":
            self._note(answer.delta)

    def _note(self, delta) -> None:
        """Remembers the components, their fragments, what the board shows."""
        if delta.WhichOneof("type") != "new_element":
            return
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "exception":
            raise RuntimeError(element.exception.message)
        if kind != "bidi_component":
            return
        component = element.bidi_component
        if component.component_name == "gradebook_board":
            self.data = json.loads(component.json)[0]
        elif component.component_name == "gradebook_shortcuts":
            self.keys = component.id, delta.fragment_id


class Watcher(Learner):
    """A session that trains a run on "Does it matter?" and watches it: it
    asks for the next drawing when the page tells the browser to."""

    def __init__(self, socket, path: str) -> None:
        super().__init__(socket, path)
        self.beats: dict[str, float] = {}
        self.skip = ""
        self.drawn = 0

    async def watch(self) -> None:
        """Opens the page, skips its question, and watches until cancelled
        or until the run is over."""
        await self.open()
        message = BackMsg()
        pressed = message.rerun_script.widget_states.widgets.add(id=self.skip)
        pressed.trigger_value = True
        await self._run(message)
        while self.beats:
            for fragment, beat in list(self.beats.items()):
                message = BackMsg()
                message.rerun_script.fragment_id = fragment
                message.rerun_script.is_auto_rerun = True
                took = await self._run(message)
                self.drawn += 1
                await asyncio.sleep(max(beat - took / 1000, 0))

    def _heard(self, kind: str | None, answer: ForwardMsg) -> None:
        super()._heard(kind, answer)
        if kind == "new_session" and not answer.metadata.run.fragment_ids:
            self.beats.clear()  # the whole page runs
        if kind == "auto_rerun":
            rerun = answer.auto_rerun
            self.beats[rerun.fragment_id] = rerun.interval

    def _note(self, delta) -> None:
        super()._note(delta)
        button = delta.new_element.button
        if button.label.startswith("Skip"):
            self.skip = button.id


async def watchers(
    address: str,
    paths: Sequence[str],
    stop: threading.Event,
    ready: threading.Event,
) -> list[Watcher]:
    """One session for each path, which watches its run until `stop`; `ready`
    is set when all of them have started theirs."""
    url = address.replace("http", "ws") + "/_stcore/stream"
    found: list[Watcher] = []

    async def one(path: str) -> None:
        async with connect(url, subprotocols=["streamlit"], max_size=2**26) as socket:
            watcher = Watcher(socket, path)
            found.append(watcher)
            await watcher.watch()
            while not stop.is_set():  # the page stays open
                await asyncio.sleep(0.5)

    tasks = [asyncio.create_task(one(path)) for path in paths]
    while not stop.is_set():
        await asyncio.sleep(0.1)
        if len(found) == len(paths) and all(w.drawn for w in found):
            ready.set()
        for task in tasks:
            if task.done() and task.exception():
                ready.set()
                raise task.exception()  # type: ignore[misc]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def _part(answer: ForwardMsg) -> str:
    """What of the page a message is about."""
    if answer.WhichOneof("type") != "delta":
        return "Streamlit's frame"
    element = answer.delta.new_element
    board = element.bidi_component.component_name == "gradebook_board"
    return "the board" if board else "other elements"


async def learners(
    address: str,
    path: str,
    count: int,
    stop: threading.Event,
    ready: threading.Event,
    think: float = 5.0,
    drag: bool = False,
) -> dict[str, Any]:
    """Runs `count` learners until `stop`.

    ready  set when all have joined and edited once
    think  seconds between two edits of a learner, give or take half
    drag   each learner drags one handle all the time, without thinking

    How many edits there were after `ready`, in how many seconds, and how
    long each took to the end of the page's run.
    """
    times: list[float] = []
    errors: list[BaseException] = []
    joined = [0]
    began = [time.perf_counter()]
    url = address.replace("http", "ws") + "/_stcore/stream"

    async def one(seed: int) -> None:
        chance = random.Random(seed)
        try:
            async with connect(
                url, subprotocols=["streamlit"], max_size=2**26
            ) as socket:
                learner = Learner(socket, path)
                await learner.open()
                took = await learner.edit(0, "2.5")
                joined[0] += 1
                if joined[0] == count:
                    began[0] = time.perf_counter()
                    ready.set()
                while not stop.is_set():
                    pause = think * chance.uniform(0.5, 1.5)
                    if drag:
                        pause = max(took / 1000 - QUICK, 0)
                    await asyncio.sleep(pause)
                    value = str(round(chance.uniform(0, 9), 1))
                    took = await learner.edit(0, value, final=not drag)
                    if ready.is_set():
                        times.append(took)
        except Exception as error:
            errors.append(error)
            ready.set()

    await asyncio.gather(*(one(seed) for seed in range(count)))
    p50, p95 = np.percentile(times or [np.nan], [50, 95])
    return {
        "edits": len(times),
        "seconds": time.perf_counter() - began[0],
        "p50": float(p50),
        "p95": float(p95),
        "errors": len(errors),
        "error": str(errors[0]) if errors else "",
    }
