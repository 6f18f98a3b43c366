"""The wheel, installed into a fresh environment and used from elsewhere:
first without torch, then with it, then with the app.

Marked long: it installs torch.
"""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from conftest import Server

ROOT = Path(__file__).parents[2]
PIP = "-m", "pip"
pytestmark = pytest.mark.long

LIBRARY = """
import gradebook, sys
batch = gradebook.load("partial_groups").batch()
faulty = gradebook.run(gradebook.bug("partial_groups").engine, batch)
assert round(faulty.advantage[10].item(), 3) == -0.48
assert "streamlit" not in sys.modules
declared = {"estimator": "dr_grpo"}
guard = gradebook.Guard(declared=declared, action="raise")
rows = {"prompt": [0, 0, 1, 1], "reward": [1.0, 0.0, 0.5, 2.5]}
rows["advantage"] = [0.5, -0.5, -1.0, 1.0]
with gradebook.Recorder("run", declared=declared, strict=True) as recorder:
    for step in range(4):
        recorder.step(step, **rows)
        guard.step(step, **rows)
print(gradebook.check(gradebook.recording("run"))["verdict"].tolist())
"""


def run(*command, folder):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    there = tmp_path_factory.mktemp("wheel")
    run(sys.executable, *PIP, "wheel", "--no-deps", "-w", there, ROOT, folder=there)
    (found,) = there.glob("gradebook-*.whl")
    return found


@pytest.fixture(scope="module")
def tools(wheel, tmp_path_factory):
    """The `bin` folder of a fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    tools = folder / "venv" / "bin"
    install(tools, wheel)
    return tools


def install(tools, wheel, extra=""):
    """Installs the wheel with an extra, under the project's own pins. pip
    refuses extras in constraints."""
    pins = tools / "pins.txt"
    pins.write_text(re.sub(r"\[.*?\]", "", (ROOT / "requirements.txt").read_text()))
    asked = f"gradebook{extra} @ file://{wheel}"
    run(tools / "python", *PIP, "install", "-q", "-c", pins, asked, folder=tools)


def test_without_torch_the_import_says_what_to_install(tools, tmp_path):
    packages = run(tools / "python", *PIP, "list", folder=tmp_path)
    assert "numpy" in packages
    assert "torch" not in packages and "nvidia" not in packages
    refused = subprocess.run(
        [tools / "python", "-c", "import gradebook"], capture_output=True, text=True
    )
    said = refused.stderr.splitlines()[-1]
    assert said.startswith("ImportError: gradebook needs PyTorch")
    assert "pip install torch" in said


def test_the_base_install_needs_neither_streamlit_nor_plotly(tools, wheel, tmp_path):
    install(tools, wheel, "[torch]")
    packages = run(tools / "python", *PIP, "list", folder=tmp_path)
    assert "torch" in packages
    assert "streamlit" not in packages and "plotly" not in packages
    said = run(tools / "python", "-W", "error", "-c", LIBRARY, folder=tmp_path)
    assert said.strip() == str(["correct"] * 4)
    assert "as declared" in run(tools / "gradebook", "check", "run", folder=tmp_path)
    assert "partial_groups" in run(tools / "gradebook", "bugs", folder=tmp_path)
    refused = subprocess.run(
        [tools / "gradebook", "app"], capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "pip install 'gradebook[app]'" in refused.stderr


def test_the_app_runs_from_a_read_only_install(tools, wheel, tmp_path, chromium):
    install(tools, wheel, "[app]")
    (package,) = tools.parent.glob("lib/*/site-packages/gradebook")
    for path in [package, *package.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    (tmp_path / "elsewhere").mkdir()
    given = {"cwd": tmp_path / "elsewhere", "env": os.environ | {"HOME": str(tmp_path)}}
    server = Server(tmp_path, tools / "gradebook", "app", "--", **given).wait()
    page = chromium.new_page()
    page.goto(f"{server.url}/partial_groups")
    page.get_by_role("heading", name="Partial groups").wait_for()
    page.close()
    server.stop()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=5)
