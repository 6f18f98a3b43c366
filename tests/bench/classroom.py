"""A class on one server or on three: how long opening, edits and the reveal take.

    python tests/bench/classroom.py 30 100 200 300 3x300 3x500

Some lines for each class; `3x300` is 300 learners over three servers, nginx and
PostgreSQL. All learners open the page at once, edit, hear the lead's reveal, and edit
again. An edit's time is printed beside that of the first class in the same run.

What a class is taken to do: all learners edit at the same time without a pause, and
each finishes an edit every five seconds, give or take half. So a class offers a fifth
of an edit a second for each learner, 6 a second for 30 and 60 for 300, at the same pace
in every class. That is an assumption. It is meant to be more than a lesson's: its
learners also read, predict and talk. A learner starts no edit before the last one is
answered, so a server that is too slow serves fewer than are offered: both rates are
printed.

Learners are Streamlit sessions without a browser, with the news that the page's own
program would ask for. Servers, database, proxy and learners share this machine's cores,
so the shares of the servers and of this program are printed, and the machine's load.
"""

from __future__ import annotations

import asyncio
import gc
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
from typing import Any, Self
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
"""Seconds between the answer to a learner's edit and the next edit, in the mean."""
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
        """Presses a button; milliseconds until the page is drawn."""
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
    return f"p50 {p50:.2f} s, p95 {p95:.2f} s"


class Meter:
    """Seconds, and the CPU of the servers and of this program, while it is entered."""

    def __init__(self, servers: list[int]) -> None:
        self.servers = servers

    def __enter__(self) -> Self:
        self.began = time.perf_counter(), self._served(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter(), self._served(), time.process_time()
        self.seconds, self.served, self.own = (
            after - before for after, before in zip(now, self.began)
        )

    def _served(self) -> float:
        return sum(map(cpu_seconds, self.servers))

    def shares(self) -> str:
        server, own = self.served / self.seconds, self.own / self.seconds
        return f"servers {server:.2f} cores, this program {own:.2f}"


RULERS: dict[str, float] = {}
"""The p95 of the first class's edits, by what is measured."""


async def edited(name: str, members: list[Member], processes: list[int]) -> None:
    """All edit for a while; prints how long an edit took."""
    times: list[float] = []
    until = time.perf_counter() + EDITING

    async def edits(member: Member) -> None:
        await asyncio.sleep(random.uniform(0, THINK))
        while time.perf_counter() < until:
            value = str(round(random.uniform(0, 9), 1))
            times.append(await member.edit(0, value) / 1000)
            await asyncio.sleep(THINK * random.uniform(0.5, 1.5))

    load = os.getloadavg()[0]
    with Meter(processes) as meter:
        await asyncio.gather(*map(edits, members))
    p95 = float(np.percentile(times, 95))
    ratio = p95 / RULERS.setdefault(name, p95)
    print(
        f"  {name:21} {spread(times)} ({ratio:.1f} times the first class's p95);"
        f" {len(members) / THINK:.0f} a second offered,"
        f" {len(times) / meter.seconds:.1f} served,"
        f" {1000 * meter.served / len(times):.1f} ms CPU each; {meter.shares()};"
        f" load {load:.1f}",
        flush=True,
    )


async def class_of(count: int, address: str, url: str, processes: list[int]) -> None:
    """A class of so many learners: prints what it measures."""
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
    with Meter(processes) as meter:
        came = await asyncio.gather(
            *(arrived(secrets.token_urlsafe(12)) for _ in range(count))
        )
    members = [member for member, _ in came]
    for member in members:
        await member._send(member.keys, {"drawn": True})
    each = (memory(processes) - before) / count
    print(
        f"  {'opening':21} {spread([took for _, took in came])};"
        f" {1000 * meter.served / count:.0f} ms CPU and {each:.2f} MB each;"
        f" {meter.shares()}",
        flush=True,
    )
    # Whoever edits waits for the room's news meanwhile, as in a class.
    listening = [asyncio.ensure_future(member.listen()) for member in members]
    await asyncio.sleep(1)  # all have asked
    await edited("edits before a reveal", members, processes)
    # As it came again: a board that was edited waits for its page's run.
    for member in members:
        await member.reset()

    saw: list[float] = []

    async def sees(member: Member) -> None:
        await member.revealed.wait()
        saw.append(time.perf_counter() - meter.began[0])

    with Meter(processes) as meter:
        seeing = asyncio.gather(*map(sees, members))
        own = await lead.press("room-reveal") / 1000
        await seeing
        await asyncio.gather(*listening)
    print(
        f"  {'reveal':21} {spread(saw)}; the lead's page {own:.2f} s, all pages"
        f" {meter.seconds:.1f} s; {meter.shares()}",
        flush=True,
    )
    await edited("edits after it", members, processes)
    for member in [lead, *members]:
        await member.socket.close()


def main() -> None:
    gc.disable()  # an answer that waits for this program's own is not the server's
    for asked in sys.argv[1:] or ("30", "100", "200", "300", "3x300", "3x500"):
        servers, _, count = asked.rpartition("x")
        number = "three servers" if servers == "3" else "one server"
        print(
            f"{count} learners, {number}, {os.cpu_count()} cores,"
            f" load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        with three_servers() if servers == "3" else one_server() as given:
            asyncio.run(class_of(int(count), *given))


if __name__ == "__main__":
    main()
