"""Reads a folder of recordings: every step once, whole, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.files import to_frame
from gradebook.logs.read.sources import Source, sources
from gradebook.logs.recording.intake import FLAGS, LABELS, WHOLE
from gradebook.logs.recording.recorder import BY_TOKEN, FORMAT, KEY

COARSE = ("float64", "float32", "float16", "bfloat16")
"""Float types, the finest first."""
NEEDED = {"step", "prompt", "reward", "advantage", "rank", "scored"}
"""Columns that every recorder writes."""
_FLOAT = (pa.float32(), pa.float64())
_LABEL = (pa.int64(), pa.string())
TYPES: Mapping[str, Sequence[pa.DataType]] = {
    **dict.fromkeys(("step", *WHOLE), (pa.int64(),)),
    **dict.fromkeys(FLAGS, (pa.bool_(),)),
    **dict.fromkeys(LABELS, _LABEL),
    **dict.fromkeys(("reward", "advantage"), _FLOAT),
    BY_TOKEN: [pa.list_(kind) for kind in _FLOAT],
}
"""The types in which a recorder writes a column."""


@dataclass(frozen=True)
class Part:
    """One rank's rows of one step: where they stand.

    batch    the number of their batch in the stream
    rank     the process that recorded them; `ranks` is how many there were
    session  when that recorder started: the latest one counts
    written  when the step was recorded
    """

    source: Source
    batch: int
    rows: int
    rank: int
    ranks: int
    session: int
    written: int


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
        share = max(-(-sum(map(self.rows, self.steps)) // count), 1)
        chunks: dict[int, dict[int, Mapping[int, Part]]] = {}
        before = 0
        for step in self.steps:
            chunks.setdefault(before // share, {})[step] = self.parts[step]
            before += self.rows(step)
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
        streams: dict[Source, list[pa.RecordBatch]] = {}
        batches: list[pa.RecordBatch] = []
        for step in self.steps:
            for _, part in sorted(self.parts[step].items()):
                with _naming(part.source):
                    if part.source not in streams:
                        streams[part.source] = self._batches(part.source)
                    batches.append(streams[part.source][part.batch])
                    batches[-1].validate(full=True)
        if not batches:
            return pa.table({name: [] for name in self.columns})
        # What only some of the batches have is null elsewhere.
        full = [batch for batch in batches if batch.num_rows] or batches[:1]
        with _naming(part.source):
            tables = [pa.Table.from_batches([batch]) for batch in full]
            table = pa.concat_tables(tables, promote_options="permissive")
        return table.replace_schema_metadata(None)

    def _batches(self, source: Source) -> list[pa.RecordBatch]:
        """The file's batches up to the last one that is a part, mapped into
        memory."""
        parts = (part for ranks in self.parts.values() for part in ranks.values())
        last = max(part.batch for part in parts if part.source == source)
        stream = _opened(source)
        return [stream.read_next_batch() for _ in range(last + 1)]

    def frame(self) -> pd.DataFrame:
        """The same as a data frame, with the columns that every step has;
        advantages by token are left out."""
        names = [name for name in self.columns if name != BY_TOKEN]
        return to_frame(self.table().select(names))


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    """Whatever is raised here, errors being as varied as the damage, names
    the file."""
    try:
        yield
    except Exception as error:
        raise GradebookError(
            file=Path(source.name).name,
            expected="what the recorder wrote",
            found=shown(str(error), 120),
        ) from error


def _opened(source: Source) -> Any:
    """A file as a stream of batches, mapped into memory."""
    if source.data is not None:
        return pa.ipc.open_stream(pa.BufferReader(source.data))
    return pa.ipc.open_stream(pa.memory_map(str(source.path)))


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
            facts, names, steps, end = _contents(source)
        except Exception:  # as varied as the damage
            problems.append(f"{name}: damaged, or its first step is cut off")
            continue
        if end:
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
    """A stream's facts, its columns, step and place of each batch, and
    whether it is cut off. Raises whatever Arrow does where the file is
    damaged."""
    stream = _opened(source)
    schema = stream.schema
    facts = json.loads((schema.metadata or {})[KEY.encode()])
    whole = {*schema.names} >= NEEDED and {*facts["types"].values()} <= {*COARSE}
    typed = all(column.type in TYPES[column.name] for column in schema)
    declared = isinstance(facts["declared"], dict) and "format" in facts
    if not (whole and typed and declared):
        raise ValueError("not what a recorder writes")
    rank, ranks, session = (int(facts[n]) for n in ("rank", "ranks", "session"))
    steps: list[tuple[int, Part]] = []
    while True:
        try:
            batch, metadata = stream.read_next_batch_with_custom_metadata()
        except StopIteration:
            return facts, tuple(schema.names), steps, False
        except (pa.ArrowException, OSError):
            return facts, tuple(schema.names), steps, True
        step = json.loads(metadata[KEY])
        number, rows, written = len(steps), batch.num_rows, int(step["written"])
        part = Part(source, number, rows, rank, ranks, session, written)
        steps.append((int(step["step"]), part))


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
