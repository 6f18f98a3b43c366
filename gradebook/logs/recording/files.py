"""The files of a recording: which there are, and what each says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gradebook.core.errors import GradebookError, shown
from gradebook.logs.read.sources import Gone, Source, inside, listed
from gradebook.logs.recording.recorder import FORMAT, KEY


@dataclass(frozen=True)
class Part:
    """One rank's rows of one step: where they stand.

    rank     the process that recorded them
    first    the step's first row in the file
    rows     how many there are
    session  when the recorder started: the latest one counts
    written  when the step was recorded
    width    the padded width of the step's mask; none without a mask
    """

    source: Source
    rank: int
    first: int
    rows: int
    session: int
    written: int
    ranks: int
    width: int | None

    @property
    def key(self) -> tuple[int, int, int]:
        """The same for these rows in whatever file they stand."""
        return self.rank, self.session, self.written


@dataclass(frozen=True)
class File:
    """What a recorder's file says of itself.

    types    column -> the float type that the trainer handed over
    columns  the names of its columns
    parts    step and part, for every step in the file
    """

    source: Source
    declared: Mapping[str, Any]
    types: Mapping[str, str]
    columns: tuple[str, ...]
    parts: tuple[tuple[int, Part], ...]


def recorded(source: Source) -> bool:
    """The file is a recorder's. Raises GradebookError where it cannot be
    read."""
    return source.kind == "parquet" and KEY in (_schema(source).metadata or {})


def recorder_files(sources: Sequence[Source], problems: list[str]) -> Iterator[File]:
    """Each file of a recorder. `problems` gets those that cannot be used.

    A file that is gone was merged by its recorder after it was listed: the
    files that are new in its folder are read as well. Raises GradebookError
    for a file of a later format.
    """
    known = list(sources)
    for source in known:  # grows meanwhile
        name = Path(source.name).name
        try:
            schema = _schema(source)
        except Gone:
            if source.path is not None:
                now = inside(source.path.parent)
                known += [one for one in now if one not in known]
            continue
        except GradebookError as error:
            problems.append(error.text())
            continue
        if KEY not in (schema.metadata or {}):
            problems.append(f"{name}: not of the recording")
            continue
        try:
            found = _file(source, schema)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, GradebookError):
                raise
            problems.append(f"{name}: damaged, what it says of itself")
            continue
        yield found


def _file(source: Source, schema: pa.Schema) -> File:
    facts = json.loads(schema.metadata[KEY])
    if facts["format"] > FORMAT:
        raise GradebookError(
            file=source.name,
            expected=f"a recording of format {FORMAT} or earlier",
            found=f"format {facts['format']}",
        )
    parts, first = [], 0
    for step, width, rows, written in zip(
        facts["steps"], facts["widths"], facts["rows"], facts["written"]
    ):
        part = Part(
            source,
            facts["rank"],
            first,
            rows,
            facts["session"],
            written,
            facts["ranks"],
            width,
        )
        parts.append((step, part))
        first += rows
    declared, types = dict(facts["declared"]), dict(facts["types"])
    return File(source, declared, types, tuple(schema.names), tuple(parts))


def _schema(source: Source) -> pa.Schema:
    try:
        with source.opened() as file:
            return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise damaged(source, error) from error


def damaged(source: Source, error: Exception) -> GradebookError:
    """The error that names a file which cannot be read."""
    return GradebookError(
        file=Path(source.name).name,
        expected="a Parquet file",
        found=shown(str(error).splitlines()[0], 120),
    )


def files_of(
    paths: Iterable[str | Path | Source],
) -> tuple[list[Source], list[str]]:
    """Parquet files, and what recorders wrote beside them."""
    sources = [one for one in listed(paths) if one.kind == "parquet"]
    folders = dict.fromkeys(s.path.parent for s in sources if s.path)
    problems: list[str] = []
    for folder in folders:
        for note in sorted(folder.glob("problems-rank*.txt")):
            said = note.read_text("utf-8", "replace").splitlines()
            problems += said or [f"{note.name}: empty, as on a full disk"]
    return sources, problems
