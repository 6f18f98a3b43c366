"""Reads a folder of recordings: every step once, whole, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from struct import unpack_from
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from gradebook.core.errors import GradebookError, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.files import LogFile, Paths, sources, to_frame
from gradebook.logs.recorder import (
    ARGUMENTS,
    FORMAT,
    KEY,
    OF_STEP,
    OF_TOKENS,
    Float,
    StepFacts,
    StreamFacts,
)

BY_TOKEN = ("mask", *OF_TOKENS)
KNOWN = {"step", *ARGUMENTS} - {*BY_TOKEN, *OF_STEP, "mini_batch"}
"""Columns of rows that a recorder writes."""
FLOATS = get_args(Float)
PROCESS = ("rank", "ranks", "session")


@dataclass(frozen=True, eq=False)
class Recording:
    """A folder of recordings. It can be sent to a worker: the rows are read where
    `frame` is called.

    parts     where the rows of each step and rank are, in order: step, rank,
              source, batch (its number in that stream), rows; the others are as
              the recorder wrote them
    declared  what the trainer was configured with
    types     column -> the float type that the trainer handed over, the
              coarsest one if steps differ
    columns   the columns that every step has
    problems  what recorders noted, and files that are damaged or cut off
    """

    parts: pd.DataFrame
    declared: Mapping[str, Any]
    types: Mapping[str, str]
    columns: tuple[str, ...]
    problems: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of which every rank's part is there, in order."""
        return tuple(self._whole()["step"].unique().tolist())

    def _whole(self) -> pd.DataFrame:
        return self.parts[~self.parts["step"].isin([*self.missing()])]

    def split(self, count: int) -> list[Recording]:
        """At most `count` recordings of whole steps, one after the other, of about
        as many rows each. Raises GradebookError for a count below 1."""
        if count < 1:
            raise refuse("1 or more", count, "count")
        parts = self._whole()
        rows = parts.groupby("step")["rows"].sum()
        share = max(-(-rows.sum() // count), 1)
        chunk = parts["step"].map((rows.cumsum() - rows) // share)
        return [replace(self, parts=p, problems=()) for _, p in parts.groupby(chunk)]

    def missing(self) -> dict[int, tuple[int, ...]]:
        """Step -> the ranks whose rows are not there."""
        steps = self.parts.sort_values("session").groupby("step")
        ranks = steps["ranks"].last()
        short = ranks[steps.size() < ranks]
        return {
            step: tuple(sorted({*range(count)} - {*steps.get_group(step)["rank"]}))
            for step, count in short.items()
        }

    def frame(self) -> pd.DataFrame:
        """The rows of the whole steps, steps in order, ranks in order within a
        step, with the columns that every step has. Raises GradebookError for a file
        that was deleted meanwhile, or is damaged."""
        tables = [pa.table({name: [] for name in self.columns})]
        streams = cache(_batches)
        file = "the recording"
        try:
            for part in self._whole().itertuples():
                file = Path(part.source.name).name
                batch, _ = streams(part.source)[1][part.batch]
                batch.validate(full=True)
                if batch.num_rows:
                    tables.append(pa.Table.from_batches([batch]).select(self.columns))
            return to_frame(pa.concat_tables(tables, promote_options="permissive"))
        except Exception as error:  # as varied as the damage
            damage, expected = shown(str(error), 120), "what the recorder wrote"
            raise GradebookError(file=file, expected=expected, found=damage) from error

    def losses(self) -> Iterator[dict[str, Any]]:
        """The whole steps that one process wrote and that say something of their loss,
        in order: OF_STEP, a number or None; BY_TOKEN, arrays [R, T], those that are
        there; and the columns of rows, arrays [R]."""
        streams = cache(_batches)
        for part in self._whole().itertuples():
            if part.ranks > 1:
                continue
            batch, _ = streams(part.source)[1][part.batch]
            if not {*batch.schema.names} & {*OF_TOKENS}:
                continue
            step: dict[str, Any] = {name: getattr(part, name) for name in OF_STEP}
            for name in batch.schema.names:
                column = batch.column(name).to_numpy(zero_copy_only=False)
                step[name] = np.stack(column) if name in BY_TOKEN else column
            yield step


def _batches(source: LogFile) -> tuple[pa.Schema, list[Any], bool]:
    """A file's schema, its whole batches, mapped into memory, each with what
    the recorder says of it, and whether the file is cut off behind them. Raises
    GradebookError for compressed batches: a few bytes may unpack to gigabytes."""
    data = source.data
    file = pa.memory_map(str(source.path)) if data is None else pa.BufferReader(data)
    if any(map(_is_compressed, _messages(file))):
        expected, found = "what a recorder wrote", "compressed buffers"
        raise GradebookError(file=source.name, expected=expected, found=found)
    file.seek(0)
    stream, batches = pa.ipc.open_stream(file), []
    while True:
        try:
            batches.append(stream.read_next_batch_with_custom_metadata())
        except StopIteration:
            return stream.schema, batches, False
        except (pa.ArrowException, OSError):
            return stream.schema, batches, True


def _messages(file: Any) -> Iterator[Any]:
    """The messages of an Arrow stream, up to where it is cut off."""
    reader = pa.ipc.MessageReader.open_stream(file)
    with suppress(StopIteration, pa.ArrowException, OSError):
        while True:
            yield reader.read_next_message()


MESSAGE_HEADER, DICTIONARY_DATA, BATCH_COMPRESSION = 2, 1, 3
"""Fields of Message, DictionaryBatch and RecordBatch. Source: format/Message.fbs of
Apache Arrow 26."""


def _is_compressed(message: Any) -> bool:
    """A batch whose buffers are compressed, by its FlatBuffers header, which pyarrow
    has checked when it read the message."""
    data = message.metadata.to_pybytes()
    table = _field(data, unpack_from("<I", data)[0], MESSAGE_HEADER)
    if message.type == "dictionary":
        table = _field(data, table, DICTIONARY_DATA)
    elif message.type != "record batch":
        return False
    return _field(data, table, BATCH_COMPRESSION) > 0


def _field(data: bytes, table: int, number: int) -> int:
    """Where the table that a field of this FlatBuffers table holds begins; 0 where the
    field is not set."""
    fields = table - unpack_from("<i", data, table)[0]
    entry = 4 + 2 * number
    if entry >= unpack_from("<H", data, fields)[0]:
        return 0
    if not (offset := unpack_from("<H", data, fields + entry)[0]):
        return 0
    place = table + offset
    return int(place + unpack_from("<I", data, place)[0])


def recording(paths: Paths) -> Recording | None:
    """The recording in the files or folders `paths`; None if they have none. Raises
    GradebookError if files declare different settings, or one is compressed.

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
    files = sources(paths)
    problems = _noted(files)
    parts: list[dict[str, Any]] = []
    declared: Mapping[str, Any] | None = None
    types: dict[str, str] = {}
    columns: tuple[str, ...] = ()
    for source in files:
        stream = _stream(source, problems)
        if stream is None:
            continue
        facts = stream.facts
        for key, expected in (("format", FORMAT), ("declared", declared)):
            if expected not in (None, value := getattr(facts, key)):
                raise refuse(f"{expected}", value, key).inside(source.name)
        if declared is None:
            columns = stream.columns
        else:
            columns = tuple(name for name in columns if name in stream.columns)
        declared = facts.declared
        for column, kind in facts.types.items():
            types[column] = max(kind, types.get(column, kind), key=FLOATS.index)
        parts += stream.parts(source)
    if declared is None:
        return None
    return Recording(_latest(parts), declared, types, columns, tuple(problems))


@dataclass(frozen=True)
class _Stream:
    """A file of a recording: what it says of itself, and of each step that is whole."""

    facts: StreamFacts
    steps: list[StepFacts]
    rows: list[int]
    columns: tuple[str, ...]

    def parts(self, source: LogFile) -> Iterator[dict[str, Any]]:
        """A part for each step: of which process and step, and where its rows are."""
        process = self.facts.model_dump(include={*PROCESS}) | {"source": source}
        for number, (step, rows) in enumerate(zip(self.steps, self.rows)):
            yield process | step.model_dump() | {"batch": number, "rows": rows}


def _stream(source: LogFile, problems: list[str]) -> _Stream | None:
    """A file, or None if nothing of it can be read; adds what is wrong to the
    problems. Raises GradebookError for compressed batches."""
    name = Path(source.name).name
    if source.kind != "recording":
        problems.append(f"{name}: not of the recording")
        return None
    try:
        schema, batches, cut = _batches(source)
        stream = _Stream(
            StreamFacts.model_validate_json(schema.metadata[KEY.encode()]),
            [StepFacts.model_validate_json(facts[KEY]) for _, facts in batches],
            [batch.num_rows for batch, _ in batches],
            tuple(column for column in schema.names if column in KNOWN),
        )
    except GradebookError:
        raise
    except Exception:  # as varied as the damage
        problems.append(f"{name}: damaged, or its first step is cut off")
        return None
    if cut:
        text = f"{name}: cut off behind its first {len(batches)} steps"
        problems.append(f"{text} (the run was killed, or is writing now)")
    return stream


def _noted(files: Iterable[LogFile]) -> list[str]:
    """The problems that recorders noted in the files' folders while they wrote."""
    problems: list[str] = []
    for folder in dict.fromkeys(source.path.parent for source in files if source.path):
        for note in sorted(folder.glob("problems-rank*.txt")):
            lines = note.read_text("utf-8", "replace").splitlines()
            problems += lines or [f"{note.name}: empty, as on a full disk"]
    return problems


def _latest(batches: list[dict[str, Any]]) -> pd.DataFrame:
    """The latest part of each rank and step, but for one that was written before
    another rank's recorder was started again: it is of the run that is repeated."""
    names = [*PROCESS, *StepFacts.model_fields, "source", "batch", "rows"]
    parts = pd.DataFrame(batches, columns=names)
    first = parts.groupby("rank")["session"].transform("min")
    parts["restart"] = parts["session"].where(parts["session"] > first, 0)
    parts = parts.sort_values(["step", "session", "written"])
    parts = parts.drop_duplicates(["step", "rank"], keep="last")
    steps = parts.groupby("step")
    current = parts["written"] > steps["restart"].transform("max")
    current &= parts["rank"] < steps["ranks"].transform("last")
    return parts[current].sort_values(["step", "rank"])
