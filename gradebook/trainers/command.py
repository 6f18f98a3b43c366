"""gradebook probe: a function by its name, or the trainer that is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gradebook.core.errors import refuse
from gradebook.trainers.adapters import ADAPTERS
from gradebook.trainers.cut import NotCut
from gradebook.trainers.measure import installed
from gradebook.trainers.measure import probes as probes_of
from gradebook.trainers.probe import Probe, probe


def probe_command(
    name: str | None,
    trainer: str | None,
    declared: Mapping[str, Any] | None,
    form: str,
) -> int:
    """Probes, prints, and gives the exit code: 0, 1 or 2 as the check.
    Raises GradebookError for a function or a trainer that is not there."""
    if (name is None) == (trainer is None):
        raise refuse("MODULE:FUNCTION or --trainer", "both or none", "probe")
    if trainer is not None:
        probes = probes_of_trainer(trainer)
    else:
        probes = {str(name): probe(function_named(str(name)), declared)}
    if form == "json":
        print(json.dumps({key: result.to_dict() for key, result in probes.items()}))
    elif form == "github":
        for name, result in probes.items():
            level = ("notice", "error", "warning")[result.exit_code]
            print(f"::{level} title={name}::" + str(result).replace("\n", "%0A"))
    else:
        print("\n\n".join(f"{key}\n{result}" for key, result in probes.items()))
    codes = {result.exit_code for result in probes.values()}
    return 1 if 1 in codes else max(codes)


def function_named(name: str) -> Any:
    """The function of `package.module:function`. Raises GradebookError."""
    module, _, inner = name.partition(":")
    sys.path.insert(0, "")
    try:
        function = import_module(module)
        for part in inner.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise refuse("package.module:function", f"{name} ({error})", "probe") from None
    return function


def probes_of_trainer(name: str) -> dict[str, Probe]:
    """The probes of an installed trainer, or of those of its packages that are
    installed. Raises GradebookError where there is none."""
    matching = [each for each in ADAPTERS if name in (each.package, each.trainer)]
    if not matching:
        names = ", ".join(each.package for each in ADAPTERS)
        raise refuse(f"one of {names}", name, "--trainer")
    probes, absent = {}, []
    for adapter in matching:
        try:
            version, files = installed(adapter.package)
        except NotCut as error:
            absent.append(str(error))
            continue
        for function, result, cut in probes_of(adapter, files, version):
            place = f"{adapter.package} {version} {cut.where} [{function.setting}]"
            probes[place] = result
    if len(absent) == len(matching):
        raise refuse("an installed trainer", "; ".join(absent), "--trainer")
    if not probes:
        raise refuse("a release with its functions", name, "--trainer")
    return probes
