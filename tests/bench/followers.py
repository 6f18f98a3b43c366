"""How long a lead's edit takes to reach its followers' boards.

`python tests/bench/followers.py [10 30 ...]` opens a room with one lead and
so many followers. All are real sessions over websockets that ask for the
room's news as often as a page does, without browsers: eleven of those on one
machine would measure themselves. A board counts as reached when the message
that draws it has arrived.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from pathlib import Path

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.asyncio.client import connect

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "browser"), str(ROOT)]

from served import answers, cpu_seconds, served, server_of  # noqa: E402
from sessions import Learner  # noqa: E402

CASE = "partial_groups?v=1&s=partial_groups"
ROW = 11
NEWS = ROOT / "gradebook" / "ui" / "rooms" / "news.js"
PAUSE = int(re.search(r"PAUSE = (\d+)", NEWS.read_text())[1]) / 1000
"""Seconds between two looks for news."""


class Member(Learner):
    """A session in a room, with a seat of its own."""

    def __init__(self, socket, path: str, address: str, seat: str) -> None:
        super().__init__(socket, path)
        self.address, self.seat = address, seat
        self.news: dict[str, tuple[str, str, dict]] = {}
        self.buttons: dict[str, tuple[str, str]] = {}
        self.reached: dict[str, float] = {}
        self.runs = 0

    async def press(self, key: str) -> None:
        """The button with this key."""
        name, fragment = self.buttons[key]
        message = BackMsg()
        asked = message.rerun_script
        asked.widget_states.widgets.add(id=name).trigger_value = True
        asked.fragment_id = fragment
        await self._run(message)

    async def follow(self) -> None:
        """Looks for news until it is cancelled, as news.js does."""
        heard, count = {}, 0
        await asyncio.sleep(random.uniform(0, PAUSE))
        while True:
            for key, (name, fragment, data) in list(self.news.items()):
                now = json.loads(await self._ask(data["asked"]))["draw"]
                if now not in (data["draw"], heard.get(key)):
                    heard[key] = now
                    count += 1
                    await self._send((name, fragment), {"draw": f"{now} {count}"})
            await asyncio.sleep(PAUSE)

    async def _ask(self, path: str) -> str:
        host = self.address.removeprefix("http://")
        read, write = await asyncio.open_connection(*host.split(":"))
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: {host}",
            f"Cookie: gradebook-seat={self.seat}",
            "Connection: close",
        )
        write.write("\r\n".join((*lines, "", "")).encode())
        answer = await read.read()
        write.close()
        return answer.partition(b"\r\n\r\n")[2].decode()

    async def _run(self, message: BackMsg) -> float:
        self.runs += 1
        return await super()._run(message)

    def _note(self, delta) -> None:
        super()._note(delta)
        if delta.WhichOneof("type") != "new_element":
            return
        element, fragment = delta.new_element, delta.fragment_id
        kind = element.WhichOneof("type")
        if kind == "button":
            key = re.sub(r"^\$\$ID-[0-9a-f]+-", "", element.button.id)
            self.buttons[key] = element.button.id, fragment
        if kind != "bidi_component":
            return
        one = element.bidi_component
        if one.component_name == "gradebook_room_news":
            key = re.sub(r"^\$\$ID-[0-9a-f]+-", "", one.id)
            self.news[key] = one.id, fragment, json.loads(one.json)[0]
        elif one.component_name == "gradebook_board":
            place = [c[0] for c in self.data["columns"]].index("reward")
            value = str(self.data["rows"][ROW][place])
            self.reached.setdefault(value, time.perf_counter())


async def room(address: str, followers: int, edits: int) -> list[list[float]]:
    """Seconds from each drop of the lead to each follower's board."""
    url = address.replace("http", "ws") + "/_stcore/stream"
    sockets: list = []

    async def join(path: str, seat: str) -> Member:
        sockets.append(
            await connect(
                url,
                subprotocols=["streamlit"],
                additional_headers={"Cookie": f"gradebook-seat={seat}"},
                max_size=2**26,
            )
        )
        member = Member(sockets[-1], path, address, seat)
        await member.open()
        return member

    lead = await join("session", "seat-of-the-lead")
    await lead.press("room-open")
    (_, _, data), *_ = lead.news.values()
    code = data["asked"].rpartition("/")[2].partition("?")[0]
    lead.page, lead.query, lead.hash = *f"{CASE}&room={code}".split("?"), ""
    lead.news.clear()
    await lead.open()
    await lead.press("room-reveal")
    crowd = [
        await join(f"{CASE}&room={code}", f"seat-{number:04}")
        for number in range(followers)
    ]
    asking = [asyncio.create_task(one.follow()) for one in crowd]
    await asyncio.sleep(3)  # the room has heard of every seat
    found = []
    process = server_of(address)
    idle = cpu_seconds(process)
    await asyncio.sleep(3)
    idle = (cpu_seconds(process) - idle) / 3
    spent, runs = cpu_seconds(process), sum(one.runs for one in crowd)
    began = time.perf_counter()
    for edit in range(edits):
        await asyncio.sleep(random.uniform(2.5, 3))
        value = f"{edit + 1}.5"
        start = time.perf_counter()
        await lead.edit(ROW, value)
        while any(value not in one.reached for one in crowd):
            await asyncio.sleep(0.02)
            if time.perf_counter() > start + 20:
                break
        found.append([one.reached.get(value, start + 20) - start for one in crowd])
    took = time.perf_counter() - began
    spent = cpu_seconds(process) - spent - idle * took
    runs = sum(one.runs for one in crowd) - runs
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    for socket in sockets:
        await socket.close()
    print(
        f"  CPU: {idle:.2f} s a second at rest,"
        f" {1000 * spent / edits / followers:.0f} ms an edit and follower,"
        f" in {runs / edits / followers:.1f} runs"
    )
    return found


def main(counts: list[int], edits: int = 5) -> None:
    ruler = None
    for count in counts:
        with served(ROOT / "app.py") as address:
            answers(address)
            found = np.array(asyncio.run(room(address, count, edits)))
        median, greatest = np.median(found), found.max()
        ruler = ruler or median
        print(
            f"{count:3} followers: median {median:.2f} s, greatest"
            f" {greatest:.2f} s; {median / ruler:.1f} and"
            f" {greatest / ruler:.1f} times one follower's median",
            flush=True,
        )


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [1, 10, 30])
