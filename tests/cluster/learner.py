"""A learner without a browser: a Streamlit session over a websocket, with the
cookies that a browser would keep."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 60


class Learner:
    def __init__(self, address: str, page: str, query: str) -> None:
        self.address, self.page, self.query = address, page, query
        self.cookies: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.texts: list[str] = []
        self.buttons: dict[str, str] = {}
        self.socket: ClientConnection | None = None
        self.came = 0

    async def come(self) -> None:
        """Loads the page and opens its session, like a reload."""
        await self.leave()
        self.came += 1
        if not self.cookies:
            await asyncio.to_thread(self._load)
        self.socket = await connect(
            self.address.replace("http", "ws") + "/_stcore/stream",
            subprotocols=["streamlit"],
            additional_headers={"Cookie": self._cookie(), **self.headers},
            origin=self.address,
            max_size=2**26,
            open_timeout=PATIENCE,
        )
        self._keep(self.socket.response.headers.get_all("Set-Cookie"))
        await self._run(BackMsg())

    async def leave(self) -> None:
        if self.socket is not None:
            await self.socket.close()
            self.socket.transport.abort()
            self.socket = None

    async def press(self, key: str) -> None:
        message = BackMsg()
        widgets = message.rerun_script.widget_states.widgets
        widgets.add(id=self.buttons[key]).trigger_value = True
        await self._run(message)

    def _load(self) -> None:
        asked = Request(f"{self.address}/{self.page}", headers={"Accept": "text/html"})
        try:
            with urlopen(asked, timeout=PATIENCE) as answer:
                self._keep(answer.headers.get_all("Set-Cookie"))
        except HTTPError as error:
            error.close()
            raise

    def _keep(self, cookies: list[str]) -> None:
        for cookie in cookies or ():
            name, value = re.match(r"([^=]+)=([^;]*)", cookie).groups()
            self.cookies[name] = value

    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    async def _run(self, message: BackMsg) -> None:
        asked = message.rerun_script
        asked.page_name, asked.query_string = self.page, self.query
        await self.socket.send(message.SerializeToString())
        self.texts, self.buttons = [], {}
        while True:
            answer = ForwardMsg()
            received = await asyncio.wait_for(self.socket.recv(), PATIENCE)
            answer.ParseFromString(received)
            early = ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ended = answer.WhichOneof("type") == "script_finished"
            if ended and answer.script_finished != early:
                return
            element = answer.delta.new_element
            kind = element.WhichOneof("type")
            if kind in ("markdown", "alert"):
                self.texts.append(getattr(element, kind).body)
            elif kind == "button":
                self.buttons[element.button.id.split("-", 2)[2]] = element.button.id
            self._note(kind, element)

    def _note(self, kind: str | None, element: Any) -> None:
        """Takes in another element of the page."""
        if kind == "exception":
            raise AssertionError(element.exception.message)


class Follower(Learner):
    """One that asks for the room's news, as the page's own program (news.js) does."""

    def __init__(self, address: str, page: str, query: str) -> None:
        super().__init__(address, page, query)
        self.news: dict[str, Any] = {}

    async def hear(self) -> None:
        """Waits until the news are not those with which the page was drawn, and has
        the page drawn again."""
        have, known = self.news["have"], self.news["draw"]
        while True:
            status, now = await asyncio.to_thread(self._asked, have)
            if status == 200 and (now["draw"] != known or not have):
                break
            # Away, or counts alone; once it is back the page is drawn in any case.
            have = "" if status != 200 else now["have"]
            await asyncio.sleep(1 if status != 200 else 0)
        message = BackMsg()
        state = message.rerun_script.widget_states.widgets.add(id=self.news["id"])
        state.json_value = json.dumps({"draw": now["draw"]})
        await self._run(message)

    def _asked(self, have: str) -> tuple[int, dict[str, Any]]:
        path = f"{self.address}{self.news['asked']}&have={have}"
        asked = Request(path, headers={"Cookie": self._cookie()})
        try:
            with urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            with error:
                return error.code, {}

    def _note(self, kind: str | None, element: Any) -> None:
        super()._note(kind, element)
        component = element.bidi_component
        if component.component_name == "gradebook_room_news":
            self.news = json.loads(component.json)[0] | {"id": component.id}
