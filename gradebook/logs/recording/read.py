"""Reads a folder of recordings: every step once, whole, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gradebook.core.errors import GradebookError
from gradebook.logs.recording.recorder import FORMAT, recorded_facts


@dataclass(frozen=True)
class Part:
    """One rank's rows of one step: where they stand.

    first    the step's first row in the file
    rows     how many there are
    session  when the recorder started: the latest one counts
    width    the padded width of the step's mask; none without a mask
    """

    path: Path
    first: int
    rows: int
    session: int
    ranks: int
    width: int | None


@dataclass(frozen=True)
class Recording:
    """A folder of recordings.

    parts     step -> rank -> where its rows stand, steps in order
    declared  what the trainer was configured with
    types     column -> the float type that the trainer handed over
    problems  lines that recorders wrote where something went wrong
    """

    parts: Mapping[int, Mapping[int, Part]]
    declared: Mapping[str, Any]
    types: Mapping[str, str]
    problems: tuple[str, ...] = field(default=())

    def missing(self) -> dict[int, tuple[int, ...]]:
        """Step -> the ranks whose rows are not there."""
        found = {}
        for step, parts in self.parts.items():
            ranks = max(parts.values(), key=lambda p: p.session).ranks
            absent = tuple(r for r in range(ranks) if r not in parts)
            if absent:
                found[step] = absent
        return found

    def tables(self, rows: int = 65_536) -> Iterator[pa.Table]:
        """The rows of whole steps, steps in order, ranks in order within a
        step, some `rows` rows at a time. Steps with missing ranks are left
        out."""
        absent = self.missing()
        held: list[pa.Table] = []
        open_files: dict[Path, pa.Table] = {}
        for step, parts in self.parts.items():
            if step in absent:
                continue
            used = {part.path for part in parts.values()}
            open_files = {
                path: open_files.get(path) or _table(path) for path in used
            }
            held += [
                open_files[parts[rank].path].slice(
                    parts[rank].first, parts[rank].rows
                )
                for rank in sorted(parts)
            ]
            if sum(table.num_rows for table in held) >= rows:
                yield _joined(held)
                held = []
        if held:
            yield _joined(held)


def _table(path: Path) -> pa.Table:
    return pq.ParquetFile(path).read().replace_schema_metadata(None)


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table; a column that some of them lack is null there."""
    full = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(full, promote_options="permissive")


def recording(paths: Iterable[Path]) -> Recording | None:
    """The recording in these files or folders; none where there is none.

    Raises GradebookError for a file of a later format, and where files
    declare different settings.
    """
    found: dict[int, dict[int, Part]] = {}
    files: list[tuple[Path, dict[str, Any]]] = []
    declared: Mapping[str, Any] | None = None
    types: dict[str, str] = {}
    problems: list[str] = []
    for path in _files(paths):
        if path.suffix == ".txt":
            problems += path.read_text("utf-8").splitlines()
            continue
        facts = recorded_facts(path)
        if not facts:
            continue
        if facts["format"] > FORMAT:
            raise GradebookError(
                file=str(path),
                expected=f"a recording of format {FORMAT} or earlier",
                found=f"format {facts['format']}",
            )
        if declared is not None and declared != facts["declared"]:
            raise GradebookError(
                file=str(path),
                key="declared",
                expected=f"{declared}, as in the other files",
                found=f"{facts['declared']}",
            )
        declared = facts["declared"]
        types |= facts["types"]
        files.append((path, facts))
    # Of two records of one step, the later one counts.
    files.sort(key=lambda one: (one[1]["session"], one[0].name))
    for path, facts in files:
        first = 0
        for step, width, rows in zip(
            facts["steps"], facts["widths"], facts["rows"]
        ):
            part = Part(
                path, first, rows, facts["session"], facts["ranks"], width
            )
            found.setdefault(step, {})[facts["rank"]] = part
            first += rows
    if declared is None:
        return None
    parts = {step: _current(ranks) for step, ranks in sorted(found.items())}
    return Recording(parts, declared, types, tuple(problems))


def _current(parts: dict[int, Part]) -> dict[int, Part]:
    """Without the ranks that the latest run no longer has."""
    ranks = max(parts.values(), key=lambda p: p.session).ranks
    return {rank: part for rank, part in parts.items() if rank < ranks}


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("*.parquet"))
            yield from sorted(path.glob("problems-rank*.txt"))
        elif path.suffix == ".parquet":
            yield path
