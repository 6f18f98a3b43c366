"""What Gradebook uses of Streamlit beside its public names (the list at the top of
gradebook/ui/server.py): each test says what breaks without it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

ROOT = Path(__file__).parents[2]

SERVER = """
import asyncio, json
import streamlit as st
from streamlit.runtime import get_instance
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from gradebook.ui.security import parked
from gradebook.ui.server import VISIT

app = st.App(VISIT)  # without what stands before it

async def status(method, path):
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    scope |= {"query_string": b"", "root_path": "", "scheme": "http"}
    answered = []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        answered.append(message.get("status"))

    await app(scope, receive, send)
    return answered[0]

async def ask():
    found = {"metrics": await status("GET", "/_stcore/metrics")}
    found["upload"] = await status("OPTIONS", "/_stcore/upload_file/one/file")
    found["nowhere"] = await status("OPTIONS", "/_stcore/no_such_path/one/file")
    file = UploadedFileRec("file", "run.csv", "text/csv", b"four")
    get_instance().uploaded_file_mgr.add_file("one", file)
    print(json.dumps(found | {"parked": parked()}))

asyncio.run(ask())
"""


@pytest.fixture(scope="module")
def inside():
    """What a server of Streamlit's own says of itself."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SERVER]
    run = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    assert run.returncode == 0
    return json.loads(run.stdout)


def test_get_instance_knows_what_each_session_uploaded(inside):
    """Without it sessions can fill the memory."""
    assert inside["parked"] == {"one": len(b"four")}


def test_uploads_and_metrics_have_the_paths_that_are_guarded(inside):
    """Elsewhere uploads would have the limit of other requests, 1 MB, and everybody
    could read the metrics."""
    assert inside["metrics"] == 200 and inside["upload"] == 204
    assert inside["nowhere"] != 204


def test_the_name_in_annotations_is_what_streamlit_gives():
    """Without it its modules cannot be imported."""
    assert isinstance(st.container(), DeltaGenerator)
