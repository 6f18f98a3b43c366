"""Log: the rows that a check judges, in canonical columns and whole steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.canonical import EMPTY, canonical, is_unknown
from gradebook.logs.read.columns import Columns, guessed, recorded_columns
from gradebook.logs.read.files import Rows, header, read_rows
from gradebook.logs.read.resumed import told_apart
from gradebook.logs.read.sources import Source, number_in, sources

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording

NAMED = 100
"""So many broken rows are named; the rest are counted."""
Progress = Callable[[float], object]


@dataclass(eq=False)
class Log:
    """A log: what its columns are, its rows, and what went wrong.

    types          "reward" and "advantage" -> the type of the numbers: a
                   float type, "int", "text 4" for text of at most 4
                   decimals, "text" for longer ones, "" for no such column
    recording      what a recorder wrote, where the files are its own
    broken         the first NAMED broken cells and files
    broken_cells   how many broken cells there were
    broken_files   how many files could not be read
    broken_steps   steps that are left out, since a row of theirs is broken
    without        rows left out for a broken row of their prompt, in a log
                   without steps
    rows           rows read
    gathered       rows of a step stood apart, and were brought together
    repeated       steps that stand again, as after a resumed run
    """

    sources: Sequence[Source]
    columns: Columns
    types: dict[str, str] = field(default_factory=dict)
    recording: Recording | None = None
    broken: list[GradebookError] = field(default_factory=list)
    broken_cells: int = 0
    broken_files: int = 0
    broken_steps: dict[object, None] = field(default_factory=dict)
    without: int = 0
    empty_advantages: int = 0
    rows: int = 0
    gathered: bool = False
    repeated: int = 0
    table: pd.DataFrame | None = None

    def tables(self) -> Iterator[pd.DataFrame]:
        """Canonical tables of whole steps, in order: one of all rows, or of a
        recording some 65,536 rows each, read as they are asked for."""
        if self.recording is None:
            if self.table is not None and len(self.table):
                yield self.table
            return
        folder = str(Path(self.sources[0].name).parent) if self.sources else ""
        for frame in self.recording.frames():
            rows = Rows(frame[[*self.columns.used]])
            table = self._whole(self._marked(rows, folder))
            if len(table):
                yield table

    def _marked(self, rows: Rows, file: str) -> pd.DataFrame:
        """Rows of a file in canonical columns; `broken` marks those that
        cannot be used."""
        table, cells = canonical(rows.frame, self.columns)
        bad = np.zeros(len(table), dtype=bool)
        bad[[*rows.bad]] = True
        errors = [error.at(row=row) for row, error in rows.bad.items()]
        for error in (*errors, *(cell for cell in cells if cell.row not in rows.bad)):
            bad[error.row] = True
            self.broken_cells += 1
            unset = error.key == self.columns.role.get("advantage")
            self.empty_advantages += unset and error.found == EMPTY
            if len(self.broken) < NAMED:
                line = int(rows.frame.index[error.row])
                name = Path(file).name
                self.broken.append(error.at(file=name, line=line, row=None))
        return table.reset_index(drop=True).assign(broken=bad)

    def _whole(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table without steps that cannot be judged, rows of a step
        together."""
        bad, steps = table["broken"].to_numpy(), table["step"].to_numpy()
        table = table.drop(columns="broken")
        if not bad.any():
            return table
        near = bad.copy()  # a broken row may not say whose it is
        near[1:] |= bad[:-1]
        near[:-1] |= bad[1:]
        if "step" not in self.columns.role and "prompt" in table:
            prompt = table["prompt"].to_numpy()
            out = near | np.isin(prompt, prompt[near])
            self.without += int(out.sum())
        else:
            unknown = is_unknown(steps)
            if not (bad & unknown).any():
                near = bad
            touched = pd.unique(steps[near & ~unknown])
            self.broken_steps.update(dict.fromkeys(touched.tolist()))
            out = np.isin(steps, touched) | unknown
        return table[~out].reset_index(drop=True)


def read_files(
    paths: Iterable[str | Path | Source],
    columns: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Log:
    """The log in these files, folders or uploads; the header of the first
    file that can be read decides the columns, but for those that `columns`
    names ({"reward": "score"}). `progress` is called with the share of the
    bytes that are read. Raises GradebookError when no file can be read.
    """
    files = sources(paths)
    if any(source.kind == "recording" for source in files):
        from gradebook.logs.recording.read import recording

        run = recording(files)
        if run is not None:
            return read_recording(run, columns, files)
    log = _started(files, columns)
    total, read, tables = max(sum(s.size for s in files), 1), 0, []
    for at, source in enumerate(files):
        try:
            table = _table(log, source, at)
        except GradebookError as error:
            log.broken_files += 1
            if log.broken_files == len(files):
                raise
            if len(log.broken) < NAMED:
                log.broken.append(error.at(file=Path(source.name).name))
        else:
            if len(table):
                tables.append(table)
        read += source.size
        if progress is not None:
            progress(read / total)
    if not tables:
        return log
    if len({table["step"].dtype.kind for table in tables}) > 1:
        tables = [t.assign(step=t["step"].astype(str)) for t in tables]
    table = log._whole(pd.concat(tables, ignore_index=True))
    table, log.repeated = told_apart(table)
    step = pd.factorize(table["step"], use_na_sentinel=False)[0]
    if (np.diff(step) < 0).any():
        log.gathered = True
        table = table.iloc[np.argsort(step, kind="stable")].reset_index(drop=True)
    log.table = table
    return log


def _started(files: Sequence[Source], columns: Mapping[str, str] | None) -> Log:
    """The log with the columns of the first file that can be read."""
    errors = []
    for source in files:
        try:
            names, of_numbers = header(source)
        except GradebookError as error:
            errors.append(error.inside(source.name))
        else:
            return Log(files, guessed(names, of_numbers, columns))
    raise errors[0]


def _table(log: Log, source: Source, at: int) -> pd.DataFrame:
    """A file's rows in canonical columns. Raises GradebookError."""
    rows = read_rows(source, log.columns.used, log.columns.numbers)
    for name in log.columns.used:
        if name not in rows.frame:
            raise GradebookError(
                file=source.name,
                key=name,
                expected="the columns of the first file",
                found="no such column",
            )
    log.rows += len(rows.frame)
    _note_types(log, rows.types)
    table = log._marked(rows, source.name)
    if "step" not in table:
        number = number_in(source.name) if len(log.sources) > 1 else 0
        table["step"] = at if number is None else number
    return table


def _note_types(log: Log, types: Mapping[str, str]) -> None:
    """Of several functions, or files, the coarsest type counts least: the
    numbers are as fine as the finest of them."""
    advantage = log.columns.role.get("advantage", "")
    for name, used in (("advantage", (advantage,)), ("reward", log.columns.rewards)):
        kinds = {types[column] for column in used if types.get(column)}
        kinds |= {log.types[name]} if log.types.get(name) else set()
        log.types[name] = max(kinds, key=_fineness, default="")


def _fineness(kind: str) -> tuple[int, int]:
    name, _, decimals = kind.partition(" ")
    order = ("int", "text", "bfloat16", "float16", "float32", "float64")
    if kind == "text":
        return order.index("float64"), 0
    return order.index(name), int(decimals or 0)


def read_frame(frame: pd.DataFrame, columns: Mapping[str, str] | None = None) -> Log:
    """A frame of whole steps as a log; a step that stands again is told apart.
    Raises GradebookError with the column and row of the first cell that
    cannot be read."""
    kinds = {str(name): frame[name].dtype for name in frame.columns}
    of_numbers = [name for name, kind in kinds.items() if kind.kind in "fiub"]
    log = Log((), guessed([*kinds], of_numbers, columns), rows=len(frame))
    types = {n: "int" if k.kind in "iu" else str(k) for n, k in kinds.items()}
    _note_types(log, {n: t for n, t in types.items() if t == "int" or "float" in t})
    table, broken = canonical(frame, log.columns)
    if broken:
        raise broken[0]
    log.table, log.repeated = told_apart(table.reset_index(drop=True))
    return log


def read_recording(
    recording: Recording,
    columns: Mapping[str, str] | None = None,
    files: Sequence[Source] = (),
) -> Log:
    """A recording, or a part of one, as a log."""
    parts = [part for ranks in recording.parts.values() for part in ranks.values()]
    return Log(
        files or [part.source for part in parts[:1]],
        recorded_columns(recording.columns, columns),
        dict(recording.types),
        recording,
        rows=sum(map(recording.rows, recording.steps)),
    )
