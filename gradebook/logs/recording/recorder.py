"""Recorder: writes each training step to a folder of Parquet files.

    with gradebook.Recorder("run-7", declared={"estimator": "grpo"}) as rec:
        for step in range(steps):
            ...
            rec.step(step, prompt=uid, reward=reward, advantage=advantage,
                     mask=response_mask)

A step is one file, written aside and then renamed, so a killed process
loses at most the step that it was writing. Small files are merged into
larger ones. `gradebook check FOLDER` reads the folder with nothing guessed.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gradebook.core.errors import GradebookError, refuse
from gradebook.logs.candidates.conventions import declared_conventions
from gradebook.logs.recording.intake import StepReader, StepRows

KEY = b"gradebook"
"""The key of a recording's facts in a Parquet file's metadata."""
BY_TOKEN = "advantage_by_token"
"""The column with the advantages of each row's unmasked tokens."""
FORMAT = 1
BY_STEP = ("steps", "widths", "rows", "written")
"""The facts that have a value for each step of a file."""
MERGED = 64
"""So many small files become one, or fewer that hold HELD bytes."""
HELD = 2**23
LARGE = 2**19
"""A step of so many bytes stays a file of its own."""
PROMPTS = ("global", "per rank")


class Recorder:
    """Records the rows of each training step. One for each process.

    folder    where the files go; several processes may share it
    declared  what the trainer was configured with, by the names of
              gradebook.Settings, or {"estimator": ...}; the check compares
              with it
    rank      this process's number, 0 ..; ranks is how many there are. The
              check judges a step when every rank's part is there
    prompts   "global" where a prompt has one label on every rank; "per
              rank" where each rank numbers its own
    strict    raise an error where something goes wrong. Otherwise training
              goes on: the recorder warns once, and writes what went wrong
              into the folder (problems-rank00000.txt)

    A run that is resumed may record into the same folder: where it repeats
    a step, the later rows count. Raises GradebookError for a bad argument
    here, strict or not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with Recorder(folder, declared={"estimator": "dr_grpo"}) as record:
    ...         record.step(
    ...             0, prompt=[0, 0], reward=[1.0, 3.0], advantage=[-1.0, 1.0]
    ...         )
    ...     len(os.listdir(folder))
    1
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        declared: Mapping[str, Any] | None = None,
        rank: int = 0,
        ranks: int = 1,
        prompts: str = "global",
        strict: bool = False,
    ) -> None:
        if prompts not in PROMPTS:
            expected = "one of " + ", ".join(PROMPTS)
            raise refuse(expected, prompts, "prompts")
        if not 0 <= rank < ranks:
            raise refuse(f"0 to {ranks - 1}", rank, "rank")
        declared_conventions(declared or {})
        self.folder = Path(folder)
        self.declared = dict(declared or {})
        self.rank = rank
        self.ranks = ranks
        self.prompts = prompts
        self.strict = strict
        self.session = time.time_ns()
        self._small: list[_Small] = []
        self._held = 0  # bytes of those tables
        self._reader = StepReader()
        self._files = 0
        self._warned = False
        self._closed = False

    def step(self, step: int, **columns: Any) -> None:
        """Writes one step's rows.

        step       the training step's number
        prompt     [R] labels: whole numbers or strings
        reward     [R] numbers; NaN or None where nothing scored the row
        advantage  [R], or [R, T] with `mask`
        mask       [R, T] the response mask; or length [R] instead
        eos, scored          [R] true or false
        rollout, text        [R] labels
        rank                 [R], or one number: the process that holds the
                             row; default this recorder's rank
        steps, kept_steps    [R] transitions of the episode

        Tensors of any device and float type, arrays and lists are welcome.
        """
        try:
            if self._closed:
                raise GradebookError(
                    key="step",
                    expected="an open recorder",
                    found="a closed one",
                )
            self._write(*self._reader.read(step, columns))
        except Exception as error:
            if self.strict:
                raise
            self._note(step, error)

    def close(self) -> None:
        """Merges the files that are still small. Recording ends here."""
        if self._closed:
            return
        self._closed = True
        try:
            self._merge()
        except Exception as error:
            if self.strict:
                raise
            self._note("close", error)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, step: int, rows: StepRows) -> None:
        table = self._table(step, rows)
        facts = self._facts(step, rows)
        if self._small and not self._small[0].joins(table, facts):
            self._merge()
        if table.nbytes >= LARGE:
            self._put(table, facts, "lz4")
            return
        path = self._put(table, facts, "none")
        self._small.append(_Small(path, table, facts))
        self._held += table.nbytes
        if len(self._small) >= MERGED or self._held >= HELD:
            self._merge()

    def _table(self, step: int, rows: StepRows) -> pa.Table:
        """The rows as an Arrow table, with the step in every row."""
        columns: dict[str, Any] = dict(rows.columns)
        if self.prompts == "per rank":
            prompts = columns["prompt"].tolist()
            columns["prompt"] = [f"{self.rank}/{one}" for one in prompts]
        arrays: dict[str, Any] = {"step": np.full(rows.rows, step)}
        for name, values in columns.items():
            # from_pandas: a NaN reward is a null; a NaN advantage stays.
            arrays[name] = pa.array(values, from_pandas=name == "reward")
        arrays.setdefault("rank", np.full(rows.rows, self.rank))
        if rows.by_token is not None:
            ends = np.append(0, rows.columns["length"].cumsum())
            arrays[BY_TOKEN] = pa.ListArray.from_arrays(
                pa.array(ends, pa.int32()), pa.array(rows.by_token)
            )
        return pa.table(arrays)

    def _facts(self, step: int, rows: StepRows) -> dict[str, Any]:
        """What the file says of itself; lists have a value a step."""
        return {
            "format": FORMAT,
            "session": self.session,
            "rank": self.rank,
            "ranks": self.ranks,
            "declared": self.declared,
            "types": dict(rows.types),
            "steps": [step],
            "widths": [rows.width],
            "rows": [rows.rows],
            "written": [time.time_ns()],
        }

    def _put(self, table: pa.Table, facts: dict[str, Any], compression: str) -> Path:
        """Writes a file aside and renames it: it is there whole or not."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        name = f"rank{self.rank:05d}-{self.session}-{self._files:08d}"
        path = self.folder / f"{name}.parquet"
        aside = self.folder / f".{name}.part"
        metadata = {KEY: json.dumps(facts).encode()}
        try:
            with pa.OSFile(str(aside), "wb") as file:
                pq.write_table(
                    table.replace_schema_metadata(metadata),
                    file,
                    compression=compression,
                    write_statistics=False,
                    use_dictionary=["step", "rank"],
                )
            os.replace(aside, path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        return path

    def _merge(self) -> None:
        """Writes the small files as one, and deletes them."""
        small, self._small, self._held = self._small, [], 0
        if len(small) < 2:
            return
        facts = dict(small[0].facts)
        for name in BY_STEP:
            facts[name] = [one.facts[name][0] for one in small]
        every = pa.concat_tables(one.table for one in small)
        self._put(every, facts, "lz4")
        for one in small:
            one.path.unlink(missing_ok=True)

    def _note(self, step: Any, error: Exception) -> None:
        """Says what went wrong, in the folder and once on the screen."""
        text = f"step {step}: {error or type(error).__name__}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"problems-rank{self.rank:05d}.txt"
            with path.open("a", encoding="utf-8") as file:
                file.write(text.replace("\n", " ") + "\n")
        except OSError:
            pass  # a full disk: the warning below has to do
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"gradebook could not record {text}. Training goes on;"
                " further problems are only written to the folder.",
                RuntimeWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class _Small:
    """A file of one step, and what stands in it."""

    path: Path
    table: pa.Table
    facts: dict[str, Any]

    def joins(self, table: pa.Table, facts: dict[str, Any]) -> bool:
        """Another step may stand in one file with this one."""
        same = self.table.schema == table.schema
        return same and self.facts["types"] == facts["types"]
