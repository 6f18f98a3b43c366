"""Log: the rows that a check judges, in canonical columns and whole steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradebook.core.errors import GradebookError
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read import log_columns as reading
from gradebook.logs.read.broken import NAMED
from gradebook.logs.read.curves import Curves, as_curves, curves_of
from gradebook.logs.read.files import (
    LOGS,
    LOOK,
    LogFile,
    names_step,
    read_rows,
    sources,
    step_in,
    unique,
)
from gradebook.logs.read.formats import Format
from gradebook.logs.read.log_columns import (
    Avoid,
    Columns,
    First,
    canonical,
    guessed,
    kind_of,
)

if TYPE_CHECKING:
    from gradebook.logs.recording import Recording

WHOLE = 0.75
"""A step that was run again has at least this share of the rows of the steps
that are there once. One that is cut in two has half of them."""
NO_ROWS = GradebookError(expected="rows", found="curves over steps")
"""Why a file of curves is left out of a log that has rows."""
OnRead = Callable[[float], object]


@dataclass(eq=False)
class Log:
    """A log: what its columns are, its rows, and what went wrong.

    types          "reward" and "advantage" -> how the first file stores the numbers:
                   a float type, "text 4" for text of at most 4 decimals, or ""
    recording      what a recorder wrote, if the files are its own
    broken         the first NAMED broken cells and files
    broken_cells   rows with a broken cell; with an empty advantage: empty_advantages
    broken_steps   steps that are left out, since a row of theirs is broken
    without        rows left out for a broken row of their prompt, in a log
                   without steps
    rows           rows read
    unscored       rows without a reward; those of their prompts that have no advantage
                   for it and are not judged: emptied
    curves         what it tells, if it holds curves over steps and no rows
    gathered       rows of a step were apart, and were brought together
    repeated       steps that are there again, as after a resumed run
    named_steps    the steps are numbers in the names of files or folders
    table          the rows in canonical columns, in whole steps; none at all
                   if no step can be judged
    """

    sources: Sequence[LogFile]
    columns: Columns
    types: Mapping[str, str]
    recording: Recording | None = None
    broken: list[GradebookError] = field(default_factory=list)
    broken_cells: int = 0
    broken_files: int = 0
    broken_steps: int = 0
    without: int = 0
    empty_advantages: int = 0
    rows: int = 0
    unscored: int = 0
    emptied: int = 0
    curves: Curves | None = None
    gathered: bool = False
    repeated: int = 0
    named_steps: bool = False
    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame())

    @property
    def has_steps(self) -> bool:
        """Whether a column, a recording, or the files' number or names say which step a
        row belongs to."""
        in_rows = self.recording is not None or "step" in self.columns.role
        return in_rows or len(self.sources) > 1 or self.named_steps

    def take(self, table: pd.DataFrame) -> None:
        """Stores the rows grouped by step. Steps with a broken row are dropped; in a
        log without steps, prompts with a broken row are. The column `broken` has the
        rows' errors."""
        bad = table["broken"].notna().to_numpy()
        errors = table.pop("broken")[bad].tolist()
        advantage = self.columns.role.get("advantage")
        empty = [e for e in errors if (e.key, e.found) == (advantage, reading.EMPTY)]
        self.rows, self.empty_advantages = len(table), len(empty)
        self.broken_cells, self.broken = len(errors), errors[:NAMED]
        unscored = reading.unscored_rows(table) & ~bad
        if len(table) and unscored.all() and not self.columns.by_place:
            column = " + ".join(self.columns.rewards)
            raise GradebookError(key=column, expected="rewards", found="no number")
        self.unscored = int(unscored.sum())
        emptied = table.pop("emptied").to_numpy() if "emptied" in table else ~bad & bad
        self.emptied = int(emptied.sum())
        step = table["step"].to_numpy()
        near = bad | np.append(bad[1:], False) | np.append(False, bad[:-1])
        if "step" not in self.columns.role and "prompt" in table:
            prompt = table["prompt"].to_numpy()
            out = near | np.isin(prompt, prompt[near])
            self.without = int(out.sum())
        else:
            # A broken row that names no step may be of the one before or after.
            unknown = step == (reading.UNKNOWN if step.dtype.kind in "iu" else "")
            near = near if (bad & unknown).any() else bad
            touched = pd.unique(step[near & ~unknown])
            self.broken_steps = len(touched)
            out = np.isin(step, touched) | unknown
        out |= emptied
        table, self.repeated = told_apart(table[~out] if out.any() else table)
        step = pd.factorize(table["step"])[0]
        self.gathered = bool((np.diff(step) < 0).any())
        order = np.argsort(step, kind="stable") if self.gathered else slice(None)
        self.table = table.iloc[order].reset_index(drop=True)


def pasted(text: str) -> LogFile:
    """Text copied from a spreadsheet, a CSV file or JSON Lines, as a source."""
    text = text.strip("\ufeff\r\n ")
    ending = "jsonl" if text.startswith("{") else "csv"
    return LogFile(f"pasted.{ending}", data=text.encode("utf-8", errors="replace"))


def read_files(
    paths: Iterable[str | Path | LogFile],
    columns: Mapping[str, str] | None = None,
    progress: OnRead = lambda share: None,
    avoid: Avoid = frozenset(),
) -> Log:
    """The log in these files, folders or uploads; the header of the first file that
    can be read decides the columns, but for those that `columns` names. `progress`
    is called with the share of the files that are read. A column that is different
    on every row, and those of `avoid`, take a role only if no other may.
    Raises GradebookError when no file can be read.
    """
    paths = list(paths)
    files = sources(paths)
    if not files:
        names = ", ".join(map(str, paths))
        raise GradebookError(file=names, expected=LOGS, found="none")
    run = _recorded(files)
    if run is not None:
        return read_recording(run, columns, files)
    read = _FilesRead(columns, avoid)
    for number, source in enumerate(files):
        read.add(source, number if len(files) > 1 else None)
        progress((number + 1) / len(files))
    if read.chosen is None:
        raise read.errors[0]
    if not read.chosen.curves:
        read.errors += [NO_ROWS.inside(name) for name in read.curves]
    log = Log(files, read.chosen, read.types, broken_files=len(read.errors))
    log.named_steps = read.named_steps
    if read.chosen.curves:
        lines = pd.concat([*read.curves.values()], ignore_index=True)
        log.curves, log.rows = curves_of(lines), len(lines)
    else:
        log.take(read.rows())
    log.broken += [e.at(file=Path(e.file).name) for e in read.errors[:NAMED]]
    prompt = read.chosen.role.get("prompt", "")
    is_guess = "prompt" not in read.chosen.trusted and ("prompt", prompt) not in avoid
    if (
        is_guess
        and read.chosen.alternatives.get("prompt")
        and log.table["prompt"].is_unique
    ):
        return read_files(files, columns, progress, avoid | {("prompt", prompt)})
    return log


def _recorded(files: Sequence[LogFile]) -> Recording | None:
    """What a recorder wrote, if the files are its own."""
    if all(source.kind != "recording" for source in files):
        return None
    from gradebook.logs.recording import recording

    return recording(files)


@dataclass(eq=False)
class _FilesRead:
    """The files of a log that were read so far.

    columns, avoid  as `guessed` takes them
    chosen          the columns of the first file that could be read
    types           how that file stores its numbers
    curves          the curves of each file that has no rows
    tables          the rows of each file that could be read, in canonical columns
    named_steps     a step is a number in a file's or folder's name
    errors          why each other file could not
    """

    columns: Mapping[str, str] | None
    avoid: Avoid
    chosen: Columns | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    curves: dict[str, pd.DataFrame] = field(default_factory=dict)
    tables: list[pd.DataFrame] = field(default_factory=list)
    named_steps: bool = False
    errors: list[GradebookError] = field(default_factory=list)

    def add(self, source: LogFile, number: int | None) -> None:
        """Reads one file more. If its rows name no step, the file is one: that of its
        name, or of its folder's, or `number`; None leaves the rows in step 0."""
        chosen = self.chosen

        def choose(
            kinds: dict[str, str], format: Format | None, first: First
        ) -> Columns:
            nonlocal chosen
            if chosen is None or chosen.curves:
                chosen = self._chosen(kinds, format, first)
            elif self._holds_curves(kinds, format):
                raise NO_ROWS
            for name in [name for name in chosen.used if name not in kinds]:
                if chosen.curves:
                    continue
                wanted = "the columns of the first file"
                raise GradebookError(key=name, expected=wanted, found="no such column")
            return chosen

        try:
            frame, bad = read_rows(source, choose)
        except GradebookError as error:
            self.errors.append(error.inside(source.name))
            return
        assert chosen is not None
        self.chosen = chosen
        if chosen.curves:
            self.curves[source.name] = frame
            return
        self.types = self.types or chosen.types(frame)
        table = canonical(frame, chosen, source.name, bad)
        if "step" not in chosen.role:
            step = step_in(source.name)
            if number is not None or names_step(source.name):
                table["step"] = number if step is None else step
                self.named_steps |= step is not None
        self.tables.append(table)

    def _chosen(
        self, kinds: dict[str, str], format: Format | None, first: First
    ) -> Columns:
        """The columns of the first file. Raises GradebookError for one that cannot be
        checked."""
        if format is not None and format.lacks:
            raise GradebookError(format.lacks)
        if self._holds_curves(kinds, format):
            numbers = [name for name, kind in kinds.items() if kind == reading.NUMBER]
            return Columns({}, (), curves=tuple(numbers))
        return guessed(kinds, self.columns, self.avoid, format, first)

    def _holds_curves(self, kinds: Mapping[str, str], format: Format | None) -> bool:
        """A file of these columns has no rows. The first file that has rows decides
        the columns."""
        return format is None and not self.columns and as_curves([*kinds])

    def rows(self) -> pd.DataFrame:
        """The rows of all files. Steps are text if they are in one of the files."""
        tables = self.tables
        if len({table["step"].dtype.kind for table in tables}) > 1:
            tables = [t.assign(step=t["step"].astype(str)) for t in tables]
        return pd.concat(tables, ignore_index=True)


def told_apart(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The table with a name of its own for each time that a step comes, "4", then
    "4 (again)", and how many steps come again, as after a resumed run.

    A step is also in several places if ranks wrote its rows in pieces.
    Each place is the whole step if it has the same prompts each time, and as
    many rows as the steps that come once. If no step comes once, the places
    have to be equal row for row: the same file was given twice.
    """
    code = pd.factorize(table["step"])[0]
    head = np.flatnonzero(np.diff(code, prepend=-1))
    runs = pd.DataFrame({"step": code[head], "rows": np.diff([*head, len(code)])})
    again = runs["step"].duplicated(keep=False)
    size, whole = runs["rows"][again].median(), runs["rows"][~again].median()
    if not again.any() or (runs["rows"] == 1).all() or size < WHOLE * whole:
        return table, 0
    compared = table.drop(columns="step") if again.all() else table.filter(["prompt"])
    marks = pd.util.hash_pandas_object(compared, index=False).to_numpy()
    runs["mark"] = np.add.reduceat(marks, head)
    if (runs.groupby("step")["mark"].nunique() > 1).any():
        return table, 0
    time = runs.groupby("step").cumcount()
    ends = np.array(["", " (again)", *(f" (again {n})" for n in range(2, len(runs)))])
    names = table["step"].astype(str) + ends[time].repeat(runs["rows"])
    return table.assign(step=names.astype(object)), runs["step"][time > 0].nunique()


def read_frame(frame: pd.DataFrame, columns: Mapping[str, str] | None = None) -> Log:
    """A frame of whole steps as a log. Raises GradebookError with the column and
    row of the first cell that cannot be read."""
    names = unique(frame.columns)
    frame = frame.reset_index(drop=True).set_axis(names, axis=1)
    kinds = {name: _kind_in(frame[name]) for name in frame}
    chosen = guessed(kinds, columns)
    table = canonical(frame, chosen)
    row = table["broken"].first_valid_index()
    if row is not None:
        raise table["broken"][row].at(line=None, row=row)
    log = Log((), chosen, chosen.types(frame))
    log.take(table)
    return log


def _kind_in(column: pd.Series) -> str:
    """What the cells of a frame's column are."""
    if column.dtype.kind in "fiu":
        return reading.NUMBER
    return kind_of([*column.iloc[:LOOK]], typed=True)


def read_recording(
    recording: Recording,
    columns: Mapping[str, str] | None = None,
    files: Sequence[LogFile] = (),
) -> Log:
    """A recording, or a part of one, as a log."""
    names = recording.columns
    as_written = {role: role if role in names else "" for role in reading.NAMES}
    kinds = dict.fromkeys(names, reading.NUMBER)
    chosen = guessed(kinds, {**as_written, **(columns or {})})
    log = Log(files, chosen, recording.types, recording)
    frame = recording.frame()
    if len(frame):
        log.take(canonical(frame[[*chosen.used]], chosen, "the recording"))
    return log
