"""Measures released trainers: fetches pinned wheels, cuts their functions, probes
them in a child process, and writes what the page shows. Also the command that probes
one function, or a trainer that is installed.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from gradebook.analysis.law_check import BROKEN, NOT_MEASURED
from gradebook.core.errors import refuse
from gradebook.logs.report import escaped
from gradebook.trainers.adapters import ADAPTERS
from gradebook.trainers.batches import BATCHES
from gradebook.trainers.child import answer_of
from gradebook.trainers.cut import Cut, Files, Function, NotCut
from gradebook.trainers.probe import Probe, examine, probe
from gradebook.trainers.releases import DATA, measured, numbers

WHEELS = Path(__file__).with_name("wheels.toml")

ALONE = ("unshare", "--net", "--map-root-user")
"""Runs a command without a network, where the system has it and allows it."""

CHILD = "from gradebook.trainers.measure import child; child()"


def pinned() -> dict[str, dict[str, Any]]:
    """Package -> python, and versions: version -> sha256, oldest first."""
    return tomllib.loads(WHEELS.read_text("utf-8"))


def fetch(package: str, version: str, cache: Path) -> Path:
    """The wheel, from the cache or the configured index, its hash checked.
    Raises OSError where it cannot be had."""
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


def files_of(release: metadata.Distribution) -> Files:
    """The files of a release, whether it is installed or a wheel."""
    inside = f"{release.name}-{release.version}.data/purelib"  # of some wheels

    def read(path: str) -> str | None:
        for place in (path, f"{inside}/{path}"):
            file: Any = release.locate_file(place)
            if file.is_file():
                return file.read_text("utf-8")
        return None

    return read


def license_of(release: metadata.Distribution) -> str:
    about = release.metadata.json
    named = str(about.get("license_expression") or about.get("license") or "")
    classifiers = [c for c in about.get("classifier", ()) if c.startswith("License ::")]
    lines = named.strip().splitlines() or [c.split(" :: ")[-1] for c in classifiers]
    return [*lines, "not named"][0]


def probes(
    functions: Sequence[Function], files: Files, version: str
) -> Iterator[tuple[Function, Probe, Cut]]:
    """The probe of each function that can be cut and answers some batch."""
    for function in functions:
        try:
            cut = function.cut(files, version)
        except NotCut:
            continue
        call = partial(answer_of, partial(function.run, cut))
        result = examine(call, function.declared)
        troubles = result.troubles.values()
        absent = any(text.startswith(NotCut.__name__) for text in troubles)
        if len(troubles) < len(BATCHES) and (result.computes or not absent):
            yield function, result, cut


def lines(package: str, version: str, files: Files, on: str) -> Iterator[dict]:
    """One line of data for each of these functions of a release."""
    (trainer,) = (trainer for trainer, its in ADAPTERS if its == package)
    for function, result, cut in probes(ADAPTERS[trainer, package], files, version):
        answers = result.to_dict()
        laws = answers["laws"] | dict.fromkeys(function.untold, NOT_MEASURED)
        yield {
            "trainer": trainer,
            "package": package,
            "version": version,
            "file": cut.where,
            "function": cut.name,
            **{n: getattr(function, n) for n in ("setting", "reached", "default")},
            **answers["convention"],
            "computes": answers["computes"],
            "as_declared": answers["matches"],
            "laws": laws,
            "shown": {n: s for n, s in answers["shown"].items() if laws[n] == BROKEN},
            "bugs": answers["bugs"],
            "measured_on": on,
        }


def measured_apart(releases: Sequence[tuple[str, str, str]], today: str) -> list[dict]:
    """The lines of releases (package, version, wheel), measured in a process without
    credentials, with a home that it cannot write and, where that can be, no network."""
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
    """0 when all was measured and, with --check, is as it is shipped; 1 where a
    number differs; 2 where a wheel could not be had."""
    parser = argparse.ArgumentParser(prog="python -m gradebook.trainers")
    parser.add_argument("command", choices=["measure"])
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
"""What must be as it was shipped, beside the names of the bugs."""


def differences(rows: Sequence[dict], shipped: Sequence[dict]) -> list[str]:
    """Where a measurement says something else than the shipped data."""

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
    """Writes the lines; those of releases that are not among these stay."""
    again = {(line["package"], line["version"]) for line in rows}
    every = [x for x in measured() if (x["package"], x["version"]) not in again]
    every += rows
    order = [package for _, package in ADAPTERS]
    every.sort(key=lambda x: (order.index(x["package"]), numbers(x["version"])))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in every)
    DATA.write_text(text, "utf-8")


# gradebook probe


def probe_command(
    name: str | None, trainer: str | None, declared: Mapping | None, form: str
) -> int:
    """Probes, prints, and gives the exit code as the check does. Raises
    GradebookError for a function or a trainer that is not there."""
    if bool(name) == bool(trainer) or (trainer and declared):
        raise refuse("MODULE:FUNCTION, or --trainer alone", "another mix", "probe")
    if trainer:
        results = dict(probes_of_trainer(trainer))
    else:
        sys.path.insert(0, "")
        try:
            function = resolve_name(str(name))
            if not callable(function):
                raise ValueError("no function")
        except Exception as error:
            problem = f"{name} ({error})"
            raise refuse("package.module:function", problem, "probe") from None
        results = {str(name): probe(function, declared)}
    if not results:
        packages = ", ".join(package for _, package in ADAPTERS)
        raise refuse(f"a known, installed release of {packages}", trainer, "--trainer")
    if form == "json":
        print(json.dumps({key: result.to_dict() for key, result in results.items()}))
    elif form == "github":
        for key, result in results.items():
            level = ("notice", "error", "warning")[result.exit_code]
            print(f"::{level} title={escaped(key, ':,')}::{escaped(str(result))}")
    else:
        print("\n\n".join(f"{key}\n{result}" for key, result in results.items()))
    codes = {result.exit_code for result in results.values()}
    return 1 if 1 in codes else max(codes)


def probes_of_trainer(name: str) -> Iterator[tuple[str, Probe]]:
    """The probes of a trainer's packages that are installed, with their places."""
    for (trainer, package), functions in ADAPTERS.items():
        if name in (trainer, package):
            with suppress(metadata.PackageNotFoundError):
                release = metadata.distribution(package)
                files, version = files_of(release), release.version
                for function, result, cut in probes(functions, files, version):
                    place = f"{package} {version} {cut.where} [{function.setting}]"
                    yield place, result
