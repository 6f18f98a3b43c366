"""Measures released trainers: fetches pinned wheels, cuts their functions,
probes them in a child process, and writes what the page shows.

    python -m gradebook.trainers measure [--newest] [--cache DIR] [--check]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from gradebook.analysis.law_check import BROKEN, NOT_MEASURED
from gradebook.trainers.adapter import Adapter, Function, numbers
from gradebook.trainers.adapters import adapters
from gradebook.trainers.batches import BATCHES
from gradebook.trainers.cut import Files, NotCut
from gradebook.trainers.probe import Probe, examine
from gradebook.trainers.releases import DATA, measured

WHEELS = Path(__file__).with_name("wheels.toml")
"""Package -> python, versions and the hashes of their wheels."""


def pinned() -> dict[str, dict[str, Any]]:
    """The wheels file: python, and version -> sha256, oldest first."""
    return tomllib.loads(WHEELS.read_text("utf-8"))


def fetch(package: str, version: str, cache: Path) -> Path:
    """The wheel, from the cache or the configured index, its hash checked.
    Raises OSError where it cannot be had."""
    of = pinned()[package]
    folder = cache / f"{package}-{version}"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-version", of["python"]]
        command += ["--disable-pip-version-check", "--dest", str(folder)]
        done = subprocess.run(
            [*command, f"{package}=={version}"], capture_output=True, text=True
        )
        if done.returncode:
            raise OSError(f"{package} {version} cannot be fetched from the index")
    (wheel,) = folder.glob("*.whl")
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != of["versions"][version]:
        raise OSError(f"{wheel.name} is not the pinned file: its hash differs")
    return wheel


def in_wheel(wheel: Path) -> Files:
    """The files of a wheel, as they would be installed."""
    archive = zipfile.ZipFile(wheel)
    data = re.compile(r"^[^/]+\.data/(purelib|platlib)/")
    names = {data.sub("", name): name for name in archive.namelist()}
    return lambda path: archive.read(names[path]).decode() if path in names else None


def installed(package: str) -> tuple[str, Files]:
    """The version and the files of an installed package. Raises NotCut."""
    try:
        release = distribution(package)
    except PackageNotFoundError:
        raise NotCut(f"{package} is not installed here") from None

    def read(path: str) -> str | None:
        file = Path(str(release.locate_file(path)))
        return file.read_text("utf-8") if file.is_file() else None

    return release.version, read


def license_of(wheel: Path) -> str:
    """What the wheel's metadata names as its licence."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(path).decode()
    named = re.search(r"^License(?:-Expression)?: (.{1,60})$", text, re.M)
    sorted_out = re.search(r"^Classifier: License :: (?:.* :: )?(.+)$", text, re.M)
    licence = named or sorted_out
    return licence[1].strip() if licence else "not named"


def probed(function: Function, files: Files, version: str) -> tuple[Probe, str, str]:
    """The probe of one function of a release, its file:line and its name.
    Raises NotCut, also where it answers no batch."""
    cut = function.cut(files, version)
    refused: list[NotCut] = []

    def call(rewards: Any) -> Any:
        try:
            return function.run(cut, rewards)
        except NotCut as error:
            refused.append(error)
            raise

    result = examine(call, function.declared)
    if refused and not result.computes:
        raise refused[0]
    if len(result.troubles) == len(BATCHES):
        raise NotCut(f"no batch has an answer: {result.troubles[next(iter(BATCHES))]}")
    return result, cut.where, cut.name


def probes(
    adapter: Adapter, files: Files, version: str
) -> Iterator[tuple[Function, Probe, str, str]]:
    """Each function of a release that could be cut, as `probed` finds it."""
    for function in adapter.functions:
        with suppress(NotCut):
            yield function, *probed(function, files, version)


def lines(package: str, version: str, files: Files, on: str) -> Iterator[dict]:
    """One line of data for each function of a release that could be cut."""
    for adapter in [each for each in adapters() if each.package == package]:
        for function, probe, where, name in probes(adapter, files, version):
            answers = probe.to_dict()
            laws = answers["laws"] | dict.fromkeys(function.untold, NOT_MEASURED)
            broken = {n: s for n, s in answers["shown"].items() if laws[n] == BROKEN}
            yield {
                "trainer": adapter.trainer,
                "package": package,
                "version": version,
                "file": where,
                "function": name,
                "setting": function.setting,
                "reached": function.reached,
                "default": function.default,
                **answers["convention"],
                "computes": answers["computes"],
                "as_declared": answers["matches"],
                "laws": laws,
                "shown": broken,
                "bugs": answers["bugs"],
                "measured_on": on,
            }


def measure_package(package: str, wheels: Mapping[str, Path], on: str) -> list[dict]:
    """The lines of releases, version -> wheel, measured in a child process that
    has no credentials, a home that it cannot write and, where the system allows
    it, no network. Raises OSError."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o500)
        kept = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
        safe = {name: os.environ[name] for name in kept if name in os.environ}
        safe |= {"HOME": home, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        safe |= {"PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-m", "gradebook.trainers", "package", package, on]
        command += [f"{version}={wheel.resolve()}" for version, wheel in wheels.items()]
        alone = ["unshare", "--net", "--map-root-user"]
        for prefix in (alone, []):
            try:
                done = subprocess.run(
                    [*prefix, *command],
                    env=safe,
                    cwd=home,
                    capture_output=True,
                    text=True,
                    timeout=900 * len(wheels),
                )
            except FileNotFoundError:
                continue  # no unshare on this system
            if not done.returncode:
                return json.loads(done.stdout)
            if "unshare" not in done.stderr:
                break
    raise OSError(f"{package}: {done.stderr.strip()[-300:]}")


def measure(cache: Path, newest: bool, today: str) -> tuple[list[dict], list[str]]:
    """Lines of all pinned releases, or the newest of each; and what could not
    be had."""
    begun = time.monotonic()
    rows: list[dict] = []
    troubles: list[str] = []
    for package, of in pinned().items():
        versions, wheels = sorted(of["versions"], key=numbers), {}
        for version in versions[-1:] if newest else versions:
            try:
                wheels[version] = fetch(package, version, cache)
            except OSError as error:
                troubles.append(str(error))
        try:
            release = measure_package(package, wheels, today) if wheels else []
        except OSError as error:
            troubles.append(str(error))
            continue
        rows += release
        print(f"{package} {', '.join(wheels)}: {len(release)} functions", flush=True)
    minutes, seconds = divmod(round(time.monotonic() - begun), 60)
    print(f"{len(rows)} functions in {minutes} min {seconds} s, downloads included")
    return rows, troubles


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; 0 when all was measured and, with --check, is as it is
    shipped, 1 where a number differs, 2 where a wheel could not be had."""
    top = argparse.ArgumentParser(prog="python -m gradebook.trainers")
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("measure")
    command.add_argument("--newest", action="store_true", help="of each package")
    command.add_argument("--check", action="store_true", help="compare, do not write")
    command.add_argument("--cache", type=Path, help="a folder to keep wheels in")
    child = commands.add_parser("package")
    child.add_argument("package")
    child.add_argument("on")
    child.add_argument("wheels", nargs="+", metavar="VERSION=WHEEL")
    options = top.parse_args(arguments)
    if options.command == "package":
        warnings.simplefilter("ignore")
        releases = [each.split("=", 1) for each in options.wheels]
        rows = [
            {**line, "license": license_of(Path(wheel))}
            for version, wheel in releases
            for line in lines(
                options.package, version, in_wheel(Path(wheel)), options.on
            )
        ]
        print(json.dumps(rows))
        return 0
    today = datetime.now(UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as folder:
        rows, troubles = measure(options.cache or Path(folder), options.newest, today)
    print(*troubles, sep="\n")
    if options.check:
        differing = differences(rows, measured())
        print(*differing, sep="\n")
        if not differing:
            print(f"{len(rows)} functions: as shipped.")
        return 1 if differing else 2 if troubles else 0
    again = {(line["package"], line["version"]) for line in rows}
    kept = [x for x in measured() if (x["package"], x["version"]) not in again]
    write([*kept, *rows])
    return 2 if troubles else 0


TOLD = ("computes", "laws", "ragged", "missing", "lone_row", "float_type", "file")
"""What must be as it was shipped."""


def differences(rows: Sequence[dict], shipped: Sequence[dict]) -> list[str]:
    """Where a measurement says something else than the shipped data."""

    def key(line: dict) -> tuple[str, ...]:
        return line["package"], line["version"], line["file"], line["setting"]

    by_key = {key(line): line for line in shipped}
    differing = []
    for line in rows:
        old = by_key.get(key(line))
        if old is None:
            differing.append(f"{' '.join(key(line))}: not in the shipped data")
            continue
        names = [n for n in TOLD if old[n] != line[n]]
        names += ["bugs"] if list(old["bugs"]) != list(line["bugs"]) else []
        differing += [
            f"{' '.join(key(line))}: {name} is {line[name]}, was {old[name]}"
            for name in names
        ]
    return differing


def write(rows: Sequence[dict]) -> None:
    """Writes the data, a line for each function of each release."""
    order = {adapter.package: n for n, adapter in enumerate(adapters())}
    ordered = sorted(
        rows,
        key=lambda line: (order[line["package"]], numbers(line["version"])),
    )
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in ordered)
    DATA.write_text(text, "utf-8")
