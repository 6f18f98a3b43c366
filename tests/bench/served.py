"""What the benches of the page share: servers, browsers, and the ruler."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]

EMPTY = """\
import streamlit as st
value = st.number_input("Value", value=1.0, key="value")
st.text(f"value is {value}")
"""

OPEN = "partial_groups?v=1&s=partial_groups&open=1"
SETTLED = (
    "[data-testid=stApp][data-test-script-state=notRunning]:not("
    ":has([data-stale=true]))"
)
BOARD = ".board .over .faulty[data-row]"

DEEP = """
window.gbFind = (selector) => {
  const roots = [document];
  for (const at of document.querySelectorAll('*'))
    if (at.shadowRoot) roots.push(at.shadowRoot);
  for (const root of roots) {
    const found = root.querySelector(selector);
    if (found) return found;
  }
  return null;
};
window.gbMarks = () => {
  gbBoard = window.gbBoard?.isConnected ? gbBoard : gbFind('.board');
  if (!gbBoard) return null;
  return [...gbBoard.querySelectorAll('.over [data-row]')]
    .map((mark) => mark.dataset.value).join();
};
window.gbText = () =>
  document.querySelector('[data-testid=stText]')?.textContent ?? null;
"""
"""What the page shows: the board's marks, or the empty app's text."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def served(script: Path, first: str = "", said: str = os.devnull) -> Iterator[str]:
    """A Streamlit server of the script; its address.

    first  Python that the server runs before anything else
    said   the file of what it prints
    """
    port = free_port()
    program = f"{first}\nfrom streamlit.web.cli import main\nmain()"
    command = [sys.executable, "-c", program, "run", script.name]
    options = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    command += [f"--{name}={value}" for name, value in options.items()]
    with open(said, "w") as out, open(os.devnull, "w") as quiet:
        server = subprocess.Popen(command, cwd=script.parent, stdout=out, stderr=quiet)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


def answers(address: str) -> None:
    """Waits for the server's health."""
    while True:
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
            return
        except OSError:
            time.sleep(0.01)


@contextmanager
def empty_app() -> Iterator[Path]:
    """The script of an app with one input and one line of text."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "empty.py"
        script.write_text(EMPTY)
        yield script


def opened(browser: Browser, address: str, ready: str) -> Page:
    """A fresh browser context on the page, when `ready` shows."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.add_init_script(DEEP)
    page.goto(address, wait_until="commit")
    page.wait_for_selector(ready, state="attached", timeout=60_000)
    page.wait_for_selector(SETTLED, state="attached", timeout=60_000)
    return page


def line(name: str, times: np.ndarray, ruler: float, aim: str) -> None:
    """Prints median and 95th percentile over the ruler."""
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{name:34}{p50 / ruler:6.2f} (p95 {p95 / ruler:5.2f}){aim:>28}"
        f"   [{p50:.0f} ms of {ruler:.0f}]",
        flush=True,
    )


def server_of(address: str) -> int:
    """The process that listens at the address."""
    wanted = f"--server.port={urlsplit(address).port}".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                return int(path.parent.name)
    raise LookupError(address)


def cpu_seconds(process: int) -> float:
    """Seconds of CPU that the process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def launched(playwright) -> Browser:
    """Chromium without a screen."""
    path = os.environ.get("GRADEBOOK_CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "google-chrome")))
    )
    return playwright.chromium.launch(
        executable_path=path,
        args=["--no-sandbox", "--disable-gpu", "--disable-quic"],
    )
