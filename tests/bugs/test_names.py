"""No code outside gradebook/bugs/ names a bug, and no code or text counts
them: what is known of a bug comes from its record."""

import ast
import re
from pathlib import Path

import gradebook

ROOT = Path(__file__).parents[2]
OWN = ROOT / "gradebook" / "bugs"
FILES = sorted(
    path
    for pattern in ("gradebook/**/*.py", "pages/*.py", "app.py")
    for path in ROOT.glob(pattern)
    if OWN not in path.parents
)
ASSETS = sorted(
    path
    for ending in ("js", "css", "jinja", "html")
    for path in ROOT.glob(f"gradebook/**/*.{ending}")
)
NAME = re.compile(rf"(?<![\w-])({'|'.join(gradebook.BUGS)})(?![\w-])")
COUNT = re.compile(
    r"\b(five|six|ten|fifteen|twenty|5|15|20)"
    r"( \w+){0,2} bugs\b",
    re.IGNORECASE,
)


HEADERS = {"gradebook/core/columns.py": ["prompt_text"]}
"""Headers of trainers' logs that happen to read as a bug's name."""


def docstrings(tree):
    """The constants of the tree that are docstrings."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        body = getattr(node, "body", None) or [None]
        if isinstance(node, holders) and isinstance(body[0], ast.Expr):
            yield body[0].value


def named_bugs(source):
    """The bugs that a module names in a literal or imports."""
    tree = ast.parse(source)
    skipped = {id(node) for node in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in skipped:
                yield from NAME.findall(node.value)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", None) or ""
            paths = [f"{module}.{alias.name}" for alias in node.names]
            for path in paths:
                if "gradebook.bugs." in path:
                    yield from NAME.findall(path.replace(".", " "))


def relative(path):
    return str(path.relative_to(ROOT))


MODULES = [path for path in FILES if path.parent.name != "pages"]


def test_no_module_names_a_bug():
    found = {relative(p): [*named_bugs(p.read_text())] for p in MODULES}
    assert {path: names for path, names in found.items() if names} == HEADERS


def test_no_asset_names_a_bug():
    assert [relative(p) for p in ASSETS if NAME.search(p.read_text())] == []


def test_nothing_counts_the_bugs():
    paths = [*FILES, *ASSETS]
    assert [relative(p) for p in paths if COUNT.search(p.read_text())] == []


def test_a_page_names_its_own_bug_only():
    for path in (ROOT / "pages").glob("*.py"):
        named = {*named_bugs(path.read_text())}
        assert len(named) <= 1, path
        assert not named or path.stem.endswith(named.pop())
