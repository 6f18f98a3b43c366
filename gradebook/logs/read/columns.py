"""Columns: which column of a log means what, by the names that trainers use, and
its cells in the canonical columns that are computed with."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradebook.core.columns import ALL, FLAGS
from gradebook.core.errors import GradebookError, choice, refuse, shown
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.broken import Broken

NAMES: Mapping[str, tuple[str, ...]] = {
    name: column.names
    for name, column in {"step": ALL["step"], **ALL}.items()
    if column.kind != "list"
}
"""What a column can be, and the names it goes by, likeliest first."""
GROUP_IDS = ("uid", "group_id", "group", "group_index")
"""Names of a prompt column that TRL's own would not have."""
TRL_ROLES = ("step", "prompt", "advantage")
"""What TRL's own columns can be; next to them stand reward functions and
whatever these log, under any name."""
VERL_REWARDS = {"token_level_rewards", "token_level_scores"}
VERL = {"uid", "advantages", "response_mask", *VERL_REWARDS}
"""verl's own names, where they stand together."""
UNKNOWN = -(2**62)
"""The step of a row that names none."""
FUNCTION = re.compile(r"\w+_rewards?|\w+_reward_func|rewards?[_/]\w+", re.IGNORECASE)
"""How the column of one of several reward functions is named."""
NO_FUNCTION = {"total", "sum", "mean", "std", "raw", "final", "overall", "weighted"}
"""Words that name no function: the column is a sum, or says something of rewards."""
EMPTY = "an empty cell"
CUT_SHORT = ("length", "max_tokens", "max_length", "truncated", "overlong")
SPREAD = 1e-6
"""One advantage stands at all tokens of a row, up to this."""
DECIMAL = re.compile(r"[+-]?(?:nan|inf|[0-9]*\.?)([0-9]*)", re.IGNORECASE)
DECIMALS = 12
"""Numbers with more decimals are written in full, not rounded."""


@dataclass(frozen=True)
class Columns:
    """Which column of a log is what.

    role      role -> the log's own name, for the roles that were found
    rewards   the reward functions' columns, summed with weights
    by_place  groups are cut by position, as TRL does: equal prompts may
              stand side by side
    trusted   the roles whose column is no guess: a recorder wrote it, a person
              named it, or a trainer's own format has it
    by_row    columns to exclude as prompt ids on a retry, if the guessed prompt
              column turns out to identify rows; () without another column to try
    functions  columns of several reward functions, to sum on a retry if the guessed
              reward explains nothing; () without them
    """

    role: Mapping[str, str]
    rewards: tuple[str, ...]
    by_place: bool = False
    trusted: frozenset[str] = frozenset()
    by_row: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.role.values(), *self.rewards)))

    def types(self, frame: pd.DataFrame) -> dict[str, str]:
        """How a log's rewards and advantages are stored, "" where functions differ."""
        rewards = {_type(frame[name]) for name in self.rewards}
        types = {"reward": rewards.pop() if len(rewards) == 1 else ""}
        if "advantage" in self.role:
            types["advantage"] = _type(frame[self.role["advantage"]])
        return types


def plain(name: str) -> str:
    """A column's name without case, prefixes, units in brackets, punctuation."""
    bare = re.sub(r"[(\[{][^)\]}]*[)\]}]", "", name)
    name = bare if bare.strip() else name
    last = re.split(r"[./]", name.strip())[-1] or name
    return re.sub(r"[^a-z0-9]+", "_", last.lower()).strip("_")


def guessed(
    names: Sequence[str],
    numbers: Sequence[str],
    given: Mapping[str, str] | None = None,
    by_row: Sequence[str] = (),
) -> Columns:
    """Which of the columns `names` is what.

    numbers  the names of those that hold numbers
    given    role -> the column that a person named for it, "" for "there is none"
    by_row   columns that identify rows: they are prompts only if no other can be

    Raises GradebookError for a role or column that does not exist, and without rewards.
    """
    given = given or {}
    named, rewards = _named(names, given)
    aliases = {role: a for role, a in _aliases(names).items() if role not in given}
    found, prompts = _found(names, aliases, {*named.values(), *rewards}, by_row)
    role = {**named, **found}
    reward = role.pop("reward", "")
    by_place = _is_by_place(names, role)
    if not rewards and by_place and "reward" not in given:
        rewards = _reward_functions(names, numbers, role)
    if not rewards and reward:
        rewards = [reward]
    functions = functions_of(names, numbers, {*role.values()})
    if not rewards and "reward" not in given:
        rewards = [*functions]
    if not rewards:
        raise GradebookError(
            key="reward",
            expected="a column of rewards (name it with reward=...)",
            found="columns " + shown(", ".join(names), 120),
        )
    trusted = {role for role, name in given.items() if name}
    trusted |= _of_format(names, role, rewards, by_place)
    tried = {*by_row, role.get("prompt")}
    retry = "prompt" not in trusted and not tried.issuperset(prompts)
    more = (*by_row, role["prompt"]) if retry else ()
    other = () if "reward" in trusted or set(functions) & set(rewards) else functions
    return Columns(role, tuple(rewards), by_place, frozenset(trusted), more, other)


def functions_of(
    names: Sequence[str], numbers: Sequence[str], used: set[str]
) -> tuple[str, ...]:
    """The columns of numbers that are named as rewards of several functions are:
    `acc_reward`, `reward_format`, `rewards/format`. () for fewer than two."""
    named = [n for n in names if n in numbers and n not in used]
    functions = [
        n
        for n in named
        if FUNCTION.fullmatch(n) and not NO_FUNCTION & {*plain(n).split("_")}
    ]
    return tuple(functions) if len(functions) > 1 else ()


def _named(
    names: Sequence[str], given: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The columns that a person named, by role, and those of the rewards, written as
    "a + b". Raises GradebookError for a role or column that does not exist."""
    for key in given:
        choice(key, NAMES, key)
    text = given.get("reward", "")
    parts = [text] if text in names else map(str.strip, text.split("+"))
    rewards = [*filter(None, parts)]
    role = {key: name for key, name in given.items() if name and key != "reward"}
    for key, name in [*role.items(), *(("reward", name) for name in rewards)]:
        if name not in names:
            columns = "one of the columns " + shown(", ".join(names), 200)
            raise refuse(columns, name, key)
    return role, rewards


def _begins_as_trl(names: Sequence[str]) -> bool:
    """The columns begin as those of TRL's own log."""
    return "|step|prompt|completion|" in f"|{'|'.join(names)}|" and "advantage" in names


def _aliases(names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The names that each role may go by in a log with these columns."""
    if not _begins_as_trl(names):
        return NAMES
    aliases = {**NAMES, "prompt": (*GROUP_IDS, "prompt")}
    # A function called `truncated` gives a reward there. With a column of rewards it
    # may be another trainer's log of the same shape.
    if any(plain(name) in NAMES["reward"] for name in names):
        return aliases
    return {role: aliases[role] for role in TRL_ROLES}


def _found(
    names: Sequence[str],
    aliases: Mapping[str, tuple[str, ...]],
    named: set[str],
    by_row: Sequence[str],
) -> tuple[dict[str, str], list[str]]:
    """The likeliest column of each role in `aliases`, each column once and none of
    those that were `named`; and every column that may be the prompts."""
    role, taken, prompts = dict[str, str](), {*named}, list[str]()
    for key, known in aliases.items():
        by_name = {plain(n): n for n in reversed(names) if n not in taken}
        likely = [by_name[alias] for alias in known if alias in by_name]
        if key == "prompt":
            likely = prompts = sorted(likely, key=lambda n: n in by_row)
        if likely:
            role[key] = likely[0]
            taken.add(likely[0])
    return role, prompts


def _is_by_place(names: Sequence[str], role: Mapping[str, str]) -> bool:
    """Groups are cut by position, as in TRL's own log."""
    if not {"prompt", "completion", "advantage"} <= {*names} or "prompt" not in role:
        return False
    return role["prompt"] == "prompt" or _begins_as_trl(names)


def _reward_functions(
    names: Sequence[str], numbers: Sequence[str], role: Mapping[str, str]
) -> list[str]:
    """TRL's reward functions: columns of numbers between completion and advantage,
    except ids of problems."""
    first, last = names.index("completion") + 1, names.index("advantage")
    between = names[first:last] if first <= last else names
    ids = {*NAMES["prompt"], *NAMES["step"]}
    others = {*role.values(), *(n for n in names if plain(n) in ids)}
    return [n for n in between if n in numbers and n not in others]


def _of_format(
    names: Sequence[str],
    role: Mapping[str, str],
    rewards: Sequence[str],
    by_place: bool,
) -> set[str]:
    """The roles whose column a trainer's own format has, TRL's or verl's."""
    if by_place:
        return {*TRL_ROLES, "reward"}
    if not {*names} >= {"uid", "advantages"} or not VERL_REWARDS & {*names}:
        return set()
    roles = {r for r, name in role.items() if name in VERL}
    return roles | {"reward"} if {*rewards} <= VERL_REWARDS else roles


def canonical(
    frame: pd.DataFrame, columns: Columns, file: str = "", bad: Broken | None = None
) -> pd.DataFrame:
    """The canonical columns of a file's rows, of step 0 where it names none; the reward
    functions as "reward 0", "reward 1", ..; `broken` is the error of a row that
    cannot be used, and `bad` has those of lines that could not be read."""
    broken = bad or Broken(len(frame))
    of = {role: frame[name] for role, name in columns.role.items()}
    table = _rewards(frame, columns, broken)
    for role, column in of.items():
        kind = ALL[role].kind
        if kind == "whole":
            table[role] = _whole(column, ALL[role].least, broken)
        elif kind in CELLS:
            table[role] = CELLS[kind](column, broken)
    masks = [*map(listed, of["mask"])] if "mask" in of else [None] * len(frame)
    if "advantage" in of:
        advantage = of["advantage"]
        if has_lists(advantage):
            advantage, tokens = _one_a_row(advantage, masks, broken)
            table.setdefault("length", tokens)
        kept_steps = table.get("kept_steps", np.ones(len(frame)))
        table["advantage"] = _advantages(advantage, kept_steps, broken)
    if "mask" in of:
        table["length"] = _unmasked(of["mask"], masks, broken)
    _without_rejected(table, len(frame))
    _ended(table, of)
    if "steps" in table and "kept_steps" in table:
        more = table["kept_steps"] > table["steps"]
        _refuse(of["kept_steps"], more, "at most the row's steps", broken)
    table.setdefault("step", np.zeros(len(frame), dtype="int64"))
    rows = pd.DataFrame(table, index=frame.index)
    errors = broken.at(Path(file).name, frame.index.to_numpy())
    return rows.assign(broken=pd.Series(errors, frame.index, dtype=object))


def _rewards(
    frame: pd.DataFrame, columns: Columns, broken: Broken
) -> dict[str, np.ndarray]:
    """Each reward function's numbers, the sum of a row with a reward at each token:
    float64 [R]."""
    # A row without a reward is no mistake where functions are summed, or
    # where the log says which rows were scored.
    may_lack = len(columns.rewards) > 1 or columns.by_place or "scored" in columns.role
    table = {}
    for number, name in enumerate(columns.rewards):
        reward = frame[name]
        if has_lists(reward):
            tokens = reward.astype(object).map(listed)
            totals = tokens.map(lambda t: t.sum() if len(t) else np.nan, "ignore")
            reward = totals.where(tokens.notna(), reward)
        values = _numbers(reward)
        wrong = ~np.isfinite(values) & ~(_empty(reward) & may_lack)
        _refuse(reward, wrong, "a number", broken)
        table[f"reward {number}"] = values
    return table


def _advantages(
    column: pd.Series, kept_steps: np.ndarray, broken: Broken
) -> np.ndarray:
    """float64 [R]. NaN and infinity are numbers that a trainer may have computed; a
    row that kept no step needs none."""
    values = _numbers(column)
    if column.dtype.kind not in "fiub":
        nan = column.map(lambda cell: _word(cell).strip("+-") == "nan")
        wrong = np.isnan(values) & (~nan.eq(True) | column.isna())
        _refuse(column, wrong & (kept_steps != 0), "a number", broken)
    return values


def _unmasked(
    column: pd.Series, masks: Sequence[np.ndarray | None], broken: Broken
) -> np.ndarray:
    """How many tokens the mask of each row keeps, float64 [R]."""
    wrong = np.array([m is None or not np.isin(m, (0, 1)).all() for m in masks])
    _refuse(column, wrong, "a list of 0 and 1", broken)
    return np.array([np.nan if m is None else m.sum() for m in masks])


def _without_rejected(table: dict[str, np.ndarray], rows: int) -> None:
    """Gives rejected rows the length 0; "all_tokens" keeps the length of every row."""
    for role, keeps in (("accepted", 1.0), ("rejected", 0.0)):
        if role in table:
            flags, whole = table.pop(role), table.get("length", np.ones(rows))
            table.setdefault("all_tokens", whole)
            table["length"] = np.where(flags == keeps, whole, flags * 0)


def _ended(table: dict[str, np.ndarray], of: Mapping[str, pd.Series]) -> None:
    """Without a column that says which rows ended, takes "eos" from the one that says
    which were cut short, or why each ended."""
    truncated = table.pop("truncated", None)
    if "eos" in of:
        return
    if truncated is not None:
        table["eos"] = 1 - truncated
    elif "finish_reason" in of:
        words = of["finish_reason"].astype(str).str.lower()
        table["eos"] = 1.0 - words.isin(CUT_SHORT).to_numpy()


def _refuse(column: pd.Series, rows: np.ndarray, expected: str, to: Broken) -> None:
    """Notes that the cells of `rows`, bool [R], are something else."""
    places, key = np.flatnonzero(rows), str(column.name)
    empty = _empty(column[rows])
    missing = GradebookError(key=key, expected=expected, found=EMPTY)

    def named(row: int) -> GradebookError:
        return missing.at(found=shown(column.iloc[row], 40))

    to.note(places[empty], lambda row: missing, missing)
    to.note(places[~empty], named, missing.at(found=""))


def _type(column: pd.Series) -> str:
    """How its numbers, or those in its lists, are stored; "" for text of many decimals
    or of none."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = [DECIMAL.fullmatch(str(text)) for text in column.cat.categories]
        most = max((len(text[1]) if text else math.inf for text in texts), default=0)
        return f"text {most}" if 0 < most <= DECIMALS else ""
    first = next(iter(column.dropna()), None)
    return str(getattr(first, "dtype", column.dtype))


def _word(cell: object) -> str:
    return str(cell).strip().lower()


def _empty(column: pd.Series) -> np.ndarray:
    """bool [R]: the cell is missing, blank, or says that it is no number."""
    if column.dtype.kind in "fiub":
        return column.isna().to_numpy()
    blank = column.map(lambda cell: _word(cell) in ("", "nan"))
    return (column.isna() | blank.eq(True)).to_numpy()


def _kinds(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Each cell's number among the different ones, int64 [R], -1 where it
    is empty, and these. A conversation, a list of messages, is one text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories
    cells = column.astype(object)
    nested = cells.map(lambda cell: isinstance(cell, list | tuple | dict | np.ndarray))
    if nested.any():
        plain = cells[nested].map(lambda cell: cell if type(cell) is dict else [*cell])
        cells = cells.where(~nested, plain.map(str))
    return pd.factorize(cells)


def _each(column: pd.Series, read: Callable[[object], float]) -> np.ndarray:
    """What `read` makes of each cell, float64 [R], NaN where it is empty."""
    codes, kinds = _kinds(column)
    return np.array([*map(read, kinds), np.nan])[codes]


def _number(cell: Any) -> float:
    """NaN for what is no number; true is 1, false is 0."""
    word = _word(cell)
    if "_" in word or not word.isascii():
        return math.nan  # Python alone reads 1_5 as 15
    try:
        return float({"true": 1, "false": 0}.get(word, cell))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _numbers(column: pd.Series) -> np.ndarray:
    if column.dtype.kind in "fiub":
        return np.array(column, dtype="float64")
    return _each(column, _number)


def _whole(column: pd.Series, least: int, broken: Broken) -> np.ndarray:
    """Whole numbers from `least`, float64 [R], NaN for other cells."""
    values = _numbers(column)
    with np.errstate(invalid="ignore"):
        whole = (values % 1 == 0) & (values >= least) & (values <= 2**31)
    _refuse(column, ~whole, f"a whole number from {least}", broken)
    return np.where(whole, values, np.nan)


def _flags(column: pd.Series, broken: Broken) -> np.ndarray:
    """1 for true and 0 for false, float64 [R], NaN for other cells."""
    values = _each(column, lambda cell: FLAGS.get(_word(cell), math.nan))
    _refuse(column, np.isnan(values), "true or false", broken)
    return values


def _index(column: pd.Series, broken: Broken) -> np.ndarray:
    """Numbers that tell rows apart as int64 where most are whole, else as text,
    [R]; UNKNOWN, or "", where a cell has none."""
    if column.dtype.kind in "iu" and not column.hasnans:
        return column.to_numpy()
    values, empty = _numbers(column), _empty(column)
    with np.errstate(invalid="ignore"):
        whole = (values % 1 == 0) & (np.abs(values) < 2**53)
    if whole.sum() * 2 > (~empty).sum():
        _refuse(column, ~whole, "a whole number", broken)
        return np.where(whole, values, UNKNOWN).astype("int64")
    _refuse(column, empty, "a value", broken)
    return np.where(empty, "", _texts(column)).astype(object)


def _texts(cells: Iterable[object]) -> list[str]:
    return [str(cell).encode("utf-8", "backslashreplace").decode() for cell in cells]


def _labels(column: pd.Series, broken: Broken) -> np.ndarray:
    """int64 [R]: whole numbers as they are, else a hash of the text, so that it is
    the same in every file."""
    if column.dtype.kind in "iu" and not column.hasnans:
        return column.to_numpy().astype("int64", copy=False)
    codes, kinds = _kinds(column)
    _refuse(column, codes < 0, "a label", broken)
    hashes = pd.util.hash_array(np.array([*_texts(kinds), ""], dtype=object))
    return hashes.astype("int64")[codes]


CELLS: Mapping[str, Callable[[pd.Series, Broken], np.ndarray]] = {
    "flag": _flags,
    "label": _labels,
    "index": _index,
}
"""What reads the cells of each kind of column, but for whole numbers."""


def _one_a_row(
    column: pd.Series, masks: Sequence[np.ndarray | None], broken: Broken
) -> tuple[pd.Series, np.ndarray]:
    """The advantage that all unmasked tokens of a row share, 0 for a row
    without tokens, and how many they are. Several go to `broken`."""
    cells, count = list(column), np.zeros(len(column))
    found: dict[int, str] = {}
    for row, mask in enumerate(masks):
        tokens = listed(cells[row])
        if tokens is None:
            continue
        if mask is not None and len(mask) == len(tokens):
            tokens = tokens[mask > 0]
        count[row] = len(tokens)
        cells[row] = tokens[0] if len(tokens) else 0.0
        if len(tokens) and np.ptp(tokens) > SPREAD * max(1.0, np.abs(tokens).max()):
            found[row] = f"{float(tokens.min())} to {float(tokens.max())}"
    expected = "one advantage at all tokens of a row"
    differ = GradebookError(key=str(column.name), expected=expected)
    rows = np.array([*found], dtype="int64")
    broken.note(rows, lambda row: differ.at(found=found[row]), differ)
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
    """A cell's list of numbers, or text such as '[1, 1, 0]' or '[True, False]'; None
    where it is none."""
    if isinstance(cell, str):
        for word, number in (("True", "1"), ("False", "0"), ("None", "NaN")):
            cell = cell.replace(word, number)
    try:
        cell = json.loads(cell) if isinstance(cell, str) else cell
        values = np.array(cell, dtype="float64")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return values if values.ndim == 1 else None
