"""Recorder: writes each training step to a folder.

Each process writes Arrow IPC streams, and each step is one batch, handed to the
operating system at once: a killed process loses at most the step that it was
writing. `gradebook check FOLDER` reads the folder with nothing guessed, also
while the run goes on.
"""

import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

from gradebook.core.batch import as_tensor, read_cells, refuse_cells
from gradebook.core.columns import COLUMNS
from gradebook.core.errors import GradebookError, choice, refuse
from gradebook.logs.judging.declaration import declaration_of

OF_TOKENS = tuple(n for n, column in COLUMNS.items() if column.kind == "list")
"""Numbers a token, [R, T], that are stored as they are, beside the mask."""
OF_STEP = ("loss", "policy_loss", "grad_norm")
"""Numbers of a whole step."""
ARGUMENTS = (
    *(name for name in COLUMNS if name != "step"),
    *("advantage", "length", "mini_batch"),
    *OF_STEP,
)
"""What `Recorder.step` and `Guard.step` take, beside the step's number."""
FORMAT = 2
KEY = "gradebook"
"""The key of a stream's facts, and of a step's, in the Arrow metadata."""
Float = Literal["float64", "float32", "float16", "bfloat16"]
"""The types that a trainer hands over, the finest first."""


class StreamFacts(BaseModel):
    """What a stream says of itself: its process, when the recorder started, and
    what was declared; column -> the float type that the trainer handed over."""

    format: int = FORMAT
    rank: int
    ranks: int
    session: int
    declared: dict[str, Any]
    types: dict[str, Float]


class StepFacts(BaseModel):
    """What a batch of a stream says of itself; see `RecordedStep`."""

    step: int
    written: int
    by_token: bool = False
    loss: float | None = None
    policy_loss: float | None = None
    grad_norm: float | None = None


@dataclass(frozen=True, eq=False)
class RecordedStep:
    """The rows of one training step as columns, arrays [R], step too; a reward that
    is missing is NaN. `by_token`: some row's tokens have different advantages, and
    it has their mean. `types`: name -> the float type that the trainer handed over.
    `tokens`: numbers and the mask by token, arrays [R, T], and `mini_batch`, [R];
    `numbers`: of the step.
    """

    step: int
    columns: Mapping[str, np.ndarray]
    by_token: bool
    types: Mapping[str, str]
    tokens: Mapping[str, np.ndarray]
    numbers: Mapping[str, float]

    @property
    def rows(self) -> int:
        """R, the number of rows."""
        return len(self.columns["reward"])


class Recorder(AbstractContextManager["Recorder"]):
    """Records the rows of each training step. One for each process.

    folder    where the files go; several processes may share it
    declared  what the trainer was configured with, by the names of
              gradebook.Settings, or {"estimator": ...}
    rank      this process's number, 0 ..; ranks is how many there are. The
              check judges a step when every rank's part is there
    prompts   "global" if a prompt has one label on every rank; "per
              rank" if each rank numbers its own
    strict    raise an error if something goes wrong. Otherwise training
              goes on: the recorder warns once, and writes what went wrong
              into the folder (problems-rank00000.txt)

    A resumed run may record into the same folder: if it repeats a step, the later
    rows count. Raises GradebookError for a bad argument here, strict or not.

    >>> from tempfile import TemporaryDirectory
    >>> rows = {"prompt": [0, 0], "reward": [1.0, 3.0]}
    >>> with TemporaryDirectory() as folder:
    ...     with Recorder(folder, declared={"estimator": "dr_grpo"}) as record:
    ...         record.step(0, advantage=[-1.0, 1.0], **rows)
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
        choice(prompts, ("global", "per rank"), "prompts")
        if rank not in range(ranks):
            raise refuse(f"0 to {ranks - 1}", rank, "rank")
        declaration_of(declared)
        self.folder = Path(folder)
        self.prompts = prompts
        self.strict = strict
        self._facts = StreamFacts(
            rank=rank,
            ranks=ranks,
            session=time.time_ns(),
            declared=dict(declared or {}),
            types={},
        )
        self._writer: Any = None
        self._schema: Any = None  # of the writer's stream
        self._streams = 0
        self._warned = False
        self._closed = False

    def step(self, step: int, **columns: Any) -> None:
        """Writes the rows of training step `step`. `columns` are tensors of any device
        and float type, arrays or lists.

        prompt, rollout, text  [R] labels: whole numbers or strings
        reward     [R] numbers; NaN or None for a row that nothing scored
        advantage  [R], or [R, T] with `mask`
        mask       [R, T] the response mask; or length [R] instead
        eos, scored            [R] true or false
        rank       [R], or one number: the process that holds the row; default
                   this recorder's rank
        steps, kept_steps      [R] transitions of the episode
        extent, generation     [R] tokens with what tools said; what was
                               generated together

        With these the check also looks at the loss:

        logp, ref_logp, old_logp, behaviour_logp, value
                   [R, T] with `mask`, each as gradebook.Batch has it
        loss, policy_loss, grad_norm  one number each: the step's loss, its
                   part without the KL, and the norm of its gradient before
                   it is clipped
        mini_batch [R] the optimizer's step, within this one, that the row's
                   logp was computed for
        """
        with self._going_on(step):
            if self._closed:
                raise refuse("an open recorder", "a closed one", "step")
            self._write(recorded_step(step, columns))

    def close(self) -> None:
        """Ends the recording."""
        self._closed = True
        with self._going_on("close"):
            self._end_stream()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, rows: RecordedStep) -> None:
        """To a new stream if columns are others, or the last write failed."""
        import pyarrow as pa  # a guard does without

        columns: dict[str, Any] = {n: _whole(c) for n, c in rows.columns.items()}
        rank, session = self._facts.rank, self._facts.session
        if self.prompts == "per rank":
            labels = columns["prompt"].tolist()
            columns["prompt"] = [f"{rank}/{label}" for label in labels]
        columns.setdefault("scored", np.ones(rows.rows, dtype=bool))
        columns.setdefault("rank", np.full(rows.rows, rank))
        # from_pandas: a NaN reward is a null; a NaN advantage stays.
        arrays = {
            name: pa.array(values, from_pandas=name == "reward")
            for name, values in columns.items()
        }
        arrays |= {name: pa.array([*cells]) for name, cells in rows.tokens.items()}
        facts = self._facts.model_copy(update={"types": rows.types})
        batch = pa.record_batch(arrays, metadata={KEY: facts.model_dump_json()})
        schema = batch.schema
        if self._writer is None or not schema.equals(self._schema, check_metadata=True):
            self._end_stream()
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"rank{rank:05d}-{session}-{self._streams:05d}.arrows"
            self._streams += 1
            # Without a buffer: what is written survives the process.
            self._writer = pa.ipc.new_stream(str(self.folder / name), schema)
            self._schema = schema
        written = time.time_ns()
        of_step = StepFacts(
            step=rows.step, written=written, by_token=rows.by_token, **rows.numbers
        )
        # A stream is given up if a write ends in the middle of a batch.
        writer, self._writer = self._writer, None
        writer.write_batch(batch, custom_metadata={KEY: of_step.model_dump_json()})
        self._writer = writer

    def _end_stream(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    @contextmanager
    def _going_on(self, step: Any) -> Iterator[None]:
        """Says what goes wrong inside, in the folder and once on the screen."""
        try:
            yield
        except Exception as error:
            if self.strict:
                raise
            text = f"step {step}: {error or type(error).__name__}"
            path = self.folder / f"problems-rank{self._facts.rank:05d}.txt"
            with suppress(OSError):  # a full disk: the warning below has to do
                self.folder.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as file:
                    file.write(text.replace("\n", " ") + "\n")
            if not self._warned:
                self._warned = True
                text = f"gradebook could not record {text}. Training goes on;"
                text += " further problems are only written to the folder."
                warnings.warn(text, RuntimeWarning, stacklevel=4)


def recorded_step(step: Any, arguments: Mapping[str, Any]) -> RecordedStep:
    """What a trainer handed over for one step. Raises GradebookError naming the
    argument and the row."""
    number = _step_number(step)
    cells = _arguments(arguments)
    types: dict[str, str] = {}
    for name in ("reward", "advantage"):
        cells[name], types[name] = _floats(name, cells[name])
    cells = {"reward": cells["reward"]} | cells  # the first to be wrong
    rows = len(cells["reward"]) if cells["reward"].dim() else 0
    if "rank" in cells:
        rank = as_tensor("rank", cells["rank"])
        cells["rank"] = rank if rank.dim() else rank.expand(rows)
    numbers = {n: _one_number(n, cells.pop(n)) for n in OF_STEP if n in cells}
    mask = cells.pop("mask", None)
    if mask is not None:
        mask = read_cells("mask", mask, rows)
        cells["length"] = mask.sum(-1)
    tokens = _by_token({n: cells.pop(n) for n in OF_TOKENS if n in cells}, mask, rows)
    if "mini_batch" in cells:
        tokens["mini_batch"] = _places("mini_batch", cells.pop("mini_batch"), rows)
    by_token = False
    if cells["advantage"].dim() == 2:
        cells["advantage"], by_token = _by_row(cells["advantage"], mask)
    arrays = _arrays(cells, rows) | {"step": np.full(rows, number)}
    return RecordedStep(number, arrays, by_token, types, tokens, numbers)


def _step_number(step: Any) -> int:
    whole = isinstance(step, Integral) and not isinstance(step, bool)
    if not whole or abs(int(step)) >= 2**53:
        raise refuse("a whole number below 2**53", step, "step")
    return int(step)


def _arrays(cells: Mapping[str, Any], rows: int) -> dict[str, np.ndarray]:
    """Columns of a value a row as arrays, [R]. A row whose reward is NaN is not
    scored."""
    columns = {name: read_cells(name, cell, rows) for name, cell in cells.items()}
    reward = columns["reward"]
    refuse_cells("reward", reward.isinf(), reward, "a finite number, NaN or None")
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    missing = np.isnan(arrays["reward"])
    if missing.any():
        arrays["scored"] = arrays.get("scored", True) & ~missing
    return arrays


def _arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given. Raises GradebookError if one is unknown, one is
    missing, or two contradict each other."""
    cells = {name: cell for name, cell in arguments.items() if cell is not None}
    for name in cells:
        choice(name, ARGUMENTS, name)
    for name in ("prompt", "reward", "advantage"):
        if name not in cells:
            raise GradebookError(key=name, expected="a value per row", found="nothing")
    if "mask" in cells and "length" in cells:
        raise GradebookError(key="length", expected="a mask or lengths", found="both")
    return cells


def _one_number(key: str, value: Any) -> float:
    number = as_tensor(key, value)
    if number.numel() != 1:
        raise refuse("one number", f"{number.numel()} numbers", key)
    return float(number)


def _places(key: str, value: Any, rows: int) -> np.ndarray:
    cells = as_tensor(key, value)
    if cells.is_floating_point() or list(cells.shape) != [rows]:
        raise refuse(f"{rows} whole numbers, one for each reward", value, key)
    return cells.long().numpy()


def _by_token(
    columns: Mapping[str, Any], mask: Tensor | None, rows: int
) -> dict[str, np.ndarray]:
    """Numbers a token as arrays [R, T], with the mask. Raises GradebookError for those
    without a mask, or of another shape."""
    arrays = {}
    for name, cells in columns.items():
        column = read_cells(name, cells, rows)
        if mask is None or column.shape != mask.shape:
            shape = "a mask" if mask is None else f"the mask's shape {[*mask.shape]}"
            raise refuse(shape, f"shape {[*column.shape]}", name)
        arrays[name] = column.numpy()
    return arrays | {"mask": mask.numpy()} if arrays and mask is not None else {}


def _whole(column: np.ndarray) -> np.ndarray:
    """The column, [R], as a file holds it: no file can hold half characters."""
    if column.dtype != object:
        return column
    texts = [text.encode("utf-8", "backslashreplace").decode() for text in column]
    return np.array(texts, dtype=object)


def _floats(key: str, value: Any) -> tuple[Tensor, Any]:
    """Numbers, None as NaN, and the float type that they came in."""
    of_objects = isinstance(value, np.ndarray) and value.dtype == object
    if of_objects or isinstance(value, (list, tuple)):
        value = [np.nan if cell is None else cell for cell in value]
    tensor = as_tensor(key, value)
    if tensor.is_floating_point() and tensor.dtype != torch.float64:
        return tensor.float(), str(tensor.dtype).removeprefix("torch.")
    return tensor.double(), "float64"


def _by_row(advantage: Tensor, mask: Tensor | None) -> tuple[Tensor, bool]:
    """Advantages per token, [R, T], as one per row: the mean over the unmasked
    tokens, 0 for a row without any; and whether some row has several."""
    if mask is None or advantage.shape != mask.shape:
        masked = "a mask" if mask is None else f"the mask's shape {list(mask.shape)}"
        shape = f"shape {list(advantage.shape)}"
        raise GradebookError(key="advantage", expected=masked, found=shape)
    tokens = torch.where(mask, advantage, 0).double()
    mean = tokens.sum(-1) / mask.sum(-1).clamp(min=1)
    same = tokens.isclose(mean[:, None], rtol=1e-9, atol=0, equal_nan=True)
    return mean.to(advantage.dtype), not bool((same | ~mask).all())
