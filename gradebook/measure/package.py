"""A trainer's package, as a wheel or installed: its files, and the probes of its
functions."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

from gradebook.analysis.law_check import BROKEN, NOT_MEASURED
from gradebook.core.batch import Batch
from gradebook.core.settings import ESTIMATORS
from gradebook.core.vocabulary import BASELINES, named
from gradebook.engine.pipeline import CORRECT, run
from gradebook.measure.adapters import ADAPTERS
from gradebook.measure.cut import Cut, Files, Function, NotCut
from gradebook.trainers.batches import BATCHES
from gradebook.trainers.child import answer_of, flat
from gradebook.trainers.examination import Probe, examine


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


def with_two_lengths(function: Function, cut: Cut) -> dict[str, str]:
    """The computation of a function that is declared to weight rows by their length,
    from rows of one and of four tokens: the probe's rows all have four, so that there
    its mean is the group's. Empty for any other function, and if its numbers are not
    those that it declares."""
    declared = ESTIMATORS.get(function.declared.get("estimator", ""))
    if declared is None or "length" not in BASELINES[declared.baseline].needs:
        return {}
    for name in ("equal groups", "groups of eight"):
        rewards = BATCHES[name]
        prompt = [number for number, group in enumerate(rewards) for _ in group]
        lengths = [4 if row % 3 else 1 for row in range(len(prompt))]
        mask = [[token < length for token in range(4)] for length in lengths]
        batch = Batch(prompt, flat(rewards), mask=mask, settings=declared)
        call = partial(function.run, cut, lengths=lengths)
        answer = answer_of(call, rewards)
        if answer.trouble or not np.allclose(
            flat(answer.advantages), run(CORRECT, batch).advantage, atol=1e-5
        ):
            return {}
    title = named(declared.baseline, declared.scale).title
    return {"computes": title, "baseline": declared.baseline}


def lines(package: str, version: str, files: Files, on: str) -> Iterator[dict]:
    """One line of data for each of these functions of a release."""
    (trainer,) = (trainer for trainer, name in ADAPTERS if name == package)
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
            **with_two_lengths(function, cut),
        }


NAMES = tuple(package for _, package in ADAPTERS)
"""The packages whose functions can be measured."""


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
