"""Measures released trainers: fetches pinned wheels, probes their functions in a child
process, and writes what the page Trainers shows.

    python -m gradebook.measure                    every pinned wheel
    python -m gradebook.measure --newest --check   compares, and writes nothing

It writes into the package, so it runs in a checkout; the wheel leaves it out.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from gradebook.measure.adapters import ADAPTERS
from gradebook.measure.package import files_of, license_of, lines
from gradebook.trainers.releases import DATA, measured, numbers

WHEELS = Path(__file__).with_name("wheels.toml")

ALONE = ("unshare", "--net", "--map-root-user")
"""Runs a command without a network, if the system can do so."""

CHILD = "from gradebook.measure.wheels import child; child()"


def pinned() -> dict[str, dict[str, Any]]:
    """Package -> python, and versions: version -> sha256, oldest first."""
    return tomllib.loads(WHEELS.read_text("utf-8"))


def fetch(package: str, version: str, cache: Path) -> Path:
    """The wheel, from the cache or the configured index, its hash checked.
    Raises OSError if it cannot be fetched."""
    release, folder = pinned()[package], cache / f"{package}-{version}"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-version", release["python"]]
        command += ["--disable-pip-version-check", "--dest", str(folder)]
        command += [f"{package}=={version}"]
        if subprocess.run(command, capture_output=True).returncode:
            raise OSError(f"{package} {version} cannot be fetched from the index")
    (wheel,) = folder.glob("*.whl")
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != release["versions"][version]:
        raise OSError(f"{wheel.name} is not the pinned file: its hash differs")
    return wheel


def measured_apart(releases: Sequence[tuple[str, str, str]], today: str) -> list[dict]:
    """The lines of releases (package, version, wheel), measured in a process without
    credentials, with a home that it cannot write and, if the system can do so, no
    network."""
    kept = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
    safe = {name: os.environ[name] for name in kept if name in os.environ}
    safe |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", CHILD]
    with suppress(OSError, subprocess.CalledProcessError):
        subprocess.run([*ALONE, "true"], capture_output=True, check=True)
        command = [*ALONE, *command]
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o500)
        done = subprocess.run(
            command,
            env=safe | {"HOME": home, "PYTHONPATH": str(Path(__file__).parents[2])},
            cwd=home,
            input=json.dumps([today, releases]),
            stdout=subprocess.PIPE,
            text=True,
            timeout=900 * len(releases),
            check=True,
        )
    return json.loads(done.stdout)


def child() -> None:
    """What the child process does: releases in, their lines out, as JSON."""
    warnings.simplefilter("ignore")
    rows: list[dict] = []
    today, releases = json.load(sys.stdin)
    for package, version, wheel in releases:
        (release,) = metadata.distributions(path=[wheel])
        measured = [*lines(package, version, files_of(release), today)]
        print(f"{package} {version}: {len(measured)} functions", file=sys.stderr)
        rows += [line | {"license": license_of(release)} for line in measured]
    print(json.dumps(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all was measured and, with --check, equals the shipped data; 1 if a number
    differs; 2 if a wheel could not be fetched."""
    parser = argparse.ArgumentParser(prog="python -m gradebook.measure")
    parser.add_argument("--newest", action="store_true", help="of each package")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--cache", type=Path, help="a folder to keep wheels in")
    options = parser.parse_args(arguments)
    troubles, releases = [], []
    with tempfile.TemporaryDirectory() as folder:
        cache = (options.cache or Path(folder)).resolve()
        for package, release in pinned().items():
            versions = sorted(release["versions"], key=numbers)
            for version in versions[-1:] if options.newest else versions:
                try:
                    wheel = fetch(package, version, cache)
                    releases.append((package, version, str(wheel)))
                except OSError as error:
                    troubles.append(str(error))
        rows = measured_apart(releases, datetime.now(UTC).date().isoformat())
    print(f"{len(rows)} functions are measured.", *troubles, sep="\n")
    differing = []
    if options.check:
        differing = differences(rows, measured())
        print("\n".join(differing) or "They are as shipped.")
    else:
        write(rows)
    return 1 if differing else 2 if troubles else 0


COMPARED = ("computes", "laws", "ragged", "missing", "lone_row", "float_type", "file")
"""The fields that must equal the shipped ones, besides the names of the bugs."""


def differences(rows: Sequence[dict], shipped: Sequence[dict]) -> list[str]:
    """The differences between a measurement and the shipped data, in words."""

    def compared(line: dict) -> dict[str, Any]:
        key = " ".join(line[x] for x in ("package", "version", "file", "setting"))
        values = {name: line[name] for name in COMPARED} | {"bugs": [*line["bugs"]]}
        return {f"{key}: {name}": value for name, value in values.items()}

    before = {key: value for line in shipped for key, value in compared(line).items()}
    return [
        f"{key} is {value}, was {before.get(key)}"
        for line in rows
        for key, value in compared(line).items()
        if before.get(key) != value
    ]


def write(rows: Sequence[dict]) -> None:
    """Writes the lines; lines of other releases are kept."""
    again = {(line["package"], line["version"]) for line in rows}
    every = [x for x in measured() if (x["package"], x["version"]) not in again]
    every += rows
    order = [package for _, package in ADAPTERS]
    every.sort(key=lambda x: (order.index(x["package"]), numbers(x["version"])))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in every)
    DATA.write_text(text, "utf-8")
