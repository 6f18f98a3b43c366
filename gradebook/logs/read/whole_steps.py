"""Whole steps: a log's files as canonical tables of whole steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.canonical import EMPTY, canonical, is_unknown
from gradebook.logs.read.columns import Columns, guessed, recorded_columns
from gradebook.logs.read.readers import header, parts
from gradebook.logs.read.resumed import told_apart
from gradebook.logs.read.sources import (
    LIMITS,
    ROWS,
    Part,
    Source,
    Wanted,
    number_in,
)

if TYPE_CHECKING:
    from gradebook.logs.recording.read import Recording

NAMED = 100
"""So many broken rows are named; the rest are counted."""


@dataclass(eq=False)
class Log:
    """A log being read: what its columns are, and what went wrong so far.

    gathered       rows are sorted by step first, held all at once
    broken         the first NAMED broken cells and files
    broken_cells   how many broken cells there were
    broken_files   how many files could not be read to their end
    broken_steps   steps that are not judged, since a row of theirs is broken
    split_steps    steps that came back after others, and those read
                   together with steps that stand twice
    rows           rows read
    without        rows left out for a broken row of their prompt, in a log
                   without steps
    progress       share of the bytes read, 0 to 1
    repeated       steps that stand again, as after a resumed run, in a log
                   that is gathered
    recording      what a recorder wrote, where the files are its own
    """

    sources: Sequence[Source]
    columns: Columns
    gathered: bool = False
    broken: list[GradebookError] = field(default_factory=list)
    broken_cells: int = 0
    broken_files: int = 0
    broken_steps: dict[object, None] = field(default_factory=dict)
    split_steps: dict[object, None] = field(default_factory=dict)
    rows: int = 0
    progress: float = 0.0
    empty_advantages: int = 0
    set_apart: int = 0
    repeated: int = 0
    without: int = 0
    recording: Recording | None = None

    @classmethod
    def of(
        cls,
        sources: Sequence[Source],
        given: Mapping[str, str] | None = None,
    ) -> Log:
        """The log in these files; the header of the first that can be read
        decides the columns. Raises GradebookError when none can."""
        found = _recording(sources)
        if found is not None:
            columns = recorded_columns(found.columns, given)
            return cls(sources, columns, recording=found)
        errors = []
        for source in sources:
            try:
                names, numbers = header(source)
            except GradebookError as error:
                errors.append(error.inside(source.name))
                continue
            return cls(sources, guessed(names, numbers, given))
        raise errors[0]

    def again(self, gathered: bool = False) -> Log:
        """The same log, to be read from its start."""
        return Log(
            self.sources,
            self.columns,
            gathered,
            recording=self.recording,
        )


def whole_steps(log: Log) -> Iterator[pd.DataFrame]:
    """Canonical tables of whole steps, of about ROWS rows.

    Rows of one step stand together in a log; a step that comes back later
    is noted in `split_steps`, unless the log is `gathered`. A step with a
    broken row is left out. Raises GradebookError when no file can be read.
    """
    held: list[pd.DataFrame] = []
    count = 0
    seen: set[object] = set()
    for table in _by_step(log) if log.gathered else tables(log):
        held.append(table)
        count += len(table)
        if count < ROWS:
            continue
        whole, rest = _cut(_joined(held))
        if len(rest) > LIMITS.step_rows:
            raise GradebookError(
                f"step {rest['step'].iloc[0]} is too large",
                key="step",
                expected=f"at most {LIMITS.step_rows:,} rows",
                found="more (is there a column of steps?)",
            )
        held, count = [rest], len(rest)
        if len(whole):
            yield from _kept(log, whole, seen, rest)
    if count:
        yield from _kept(log, _joined(held), seen, None)


def _by_step(log: Log) -> Iterator[pd.DataFrame]:
    """All tables as one, its rows sorted by step in order of appearance,
    a part at a time."""
    every = list(tables(log))
    if not every:
        return
    table, log.repeated = told_apart(_joined(every))
    every.clear()
    codes = pd.factorize(table["step"], use_na_sentinel=False)[0]
    order = np.argsort(codes, kind="stable")
    for at in range(0, len(order), ROWS):
        part = table.iloc[order[at : at + ROWS]]
        yield part.reset_index(drop=True)


def tables(log: Log) -> Iterator[pd.DataFrame]:
    """Every part of every file, with its broken rows marked; a file that
    cannot be read is noted, and the next one is read. Raises
    GradebookError when none can be read."""
    if log.recording is not None:
        yield from _recorded(log, log.recording)
        return
    total = max(sum(source.size for source in log.sources), 1)
    before = 0
    for at, source in enumerate(log.sources):
        last = None
        try:
            _refuse_other_columns(source, log.columns, at)
            wanted = Wanted(log.columns.used, log.columns.numbers)
            for part in parts(source, wanted):
                log.rows += len(part.frame)
                log.progress = min((before + part.bytes) / total, 1.0)
                last = _table(log, part, at)
                yield last
        except GradebookError as error:
            _leave_out(log, source, error, last)
        before += source.size
        log.progress = min(before / total, 1.0)


def _recording(sources: Sequence[Source]) -> Recording | None:
    """The recording that the files are; none for other logs."""
    if not any(source.kind == "recording" for source in sources):
        return None
    from gradebook.logs.recording.read import recording

    return recording(sources)


def _recorded(log: Log, found: Recording) -> Iterator[pd.DataFrame]:
    """The rows of a recording's whole steps, a part at a time."""
    total = max(sum(found.rows(step) for step in found.steps), 1)
    folder = Source(str(Path(log.sources[0].name).parent))
    for frame in found.frames(ROWS):
        lines = np.arange(log.rows, log.rows + len(frame)) + 1
        log.rows += len(frame)
        log.progress = log.rows / total
        yield _table(log, Part(frame[list(log.columns.used)], folder, lines), 0)


def _leave_out(
    log: Log,
    source: Source,
    error: GradebookError,
    last: pd.DataFrame | None,
) -> None:
    """Notes a file that cannot be read on; the step it breaks off in is
    not judged. Raises the error when nothing else was read."""
    log.broken_files += 1
    if log.broken_files == len(log.sources) and not log.rows:
        raise error
    if len(log.broken) < NAMED:
        error = error.inside(source.name)
        error.file = Path(error.file).name
        log.broken.append(error)
    if last is not None:
        log.broken_steps[last["step"].iloc[-1]] = None


def _refuse_other_columns(source: Source, columns: Columns, at: int) -> None:
    if at == 0:
        return
    names, _ = header(source)
    for name in columns.used:
        if name not in names and source.kind != "jsonl":
            raise GradebookError(
                file=source.name,
                key=name,
                expected="the columns of the first file",
                found="no such column",
            )


def _table(log: Log, part: Part, at: int) -> pd.DataFrame:
    """A part in canonical columns; `broken` marks rows to leave out."""
    table, cells = canonical(part.frame, log.columns)
    if "step" not in table:
        number = number_in(part.source.name) if len(log.sources) > 1 else 0
        table["step"] = at if number is None else number
    bad = np.zeros(len(table), dtype=bool)
    advantage = log.columns.role.get("advantage")
    marked = {error.row for error in part.bad}
    for error in (*part.bad, *(c for c in cells if c.row not in marked)):
        bad[error.row] = True
        log.broken_cells += 1
        unset = error.key == advantage and error.found == EMPTY
        log.empty_advantages += unset
        if len(log.broken) < NAMED:
            error.file = Path(part.source.name).name
            error.line, error.row = int(part.lines[error.row]), None
            log.broken.append(error)
    return table.assign(broken=bad)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    if len(tables) == 1:
        return tables[0]
    kinds = {t["step"].dtype.kind for t in tables if len(t)}
    if len(kinds) > 1:
        tables = [t.assign(step=t["step"].astype(str)) for t in tables]
    return pd.concat([t for t in tables if len(t)], ignore_index=True)


def _cut(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table before its last step, and that step."""
    step = table["step"].to_numpy()
    other = np.flatnonzero(step != step[-1])
    cut = int(other[-1]) + 1 if len(other) else 0
    return table.iloc[:cut], table.iloc[cut:].reset_index(drop=True)


def _kept(
    log: Log,
    table: pd.DataFrame,
    seen: set[object],
    rest: pd.DataFrame | None,
) -> Iterator[pd.DataFrame]:
    """The table without steps that cannot be judged."""
    bad = table["broken"].to_numpy()
    steps = table["step"]
    values = steps.to_numpy()
    present = pd.unique(values[~is_unknown(values)]).tolist()
    back = [step for step in present if step in seen]
    if rest is not None and rest["step"].iloc[0] in present:
        back.append(rest["step"].iloc[0])
    if not log.gathered and told_apart(table)[1]:
        back += present
    log.split_steps.update(dict.fromkeys(back))
    seen.update(present)
    if bad.any() and "step" not in log.columns.role and "prompt" in table:
        groups = _groups_of(table["prompt"].to_numpy(), bad)
        log.without += int(groups.sum())
        table, steps, bad = table[~groups], steps[~groups], bad[~groups]
    elif bad.any():
        log.broken_steps.update(dict.fromkeys(_touched(steps, bad)))
    left_out = [*log.broken_steps, *back]
    if left_out or bad.any():
        out = steps.isin(left_out).to_numpy() | is_unknown(steps.to_numpy())
        table = table[~out]
    table = table.drop(columns="broken")
    if len(table):
        yield table.reset_index(drop=True)


def _groups_of(prompt: np.ndarray, bad: np.ndarray) -> np.ndarray:
    """bool [R]: the broken rows, and all rows of their prompts and of those
    before and after them: a broken row may not say whose it is."""
    near = bad.copy()
    near[1:] |= bad[:-1]
    near[:-1] |= bad[1:]
    return near | np.isin(prompt, prompt[near])


def _touched(steps: pd.Series, bad: np.ndarray) -> list[object]:
    """Steps of the broken rows; where a broken row names no step, those of
    the rows before and after it."""
    values = steps.to_numpy()
    unknown = is_unknown(values)
    known = np.flatnonzero(~unknown)
    found = dict.fromkeys(values[bad & ~unknown].tolist())
    for row in np.flatnonzero(unknown):
        at = int(np.searchsorted(known, row))
        near = known[max(at - 1, 0) : at + 1]
        found.update(dict.fromkeys(values[near].tolist()))
    return list(found)
