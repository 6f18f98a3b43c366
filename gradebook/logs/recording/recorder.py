"""Recorder: writes each training step to a folder.

    with gradebook.Recorder("run-7", declared={"estimator": "grpo"}) as rec:
        for step in range(steps):
            ...
            rec.step(step, prompt=uid, reward=reward, advantage=advantage,
                     mask=response_mask)

Each process writes one Arrow IPC stream, and each step is one batch of it,
handed to the operating system at once: a killed process loses at most the step
that it was writing. `gradebook check FOLDER` reads the folder with nothing
guessed, also while the run goes on.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gradebook.core.errors import refuse
from gradebook.logs.judging.declared import asked_of
from gradebook.logs.recording.intake import StepRows, step_rows

KEY = "gradebook"
"""The key of a stream's facts, and of a step's, in the Arrow metadata."""
FORMAT = 2
"""1 was a folder of Parquet files."""
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
            raise refuse("one of " + ", ".join(PROMPTS), prompts, "prompts")
        if not 0 <= rank < ranks:
            raise refuse(f"0 to {ranks - 1}", rank, "rank")
        asked_of(declared)
        self.folder = Path(folder)
        self.declared = dict(declared or {})
        self.rank = rank
        self.ranks = ranks
        self.prompts = prompts
        self.strict = strict
        self.session = time.time_ns()
        self._schema: pa.Schema | None = None  # of the stream that is open
        self._writer: Any = None
        self._file: pa.OSFile | None = None
        self._streams = 0
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
        with self._going_on(step):
            if self._closed:
                raise refuse("an open recorder", "a closed one", "step")
            rows = step_rows(step, columns)
            self._write(self._batch(rows), rows)

    def close(self) -> None:
        """Ends the recording."""
        self._closed = True
        with self._going_on("close"):
            self._end_stream()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _batch(self, rows: StepRows) -> pa.RecordBatch:
        """The rows with the step in every row, and the stream's facts."""
        columns: dict[str, Any] = dict(rows.columns)
        if self.prompts == "per rank":
            labels = columns["prompt"].tolist()
            columns["prompt"] = [f"{self.rank}/{label}" for label in labels]
        columns.setdefault("scored", np.ones(rows.rows, dtype=bool))
        columns.setdefault("rank", np.full(rows.rows, self.rank))
        arrays: dict[str, Any] = {"step": np.full(rows.rows, rows.step)}
        for name, values in columns.items():
            # from_pandas: a NaN reward is a null; a NaN advantage stays.
            arrays[name] = pa.array(values, from_pandas=name == "reward")
        facts = {
            "format": FORMAT,
            "session": self.session,
            "rank": self.rank,
            "ranks": self.ranks,
            "declared": self.declared,
            "types": dict(rows.types),
        }
        return pa.record_batch(arrays).replace_schema_metadata({KEY: json.dumps(facts)})

    def _write(self, batch: pa.RecordBatch, rows: StepRows) -> None:
        """Writes a batch to the stream; to a new one where its columns are
        others, or where the last write failed."""
        same = self._schema and self._schema.equals(batch.schema, check_metadata=True)
        if not same:
            self._end_stream()
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"rank{self.rank:05d}-{self.session}-{self._streams:05d}.arrows"
            self._streams += 1
            # An OSFile has no buffer: what is written survives the process.
            self._file = pa.OSFile(str(self.folder / name), "wb")
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
            self._schema = batch.schema
        facts = {"step": rows.step, "by_token": rows.by_token}
        text = json.dumps(facts | {"written": time.time_ns()})
        try:
            self._writer.write_batch(batch, custom_metadata={KEY: text})
        except BaseException:
            self._writer = None  # the file ends in the middle of a batch
            self._end_stream()
            raise

    def _end_stream(self) -> None:
        writer, self._writer, self._schema = self._writer, None, None
        try:
            if writer is not None:
                writer.close()
        finally:
            if self._file is not None:
                self._file.close()

    @contextmanager
    def _going_on(self, step: Any) -> Iterator[None]:
        """Unless it is strict, says what goes wrong inside, in the folder and once
        on the screen."""
        try:
            yield
        except Exception as error:
            if self.strict:
                raise
            text = f"step {step}: {error or type(error).__name__}"
            path = self.folder / f"problems-rank{self.rank:05d}.txt"
            with suppress(OSError):  # a full disk: the warning below has to do
                self.folder.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as file:
                    file.write(text.replace("\n", " ") + "\n")
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"gradebook could not record {text}. Training goes on;"
                    " further problems are only written to the folder.",
                    RuntimeWarning,
                    stacklevel=4,
                )
