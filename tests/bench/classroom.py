"""A class on one server or on three: how long opening, edits and the reveal take.

    python tests/bench/classroom.py 30 100 200 300 3x300 3x500

One line for each class; `3x300` is 300 learners over three servers, nginx and
PostgreSQL. All learners open the page at once, then edit every five seconds,
then the lead reveals. Learners are Streamlit sessions without a browser, with
the news that the page's own program would ask for. Servers, database, proxy
and learners share this machine's cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT)]

from cluster.test_servers import NAMES, cluster_of, postgresql  # noqa: E402
from served import answers, cpu_seconds, served, server_of  # noqa: E402
from sessions import Learner  # noqa: E402
from streamlit.proto.BackMsg_pb2 import BackMsg  # noqa: E402
from websockets.asyncio.client import connect  # noqa: E402

from gradebook.classroom.room import Rooms  # noqa: E402

CASE = "partial_groups"
THINK = 5.0
EDITING = 20.0
PATIENCE = 120.0


class Member(Learner):
    """A session in the room, with the news that its page asks for."""

    def __init__(self, socket: Any, path: str, seat: str) -> None:
        super().__init__(socket, path)
        # The server that took the session names itself for all that follows.
        routes = socket.response.headers.get_all("Set-Cookie")
        route = [cookie.partition(";")[0] for cookie in routes]
        self.cookie = "; ".join([f"gradebook-seat={seat}", *route])
        self.news: dict[str, Any] = {}
        self.buttons: dict[str, str] = {}
        self.revealed = asyncio.Event()

    def _note(self, delta: Any) -> None:
        super()._note(delta)
        element = delta.new_element
        if element.button.id:
            self.buttons[element.button.id.split("-", 2)[2]] = element.button.id
        component = element.bidi_component
        if component.component_name == "gradebook_room_news":
            self.news = json.loads(component.json)[0] | {"id": component.id}

    async def press(self, key: str) -> float:
        """Presses a button; milliseconds until the page stands."""
        message = BackMsg()
        widgets = message.rerun_script.widget_states.widgets
        widgets.add(id=self.buttons[key]).trigger_value = True
        return await self._run(message)

    async def reset(self) -> None:
        """The board as it came."""
        edit = {"n": self.data["ack"] + 1, "do": "reset"}
        sent = {"epoch": self.data["epoch"], "edits": [edit]}
        self.data = json.loads(await self._post(json.dumps(sent)))

    async def listen(self) -> None:
        """Asks for the news until the board hears of the reveal, then waits as
        long as the news says and has the page drawn again."""
        have = self.news["have"]
        while True:
            now = await self._asked(f"{self.news['asked']}&have={have}")
            have = now["have"]
            if now.get("reveal"):
                self.revealed.set()
            if now["draw"] != self.news["draw"]:
                break
        await asyncio.sleep(random.random() * float(now.get("within", 0)))
        message = BackMsg()
        state = message.rerun_script.widget_states.widgets.add(id=self.news["id"])
        state.json_value = json.dumps({"draw": now["draw"]})
        await self._run(message)
        self.revealed.set()

    async def _asked(self, path: str) -> dict[str, Any]:
        host, port = self.socket.remote_address[:2]
        reader, writer = await asyncio.open_connection(host, port)
        head = (
            f"GET {path} HTTP/1.1",
            f"Host: {host}:{port}",
            f"Cookie: {self.cookie}",
            "Connection: close",
        )
        writer.write("\r\n".join((*head, "", "")).encode())
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return json.loads(answer.partition(b"\r\n\r\n")[2])


@contextmanager
def one_server() -> Iterator[tuple[str, str, list[int]]]:
    """A server with its database: its address, the database, its processes."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/rooms.db"
        os.environ["GRADEBOOK_DATABASE_URL"] = url
        with served(ROOT / "app.py") as address:
            answers(address)
            yield address, url, [server_of(address)]


@contextmanager
def three_servers() -> Iterator[tuple[str, str, list[int]]]:
    """Three servers behind nginx, with PostgreSQL."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        (folder / "database").mkdir()
        url = stack.enter_context(postgresql(folder / "database"))
        servers, address = stack.enter_context(cluster_of(folder, url))
        yield address, url, [servers.processes[name].pid for name in NAMES]


def memory(processes: list[int]) -> float:
    """Megabytes that the servers hold."""
    pages = (
        int(Path(f"/proc/{process}/statm").read_text().split()[1])
        for process in processes
    )
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def spread(times: list[float]) -> str:
    p50, p95 = np.percentile(times or [np.nan], [50, 95])
    return f"{p50:6.2f} {p95:6.2f}"


async def class_of(count: int, address: str, url: str, processes: list[int]) -> str:
    """A class of so many learners: one line of the table."""
    rooms = Rooms(url)
    lead_seat = secrets.token_urlsafe(12)
    code = rooms.open(lead_seat)
    query = urlencode({"room": f"{code}.{rooms.read(code).token}"})
    path = f"{CASE}?v=1&s={CASE}&{query}"
    stream = address.replace("http", "ws") + "/_stcore/stream"

    async def arrived(seat: str) -> tuple[Member, float]:
        start = time.perf_counter()
        socket = await connect(
            stream,
            subprotocols=["streamlit"],
            additional_headers={"Cookie": f"gradebook-seat={seat}"},
            origin=address,
            max_size=2**26,
            open_timeout=PATIENCE,
            ping_interval=None,
        )
        member = Member(socket, path, seat)
        await member._run(BackMsg())
        return member, time.perf_counter() - start

    lead, _ = await arrived(lead_seat)
    await lead._send(lead.keys, {"drawn": True})
    before = memory(processes)
    busy = [cpu_seconds(process) for process in processes]
    came = await asyncio.gather(
        *(arrived(secrets.token_urlsafe(12)) for _ in range(count))
    )
    members = [member for member, _ in came]
    page = 1000 * (sum(map(cpu_seconds, processes)) - sum(busy)) / count
    for member in members:
        await member._send(member.keys, {"drawn": True})
    each = (memory(processes) - before) / count

    times: list[float] = []
    busy = [cpu_seconds(process) for process in processes]
    until = time.perf_counter() + EDITING

    async def edits(member: Member) -> None:
        await asyncio.sleep(random.uniform(0, THINK))
        while time.perf_counter() < until:
            value = str(round(random.uniform(0, 9), 1))
            times.append(await member.edit(0, value) / 1000)
            await asyncio.sleep(THINK * random.uniform(0.5, 1.5))

    start = time.perf_counter()
    await asyncio.gather(*map(edits, members))
    seconds = time.perf_counter() - start
    busy = [cpu_seconds(p) - b for p, b in zip(processes, busy)]
    # As it came again: a board that was edited waits for its page's run.
    for member in members:
        await member.reset()

    listening = [asyncio.ensure_future(member.listen()) for member in members]
    await asyncio.sleep(1)  # all have asked
    start = time.perf_counter()
    saw: list[float] = []

    async def sees(member: Member) -> None:
        await member.revealed.wait()
        saw.append(time.perf_counter() - start)

    seeing = asyncio.gather(*map(sees, members))
    own = await lead.press("room-reveal") / 1000
    await seeing
    await asyncio.gather(*listening)
    drawn = time.perf_counter() - start
    for member in [lead, *members]:
        await member.socket.close()
    return (
        f"{spread([took for _, took in came])} {page:4.0f}  {len(times) / seconds:6.1f}"
        f" {sum(busy) / seconds:5.2f}  {spread(times)}  {own:5.2f} {spread(saw)}"
        f" {drawn:6.1f}  {each:5.2f}"
    )


def main() -> None:
    print(os.cpu_count(), "cores; load: of the minute before the class")
    print(
        "           opening (s)   CPU  edits a  cores    edit (s)    reveal (s):  "
        "learners   whole  MB for  load\n"
        "learners    p50    p95    ms   second   busy   p50    p95   lead   p50    p95"
        "  pages  a learner",
        flush=True,
    )
    for asked in sys.argv[1:] or ("30", "100", "200", "300", "3x300", "3x500"):
        servers, _, count = asked.rpartition("x")
        load = os.getloadavg()[0]
        with three_servers() if servers == "3" else one_server() as given:
            line = asyncio.run(class_of(int(count), *given))
        print(f"{asked:>8} {line}     {load:5.1f}", flush=True)


if __name__ == "__main__":
    main()
