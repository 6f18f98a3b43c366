"""Batch: the rollouts of one or more training steps, checked once, here.

Letters in shapes: R rows (rollouts), T tokens, S steps, G groups.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gradebook.core.columns import ALL, COLUMNS
from gradebook.core.errors import GradebookError, refuse
from gradebook.core.lazy_pandas import pd
from gradebook.core.settings import Settings


@dataclass(frozen=True, eq=False)
class Batch:
    """Rollouts, one per row. Lists and tensors are both welcome.

    prompt      int64 [R], or a list of R strings
    reward      float [R], finite; float32 stays float32, all else is float64
    mask        bool [R, T] response mask; default one unmasked token a row
    eos         bool [R] the row ended with EOS; default True
    step        int64 [R] training step of the row; default 0
    steps       int64 [R] transitions of the episode; default 1
    kept_steps  int64 [R] transitions left after subsampling; default steps
    logp, ref_logp  float [R, T] log-probabilities of policy and reference;
                needed for the loss and its gradient, else absent
    old_logp    float [R, T] of the policy as it was when the update began, the
                anchor of its ratio; default logp itself, so that the ratio is 1
    behaviour_logp  float [R, T] of the engine that sampled the token; needed
                for the setting `off_policy`, else absent
    value       float [R, T] what the critic says of the state before the
                token; default 0. Read by the setting `credit` gae
    generation  int64 [R] rows that were generated together; default the step
    extent      int64 [R] tokens of the response, with what tools said;
                default, and at least, up to the last unmasked token
    scored      bool [R] a reward function gave the row a value; default
                True. The reward of a row that is not scored is a filler.
    rollout     int64 [R], or a list of R strings: rows of one prompt and
                step that share it are pieces of one rollout; default each
                row its own
    rank        int64 [R] the process that holds the row; default 0
    text        int64 [R], or a list of R strings: what the prompt says, as
                the trainer sees it; default the prompt
    settings    the trainer's conventions

    Raises GradebookError naming the field and the row.

    >>> batch = Batch(prompt=["a", "a", "b"], reward=[1.0, 3.0, 5.0])
    >>> batch.rows, batch.reward.tolist()
    (3, [1.0, 3.0, 5.0])
    >>> Batch(prompt=["a"], reward=[float("nan")])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gradebook.core.errors.GradebookError: key 'reward', row 0: expected a ...
    """

    prompt: Any
    reward: Any
    mask: Any = None
    eos: Any = None
    step: Any = None
    steps: Any = None
    kept_steps: Any = None
    logp: Any = None
    ref_logp: Any = None
    old_logp: Any = None
    behaviour_logp: Any = None
    value: Any = None
    generation: Any = None
    extent: Any = None
    scored: Any = None
    rollout: Any = None
    rank: Any = None
    text: Any = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Settings):
            raise refuse("a gradebook.Settings", self.settings, "settings")
        reward = as_tensor("reward", self.reward)
        reward = read_cells("reward", reward, len(reward) if reward.dim() else 0)
        refuse_cells("reward", ~reward.isfinite(), reward, "a finite number")
        read = {"reward": reward}
        for name in COLUMNS:
            cells = getattr(self, name)
            if name not in read and (name == "prompt" or cells is not None):
                column = read_cells(name, cells, len(reward))
                if isinstance(column, np.ndarray):
                    column = torch.from_numpy(codes(column))
                read[name] = column
        columns = completed(read)
        mask, kept = columns["mask"], columns["kept_steps"]
        lost = kept > columns["steps"]
        refuse_cells("kept_steps", lost, kept, "at most the row's steps")
        if self.settings.eos_by_width:  # as AReaL finds it
            columns["eos"] = mask.sum(-1) < mask.shape[-1]
        self._check_tokens(read, columns)
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def _check_tokens(
        self, read: dict[str, Tensor], columns: dict[str, Tensor]
    ) -> None:
        """Columns of numbers a token are as wide as the mask, of the reward's type,
        and finite at every unmasked token; those that others need are there."""
        mask = columns["mask"]
        for name, expected in self._needed(read):
            if name not in read:
                raise GradebookError(key=name, expected=expected, found="none")
        for name in PER_TOKEN:
            if name not in read:
                continue
            cells = columns[name] = read[name].to(columns["reward"].dtype)
            if cells.shape != mask.shape:
                expected = f"the mask's shape {list(mask.shape)}"
                raise refuse(expected, list(cells.shape), name)
            if not bool(cells.sum().isfinite()):  # else no term is infinite or NaN
                bad = mask & ~cells.isfinite()
                refuse_cells(name, bad, cells, "a finite number")
        if "extent" in read:
            wide = read["extent"] > mask.shape[-1]
            expected = f"at most {mask.shape[-1]}, the padded width"
            refuse_cells("extent", wide, read["extent"], expected)
            columns["extent"] = read["extent"].maximum(last_token(mask) + 1)

    def _needed(self, read: dict[str, Tensor]) -> list[tuple[str, str]]:
        """The columns that others or the settings ask for, and why."""
        s = self.settings
        beside = (n for n in LOG_PROBABILITIES[1:] if n in read)
        needed = [("logp", f"values beside {name}") for name in beside]
        if "logp" in read and s.beta:
            needed.append(("ref_logp", "values, since beta is not 0"))
        if "logp" in read and s.off_policy != "none":
            why = f"values, since off_policy is {s.off_policy}"
            needed.append(("behaviour_logp", why))
        if s.kl_in_reward and s.credit != "row":
            needed += dict.fromkeys(
                LOG_PROBABILITIES[:2], "values, since kl_in_reward is not 0"
            ).items()
        return needed

    @property
    def rows(self) -> int:
        """R, the number of rows."""
        return self.reward.shape[0]

    @cached_property
    def step_index(self) -> Tensor:
        """int64 [R] the row's step, numbered 0.. as the steps appear."""
        return _factorized(self.step)

    def within_step(self, labels: Tensor) -> Tensor:
        """int64 [R]: labels, int64 [R], numbered 0.. over the whole batch as
        (step, label) pairs appear."""
        return _factorized(self.step_index * self.rows + _factorized(labels))

    @cached_property
    def prompt_index(self) -> Tensor:
        """int64 [R] the row's prompt within its step, numbered as `within_step`."""
        return self.within_step(self.prompt)

    @cached_property
    def generation_index(self) -> Tensor:
        """int64 [R] the row's generation, numbered 0.. as the generations appear."""
        return _factorized(self.generation)

    @cached_property
    def rollout_index(self) -> Tensor:
        """int64 [R] the row's rollout, numbered 0.. over the whole batch as
        (step, prompt, rollout) triples appear."""
        rollout = _factorized(self.rollout)
        return _factorized(self.prompt_index * (self.rows + 1) + rollout)

    @cached_property
    def step_count(self) -> int:
        """S; 0 for an empty batch."""
        return int(self.step_index.max()) + 1 if self.rows else 0

    @cached_property
    def rows_per_step(self) -> Tensor:
        """int64 [S] rows of each step."""
        return torch.bincount(self.step_index, minlength=self.step_count)

    @cached_property
    def place(self) -> Tensor:
        """int64 [R] the row's position among the rows of its step."""
        place = torch.empty_like(self.step_index)
        place[self.step_index.argsort(stable=True)] = torch.arange(self.rows)
        before = self.rows_per_step.cumsum(0) - self.rows_per_step
        return place - before[self.step_index]

    @cached_property
    def prompt_rows(self) -> Tensor:
        """int64 [R] rows that share the row's prompt and step."""
        return torch.bincount(self.prompt_index)[self.prompt_index]

    @cached_property
    def group_size(self) -> Tensor:
        """int64 [S] the configured rows per prompt, or the step's largest group."""
        none = torch.zeros_like(self.rows_per_step)
        largest = none.scatter_reduce(0, self.step_index, self.prompt_rows, "amax")
        return self._configured("group_size", largest)

    @cached_property
    def prompts_per_step(self) -> Tensor:
        """int64 [S] the configured prompts per step, or those that the step has."""
        step = torch.empty_like(torch.bincount(self.prompt_index))
        step[self.prompt_index] = self.step_index
        prompts = torch.bincount(step, minlength=self.step_count)
        return self._configured("prompts_per_step", prompts)

    @cached_property
    def micro_batch(self) -> Tensor:
        """int64 [S] rows of one forward pass; by default all of the step."""
        return self._configured("micro_batch", self.rows_per_step)

    def _configured(self, name: str, of_step: Tensor) -> Tensor:
        number = self.settings[name]
        return of_step if number is None else torch.full_like(of_step, number)

    @cached_property
    def width(self) -> Tensor:
        """int64 [S] the padded width of each step: T, in tokens."""
        return torch.full_like(self.rows_per_step, self.mask.shape[-1])

    @property
    def has_tokens(self) -> Tensor:
        """bool [R] the row has at least one unmasked token."""
        return self.tokens > 0

    @cached_property
    def tokens(self) -> Tensor:
        """int64 [R] unmasked tokens of the row: its response length."""
        return self.mask.sum(-1)

    @cached_property
    def last_token(self) -> Tensor:
        """int64 [R] the place of the row's last unmasked token, -1 for none."""
        return last_token(self.mask)

    @cached_property
    def response(self) -> Tensor:
        """bool [R, T] the token is in the response, written by the model or by a
        tool: it is before `extent`."""
        extent = self.last_token + 1 if self.extent is None else self.extent
        return torch.arange(self.mask.shape[-1]) < extent[:, None]

    def select(self, keep: Tensor) -> Self:
        """The rows where `keep`, bool [R], is true, or with these numbers."""
        cells: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        tensors = {n: c[keep] for n, c in cells.items() if isinstance(c, Tensor)}
        return replace(self, **cells | tensors)

    def copies(self, times: int) -> "Batch":
        """The batch `times` times over, each copy with steps of its own."""
        rows = torch.arange(self.rows).repeat(times)
        copy = torch.arange(times).repeat_interleave(self.rows)
        step = copy * self.step_count + self.step_index[rows]
        generation = copy * self.rows + self.generation_index[rows]
        return replace(self.select(rows), step=step, generation=generation)

    def of_rows(self) -> "Batch":
        """The batch without its log-probabilities: rewards and advantages by row."""
        settings = replace(self.settings, kl_in_reward=0.0)
        absent = dict.fromkeys(LOG_PROBABILITIES)
        return replace(self, **absent, settings=settings)

    def under(self, settings: Settings) -> "Batch":
        """The batch with other `settings`. Raises GradebookError if they ask for a
        column that it does not have."""
        return replace(self, settings=settings)


LOG_PROBABILITIES = ("logp", "ref_logp", "old_logp", "behaviour_logp")
PER_TOKEN = (*LOG_PROBABILITIES, "value")
"""The columns of numbers a token."""


def last_token(mask: Tensor) -> Tensor:
    """int64 [R] the place of the row's last unmasked token, -1 for none."""
    places = mask * torch.arange(1, mask.shape[-1] + 1)
    return torch.nn.functional.pad(places, (1, 0)).amax(-1) - 1


def completed(read: dict[str, Tensor]) -> dict[str, Tensor]:
    """Columns, prompt among them, with what a batch takes for those that are not
    there; log-probabilities have no such value."""
    rows = len(read["prompt"])
    zero, true = torch.tensor(0).expand(rows), torch.tensor(True).expand(rows)
    by_token = next((read[name] for name in PER_TOKEN if name in read), None)
    kept_steps = read.get("kept_steps")
    columns = {
        "rollout": torch.arange(rows),
        "text": read["prompt"],
        "step": zero,
        "rank": zero,
        "eos": true,
        "scored": true,
        "mask": true[:, None]
        if by_token is None
        else torch.ones(by_token.shape, dtype=torch.bool),
        "steps": torch.tensor(1).expand(rows)
        if kept_steps is None
        else kept_steps.clamp(min=1),
        **read,
    }
    columns.setdefault("kept_steps", columns["steps"])
    columns.setdefault("generation", columns["step"])
    return columns


def _factorized(labels: Tensor) -> Tensor:
    return torch.from_numpy(codes(labels.numpy()))


FEW = 4096
"""Rows up to which Python numbers labels. For as many texts it takes 0.4 ms, and pandas
0.2 ms, after 0.2 to 0.3 s to be imported (2026-11-28)."""


def codes(labels: np.ndarray) -> np.ndarray:
    """Labels numbered 0.. in order of first appearance. int64 [R]."""
    if labels.dtype.kind == "i" and bool((labels[1:] >= labels[:-1]).all()):
        new = labels[1:] != labels[:-1]  # the labels are in order already
        return np.concatenate([[0], new.cumsum()])[: len(labels)]
    if len(labels) > FEW:
        return pd.factorize(labels)[0].astype("int64", copy=False)
    cells = labels.tolist()
    numbers = {label: number for number, label in enumerate(dict.fromkeys(cells))}
    return np.fromiter(map(numbers.__getitem__, cells), "int64", len(cells))


# Reading a column: a list, an array or a tensor becomes a tensor


def read_cells(key: str, value: Any, rows: int) -> Any:
    """The cells of a column, [R] or [R, T]: whole numbers and labels as int64, or
    labels as an array of strings; flags and masks as bool; else float32 or float64."""
    kind, least = ALL[key].kind, ALL[key].least
    cells: Any = _strings(key, value) if kind == "label" else None
    if cells is None:
        cells = as_tensor(key, value)
    dims = 2 if kind in ("tokens", "list") else 1
    if dims == 2 and not rows and list(cells.shape) == [0]:
        cells = cells.reshape(0, 0)
    if cells.ndim != dims:
        expected, shape = ("", "shape [R]", "shape [R, T]")[dims], list(cells.shape)
        raise GradebookError(key=key, expected=expected, found=f"shape {shape}")
    if len(cells) != rows:
        raise refuse(f"{rows} rows, one for each reward", len(cells), key)
    if isinstance(cells, np.ndarray):
        return cells
    if kind in ("number", "list"):
        exact = cells.dtype in (torch.float32, torch.float64)
        return cells if exact else cells.double()
    if kind in ("flag", "tokens"):
        return _flags(key, cells)
    cells = _whole_numbers(key, cells)
    if kind == "whole":
        refuse_cells(key, cells < least, cells, f"{least} or more")
    return cells


def _flags(key: str, cells: Tensor) -> Tensor:
    """0 and 1 as bool, [R] or [R, T]. Raises GradebookError at any other number."""
    if cells.dtype == torch.bool:
        return cells
    wrong = (cells != 0) & (cells != 1)
    refuse_cells(key, wrong, cells, "true or false" if cells.ndim == 1 else "0 or 1")
    return cells.bool()


def _whole_numbers(key: str, cells: Tensor) -> Tensor:
    """int64 [R]. Raises GradebookError at a fraction, and at what int64 cannot hold."""
    if cells.dtype == torch.bool:
        raise refuse("whole numbers", cells.dtype, key)
    if cells.is_floating_point():
        wrong = (cells.abs() >= 2**63) | (cells != cells.round())
        refuse_cells(key, wrong, cells, "a whole number")
    return cells.to(torch.int64)


def refuse_cells(key: str, wrong: Tensor, values: Any, expected: str) -> None:
    """Raises at the first row, or token, where `wrong`, bool [R] or [R, T], is true."""
    if bool(wrong.any()):
        place = tuple(wrong.nonzero()[0].tolist())
        raise refuse(expected, values[place].tolist(), key, *place)


def as_tensor(key: str, value: Any) -> Tensor:
    """`value` as a tensor in the computer's memory, without its graph."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.is_meta or value.is_quantized:
            kind = f"{value.dtype} on {value.device}"
            raise GradebookError(key=key, expected="real numbers", found=kind)
        value = value.detach().cpu().to_dense()
        if value.is_floating_point():
            return value
        value = value.numpy()
    array = _as_array(value)
    if array.dtype == object:
        array = _as_array(array.tolist())
    if array.dtype.kind not in "biuf":
        raise _unreadable(key, value)
    if array.dtype.kind == "u":  # torch does not compute with it
        small = array.size == 0 or array.max() < 2**63
        array = array.astype("int64" if small else "float64")
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))


def _as_array(value: Any, kind: Any = None) -> np.ndarray:
    """The value as an array of this dtype; one without a dimension if it is none."""
    try:
        return np.array(value, dtype=kind)
    except (ValueError, TypeError):  # lists of different lengths
        return np.array(None)


def _unreadable(key: str, value: Any) -> GradebookError:
    """The error about the first row without numbers, or of another shape than row 0."""
    rows = value.tolist() if hasattr(value, "tolist") else value
    arrays = [_as_array(row) for row in rows] if isinstance(rows, (list, tuple)) else []
    for row, array in enumerate(arrays):
        if array.dtype.kind not in "biuf":
            return refuse("numbers", rows[row], key, row=row)
        if array.shape != arrays[0].shape:
            as_first = f"shape {list(arrays[0].shape)}, as in row 0"
            shape = f"shape {list(array.shape)}"
            return GradebookError(key=key, row=row, expected=as_first, found=shape)
    return refuse("numbers", value, key)


def _strings(key: str, labels: Any) -> np.ndarray | None:
    """Labels that are strings, as objects [R]; None if none is."""
    # Without a dtype, each string of a list would be copied into a cell as wide as
    # the longest.
    kind = object if isinstance(labels, (list, tuple)) else None
    cells = _as_array(None if isinstance(labels, Tensor) else labels, kind)
    if cells.dtype.kind in "iuf" or cells.ndim != 1:
        return None
    cells = np.asarray(labels, dtype=object)
    # A column has many rows, but few types.
    are_text = {issubclass(each, str) for each in {*map(type, cells.tolist())}}
    if len(are_text) == 2:
        text = [isinstance(label, str) for label in cells]
        row = text.index(not text[0])
        expected = "whole numbers, or strings in every row"
        raise refuse(expected, cells[row], key, row=row)
    return cells if True in are_text else None
