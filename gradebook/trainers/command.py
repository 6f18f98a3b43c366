"""gradebook probe: a function by its name, or the trainer that is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gradebook.core.errors import refuse
from gradebook.trainers.adapters import adapters
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
        probes = _of_trainer(trainer)
    else:
        probes = {str(name): probe(_function(str(name)), declared)}
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


def _function(name: str) -> Any:
    module, colon, inner = name.partition(":")
    sys.path.insert(0, "")
    try:
        function = import_module(module)
        for part in inner.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise refuse("package.module:function", f"{name} ({error})", "probe") from None
    if not callable(function):
        raise refuse("a function", name, "probe")
    return function


def _of_trainer(package: str) -> dict[str, Probe]:
    matching = [each for each in adapters() if package in (each.package, each.trainer)]
    if not matching:
        names = ", ".join(each.package for each in adapters())
        raise refuse(f"one of {names}", package, "--trainer")
    probes, absent = {}, []
    for adapter in matching:
        try:
            version, files = installed(adapter.package)
        except NotCut as error:
            absent.append(str(error))
            continue
        for function, result, where, _ in probes_of(adapter, files, version):
            name = f"{adapter.package} {version} {where} [{function.setting}]"
            probes[name] = result
    if len(absent) == len(matching):
        raise refuse("an installed trainer", "; ".join(absent), "--trainer")
    if not probes:
        raise refuse("a release with its functions", package, "--trainer")
    return probes
