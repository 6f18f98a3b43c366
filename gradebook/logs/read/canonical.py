"""Canonical: a log's own columns as the ones that are computed with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.columns import Columns
from gradebook.logs.read.tokens import TOKENS, by_row, listed

UNKNOWN = -(2**62)
"""The step of a row that names none."""

EMPTY = "an empty cell"
"""What an error found there."""

TRUE = ("true", "1", "1.0", "yes", "t", "y")
FALSE = ("false", "0", "0.0", "no", "f", "n")
CUT_SHORT = ("length", "max_tokens", "max_length", "truncated", "overlong")


def canonical(
    frame: pd.DataFrame, columns: Columns
) -> tuple[pd.DataFrame, list[GradebookError]]:
    """The canonical columns of a log's rows, with the reward functions as
    "reward 0", "reward 1", ..., and the cells that cannot be used; a row
    with such a cell is still there, with NaN."""
    broken: list[GradebookError] = []
    frame, role = by_row(frame, columns, broken), columns.role
    # A row without a reward is no mistake where functions are summed, or
    # where the log says which rows were scored.
    several = len(columns.rewards) > 1 or columns.by_place or "scored" in role
    found: dict[str, np.ndarray | pd.Series] = {
        f"reward {at}": numbers(frame[name], broken, may_be_empty=several)
        for at, name in enumerate(columns.rewards)
    }
    for name, read in READ.items():
        if name in role:
            found[name] = read(frame[role[name]], broken)
    if "advantage" in role:
        found["advantage"] = _advantage(frame, role, broken)
    for name, values in (
        ("length", _length(frame, role, broken)),
        ("eos", _eos(frame, role, broken)),
    ):
        if values is not None:
            found[name] = values
    _check_kept(found, role, broken)
    return pd.DataFrame(found, index=frame.index), broken


def _steps(column: pd.Series, broken: list[GradebookError]) -> np.ndarray:
    """Steps as int64 where most are whole numbers, else as text, [R];
    UNKNOWN where a cell names none, which goes to `broken`."""
    if column.dtype.kind in "iu":
        return column.to_numpy()
    values, empty = as_numbers(column)
    with np.errstate(invalid="ignore"):
        whole = (values % 1 == 0) & (np.abs(values) < 2**53)
    if whole.sum() * 2 > (~empty).sum():
        steps = np.where(whole, values, UNKNOWN).astype("int64")
        bad, expected = ~whole, "a whole number"
    else:
        steps = np.where(empty, "", column.astype(str)).astype(object)
        bad, expected = empty, "a step"
    _refuse(column, bad, expected, broken)
    return steps


def is_unknown(steps: np.ndarray) -> np.ndarray:
    """bool [R]: the row names no step."""
    return steps == (UNKNOWN if steps.dtype.kind in "iu" else "")


def numbers(
    column: pd.Series, broken: list[GradebookError], may_be_empty: bool = False
) -> np.ndarray:
    """float64 [R], NaN where a cell is no finite number; such cells go to
    `broken`, an empty one unless it may be."""
    values, empty = as_numbers(column)
    if may_be_empty:
        bad = np.isnan(values) & ~empty | np.isinf(values)
    else:
        bad = ~np.isfinite(values)
    _refuse(column, bad, "a number", broken)
    return values


def _refuse(
    column: pd.Series,
    rows: np.ndarray,
    expected: str,
    broken: list[GradebookError],
) -> None:
    """Notes that the cells of `rows`, bool [R], are not what was expected."""
    for row in np.flatnonzero(rows):
        cell = column.iloc[row]
        empty = str(cell).strip() == "" or (
            pd.api.types.is_scalar(cell) and pd.isna(cell)
        )
        broken.append(
            GradebookError(
                key=str(column.name),
                row=int(row),
                expected=expected,
                found=EMPTY if empty else shown(cell, 40),
            )
        )


def as_numbers(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Numbers float64 [R], NaN for what is none; bool [R] empty cells."""
    if column.dtype.kind in "fiub":
        values = np.array(column, dtype="float64")
        return values, np.isnan(values)
    cells = column.astype(object)
    values = np.array(pd.to_numeric(cells, errors="coerce"), dtype="float64")
    empty = cells.isna().to_numpy(copy=True)
    texts = np.isnan(values) & ~empty
    if texts.any():
        words = cells[texts].map(lambda c: str(c).strip().lower())
        empty[texts] = (words == "").to_numpy()
        values[texts] = words.map({"true": 1.0, "false": 0.0})
    return values, empty


def _labels(column: pd.Series, broken: list[GradebookError]) -> np.ndarray:
    """Prompts as int64 [R]: whole numbers as they are, else a hash of the
    text. An empty cell goes to `broken`."""
    if column.dtype.kind in "iu":
        return column.to_numpy().astype("int64", copy=False)
    codes, kinds = _kinds(column)
    _refuse(column, codes < 0, "a prompt", broken)
    words = np.append(_texts(kinds), "")
    return pd.util.hash_array(words).astype("int64")[codes]


def _kinds(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Each cell's number among the different ones, int64 [R], -1 where it
    is empty, and these."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories
    return pd.factorize(_hashable(column.astype(object)))


def _texts(kinds: pd.Index) -> np.ndarray:
    """Each as text that UTF-8 has, as pyarrow's text is."""
    if getattr(kinds.dtype, "storage", "") == "pyarrow":
        return kinds.to_numpy(dtype=object)
    return np.array([_encodable(k) for k in kinds], dtype=object)


def _encodable(value: object) -> str:
    """As text; half a surrogate pair, which UTF-8 does not have, as the
    escape that stands for it."""
    text = str(value)
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()


def _hashable(cells: pd.Series) -> pd.Series:
    """The cells; a conversation, a list of messages, as text."""
    nested = cells.map(lambda c: isinstance(c, (list, tuple, dict, np.ndarray)))
    if not nested.any():
        return cells
    texts = cells[nested].map(
        lambda c: json.dumps(c if isinstance(c, dict) else list(c), default=str)
    )
    return cells.where(~nested, texts)


def summed(table: pd.DataFrame, weights: Sequence[float]) -> pd.DataFrame:
    """The table with one reward, the weighted sum of the functions'; one
    that gave none (NaN) adds nothing, as in TRL. Rows that are `unscored`
    are not scored: they enter no statistic."""
    names = functions_of(table)
    if len(names) == 1 and weights[0] == 1:
        total = table[names[0]].to_numpy()
        if np.isnan(total).any():
            total = np.nan_to_num(total, posinf=np.inf, neginf=-np.inf)
    else:
        total = np.zeros(len(table))
        for name, weight in zip(names, weights):
            total = total + weight * np.nan_to_num(table[name].to_numpy())
    out = unscored(table)
    table = table.drop(columns=names).assign(reward=total)
    if not out.any():
        return table
    scored = table["scored"].to_numpy() if "scored" in table else 1.0
    return table.assign(scored=np.where(out, 0.0, scored))


def functions_of(table: pd.DataFrame) -> list[str]:
    """The columns of the reward functions."""
    return [name for name in table if name.startswith("reward ")]


def unscored(table: pd.DataFrame) -> np.ndarray:
    """bool [R]: no function gave the row a reward."""
    empty = np.ones(len(table), dtype=bool)
    for name in functions_of(table):
        empty &= np.isnan(table[name].to_numpy())
    return empty


def _advantage(
    frame: pd.DataFrame, role: Mapping[str, str], broken: list[GradebookError]
) -> np.ndarray:
    """The advantage as logged; what is no number goes to `broken`, but
    NaN and infinity are numbers that a trainer may have computed."""
    column = frame[role["advantage"]]
    values, empty = as_numbers(column)
    if column.dtype.kind in "fiub":
        return values
    spelled = column.map(lambda c: str(c).strip().lower())
    nan = spelled.isin(["nan", "+nan", "-nan"]).to_numpy() & ~empty
    wrong = np.isnan(values) & ~nan
    if "kept_steps" in role:
        wrong &= as_numbers(frame[role["kept_steps"]])[0] != 0
    _refuse(column, wrong, "a number", broken)
    return values


def _length(
    frame: pd.DataFrame, role: Mapping[str, str], broken: list[GradebookError]
) -> np.ndarray | None:
    """Unmasked tokens of each row, 0 for a rejected one; None when the log
    does not say."""
    length = None
    if "mask" in role:
        column = frame[role["mask"]]
        length = np.array([*map(_ones, column)], dtype="float64")
        _refuse(column, np.isnan(length), "a list of 0 and 1", broken)
    elif "length" in role:
        length = _whole(frame[role["length"]], broken, least=0)
    elif TOKENS in frame:
        length = frame[TOKENS].to_numpy()
    for name, keeps in (("accepted", 1.0), ("rejected", 0.0)):
        if name in role:
            flags = _flags(frame[role[name]], broken)
            if length is None:
                length = np.ones(len(frame))
            length = np.where(flags == keeps, length, flags * 0)
    return length


def _eos(
    frame: pd.DataFrame, role: Mapping[str, str], broken: list[GradebookError]
) -> np.ndarray | None:
    """1 where the row ended with EOS; None when the log does not say."""
    if "eos" in role:
        return _flags(frame[role["eos"]], broken)
    if "truncated" in role:
        return 1 - _flags(frame[role["truncated"]], broken)
    if "finish_reason" in role:
        words = frame[role["finish_reason"]].map(lambda c: str(c).lower())
        return 1.0 - words.isin(CUT_SHORT).to_numpy()
    return None


def _whole(column: pd.Series, broken: list[GradebookError], least: int) -> np.ndarray:
    values = numbers(column, broken)
    with np.errstate(invalid="ignore"):
        odd = np.isfinite(values) & (
            (values != np.round(values)) | (values < least) | (values > 2**31)
        )
    _refuse(column, odd, f"a whole number from {least}", broken)
    values[odd] = np.nan
    return values


def _flags(column: pd.Series, broken: list[GradebookError]) -> np.ndarray:
    if column.dtype.kind == "b":
        return column.to_numpy(dtype="float64")
    codes, kinds = _kinds(column)
    values = np.array([*map(_flag, kinds), np.nan])[codes]
    _refuse(column, np.isnan(values), "true or false", broken)
    return values


def _flag(cell: object) -> float:
    word = str(cell).strip().lower()
    return float(word in TRUE) if word in TRUE + FALSE else np.nan


def _ones(cell: object) -> float:
    """How many ones a mask has; NaN for what is none."""
    values = listed(cell)
    if values is None or not np.isin(values, (0, 1)).all():
        return np.nan
    return float(values.sum())


READ: Mapping[str, Callable[..., np.ndarray]] = {
    "step": _steps,
    "prompt": _labels,
    "scored": _flags,
    "rollout": _labels,
    "rank": _labels,
    "text": _labels,
    "steps": partial(_whole, least=1),
    "kept_steps": partial(_whole, least=0),
}
"""How the columns are read that stand for themselves."""


def _check_kept(
    found: dict, role: Mapping[str, str], broken: list[GradebookError]
) -> None:
    """At most as many transitions are kept as there were."""
    if "steps" not in found or "kept_steps" not in found:
        return
    with np.errstate(invalid="ignore"):
        more = found["kept_steps"] > found["steps"]
    kept = pd.Series(found["kept_steps"], name=role["kept_steps"])
    _refuse(kept, more, "at most the row's steps", broken)
