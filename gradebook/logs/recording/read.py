"""Reads a folder of recordings: every step once, whole, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.parquet_files import to_frame
from gradebook.logs.read.sources import Gone, Source, inside
from gradebook.logs.recording.files import (
    Part,
    damaged,
    files_of,
    recorder_files,
)
from gradebook.logs.recording.recorder import BY_TOKEN

COARSE = ("float64", "float32", "float16", "bfloat16")
"""Float types, the finest first."""


@dataclass(frozen=True)
class Recording:
    """A folder of recordings. It is small and can be sent to a worker: the
    rows are read where `tables` is called.

    parts     step -> rank -> where its rows stand, steps in order
    declared  what the trainer was configured with
    types     column -> the float type that the trainer handed over, the
              coarsest one where steps differ
    columns   the columns that every step has
    problems  lines that recorders wrote where something went wrong, and
              files that cannot be read
    """

    parts: Mapping[int, Mapping[int, Part]]
    declared: Mapping[str, Any]
    types: Mapping[str, str]
    columns: tuple[str, ...]
    problems: tuple[str, ...] = field(default=())

    @property
    def by_token(self) -> bool:
        """Some row's advantages differ between its tokens."""
        return BY_TOKEN in self.columns

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of which every rank's part is there, in order."""
        absent = self.missing()
        return tuple(step for step in self.parts if step not in absent)

    def rows(self, step: int) -> int:
        """How many rows the step has, on all ranks."""
        return sum(part.rows for part in self.parts[step].values())

    def split(self, count: int) -> list[Recording]:
        """At most `count` recordings of whole steps, one after the other,
        of about as many rows each. Raises GradebookError for a count below
        1."""
        if count < 1:
            raise refuse("1 or more", count, "count")
        steps = self.steps
        sizes = [self.rows(step) for step in steps]
        share = max(-(-sum(sizes) // count), 1)
        chunks: dict[int, list[int]] = {}
        before = 0
        for step, size in zip(steps, sizes):
            chunks.setdefault(before // share, []).append(step)
            before += size
        return [
            replace(self, parts={s: self.parts[s] for s in chunk}, problems=())
            for chunk in chunks.values()
        ]

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
        out. Files may be merged meanwhile.

        Raises GradebookError for a file that is damaged or was deleted."""
        absent = self.missing()
        held: list[pa.Table] = []
        files = _Files()
        for step, parts in self.parts.items():
            if step in absent:
                continue
            held += files.rows_of([parts[rank] for rank in sorted(parts)])
            if sum(table.num_rows for table in held) >= rows:
                yield _joined(held)
                held = []
        if held:
            yield _joined(held)

    def frames(self, rows: int = 65_536) -> Iterator[pd.DataFrame]:
        """The same as data frames, with the columns that every step has;
        advantages by token are left out."""
        names = [name for name in self.columns if name != BY_TOKEN]
        for table in self.tables(rows):
            if not table.num_rows:
                continue
            full = [name for name in names if name in table.column_names]
            (batch,) = table.select(full).combine_chunks().to_batches()
            frame = to_frame(batch)
            missing = [name for name in names if name not in full]
            yield frame.assign(**dict.fromkeys(missing, True))


@dataclass
class _Files:
    """The files that the rows of a step stand in.

    A file that is gone was merged by its recorder after the folder was
    listed: its rows stand in another file of the same folder.
    """

    tables: dict[Source, pa.Table] = field(default_factory=dict)
    moved: dict[tuple, Part] = field(default_factory=dict)

    def rows_of(self, parts: list[Part]) -> list[pa.Table]:
        """The rows of these parts. Their files are kept for the next step.

        Raises GradebookError for rows that stand in no file any more."""
        parts = [self.moved.get(part.key, part) for part in parts]
        try:
            self.tables = {
                part.source: self.tables.get(part.source) or _table(part.source)
                for part in parts
            }
        except Gone:
            folders = {p.source.path.parent for p in parts if p.source.path}
            sources = [one for folder in folders for one in inside(folder)]
            self.moved = {
                part.key: part
                for file in recorder_files(sources, [])
                for _, part in file.parts
            }
            if any(part.key not in self.moved for part in parts):
                raise
            return self.rows_of(parts)
        return [self.tables[part.source].slice(part.first, part.rows) for part in parts]


def _table(source: Source) -> pa.Table:
    try:
        with source.opened() as file:
            table = pq.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        raise damaged(source, error) from error
    return table.replace_schema_metadata(None)


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table. A column that some of them lack is null there; `scored` is
    recorded only where a row has no score, and true elsewhere."""
    full = [table for table in tables if table.num_rows] or tables[:1]
    table = pa.concat_tables(full, promote_options="permissive")
    if "scored" not in table.column_names:
        return table
    at = table.column_names.index("scored")
    return table.set_column(at, "scored", pc.fill_null(table["scored"], True))


def recording(
    paths: Iterable[str | Path | Source] | str | Path,
) -> Recording | None:
    """The recording in these files or folders; none where there is none.

    Raises GradebookError for a file of a later format, and where files
    declare different settings.

    >>> import gradebook
    >>> from tempfile import TemporaryDirectory
    >>> rows = {"prompt": [0, 0], "reward": [1.0, 3.0]}
    >>> with TemporaryDirectory() as folder:
    ...     with gradebook.Recorder(folder) as recorder:
    ...         recorder.step(0, advantage=[-1.0, 1.0], **rows)
    ...     found = recording(folder)
    ...     found.steps, gradebook.check(found)["verdict"].tolist()
    ((0,), ['correct'])
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    found: dict[int, dict[int, list[Part]]] = {}
    declared: Mapping[str, Any] | None = None
    types: dict[str, str] = {}
    columns: dict[str, None] | None = None
    sources, problems = files_of(paths)
    for file in recorder_files(sources, problems):
        if declared is not None and declared != file.declared:
            raise GradebookError(
                file=file.source.name,
                key="declared",
                expected=f"{declared}, as in the other files",
                found=f"{file.declared}",
            )
        declared = file.declared
        for name, kind in file.types.items():
            types[name] = max(kind, types.get(name, kind), key=COARSE.index)
        names = dict.fromkeys(file.columns)
        columns = names if columns is None else _shared(columns, names)
        for step, part in file.parts:
            found.setdefault(step, {}).setdefault(part.rank, []).append(part)
    if declared is None:
        return None
    started: dict[int, int] = {}
    for ranks in found.values():
        for rank, parts in ranks.items():
            first = min(part.session for part in parts)
            started[rank] = min(first, started.get(rank, first))
    whole = {step: _current(ranks, started) for step, ranks in sorted(found.items())}
    return Recording(whole, declared, types, tuple(columns or ()), tuple(problems))


def _shared(columns: dict[str, None], names: dict[str, None]) -> dict[str, None]:
    """The columns that both have, and `scored` where one has it."""
    both = {name: None for name in columns if name in names}
    if "scored" in columns or "scored" in names:
        both["scored"] = None
    return both


def _current(
    ranks: Mapping[int, list[Part]], started: Mapping[int, int]
) -> dict[int, Part]:
    """The latest part of each rank. Where the recorder of one rank has been
    started again since another rank wrote its part, that part is of the run
    that is being repeated, and does not count. `started`: rank -> when its
    first recorder started."""
    latest = {
        rank: max(parts, key=lambda p: (p.session, p.written))
        for rank, parts in ranks.items()
    }
    count = max(latest.values(), key=lambda p: p.session).ranks
    again = [
        part.session for rank, part in latest.items() if part.session > started[rank]
    ]
    return {
        rank: part
        for rank, part in latest.items()
        if rank < count and all(part.written > start for start in again)
    }
