"""Reads a folder of recordings: every step once, whole, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gradebook.core.columns import ALL
from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.files import to_frame
from gradebook.logs.read.sources import Source, sources
from gradebook.logs.recording.intake import COLUMNS
from gradebook.logs.recording.recorder import FORMAT, KEY

COARSE = ("float64", "float32", "float16", "bfloat16")
"""Float types, the finest first."""
KNOWN = {"step", *COLUMNS} - {"mask"}
"""Columns that a recorder writes."""
NEEDED = {"step", "prompt", "reward", "advantage", "rank", "scored"}
"""Columns that every recorder writes."""
TYPES: Mapping[str, Sequence[pa.DataType]] = {
    "whole": (pa.int64(),),
    "flag": (pa.bool_(),),
    "label": (pa.int64(), pa.string()),
    "number": (pa.float32(), pa.float64()),
}
"""The types in which a recorder writes a column, by its kind."""


@dataclass(frozen=True)
class Part:
    """One rank's rows of one step: where they stand.

    batch     the number of their batch in the stream
    rank      the process that recorded them; `ranks` is how many there were
    session   when that recorder started: the latest one counts
    written   when the step was recorded
    by_token  some row's advantages differ between its tokens
    """

    source: Source
    batch: int
    rows: int
    rank: int
    ranks: int
    session: int
    written: int
    by_token: bool


@dataclass(frozen=True)
class Recording:
    """A folder of recordings. It is small and can be sent to a worker: the
    rows are read where `table` is called.

    parts     step -> rank -> where its rows stand, steps in order
    declared  what the trainer was configured with
    types     column -> the float type that the trainer handed over, the
              coarsest one where steps differ
    columns   the columns that every step has
    problems  lines that recorders wrote where something went wrong, files
              that cannot be read, and last steps that are cut off
    """

    parts: Mapping[int, Mapping[int, Part]]
    declared: Mapping[str, Any]
    types: Mapping[str, str]
    columns: tuple[str, ...]
    problems: tuple[str, ...] = field(default=())

    @property
    def by_token(self) -> bool:
        """Some row's advantages differ between its tokens."""
        return any(p.by_token for ranks in self.parts.values() for p in ranks.values())

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of which every rank's part is there, in order."""
        absent = self.missing()
        return tuple(step for step in self.parts if step not in absent)

    def split(self, count: int) -> list[Recording]:
        """At most `count` recordings of whole steps, one after the other,
        of about as many rows each. Raises GradebookError for a count below
        1."""
        if count < 1:
            raise refuse("1 or more", count, "count")
        rows = {s: sum(p.rows for p in self.parts[s].values()) for s in self.steps}
        share = max(-(-sum(rows.values()) // count), 1)
        chunks: dict[int, dict[int, Mapping[int, Part]]] = {}
        before = 0
        for step in self.steps:
            chunks.setdefault(before // share, {})[step] = self.parts[step]
            before += rows[step]
        return [replace(self, parts=chunk, problems=()) for chunk in chunks.values()]

    def missing(self) -> dict[int, tuple[int, ...]]:
        """Step -> the ranks whose rows are not there."""
        missing = {}
        for step, parts in self.parts.items():
            ranks = max(parts.values(), key=lambda part: part.session).ranks
            absent = tuple(rank for rank in range(ranks) if rank not in parts)
            if absent:
                missing[step] = absent
        return missing

    def table(self) -> pa.Table:
        """The rows of the whole steps, steps in order, ranks in order within a
        step. Raises GradebookError for a file that was deleted meanwhile, or is
        damaged."""
        tables = [pa.table({name: [] for name in self.columns})]
        streams: dict[Source, list[Any]] = {}
        for step in self.steps:
            for _, part in sorted(self.parts[step].items()):
                with _naming(part.source.name):
                    if part.source not in streams:
                        streams[part.source] = _batches(part.source)[1]
                    batch, _ = streams[part.source][part.batch]
                    batch.validate(full=True)
                if batch.num_rows:
                    tables.append(pa.Table.from_batches([batch]))
        with _naming("the recording"):
            # What only some of the batches have is null elsewhere.
            table = pa.concat_tables(tables, promote_options="permissive")
        return table.replace_schema_metadata(None)

    def frame(self) -> pd.DataFrame:
        """The same as a data frame, with the columns that every step has."""
        return to_frame(self.table().select(self.columns))


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Whatever is raised here, errors being as varied as the damage, names
    the file."""
    try:
        yield
    except Exception as error:
        raise GradebookError(
            file=Path(file).name,
            expected="what the recorder wrote",
            found=shown(str(error), 120),
        ) from error


def _batches(source: Source) -> tuple[pa.Schema, list[Any], bool]:
    """A file's schema, its whole batches, mapped into memory, each with what
    the recorder says of it, and whether the file is cut off behind them."""
    data = source.data
    file = pa.memory_map(str(source.path)) if data is None else pa.BufferReader(data)
    stream, batches = pa.ipc.open_stream(file), []
    while True:
        try:
            batches.append(stream.read_next_batch_with_custom_metadata())
        except StopIteration:
            return stream.schema, batches, False
        except (pa.ArrowException, OSError):
            return stream.schema, batches, True


def recording(
    paths: Iterable[str | Path | Source] | str | Path,
) -> Recording | None:
    """The recording in these files or folders; none where there is none.

    Raises GradebookError for a file of another format, and where files
    declare different settings.

    >>> import gradebook
    >>> from tempfile import TemporaryDirectory
    >>> rows = {"prompt": [0, 0], "reward": [1.0, 3.0]}
    >>> with TemporaryDirectory() as folder:
    ...     with gradebook.Recorder(folder) as recorder:
    ...         recorder.step(0, advantage=[-1.0, 1.0], **rows)
    ...     run = recording(folder)
    ...     run.steps, gradebook.check(run)["verdict"].tolist()
    ((0,), ['correct'])
    """
    files = sources([paths] if isinstance(paths, (str, Path)) else paths)
    problems = _notes_beside(files)
    parts: dict[int, dict[int, list[Part]]] = {}
    declared: Mapping[str, Any] | None = None
    types: dict[str, str] = {}
    columns: tuple[str, ...] = ()
    for source in files:
        name = Path(source.name).name
        if source.kind != "recording":
            problems.append(f"{name}: not of the recording")
            continue
        try:
            facts, names, steps, cut = _contents(source)
        except Exception:  # as varied as the damage
            problems.append(f"{name}: damaged, or its first step is cut off")
            continue
        if cut:
            problems.append(
                f"{name}: cut off behind its first {len(steps)} steps (the run was"
                " killed, or is writing the next one now)"
            )
        for key, first in (("format", FORMAT), ("declared", declared)):
            if first not in (None, facts[key]):
                raise refuse(f"{first}", facts[key], key).inside(source.name)
        columns = names if declared is None else tuple(n for n in columns if n in names)
        declared = facts["declared"]
        for column, kind in facts["types"].items():
            types[column] = max(kind, types.get(column, kind), key=COARSE.index)
        for step, part in steps:
            parts.setdefault(step, {}).setdefault(part.rank, []).append(part)
    if declared is None:
        return None
    latest = _latest(dict(sorted(parts.items())))
    return Recording(latest, declared, types, columns, tuple(problems))


def _notes_beside(sources: Sequence[Source]) -> list[str]:
    """What recorders wrote beside their files where something went wrong."""
    folders = dict.fromkeys(source.path.parent for source in sources if source.path)
    problems: list[str] = []
    for folder in folders:
        for note in sorted(folder.glob("problems-rank*.txt")):
            lines = note.read_text("utf-8", "replace").splitlines()
            problems += lines or [f"{note.name}: empty, as on a full disk"]
    return problems


def _contents(
    source: Source,
) -> tuple[dict[str, Any], tuple[str, ...], list[tuple[int, Part]], bool]:
    """A stream's facts, its columns, step and place of each batch, and whether it
    is cut off. Raises whatever Arrow does where the file is damaged."""
    schema, batches, cut = _batches(source)
    facts = json.loads((schema.metadata or {})[KEY.encode()])
    names = tuple(name for name in schema.names if name in KNOWN)
    typed = all(schema.field(n).type in TYPES[ALL[n].kind] for n in names)
    floats = {*facts["types"].values()} <= {*COARSE}
    declared = isinstance(facts["declared"], dict) and "format" in facts
    if not ({*names} >= NEEDED and typed and floats and declared):
        raise ValueError("not what a recorder writes")
    rank, ranks, session = (int(facts[n]) for n in ("rank", "ranks", "session"))
    steps: list[tuple[int, Part]] = []
    for number, (batch, metadata) in enumerate(batches):
        step = json.loads(metadata[KEY])
        written, by_token = int(step["written"]), bool(step.get("by_token"))
        run = rank, ranks, session
        part = Part(source, number, batch.num_rows, *run, written, by_token)
        steps.append((int(step["step"]), part))
    return facts, names, steps, cut


def _latest(
    steps: Mapping[int, Mapping[int, Sequence[Part]]],
) -> dict[int, dict[int, Part]]:
    """The latest part of each rank and step. Where the recorder of one rank
    was started again since another rank wrote its part, that part is of the
    run that is being repeated, and does not count."""
    started: dict[int, int] = {}
    for ranks in steps.values():
        for rank, parts in ranks.items():
            first = min(part.session for part in parts)
            started[rank] = min(first, started.get(rank, first))
    latest = {}
    for step, ranks in steps.items():
        last = {
            rank: max(parts, key=lambda part: (part.session, part.written))
            for rank, parts in ranks.items()
        }
        count = max(last.values(), key=lambda part: part.session).ranks
        restarts = [p.session for rank, p in last.items() if p.session > started[rank]]
        latest[step] = {
            rank: part
            for rank, part in last.items()
            if rank < count and all(part.written > start for start in restarts)
        }
    return latest
