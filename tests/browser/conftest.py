"""A server, a browser, and a page in it.

Without a browser on the machine these tests skip and say so; with
GRADEBOOK_BROWSER=required a missing one is a failure. GRADEBOOK_CHROMIUM
names a browser that is not on the path.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from board import Board
from playwright.sync_api import Page, expect, sync_playwright

# A machine under load is slow, not wrong.
expect.set_options(timeout=30_000)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = f"no browser: GRADEBOOK_CHROMIUM or one of {', '.join(NAMES)} on the path"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


NAMED = os.environ.get("GRADEBOOK_CHROMIUM")
BROWSER = next(filter(None, map(shutil.which, [NAMED] if NAMED else NAMES)), None)
REQUIRED = os.environ.get("GRADEBOOK_BROWSER") == "required"


def pytest_collection_modifyitems(items):
    """If a browser is required, a test that fails gets a second try, and
    the summary names it: a browser starves on a machine that others share,
    and two thousand other results should not be lost with it. What fails
    twice is broken; what is named there has a race that needs mending."""
    here = [item for item in items if HERE in item.path.parents]
    for item in here:
        if REQUIRED:
            item.add_marker(pytest.mark.flaky(reruns=1))
        elif not BROWSER:
            item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped if a browser is required: {item.name}"
    return report


class Server:
    """The app on a free port of this machine."""

    def __init__(self, folder, *command, **given):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"server-{self.port}.log"
        app = (sys.executable, "-m", "streamlit", "run", "app.py")
        self.command, self.given = command or app, {"cwd": ROOT, **given}
        self.start()

    def start(self):
        options = f"--server.port={self.port}", "--server.address=127.0.0.1"
        command = [*self.command, *options, "--server.headless=true"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, **self.given
            )

    def wait(self):
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health"):
                    return self
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise AssertionError("no server:\n" + self.log.read_text())

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def chromium():
    if BROWSER is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that do not ask for a fresh one."""
    running = Server(tmp_path_factory.mktemp("server")).wait()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def desktop(chromium):
    """A wide window. Each page in it is a session of its own."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
        color_scheme="light",
        reduced_motion="reduce",
    )
    yield context
    context.close()


@pytest.fixture
def elsewhere(chromium):
    """Opens a window of another browser, which shares no cookie with any:
    `elsewhere(390)`."""
    opened = []

    def window(width=1280, height=800, **more):
        given = {"reduced_motion": "reduce", **more}
        viewport = {"width": width, "height": height}
        opened.append(chromium.new_context(viewport=viewport, **given))
        return opened[-1]

    yield window
    for context in opened:
        context.close()


class Reader:
    """Somebody at a page of the app, who notes what should not happen:
    a request to another machine, an error on the console or the server."""

    def __init__(self, context, server):
        self.server = server
        self.page: Page = context.new_page()
        self.begin()
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("websocket", self._connected)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))

    def begin(self):
        self.elsewhere: list[str] = []
        self.received: list[bytes] = []
        self.errors: list[str] = []
        self.seen = len(self.server.log.read_text())

    def _connected(self, socket):
        self._asked(socket.url)
        socket.on("framereceived", self._received)

    def _received(self, frame):
        self.received.append(frame if isinstance(frame, bytes) else frame.encode())

    def _asked(self, url):
        host = self.server.url.removeprefix("http")
        if not url.startswith((f"http{host}/", f"ws{host}/", "data:", "blob:")):
            self.elsewhere.append(url)

    def _said(self, message):
        # A deep link looks for the app under /<page>/_stcore/ first, and
        # the browser calls each of these a failed load.
        probe = "/_stcore/" in (message.location or {}).get("url", "")
        if message.type == "error" and not probe:
            self.errors.append(message.text)

    def complaints(self):
        log = self.server.log.read_text()[self.seen :]
        tracebacks = ["the server's log:\n" + log] * ("Traceback" in log)
        return self.elsewhere + self.errors + tracebacks

    def open(self, path="", title="Gradebook", skip=True):
        """A page by its address, past the question that it may ask first."""
        self.page.goto(f"{self.server.url}/{path}")
        heading = self.page.get_by_role("heading", level=1)
        expect(heading).to_have_text(title, timeout=60_000)
        self.settled()  # a person reads before the first click
        if self.page.locator(".st-key-title-line").count():
            # The board's program loads by itself.
            self.page.locator(".box").wait_for(state="attached")
        button = self.page.locator(".box").get_by_role("button", name="Skip")
        if skip and button.count():
            button.click()
            expect(self.page.locator(".st-key-more")).to_be_attached()
            self.settled()
        return self

    def settled(self):
        """Until the app has nothing more to draw, and the page's keys act."""
        idle = self.page.locator(
            "[data-testid='stApp'][data-test-script-state='notRunning']"
        )
        idle.wait_for(timeout=60_000)
        deaf = self.page.locator(".st-key-shortcuts:not(:has([data-listening]))")
        expect(deaf).to_have_count(0, timeout=60_000)
        idle.wait_for(timeout=60_000)
        stale = self.page.locator("[data-stale='true']")
        expect(stale).to_have_count(0, timeout=60_000)

    @property
    def board(self):
        return Board(self.page)

    def keyed(self, key):
        """The element with this key of Streamlit, with or without the
        counts that stand behind it; the first, since one that it replaces
        may stand behind it while the page is being written."""
        own = f".st-key-{key}"
        counted = f'[class*="st-key-{key}__at__"]'
        return self.page.locator(f"{own}, {counted}").first


class Tabs:
    """The pages of one window. A reader who leaves keeps the page for the
    next: it shows the app in half the time, since its programs are compiled.
    What the next reader sees is a session of its own."""

    def __init__(self, context, server):
        self.context, self.server = context, server
        self.left: list[Reader] = []

    def take(self):
        """A reader at an empty page."""
        if not self.left:
            return Reader(self.context, self.server)
        reader = self.left.pop()
        reader.page.bring_to_front()  # a page in the background draws no frames
        reader.begin()
        return reader

    def leave(self, reader):
        """Ends the reader's session: nothing may have gone wrong."""
        if reader.page.context is self.context:
            reader.page.mouse.move(0, 0)
            reader.page.goto("about:blank")
            self.context.clear_cookies()  # what a reader has uncovered
            self.left.append(reader)
        else:
            reader.page.close()
        assert reader.complaints() == []


@pytest.fixture(scope="session")
def tabs(desktop, server):
    return Tabs(desktop, server)


@pytest.fixture
def reader(tabs):
    """Somebody at an empty page of the wide window."""
    reader = tabs.take()
    yield reader
    tabs.leave(reader)


@pytest.fixture
def read(tabs):
    """Opens a page: `read("partial_groups", "Partial groups")`. At the end
    nothing may have left the machine or gone wrong."""
    readers = []

    def opened(path="", title="Gradebook", context=None, skip=True):
        reader = Reader(context, tabs.server) if context else tabs.take()
        readers.append(reader)
        return reader.open(path, title, skip)

    yield opened
    for reader in readers:
        tabs.leave(reader)
