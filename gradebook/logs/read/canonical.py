"""Canonical: a log's own columns as the ones that are computed with.

A cell that cannot be used becomes NaN, and an error with its row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from gradebook.core.errors import GradebookError, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.columns import Columns

UNKNOWN = -(2**62)
"""The step of a row that names none."""
EMPTY = "an empty cell"
"""What an error found there."""
TRUE = ("true", "1", "1.0", "yes", "t", "y")
FALSE = ("false", "0", "0.0", "no", "f", "n")
CUT_SHORT = ("length", "max_tokens", "max_length", "truncated", "overlong")
SPREAD = 1e-6
"""One advantage stands at all tokens of a row, up to this."""

Broken = dict[int, GradebookError]
"""Rows with a cell that cannot be used, and the first such cell."""


def canonical(frame: pd.DataFrame, columns: Columns) -> tuple[pd.DataFrame, Broken]:
    """The canonical columns of a log's rows, with the reward functions as
    "reward 0", "reward 1", ..., and the cells that cannot be used; a row
    with such a cell is still there, with NaN."""
    broken: Broken = {}
    of = {role: frame[name] for role, name in columns.role.items()}
    # A row without a reward is no mistake where functions are summed, or
    # where the log says which rows were scored.
    several = len(columns.rewards) > 1 or columns.by_place or "scored" in of
    table: dict[str, np.ndarray] = {}
    for number, name in enumerate(columns.rewards):
        reward = frame[name]
        if has_lists(reward):  # a reward at each token
            tokens = reward.astype(object).map(listed)
            totals = tokens.map(lambda t: t.sum() if len(t) else np.nan, "ignore")
            reward = totals.where(tokens.notna(), reward)
        values = _numbers(reward)
        wrong = ~np.isfinite(values) & ~(_empty(reward) & several)
        _refuse(reward, wrong, "a number", broken)
        table[f"reward {number}"] = values
    for role, read in READERS.items():
        if role in of:
            table[role] = read(of[role], broken)
    if "advantage" in of:
        advantage = of["advantage"]
        if has_lists(advantage):
            advantage, tokens = _one_a_row(advantage, of.get("mask"), broken)
            table.setdefault("length", tokens)
        table["advantage"] = _numbers(advantage)
        if advantage.dtype.kind not in "fiub":
            # NaN and infinity are numbers that a trainer may have computed.
            words = advantage.map(lambda cell: str(cell).strip().lower())
            nan = words.isin(["nan", "+nan", "-nan"]) & advantage.notna()
            wrong = np.isnan(table["advantage"]) & ~nan.to_numpy()
            wrong &= table.get("kept_steps", np.ones(len(frame))) != 0
            _refuse(advantage, wrong, "a number", broken)
    if "mask" in of:
        masks = [listed(cell) for cell in of["mask"]]
        wrong = np.array([m is None or not np.isin(m, (0, 1)).all() for m in masks])
        table["length"] = np.array([np.nan if m is None else m.sum() for m in masks])
        _refuse(of["mask"], wrong, "a list of 0 and 1", broken)
    for role, keeps in (("accepted", 1.0), ("rejected", 0.0)):
        if role in table:
            flags, whole = table.pop(role), table.get("length", np.ones(len(frame)))
            table.setdefault("all_tokens", whole)
            table["length"] = np.where(flags == keeps, whole, flags * 0)
    truncated = table.pop("truncated", None)
    if "eos" not in of and truncated is not None:
        table["eos"] = 1 - truncated
    elif "eos" not in of and "finish_reason" in of:
        words = of["finish_reason"].astype(str).str.lower()
        table["eos"] = 1.0 - words.isin(CUT_SHORT).to_numpy()
    if "steps" in table and "kept_steps" in table:
        more = table["kept_steps"] > table["steps"]
        _refuse(of["kept_steps"], more, "at most the row's steps", broken)
    return pd.DataFrame(table, index=frame.index), broken


def _refuse(column: pd.Series, rows: np.ndarray, expected: str, to: Broken) -> None:
    """Notes that the cells of `rows`, bool [R], are not what was expected."""
    for row in np.flatnonzero(rows).tolist():
        cell = column.iloc[[row]]
        content = EMPTY if _empty(cell)[0] else shown(cell.tolist()[0], 40)
        error = GradebookError(key=str(column.name), expected=expected, found=content)
        to.setdefault(row, error.at(row=row))


def _empty(column: pd.Series) -> np.ndarray:
    """bool [R]: the cell is missing, or blank."""
    if column.dtype.kind in "fiub":
        return column.isna().to_numpy()
    blank = column.map(lambda cell: isinstance(cell, str) and not cell.strip())
    return (column.isna() | blank.eq(True)).to_numpy()


def _numbers(column: pd.Series) -> np.ndarray:
    """float64 [R], NaN for what is no number; true is 1, false is 0."""
    if column.dtype.kind in "fiub":
        return np.array(column, dtype="float64")
    cells = column.astype(object)
    values = np.array(pd.to_numeric(cells, errors="coerce"), dtype="float64")
    rest = np.isnan(values)
    words = cells[rest].map(lambda cell: str(cell).strip().lower())
    values[rest] = words.map({"true": 1.0, "false": 0.0})
    return values


def _steps(column: pd.Series, broken: Broken) -> np.ndarray:
    """Steps as int64 where most are whole numbers, else as text, [R];
    UNKNOWN, or "", where a cell names none."""
    if column.dtype.kind in "iu":
        return column.to_numpy()
    values, empty = _numbers(column), _empty(column)
    with np.errstate(invalid="ignore"):
        whole = (values % 1 == 0) & (np.abs(values) < 2**53)
    if whole.sum() * 2 > (~empty).sum():
        _refuse(column, ~whole, "a whole number", broken)
        return np.where(whole, values, UNKNOWN).astype("int64")
    _refuse(column, empty, "a step", broken)
    return np.where(empty, "", column.astype(str)).astype(object)


def is_unknown(steps: np.ndarray) -> np.ndarray:
    """bool [R]: the row names no step."""
    return steps == (UNKNOWN if steps.dtype.kind in "iu" else "")


def _whole(column: pd.Series, broken: Broken, least: int = 0) -> np.ndarray:
    values = _numbers(column)
    with np.errstate(invalid="ignore"):
        whole = (values % 1 == 0) & (values >= least) & (values <= 2**31)
    _refuse(column, ~whole, f"a whole number from {least}", broken)
    return np.where(whole, values, np.nan)


def _labels(column: pd.Series, broken: Broken) -> np.ndarray:
    """Labels as int64 [R]: whole numbers as they are, else a hash of the
    text, so that it is the same in every file."""
    if column.dtype.kind in "iu":
        return column.to_numpy().astype("int64", copy=False)
    codes, kinds = _kinds(column)
    _refuse(column, codes < 0, "a prompt", broken)
    texts = [str(kind).encode("utf-8", "backslashreplace").decode() for kind in kinds]
    hashes = pd.util.hash_array(np.array([*texts, ""], dtype=object))
    return hashes.astype("int64")[codes]


def _kinds(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Each cell's number among the different ones, int64 [R], -1 where it
    is empty, and these. A conversation, a list of messages, is one text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories
    cells = column.astype(object)
    nested = cells.map(lambda cell: isinstance(cell, list | tuple | dict | np.ndarray))
    if nested.any():
        texts = cells[nested].map(
            lambda cell: json.dumps(
                cell if isinstance(cell, dict) else [*cell], default=str
            )
        )
        cells = cells.where(~nested, texts)
    return pd.factorize(cells)


def _flags(column: pd.Series, broken: Broken) -> np.ndarray:
    """1 for true, 0 for false, [R]."""
    codes, kinds = _kinds(column)
    words = [str(kind).strip().lower() for kind in kinds]
    flags = [float(w in TRUE) if w in TRUE + FALSE else np.nan for w in words]
    values = np.array([*flags, np.nan])[codes]
    _refuse(column, np.isnan(values), "true or false", broken)
    return values


READERS: Mapping[str, Callable[[pd.Series, Broken], np.ndarray]] = {
    "step": _steps,
    **dict.fromkeys(("prompt", "rollout", "rank", "text"), _labels),
    "steps": partial(_whole, least=1),
    **dict.fromkeys(("kept_steps", "length"), _whole),
    **dict.fromkeys(("scored", "accepted", "rejected", "eos", "truncated"), _flags),
}
"""How each column is read, but rewards, advantages, masks and reasons to finish."""


def _one_a_row(
    column: pd.Series, masks: pd.Series | None, broken: Broken
) -> tuple[pd.Series, np.ndarray]:
    """The advantage that all unmasked tokens of a row share, 0 for a row
    without tokens, and how many they are. Several go to `broken`."""
    cells, count = list(column), np.zeros(len(column))
    for row, cell in enumerate(cells):
        tokens = listed(cell)
        if tokens is None:
            continue
        mask = None if masks is None else listed(masks.iloc[row])
        if mask is not None and len(mask) == len(tokens):
            tokens = tokens[mask > 0]
        count[row] = len(tokens)
        cells[row] = tokens[0] if len(tokens) else 0.0
        if len(tokens) and np.ptp(tokens) > SPREAD * max(1.0, np.abs(tokens).max()):
            broken[row] = GradebookError(
                key=str(column.name),
                row=row,
                expected="one advantage at all tokens of a row",
                found=f"{float(tokens.min())} to {float(tokens.max())}",
            )
    return pd.Series(cells, column.index, dtype=object, name=column.name), count


def has_lists(column: pd.Series) -> bool:
    """The cells are lists of numbers, as such or as text."""
    if column.dtype.kind != "O":
        return False
    first = next(iter(column.dropna()), None)
    if isinstance(first, str):
        return first.lstrip().startswith("[")
    return isinstance(first, list | tuple | np.ndarray)


def listed(cell: object) -> np.ndarray | None:
    """A cell's list of numbers, which may be text such as '[1, 1, 0]' or
    '[True, False]'; None where it is none."""
    if isinstance(cell, str):
        for word, number in (("True", "1"), ("False", "0"), ("None", "NaN")):
            cell = cell.replace(word, number)
    try:
        cell = json.loads(cell) if isinstance(cell, str) else cell
        values = np.array(cell, dtype="float64")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return values if values.ndim == 1 else None


def summed(table: pd.DataFrame, weights: Sequence[float]) -> pd.DataFrame:
    """The table with one reward, the weighted sum of the functions'; one
    that gave none (NaN) adds nothing, as in TRL. Rows that are `unscored`
    are not scored: they enter no statistic."""
    names, out = functions_of(table), unscored(table)
    total = np.zeros(len(table))
    for name, weight in zip(names, weights):
        total += weight * np.nan_to_num(table[name].to_numpy())
    table = table.drop(columns=names).assign(reward=total)
    if out.any():
        table["scored"] = np.where(out, 0.0, table.get("scored", 1.0))
    return table


def functions_of(table: pd.DataFrame) -> list[str]:
    """The columns of the reward functions."""
    return [name for name in table if name.startswith("reward ")]


def unscored(table: pd.DataFrame) -> np.ndarray:
    """bool [R]: no function gave the row a reward."""
    return table[functions_of(table)].isna().all(axis=1).to_numpy()
