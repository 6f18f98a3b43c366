"""Log: the rows that a check judges, in canonical columns and whole steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.canonical import EMPTY, canonical, is_unknown
from gradebook.logs.read.columns import Columns, guessed, recorded_columns
from gradebook.logs.read.files import File, Rows, looked_at
from gradebook.logs.read.sources import Source, number_in, sources

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording

NAMED = 100
"""So many broken rows are named; the rest are counted."""
WHOLE = 0.75
"""A step that stands again has at least this share of the rows of the steps
that stand once. One that is cut in two has half of them."""
Progress = Callable[[float], object]


@dataclass(eq=False)
class Log:
    """A log: what its columns are, its rows, and what went wrong.

    types          "reward" and "advantage" -> the type of the numbers: a
                   float type, "int", "text 4" for text of at most 4
                   decimals, "text" for longer ones, "" for no such column
    recording      what a recorder wrote, where the files are its own
    header         the names of the first file's columns, and of those of numbers
    by_row         columns that may name prompts, and were found not to
    broken         the first NAMED broken cells and files
    broken_cells   how many broken cells there were
    broken_files   how many files could not be read
    broken_steps   steps that are left out, since a row of theirs is broken
    without        rows left out for a broken row of their prompt, in a log
                   without steps
    rows           rows read
    gathered       rows of a step stood apart, and were brought together
    repeated       steps that stand again, as after a resumed run
    table          the rows in canonical columns, in whole steps; none at all
                   where no step can be judged
    """

    sources: Sequence[Source]
    columns: Columns
    types: dict[str, str] = field(default_factory=dict)
    recording: Recording | None = None
    header: tuple[list[str], list[str]] = ([], [])
    by_row: tuple[str, ...] = ()
    broken: list[GradebookError] = field(default_factory=list)
    broken_cells: int = 0
    broken_files: int = 0
    broken_steps: dict[object, None] = field(default_factory=dict)
    without: int = 0
    empty_advantages: int = 0
    rows: int = 0
    gathered: bool = False
    repeated: int = 0
    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())

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
    by_row: tuple[str, ...] = (),
) -> Log:
    """The log in these files, folders or uploads; the header of the first
    file that can be read decides the columns, but for those that `columns`
    names ({"reward": "score"}). `progress` is called with the share of the
    bytes that are read. A column that is different on every row, as those
    of `by_row` are, names prompts only where no other may. Raises
    GradebookError when no file can be read.
    """
    paths = list(paths)
    files = sources(paths)
    if not files:
        expected = "a .parquet, .csv, .tsv or .jsonl file"
        raise GradebookError(
            file=", ".join(map(str, paths)), expected=expected, found="none"
        )
    if any(source.kind == "recording" for source in files):
        from gradebook.logs.recording.read import recording

        run = recording(files)
        if run is not None:
            return read_recording(run, columns, files)
    log: Log | None = None
    errors: list[GradebookError] = []
    total, read, tables = max(sum(s.size for s in files), 1), 0, []
    for at, source in enumerate(files):
        try:
            file = looked_at(source)
        except GradebookError as error:
            errors.append(error.inside(source.name))
        else:
            if log is None:
                header = file.names, file.numbers
                as_columns = guessed(*header, columns, by_row)
                log = Log(files, as_columns, header=header, by_row=by_row)
            try:
                tables.append(_table(log, source, at, file))
            except GradebookError as error:
                errors.append(error.inside(source.name))
        read += source.size
        if progress is not None:
            progress(read / total)
    if log is None or len(errors) == len(files):
        raise errors[0]
    log.broken_files = len(errors)
    log.broken += [e.at(file=Path(e.file).name) for e in errors[:NAMED]]
    if len({table["step"].dtype.kind for table in tables}) > 1:
        tables = [t.assign(step=t["step"].astype(str)) for t in tables]
    table = log._whole(pd.concat(tables, ignore_index=True))
    table, log.repeated = told_apart(table)
    step = pd.factorize(table["step"], use_na_sentinel=False)[0]
    if (np.diff(step) < 0).any():
        log.gathered = True
        table = table.iloc[np.argsort(step, kind="stable")].reset_index(drop=True)
    log.table = table
    more = other_prompts(log, columns)
    if more and table["prompt"].is_unique:
        return read_files(files, columns, progress, more)
    return log


def other_prompts(log: Log, columns: Mapping[str, str] | None) -> tuple[str, ...]:
    """`by_row` for another column of prompts than the log's, which was guessed;
    () where there is none."""
    prompt = log.columns.role.get("prompt", "")
    trusted = log.columns.by_place or "prompt" in log.columns.trusted
    if not prompt or trusted or prompt in log.by_row or log.recording:
        return ()
    more = *log.by_row, prompt
    other = guessed(*log.header, columns, more).role["prompt"]
    return more if other not in more else ()


def _table(log: Log, source: Source, at: int, file: File) -> pd.DataFrame:
    """A file's rows in canonical columns. Raises GradebookError."""
    for name in log.columns.used:
        if name not in file.names:
            raise GradebookError(
                key=name,
                expected="the columns of the first file",
                found="no such column",
            )
    rows = file.rows(log.columns.used, log.columns.numbers)
    log.rows += len(rows.frame)
    log.types = _types(log.columns, rows.types, log.types)
    table = log._marked(rows, source.name)
    if "step" not in table:
        number = number_in(source.name) if len(log.sources) > 1 else 0
        table["step"] = at if number is None else number
    return table


def _types(
    columns: Columns, types: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """The types of rewards and advantages, "" where functions or files differ."""
    advantage = columns.role.get("advantage", "")
    kinds = {}
    for name, used in (("advantage", (advantage,)), ("reward", columns.rewards)):
        each = {types.get(column, "") for column in used}
        each |= {before[name]} if name in before else set()
        kinds[name] = each.pop() if len(each) == 1 else ""
    return kinds


def told_apart(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The canonical table of a whole log, and how many of its steps stand
    again, as after a resumed run. Those are renamed, so that each time is a
    step of its own: "4", then "4 (again)".

    A step also stands in several places where its rows were written in
    pieces, by several ranks for example. Each place is the whole step where it
    has the same prompts each time, and as many rows as the steps that stand
    once. Where no step stands once, the places have to be equal row for row:
    the same file was given twice.
    """
    if "step" not in table or not len(table):
        return table, 0
    if is_unknown(table["step"].to_numpy()).any():
        return table, 0
    code = pd.factorize(table["step"], use_na_sentinel=False)[0]
    head = np.flatnonzero(np.diff(code, prepend=-1))
    step, rows = code[head], np.diff(np.append(head, len(code)))
    time = pd.Series(step).groupby(step).cumcount().to_numpy()
    again = np.isin(step, step[time > 0])
    if not again.any() or (rows == 1).all():
        return table, 0
    marked = table.drop(columns="step")
    if not again.all():
        marked = marked[["prompt"]] if "prompt" in table else marked[[]]
        if np.median(rows[again]) < WHOLE * np.median(rows[~again]):
            return table, 0
    marks = pd.util.hash_pandas_object(marked, index=False).to_numpy()
    total = pd.Series(np.add.reduceat(marks, head))
    if (total != total.groupby(step).transform("first")).any():
        return table, 0
    ends = ["", " (again)", *(f" (again {at})" for at in range(2, time.max() + 1))]
    names = table["step"].astype(str).to_numpy(dtype=object)
    names = names + np.repeat(np.array(ends, dtype=object)[time], rows)
    return table.assign(step=names), len(np.unique(step[time > 0]))


def read_frame(frame: pd.DataFrame, columns: Mapping[str, str] | None = None) -> Log:
    """A frame of whole steps as a log; a step that stands again is told apart.
    Raises GradebookError with the column and row of the first cell that
    cannot be read."""
    kinds = {str(name): frame[name].dtype for name in frame.columns}
    of_numbers = [name for name, kind in kinds.items() if kind.kind in "fiub"]
    log = Log((), guessed([*kinds], of_numbers, columns), rows=len(frame))
    log.types = _types(log.columns, {n: str(k) for n, k in kinds.items()}, {})
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
    log = Log(
        files or [part.source for part in parts[:1]],
        recorded_columns(recording.columns, columns),
        dict(recording.types),
        recording,
        rows=sum(map(recording.rows, recording.steps)),
    )
    if log.rows:
        rows = Rows(recording.frame()[[*log.columns.used]])
        log.table = log._whole(log._marked(rows, str(Path(log.sources[0].name).parent)))
    return log
