"""Columns: which column of a log means what, by the names that trainers use, and
its cells in the canonical columns that are computed with."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from gradebook.core.columns import ALL, COMMA, FLAGS, with_point
from gradebook.core.errors import GradebookError, choice, refuse, shown
from gradebook.core.formatting import DUST
from gradebook.core.lazy_pandas import pd
from gradebook.logs.read.broken import Broken
from gradebook.logs.read.formats import Format

NAMES: Mapping[str, tuple[str, ...]] = {
    name: column.names
    for name, column in {"step": ALL["step"], **ALL}.items()
    if column.kind != "list"
}
"""What a column can be, and the names it goes by, likeliest first."""
GROUP_IDS = ("uid", "group_id", "group", "group_index")
"""Names of a prompt column that TRL's own would not have."""
TRL_ROLES = ("step", "prompt", "advantage")
"""What TRL's own columns can be; next to them are reward functions and
whatever these log, under any name."""
VERL_REWARDS = {"token_level_rewards", "token_level_scores"}
VERL = {"uid", "advantages", "response_mask", *VERL_REWARDS}
"""verl's own names, if they occur together."""
UNKNOWN = -(2**62)
"""The step of a row that names none."""
FUNCTION = re.compile(r"\w+_rewards?|\w+_reward_func|rewards?[_/]\w+", re.IGNORECASE)
"""How the column of one of several reward functions is named."""
NO_FUNCTION = {"total", "sum", "mean", "std", "raw", "final", "overall", "weighted"}
"""Words that name no function: the column is a sum, or says something of rewards."""
EMPTY, NAN = "an empty cell", "NaN"
CUT_SHORT = ("length", "max_tokens", "max_length", "truncated", "overlong")
First = Mapping[str, tuple[str, ...]]
"""A log's columns, each with its first cells as text."""
Avoid = frozenset[tuple[str, str]]
"""Roles and columns that they take only if no other can be it."""
SPREAD = 1e-6
"""The tokens of a row have one advantage, up to this difference: 16 roundings of
float32."""
DECIMAL = re.compile(r"[+-]?(?:nan|inf|[0-9]*[.,]?)([0-9]*)", re.IGNORECASE)
DECIMALS = 12
"""Numbers with more decimals are written in full, not rounded."""


NUMBER, FLAG, DIGITS, TEXT, LIST, RECORD, EMPTY_COLUMN = (
    "number",
    "flag",
    "digits",
    "text",
    "list",
    "record",
    "empty",
)
"""What the cells of a column are: numbers; true and false; numbers that are written as
text if numbers need not be; other text; lists of numbers; other lists and records;
none at all."""
HOLDS: Mapping[str, frozenset[str]] = {
    "number": frozenset({NUMBER, FLAG, DIGITS, LIST, TEXT, EMPTY_COLUMN}),
    "label": frozenset({NUMBER, FLAG, DIGITS, TEXT, LIST, RECORD, EMPTY_COLUMN}),
    "tokens": frozenset({DIGITS, TEXT, LIST, EMPTY_COLUMN}),
    **dict.fromkeys(
        ("whole", "index", "flag", "reason"),
        frozenset({NUMBER, FLAG, DIGITS, TEXT, EMPTY_COLUMN}),
    ),
}
"""Kind of a column in Gradebook -> the cells that it can be read of."""
NO_REWARDS = frozenset(
    {
        *("answer", "answers", "expected_answer", "expected", "reference", "gold"),
        *("ground_truth", "gt", "gts", "solution", "target", "label", "labels"),
        *("seed", "temperature", "index"),
    }
)
"""Numbers that trainers and data sets log and that are no rewards."""
OF_REWARDS = re.compile(r"(?:.*_)?rewards?(?:_.*)?")
STATISTIC = re.compile(r".*_(?:std|mean|min|max|weight|weights|model|fn|func)")


@dataclass(frozen=True)
class Columns:
    """Which column of a log is what.

    role      role -> the log's own name, for the roles that were found
    rewards   the reward functions' columns, summed with weights
    by_place  groups are cut by position, as TRL does: equal prompts may
              stand side by side
    trusted   the roles whose column is no guess: a recorder wrote it, a person
              named it, or a trainer's own format has it
    functions  columns of several reward functions, to sum on a retry if the guessed
              reward explains nothing; () without them
    alternatives  "prompt" and "reward" -> the other columns that may be it, likeliest
              first, if the choice is a guess
    format    the trainer's format that the file is of, if any
    curves    the file's columns are curves over steps: numbers, and no rows
    masks_by_row  columns named as a mask of tokens is, with one value a row, which are
              not used
    first     every column of the file -> its first cells, as text; in Parquet, what
              it holds
    """

    role: Mapping[str, str]
    rewards: tuple[str, ...]
    by_place: bool = False
    trusted: frozenset[str] = frozenset()
    functions: tuple[str, ...] = ()
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    format: Format | None = None
    curves: tuple[str, ...] = ()
    masks_by_row: tuple[str, ...] = ()
    first: First = field(default_factory=dict)

    @property
    def used(self) -> tuple[str, ...]:
        names = (*self.role.values(), *self.rewards, *self.curves)
        return tuple(dict.fromkeys(names))

    def types(self, frame: pd.DataFrame) -> dict[str, str]:
        """How a log's rewards and advantages are stored, "" if functions differ."""
        rewards = {_type(frame[name]) for name in self.rewards}
        types = {"reward": rewards.pop() if len(rewards) == 1 else ""}
        if "advantage" in self.role:
            types["advantage"] = _type(frame[self.role["advantage"]])
        return types


@dataclass(eq=False, repr=False)
class Unnamed(GradebookError):
    """No column of a log can be guessed to be `role`. `first` has its columns, each
    with its first cells."""

    role: str = ""
    first: First = field(default_factory=dict)


def unnamed(role: str, what: str, first: First) -> Unnamed:
    columns = "the columns " + shown(", ".join(first), 200)
    return Unnamed(key=role, expected=what, found=columns, role=role, first=first)


def kind_of(cells: Sequence[Any], typed: bool = False) -> str:
    """What the cells of a column are; `typed`, in a file whose numbers are no text."""
    cells = [cell for cell in cells if _word(cell) not in ("", "nan", "none")]
    if not cells:
        return EMPTY_COLUMN
    if nested := _nested_kind(cells):
        return nested
    words = [_word(cell) for cell in cells]
    if {*words} <= {"true", "false"}:
        return FLAG
    read = _reader(words)
    numbers = [word for word in words if not math.isnan(read(word))]
    if 2 * len(numbers) <= len(words):
        return TEXT
    are_text = typed and any(isinstance(cell, str) for cell in cells)
    return DIGITS if are_text else NUMBER


def _nested_kind(cells: Sequence[Any]) -> str:
    """LIST or RECORD, if a cell holds more than one value; else ""."""
    if any(isinstance(cell, dict) for cell in cells):
        return RECORD
    first = cells[0]
    if isinstance(first, list | tuple | np.ndarray):
        return RECORD if listed(first) is None else LIST
    is_text_of_list = isinstance(first, str) and first.lstrip().startswith("[")
    return LIST if is_text_of_list else ""


def plain(name: str) -> str:
    """A column's name without case, prefixes, units in brackets, punctuation."""
    bare = re.sub(r"[(\[{][^)\]}]*[)\]}]", "", name)
    name = bare if bare.strip() else name
    last = re.split(r"[./]", name.strip())[-1] or name
    return re.sub(r"[^a-z0-9]+", "_", last.lower()).strip("_")


def guessed(
    kinds: Mapping[str, str],
    columns: Mapping[str, str] | None = None,
    avoid: Avoid = frozenset(),
    format: Format | None = None,
    first: First = MappingProxyType({}),
) -> Columns:
    """Guesses which column has which role.

    kinds    name of each column -> what its cells are
    columns  role -> the column that a person named for it, "" for "there is none"
    avoid    the columns that a role takes only if no other can be it
    format   the trainer's format that the file is of, whose roles are known
    first    each column's first cells, for a person who has to choose

    Raises GradebookError for a role or column that does not exist, and without rewards.
    """
    columns = columns or {}
    first = first or dict.fromkeys(kinds, ())
    settled = {**_roles_of(format, kinds), **columns}
    named, rewards = _named([*kinds], settled)
    guesses, likely = _guesses(kinds, settled, {*named.values(), *rewards}, avoid)
    role = {**named, **guesses}
    reward = role.pop("reward", "")
    by_place = _is_by_place([*kinds], role)
    functions = functions_of(kinds, {*role.values()})
    if not rewards and "reward" not in columns:
        rewards = _likely_rewards(kinds, role, reward, by_place, functions)
    if not rewards:
        raise unnamed("reward", "a column of rewards", first)
    trusted = _of_format([*kinds], role, rewards, by_place)
    trusted |= {r for r, name in settled.items() if name}
    trusts_reward = "reward" in trusted or not {*functions}.isdisjoint(rewards)
    alternatives = {}
    if "prompt" not in trusted:
        alternatives["prompt"] = _without(likely, "prompt", [role.get("prompt")])
    if not columns.get("reward"):
        alternatives["reward"] = _without(likely, "reward", rewards)
    return Columns(
        role,
        (*rewards,),
        by_place,
        frozenset(trusted),
        functions=() if trusts_reward else functions,
        alternatives=alternatives,
        format=format,
        masks_by_row=_masks_by_row(kinds, {*role.values(), *rewards}),
        first=first,
    )


def _likely_rewards(
    kinds: Mapping[str, str],
    role: Mapping[str, str],
    reward: str,
    by_place: bool,
    functions: Sequence[str],
) -> list[str]:
    """The columns of rewards, if nobody named them: in TRL's own log those of its
    functions, else `reward`, which has a reward's name, else those of several
    functions, else those whose names say that they are rewards."""
    if by_place and (of_trl := _reward_functions(kinds, role)):
        return of_trl
    if reward:
        return [reward]
    return [*functions] or _by_name(kinds, role)


def _without(
    likely: Mapping[str, Sequence[str]], role: str, chosen: Sequence[str | None]
) -> tuple[str, ...]:
    """The columns that are likely of a role and were not chosen."""
    return tuple(name for name in likely.get(role, ()) if name not in chosen)


def _masks_by_row(kinds: Mapping[str, str], used: set[str]) -> tuple[str, ...]:
    """Columns named as a mask of tokens is, with one value a row."""
    free = (n for n in kinds if n not in used and kinds[n] in (NUMBER, DIGITS, FLAG))
    return tuple(name for name in free if plain(name) in NAMES["mask"])


def _roles_of(format: Format | None, kinds: Mapping[str, str]) -> dict[str, str]:
    """Role -> column as a trainer's format says, of the columns that are worth it; ""
    for a role that the format does not have."""
    roles = format.roles if format else {}
    return {
        role: name
        for role, name in roles.items()
        if not name or _has_cells(role, kinds.get(name))
    }


def _has_cells(role: str, kind: str | None) -> bool:
    """Whether a column of this kind may have the role. A column that is empty in its
    first rows may only be the prompt, the reward or the advantage."""
    needed = ("prompt", "reward", "advantage")
    return kind is not None and (kind != EMPTY_COLUMN or role in needed)


def functions_of(kinds: Mapping[str, str], used: set[str]) -> tuple[str, ...]:
    """The columns of numbers that are named as rewards of several functions are:
    `acc_reward`, `reward_format`, `rewards/format`. () for fewer than two."""
    named = [n for n in kinds if kinds[n] == NUMBER and n not in used]
    functions = [
        n
        for n in named
        if FUNCTION.fullmatch(n) and not NO_FUNCTION & {*plain(n).split("_")}
    ]
    return tuple(functions) if len(functions) > 1 else ()


def _named(
    names: Sequence[str], settled: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The columns that a person named, by role, and those of the rewards, written as
    "a + b". Raises GradebookError for a role or column that does not exist."""
    for key in settled:
        choice(key, NAMES, key)
    text = settled.get("reward", "")
    parts = [text] if text in names else map(str.strip, text.split("+"))
    rewards = [*filter(None, parts)]
    role = {key: name for key, name in settled.items() if name and key != "reward"}
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


def _guesses(
    kinds: Mapping[str, str],
    settled: Mapping[str, str],
    named: set[str],
    avoid: Avoid,
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The likeliest column of each role that is not `settled`, by its name and its
    cells, each column once and none of those that were `named`; and every column that
    may be it."""
    role, taken, likely = dict[str, str](), {*named}, dict[str, list[str]]()
    for key, aliases in _aliases([*kinds]).items():
        if key in settled:
            continue
        holds = HOLDS.get(ALL[key].kind, frozenset())
        fits = [n for n in kinds if kinds[n] in holds and _has_cells(key, kinds[n])]
        free = [name for name in reversed(fits) if name not in taken]
        by_name = {plain(name): name for name in free}
        candidates = [by_name[alias] for alias in aliases if alias in by_name]
        last = {EMPTY_COLUMN, TEXT} if ALL[key].kind == "number" else {EMPTY_COLUMN}
        candidates.sort(key=lambda name: (kinds[name] in last, (key, name) in avoid))
        if candidates:
            role[key] = candidates[0]
            taken.add(candidates[0])
            likely[key] = candidates
    return role, likely


def _is_by_place(names: Sequence[str], role: Mapping[str, str]) -> bool:
    """Groups are cut by position, as in TRL's own log."""
    if not {"prompt", "completion", "advantage"} <= {*names} or "prompt" not in role:
        return False
    return role["prompt"] == "prompt" or _begins_as_trl(names)


def _reward_functions(kinds: Mapping[str, str], role: Mapping[str, str]) -> list[str]:
    """TRL's reward functions: columns of numbers between completion and advantage,
    except ids of problems and right answers."""
    names = [*kinds]
    first, last = names.index("completion") + 1, names.index("advantage")
    between = names[first:last] if first <= last else names
    ids = {*NAMES["prompt"], *NAMES["step"], *NO_REWARDS}
    no_rewards = {*role.values(), *(n for n in names if plain(n) in ids)}
    return [n for n in between if kinds[n] == NUMBER and n not in no_rewards]


def _by_name(kinds: Mapping[str, str], role: Mapping[str, str]) -> list[str]:
    """Columns of numbers whose names say that they are rewards: `accuracy_rewards`."""
    free = [n for n in kinds if kinds[n] == NUMBER and n not in role.values()]
    return [
        name
        for name in free
        if OF_REWARDS.fullmatch(plain(name)) and not STATISTIC.fullmatch(plain(name))
    ]


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
    """The canonical columns of a file's rows, of step 0 if it names none; the reward
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
    table.setdefault("step", np.zeros(len(frame), dtype="int64"))
    masks = [*map(listed, of["mask"])] if "mask" in of else [None] * len(frame)
    if "advantage" in of:
        advantage = of["advantage"]
        if has_lists(advantage):
            advantage, tokens = _one_a_row(advantage, masks, broken)
            table.setdefault("length", tokens)
        kept_steps = table.get("kept_steps", np.ones(len(frame)))
        missing = _in_unscored_prompts(table)
        excused = missing | (kept_steps == 0)
        table["advantage"] = _advantages(advantage, excused, broken)
        _refuse_lost_rewards(frame, columns, table, broken)
        table["emptied"] = _emptied(table, missing)
    if "mask" in of:
        table["length"] = _unmasked(of["mask"], masks, broken)
    _without_rejected(table, len(frame))
    _ended(table, of)
    if "steps" in table and "kept_steps" in table:
        more = table["kept_steps"] > table["steps"]
        _refuse(of["kept_steps"], more, "at most the row's steps", broken)
    rows = pd.DataFrame(table, index=frame.index)
    errors = broken.at(Path(file).name, frame.index.to_numpy())
    return rows.assign(broken=pd.Series(errors, frame.index, dtype=object))


def _rewards(
    frame: pd.DataFrame, columns: Columns, broken: Broken
) -> dict[str, np.ndarray]:
    """Each reward function's numbers, float64 [R], NaN if a row has none: such a row
    is not scored."""
    table = {}
    for number, name in enumerate(columns.rewards):
        reward = frame[name]
        if has_lists(reward):
            reward = _reward_of_tokens(reward)
        values = _numbers(reward)
        _refuse(reward, ~np.isfinite(values) & ~_empty(reward), "a number", broken)
        table[f"reward {number}"] = values
    return table


def _reward_of_tokens(column: pd.Series) -> pd.Series:
    """One reward a row of a column with a number at each token: their sum, or, if
    every row repeats its reward at all tokens, that reward."""
    tokens = column.astype(object).map(listed)
    lists = tokens.dropna()
    repeated = lists[lists.map(len) > 1].map(lambda t: np.ptp(t) <= SPREAD).all()
    read = (lambda t: t[0]) if repeated else np.sum
    totals = tokens.map(lambda t: float(read(t)) if len(t) else np.nan, "ignore")
    return totals.where(tokens.notna(), column)


def _refuse_lost_rewards(
    frame: pd.DataFrame,
    columns: Columns,
    table: Mapping[str, np.ndarray],
    broken: Broken,
) -> None:
    """Refuses rows that have an advantage and no reward: the log lost their reward.
    Nothing is refused if functions are summed, or if the log says which rows were
    scored, because then such a row may be a computation."""
    if len(columns.rewards) > 1 or columns.by_place or "scored" in table:
        return
    trained = np.abs(np.nan_to_num(table["advantage"])) > DUST
    lost = unscored_rows(table) & trained
    _refuse(frame[columns.rewards[0]], lost, "a number", broken)


def unscored_rows(table: Mapping[str, Any]) -> np.ndarray:
    """bool [R]: no reward function gave the row a number."""
    rewards = [cells for name, cells in table.items() if name.startswith("reward ")]
    return np.asarray(np.isnan(rewards).all(axis=0))


def _in_unscored_prompts(table: Mapping[str, np.ndarray]) -> np.ndarray:
    """bool [R]: a row of the same step and prompt is not scored."""
    out = unscored_rows(table)
    if not out.any() or "prompt" not in table:
        return out
    keys = pd.MultiIndex.from_arrays([table["step"], table["prompt"]])
    return keys.isin(keys[out])


def _emptied(table: dict[str, np.ndarray], missing: np.ndarray) -> np.ndarray:
    """bool [R]: a row of a prompt whose scored rows have no advantage, since a reward
    is `missing`, bool [R]. A row that is not scored and has none keeps 0."""
    advantage, out = table["advantage"], unscored_rows(table)
    empty = np.isnan(advantage)
    table["advantage"] = np.where(empty & out, 0.0, advantage)
    if not (missing & empty & ~out).any() or "prompt" not in table:
        return np.zeros(len(out), dtype=bool)
    keys = pd.MultiIndex.from_arrays([table["step"], table["prompt"]])
    has_one = keys.isin(keys[~empty & ~out])
    return missing & ~has_one


def _advantages(column: pd.Series, excused: np.ndarray, broken: Broken) -> np.ndarray:
    """float64 [R]. NaN and infinity are numbers that a trainer may have computed; the
    rows `excused`, bool [R], need none."""
    values = _numbers(column)
    if column.dtype.kind not in "fiub":
        nan = column.map(lambda cell: _word(cell).strip("+-") == "nan")
        wrong = np.isnan(values) & (~nan.eq(True) | column.isna())
        _refuse(column, wrong & ~excused, "a number", broken)
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
    """Notes an error for the cells of `rows`: they are not what was `expected`."""
    places, key = np.flatnonzero(rows), str(column.name)
    cells = column[rows]
    empty = _empty(cells)
    nan = empty & (column.dtype.kind == "f")
    if column.dtype.kind not in "fiub":
        is_word = [isinstance(c, str) and _word(c) == "nan" for c in cells]
        nan = np.array(is_word, dtype=bool)
    missing = GradebookError(key=key, expected=expected, found=EMPTY)
    is_nan = missing.at(found=NAN)

    def named(row: int) -> GradebookError:
        return missing.at(found=shown(column.iloc[row], 40))

    to.note(places[nan], lambda row: is_nan, is_nan)
    to.note(places[empty & ~nan], lambda row: missing, missing)
    to.note(places[~empty & ~nan], named, missing.at(found=""))


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
    """Each cell's number among the column's different cells, int64 [R], -1 for an empty
    cell; and these cells. A conversation, a list of messages, is one text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories
    cells = column.astype(object)
    nested = cells.map(lambda cell: isinstance(cell, list | tuple | dict | np.ndarray))
    if nested.any():
        plain = cells[nested].map(lambda cell: cell if type(cell) is dict else [*cell])
        cells = cells.where(~nested, plain.map(str))
    return pd.factorize(cells)


def _each(column: pd.Series, read: Callable[[object], float]) -> np.ndarray:
    """What `read` makes of each cell, float64 [R], NaN if it is empty."""
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


def _reader(cells: Iterable[object]) -> Callable[[object], float]:
    """What reads the numbers of a column with these cells. A comma that can only be a
    decimal one, as in 0,5, makes the other commas of its column decimal ones, too.
    Without such a cell `1,000` may be a thousand, and is no number."""
    words = [word for word in map(_word, cells) if "," in word]
    return _with_comma if any(with_point(word) != word for word in words) else _number


def _with_comma(cell: object) -> float:
    """A number of a column with decimal commas; a point would part its thousands."""
    word = _word(cell)
    if isinstance(cell, str) and "." in word:
        return math.nan
    return _number(word.replace(",", ".")) if COMMA.fullmatch(word) else _number(cell)


def _numbers(column: pd.Series) -> np.ndarray:
    if column.dtype.kind in "fiub":
        return np.array(column, dtype="float64")
    return _each(column, _reader(_kinds(column)[1]))


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
    """Numbers that tell rows apart as int64 if most are whole, else as text,
    [R]; UNKNOWN, or "", if a cell has none."""
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
    """The advantage that all unmasked tokens of a row share, 0 for a row without
    tokens, and the number of tokens. Rows with several advantages are noted in
    `broken`."""
    cells, count = list(column), np.zeros(len(column))
    ranges: dict[int, str] = {}
    for row, mask in enumerate(masks):
        tokens = listed(cells[row])
        if tokens is None:
            continue
        if mask is not None and len(mask) == len(tokens):
            tokens = tokens[mask > 0]
        count[row] = len(tokens)
        cells[row] = tokens[0] if len(tokens) else 0.0
        if len(tokens) and np.ptp(tokens) > SPREAD * max(1.0, np.abs(tokens).max()):
            ranges[row] = f"{float(tokens.min())} to {float(tokens.max())}"
    expected = "one advantage at all tokens of a row"
    differ = GradebookError(key=str(column.name), expected=expected)
    rows = np.array([*ranges], dtype="int64")
    broken.note(rows, lambda row: differ.at(found=ranges[row]), differ)
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
    if it is none."""
    if isinstance(cell, str):
        for word, number in (("True", "1"), ("False", "0"), ("None", "NaN")):
            cell = cell.replace(word, number)
    try:
        cell = json.loads(cell) if isinstance(cell, str) else cell
        values = np.array(cell, dtype="float64")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return values if values.ndim == 1 else None
