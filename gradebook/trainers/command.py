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
from gradebook.trainers.measure import installed, probed
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
        found = _of_trainer(trainer)
    else:
        found = {str(name): probe(_function(str(name)), declared)}
    if form == "json":
        print(json.dumps({key: one.to_dict() for key, one in found.items()}))
    elif form == "github":
        print(*(_annotation(key, one) for key, one in found.items()), sep="\n")
    else:
        print("\n\n".join(f"{key}\n{one}" for key, one in found.items()))
    codes = {one.exit_code for one in found.values()}
    return 1 if 1 in codes else max(codes)


def _function(name: str) -> Any:
    module, colon, inner = name.partition(":")
    sys.path.insert(0, "")
    try:
        found = import_module(module)
        for part in inner.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise refuse("package.module:function", f"{name} ({error})", "probe") from None
    if not callable(found):
        raise refuse("a function", name, "probe")
    return found


def _of_trainer(package: str) -> dict[str, Probe]:
    """The probes of an installed trainer's functions."""
    known = [one for one in adapters() if package in (one.package, one.trainer)]
    if not known:
        names = ", ".join(one.package for one in adapters())
        raise refuse(f"one of {names}", package, "--trainer")
    found, absent = {}, []
    for adapter in known:
        try:
            version, files = installed(adapter.package)
        except NotCut as error:
            absent.append(str(error))
            continue
        for one in adapter.functions:
            try:
                own, where, _ = probed(one, files, version)
            except NotCut:
                continue
            found[f"{adapter.package} {version} {where} [{one.setting}]"] = own
    if len(absent) == len(known):
        raise refuse("an installed trainer", "; ".join(absent), "--trainer")
    if not found:
        raise refuse("a release with its functions", package, "--trainer")
    return found


def _annotation(name: str, found: Probe) -> str:
    level = {0: "notice", 1: "error", 2: "warning"}[found.exit_code]
    return f"::{level} title={name}::" + str(found).replace("\n", "%0A")
