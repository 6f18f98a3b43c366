"""Imports point one way. Read from the import lines of every file that is
there, so a new file is held by itself."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gradebook"

# A module imports what is on its own floor or below. The first name of its
# path that stands here decides; what is new stands on the floor of tools,
# above the engines and their comparison, below the public face.
TOOLS = 6
FLOORS = {
    "errors": 0,
    "late": 0,
    "numerals": 0,
    "source": 0,
    "settings": 1,
    "figures": 1,
    "values": 1,
    "toml_file": 1,
    "batch": 2,
    "table": 3,
    "engine": 3,
    "bugs": 4,
    "scenario": 5,
    "compare": 5,
    "influence": 5,
    "invariants": 5,
    "trainer": 5,
    "": 7,  # the public face, gradebook/__init__.py
    "ui": 8,
    "app": 9,
    "pages": 9,
}
TORCH = {
    "batch",
    "engine",
    "bugs",
    "scenario",
    "compare",
    "influence",
    "invariants",
    # Numbers of a trainer's run, its formulas and its logs.
    "trainer",
    "formula",
    "logs",
    # Engines with several bugs, and a batch under every estimator.
    "engines",
    "matrix",
}
STREAMLIT = {"ui", "app", "pages"}
PLOTLY = {"figures"}


def files():
    found = [*PACKAGE.rglob("*.py"), *ROOT.glob("app.py")]
    found += (ROOT / "pages").glob("*.py")
    return sorted(path for path in found if "__pycache__" not in path.parts)


def module_of(path):
    """'engine.loss' for gradebook/engine/loss.py, '' for the face."""
    inside = PACKAGE in path.parents
    parts = list(path.relative_to(PACKAGE if inside else ROOT).parts)
    parts[-1] = parts[-1].removesuffix(".py")
    return ".".join(part for part in parts if part != "__init__")


FILES = {module_of(path): path for path in files()}
EVERY = pytest.mark.parametrize("module", sorted(FILES))


def part(module):
    return module.split(".")[0]


def floor(module):
    return FLOORS.get(part(module), TOOLS)


def imported(tree, path):
    """The full names a file imports, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def inner(name):
    """The module of this project that a full name means, or none."""
    if name.split(".")[0] not in ("gradebook", "app", "pages"):
        return None
    name = name.removeprefix("gradebook").removeprefix(".")
    while name not in FILES and "." in name:
        name = name.rpartition(".")[0]
    return name if name in FILES else ""


def imports_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return set(imported(tree, path))


IMPORTS = {module: imports_of(path) for module, path in FILES.items()}
INNER = {
    module: {inner(name) for name in names} - {None}
    for module, names in IMPORTS.items()
}


def test_the_files_are_found():
    assert {"", "batch", "engine.loss", "bugs.partial_groups"} <= set(FILES)
    assert "batch" in INNER["engine.loss"]
    assert "engine.segments" in INNER["engine.scales"]


@EVERY
def test_no_module_imports_upward(module):
    above = [name for name in INNER[module] if floor(name) > floor(module)]
    assert not above, f"{module} imports {above}"


@pytest.mark.parametrize(
    "low, high",
    [
        ("batch", "engine"),
        ("engine", "bugs"),
        ("batch", "scenario"),
        ("engine", "compare"),
        ("bugs", ""),
        ("", "ui"),
    ],
)
def test_the_named_arrows_point_one_way(low, high):
    for module in FILES:
        if part(module) == low:
            assert high not in {part(name) for name in INNER[module]}


@EVERY
@pytest.mark.parametrize(
    "library, home",
    [("streamlit", STREAMLIT), ("plotly", PLOTLY), ("torch", TORCH)],
)
def test_a_library_stays_in_its_place(module, library, home):
    libraries = {part(name) for name in IMPORTS[module]}
    if part(module) not in home:
        assert library not in libraries


def test_no_two_modules_below_the_pages_need_each_other():
    below = {m for m in FILES if floor(m) < FLOORS["ui"]}

    def reached(start):
        seen, ahead = set(), [start]
        while ahead:
            for name in INNER[ahead.pop()] - seen:
                seen.add(name)
                ahead.append(name)
        return seen

    assert [module for module in below if module in reached(module)] == []


@EVERY
def test_a_stage_prints_nothing_and_draws_no_chance(module):
    if part(module) not in ("batch", "engine", "bugs"):
        return
    chance = {"random", "numpy.random", "torch.random", "logging"}
    assert not chance & IMPORTS[module]
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(FILES[module].read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"print", "open", "input"}


def python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_library_loads_neither_streamlit_nor_plotly():
    loaded = python("import gradebook, sys; print(*sys.modules)")
    assert "gradebook" in loaded and "torch" in loaded
    assert not {"streamlit", "plotly"} & set(loaded)


@pytest.mark.parametrize(
    "page, pauses", [("partial_groups", 3), ("", 1)], ids=["bug", "home"]
)
def test_a_page_says_its_first_number_without_pandas(page, pauses):
    """To import pandas takes a fifth as long as torch."""
    code = f"""
import sys
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from gradebook.ui import arrival
loaded = []
arrival.pause = lambda _: loaded.append("pandas" in sys.modules)
app = AppTest.from_file("app.py", default_timeout=60)
if page := {page!r}:
    app.query_params |= {{"s": page, "row": "3", "open": "1"}}
    app._page_hash = calc_hash(page)
app.run()
print(len(app.exception), *loaded)
"""
    assert python(code) == ["0", "False", "True", "True"][: 1 + pauses]


def test_the_library_runs_where_neither_is_installed():
    code = """
import sys
sys.modules["streamlit"] = sys.modules["plotly"] = None
import gradebook
batch = gradebook.Batch([0, 0], [1, 3])
for name in gradebook.BUGS:
    gradebook.run(gradebook.bug(name).engine, batch)
print(gradebook.run(gradebook.CORRECT, batch).baseline.tolist())
"""
    assert python(code) == ["[2.0,", "2.0]"]


def test_every_public_name_is_there():
    code = "import gradebook as g; [getattr(g, n) for n in g.__all__]"
    assert python(code) == []


def test_the_server_keeps_no_message_back():
    """An edit runs the first screen and then the page: what a browser has
    let go of in between must be sent again."""
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["global"]["minCachedMessageSize"] >= 1e9


def test_the_server_runs_one_script_of_a_session_at_a_time():
    """Two at once share the session's drafts, and a page chosen while the
    first ends is lost to it."""
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["runner"]["fastReruns"] is False
