"""Cuts a trainer's function out of its file by name, without an import.

Its syntax tree is compiled together with what it names: other definitions of its
file, what it imports from its own package, and real modules of torch, NumPy and
the standard library. What cannot be found raises NotCut, and is not measured.
"""

import __future__

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
import torch

from gradebook.measure.shapes import TrainerRows
from gradebook.trainers.child import Rewards
from gradebook.trainers.releases import numbers

REAL = {*sys.stdlib_module_names, "torch", "numpy", "typing_extensions"}
"""Packages that a cut function may use as they are."""

Files = Callable[[str], "str | None"]
"""A path inside a package -> the file's text, or None."""


class NotCut(AttributeError):
    """A name is not where the adapter looks for it, or not in a trainer's `self`."""


class Silent:
    """Replaces a logger or a store of metrics: each of its attributes, calls and items
    is the object itself, and it keeps nothing."""

    def __getattr__(self, name: str) -> "Silent":
        if name.startswith("__"):  # torch and NumPy ask objects for their protocols
            raise AttributeError(name)
        return self

    def __call__(self, *values: Any, **named: Any) -> "Silent":
        return self

    def __getitem__(self, key: Any) -> "Silent":
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


STUBS: dict[str, Any] = {
    "__name__": "__main__",
    "logger": Silent(),
    "jax": None,
    "jnp": np,
    # verl 0.6.0 to 0.7.0 asks for a device and gets a module, unless
    # VERL_FORCE_DEVICE is set.
    "get_torch_device": lambda: torch.device("cpu"),
}


class Module(dict):
    """One file: the globals of its definitions, each of which is made when its name is
    first read. `others` are the files of the package by path."""

    def __init__(self, path: str, files: Files, others: dict | None = None) -> None:
        super().__init__(STUBS)
        text = files(path)
        if text is None:
            raise NotCut(f"no file {path}")
        self.path, self.files = path, files
        self.others = {} if others is None else others
        self.others[path] = self
        self.nodes: dict[str, ast.stmt] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in _statements(ast.parse(text).body):
            self.imports.update(imported(node, path))
            self.nodes.update(dict.fromkeys(stored(node), node))

    def __missing__(self, name: str) -> Any:
        if name in self.imports:
            self[name] = self._foreign(*self.imports[name])
        else:
            exec(self._compiled([self.nodes[name]]), self)
        return self[name]

    def cut(self, name: str, after: str = "", before: str = "") -> "Cut":
        """`function`, `Class`, `Class.method`, or `.method` of the first class that
        has it, as a callable.

        With `after` and `before` only some statements: from the first that uses
        `after` once it has its value, up to the first that mentions `before`, as
        a function that takes variables and gives back all variables.
        """
        node = self._find(name)
        if after:
            body = _between(node, after, before)
            code = self._compiled(body)
            node = body[0]

            def run(**variables: Any) -> dict[str, Any]:
                space = copy(self)
                space.update(variables)
                exec(code, space)
                return space

        elif "." in name:
            exec(self._compiled([node]), self)
            run = self.pop(node.name)
        else:
            run = self[name]
        return Cut(run, self, f"{self.path}:{node.lineno}", name.lstrip("."))

    def _find(self, name: str) -> Any:
        owner, _, inner = name.partition(".")
        nodes = [node for key, node in self.nodes.items() if owner in ("", key)]
        if inner:
            bodies = [node.body for node in nodes if isinstance(node, ast.ClassDef)]
            nodes = [n for n in sum(bodies, []) if getattr(n, "name", "") == inner]
        if not nodes:
            raise NotCut(f"{self.path} has no {name}")
        return nodes[0]

    def _compiled(self, nodes: list[ast.stmt]) -> CodeType:
        plain = [_Plain(self).visit(node) for node in nodes]
        tree = ast.fix_missing_locations(ast.Module(plain, []))
        for node in plain:
            if isinstance(node, ast.ClassDef):  # its body asks for no missing name
                for name in mentioned(node) & {*self.nodes, *self.imports}:
                    with suppress(Exception):
                        self[name]
        flag = __future__.annotations.compiler_flag
        return compile(tree, self.path, "exec", flags=flag)

    def _foreign(self, module: str, name: str) -> Any:
        if name == "logger":
            return STUBS["logger"]
        if module.partition(".")[0] in REAL:
            loaded = import_module(module)
            return getattr(loaded, name) if name else loaded
        folder = module.replace(".", "/")
        whole = f"{folder}/{name}.py" if name else f"{folder}.py"
        for path in (whole, f"{folder}.py", f"{folder}/__init__.py"):
            if path in self.others or self.files(path) is not None:
                file = self.others.get(path) or Module(path, self.files, self.others)
                return file[name] if name and path != whole else Stand(file.__getitem__)
        raise NotCut(f"{self.path} needs {module}")


def _between(function: Any, after: str, before: str) -> list[ast.stmt]:
    body = function.body
    arguments = {argument.arg for argument in function.args.args}
    stores = [
        n for n, names in enumerate([arguments, *map(stored, body)]) if after in names
    ]
    ends = [n for n, statement in enumerate(body) if before in mentioned(statement)]
    end = next((n for n in ends if stores and n >= stores[0]), 0)
    start = max((n for n in stores if n <= end), default=0)
    uses = [n for n in range(start, end) if after in mentioned(body[n])]
    if not uses:
        raise NotCut(f"{function.name} has no {after} before {before}")
    return body[uses[0] : end]


class Stand(SimpleNamespace):
    """Replaces a module or a trainer: a name that is no attribute comes from
    `other`."""

    def __init__(self, other: Callable[[str], Any], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._other = other

    def __getattr__(self, name: str) -> Any:
        return self._other(name)


class _Plain(ast.NodeTransformer):
    """Functions without decorators, on the CPU, inner imports looked up."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        plain = ("staticmethod", "classmethod", "property")
        kept = [d for d in node.decorator_list if getattr(d, "id", "") in plain]
        node.decorator_list = kept
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("cpu") if node.value == "cuda" else node

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> ast.AST:
        for name, place in imported(node, self.module.path):
            self.module.imports.setdefault(name, place)
        return ast.Pass()

    visit_ImportFrom = visit_Import


def imported(node: ast.AST, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """(name, (module, name there)) for each name of an import statement."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or root, (root, "")
    if isinstance(node, ast.ImportFrom):
        package = path.split("/")[: -node.level] if node.level else []
        module = ".".join([*package, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, (module, alias.name)


def stored(node: ast.AST) -> set[str]:
    """Names that a statement defines or stores into, without inner scopes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(getattr(part, "ctx", None), ast.Store):
            target = part.value if isinstance(part, ast.Subscript) else part
            names |= {target.id} if isinstance(target, ast.Name) else set()
    return names


def mentioned(node: ast.AST) -> set[str]:
    """Names that occur anywhere in a statement, but for annotations."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements(node.body)
            yield from _statements(node.orelse)
        else:
            yield node


@dataclass(frozen=True)
class Cut:
    """A function, or statements of it, in a file; `where` is file:line."""

    run: Callable[..., Any]
    module: Module
    where: str
    name: str

    def trainer(self, nested: str = "", **attributes: Any) -> Any:
        """Replaces a trainer's `self` or its configuration: these attributes, itself
        under the names in `nested`, and the methods of its class."""

        def method(name: str) -> Any:
            return partial(self.module.cut(f".{name}").run, trainer)

        trainer = Stand(method, **attributes)
        vars(trainer).update(dict.fromkeys(nested.split(), trainer))
        return trainer


class Function:
    """One function of a trainer, under one choice of its settings.

    setting    what was chosen, in the trainer's own words
    declared   the computation that its documentation asks for
    call       how it is called: cut function, rows, settings -> advantages [R]
    reached    the settings that reach it
    places     "file name" in some release, or "file name after before" for statements
               of it; the first that exists counts
    default    whether a user meets it without choosing it
    since, before  the versions that have it
    untold     laws that are not measured, because the stand-in for a missing library
               rounds differently
    settings   what `call` is given beside the rows; "name=value" in `setting` is one

    Text may hold {name}, the setting's first word, and in `reached` any setting.
    """

    def __init__(
        self,
        setting: str,
        declared: Mapping[str, Any],
        *,
        call: Callable[..., Any],
        reached: str,
        places: Sequence[str],
        default: bool = False,
        since: str = "0",
        before: str = "9999",
        untold: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        name, *_ = re.findall(r"\w+", setting)
        for key, word in re.findall(r"(\w+)=(\w+)", setting):
            settings[key] = {"True": True, "False": False}.get(word, word)
        self.setting, self.declared, self.call = setting, declared, call
        self.reached = reached.format(name=name, **settings)
        self.places = [place.format(name=name) for place in places]
        self.default, self.since, self.before = default, since, before
        self.untold = untold
        self.settings = {
            key: value.format(name=name) if isinstance(value, str) else value
            for key, value in settings.items()
        }

    def cut(self, files: Files, version: str) -> Cut:
        """The function in a release's files. Raises NotCut."""
        if not numbers(self.since) <= numbers(version) < numbers(self.before):
            raise NotCut(f"not in {version}")
        for place in self.places:
            path, *names = place.split()
            with suppress(NotCut):
                return Module(path, files).cut(*names)
        raise NotCut(f"none of {', '.join(self.places)}")

    def run(
        self,
        cut: Cut,
        groups: Rewards,
        weights: Sequence[float] | None = None,
        dtype: torch.dtype = torch.float32,
        lengths: Sequence[int] | None = None,
    ) -> list[list[float]]:
        """Its advantages for rewards by prompt, as float64."""
        rows = TrainerRows(groups, weights, dtype, lengths)
        advantages = self.call(cut, rows, **self.settings)
        values = torch.as_tensor(advantages, dtype=torch.float64)
        if values.shape != (len(rows.prompt),):
            shape = " by ".join(map(str, values.shape))
            raise ValueError(f"{len(rows.prompt)} rows in, {shape} advantages out")
        return rows.by_prompt(values.tolist())


def at(reached: str, *places: str, **settings: Any) -> Callable[[Callable], partial]:
    """Makes a call the functions at one of these places: each is given
    its setting, what is declared, and more of what a Function has."""
    every = {"reached": reached, "places": places, **settings}
    return lambda call: partial(Function, call=call, **every)
