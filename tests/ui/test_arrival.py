"""A session's first page is sent in parts; every later one at once."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import ROOT
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from gradebook.ui.parts import arrival


@pytest.fixture
def pauses(monkeypatch):
    """The seconds that the pages have waited, instead of waiting."""
    found = []
    clock = SimpleNamespace(sleep=found.append)
    monkeypatch.setattr(arrival, "time", clock)
    return found


@pytest.mark.parametrize("name", ["partial_groups", "sandbox", ""])
def test_only_the_first_page_is_sent_in_parts(pauses, name):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if name:
        app._page_hash = calc_hash(name)
    app.run()
    words, rest = [arrival.WORDS], [arrival.INPUTS, arrival.PICTURE]
    expected = {"": words, "sandbox": rest, "partial_groups": words + rest}
    assert pauses == expected[name]
    app.run()
    app._page_hash = calc_hash("zero_std_kl")
    app.run()
    assert pauses == expected[name]
    assert not app.exception


SERVED = """
import asyncio, gc, sys, app
async def served():
    async with app.beside(None):
        while not ("pandas" in sys.modules and gc.isenabled()):
            await asyncio.sleep(0.05)
asyncio.run(asyncio.wait_for(served(), 60))
from gradebook.logs.judging import undisturbed
with undisturbed():
    pass
import pandas, torch
watched = set(map(id, gc.get_objects()))
print(id(torch.Tensor) in watched, id(pandas.DataFrame) in watched)
print(gc.get_freeze_count())
"""


def test_torch_and_pandas_are_out_of_garbage_collection_and_stay_so():
    """Streamlit collects after every run of a page, over torch for 0.1 s; a
    check of a log gives nothing back that the server froze."""
    run = [sys.executable, "-c", SERVED]
    found = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    tensor, frame, frozen = found.stdout.split()
    assert (tensor, frame) == ("False", "False"), found.stderr
    assert int(frozen) > 100_000
