"""Formats: the files that trainers write, as a table.

A new format is one entry here, and one small file with exactly its fields under
tests/logs/formats/, whose README names the source. Each entry was read in the writer's
own repository, at the commit that this README names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """A kind of file that a trainer writes.

    trainer, what  whose it is, and what it holds
    files          patterns of paths, as `Path.match` takes them, likeliest first:
                   what is taken of a folder
    without        patterns of files that are not taken with them
    fields         names that every such file has; none, for files of any fields
    roles          role -> the field that has it; "a.b" is the field b in the field a
    rows           the rows of one record; None if a record is a row
    lacks          why the file cannot be checked, and what can; "" if it can
    """

    trainer: str
    what: str
    files: tuple[str, ...]
    fields: frozenset[str]
    roles: Mapping[str, str] = field(default_factory=dict)
    rows: Callable[[Record], Sequence[Record]] | None = None
    without: tuple[str, ...] = ()
    lacks: str = ""

    def is_of(self, names: Iterable[str]) -> bool:
        """A file with these fields is of this format."""
        return bool(self.fields) and self.fields <= {*names}

    def unpacked(self, records: Iterable[Record]) -> list[tuple[int, Record]]:
        """The rows of these records, each with the place of its record, from 0."""
        paths = [name for name in self.roles.values() if "." in name]
        rows = []
        for place, record in enumerate(records):
            for row in self.rows(record) if self.rows else [record]:
                inside = {path: inner(row, path) for path in paths}
                rows.append((place, {**row, **inside} if paths else row))
        return rows


def inner(record: object, path: str) -> Any:
    """The field b of the field a of a record, for the path "a.b"; None without one."""
    for name in path.split("."):
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


def _traces(record: Record) -> list[Record]:
    """The rows of one of verifiers' episodes, or of one of its traces: the task or
    the group, the weighted sum of the rewards, and the advantage of every token."""
    rows: list[Record] = []
    for trace in record.get("traces", [record]):
        nodes = [n for n in trace.get("nodes") or () if isinstance(n, Mapping)]
        advantages = [a for node in nodes for a in node.get("advantages") or ()]
        mask = [bool(on) for node in nodes for on in node.get("mask") or ()]
        row = {
            "group": _group(record, trace),
            "reward": _weighted(trace.get("rewards")),
            "advantages": advantages or None,
            "length": sum(mask) or None,
        }
        rows.append({name: cell for name, cell in row.items() if cell is not None})
    return rows


def _group(record: Record, trace: Mapping[str, Any]) -> Any:
    """The group's id, else the key or the number of the task; None without any."""
    task = trace.get("task") or record.get("task")
    names = (inner(record, "group.id"), inner(task, "key"), inner(task, "data.idx"))
    return next((name for name in names if name is not None), None)


def _weighted(rewards: object) -> float | None:
    """The sum of weight times score, None if nothing was scored."""
    parts = [*rewards.values()] if isinstance(rewards, Mapping) else []
    scored = [part for part in parts if isinstance(part, Mapping) and "score" in part]
    try:
        values = [float(p["score"]) * float(p.get("weight", 1.0)) for p in scored]
    except (TypeError, ValueError):
        return None
    return sum(values) if values else None


def _rollouts_of_task(record: Record) -> list[Record]:
    """The rollouts of a line that has one task."""
    infos = record.get("rollout_infos")
    rows = infos if isinstance(infos, list) else []
    return [row for row in rows if isinstance(row, Mapping)]


def _counted_tokens(record: Record) -> list[Record]:
    """The record with the number of its response's tokens."""
    tokens = record.get("response_tokens")
    count = len(tokens) if isinstance(tokens, list) else None
    return [{**record, "response_length": count}]


OF_ONE_ROW = ("completion", "response", "output", "advantage", "advantages", "adv")
"""Names of a text or a number that only a line for one row has."""
BY_TOKEN = re.compile(r"token|mask|log_?prob|_ids$|entrop", re.IGNORECASE)
"""Names of lists with a cell for each token."""


def rows_of_groups(records: Sequence[Record]) -> list[tuple[int, Record]]:
    """The rows of lines that are a group each, with the place of their line, from 0;
    [] if the lines are no groups. A list of the group's length has a cell for each row,
    and any other cell is that of all rows. If other lines have advantages, a line
    without them whose rewards are all equal has advantages of 0: it was skipped."""
    groups = [record for record in records if isinstance(record.get("rewards"), list)]
    if not groups or not all(map(_is_group, groups)):
        return []
    has_advantages = any(record.get("advantages") for record in groups)
    rows: list[tuple[int, Record]] = []
    for place, record in enumerate(records):
        rewards = record.get("rewards") or ()
        cells = dict(record)
        if has_advantages and not record.get("advantages"):
            equal = len({*rewards}) == 1
            cells["advantages"] = [0.0 if equal else None] * len(rewards)
        for row in range(len(rewards)):
            one = {n: _of_row(cell, row, len(rewards)) for n, cell in cells.items()}
            rows.append((place, {**one, "line": place}))
    return rows


def _is_group(record: Record) -> bool:
    """`rewards` has a number for each row of a group. Lists by token beside it, or the
    text or the advantage of one row, say that these are one row's tokens."""
    if any(isinstance(record.get(name), str | int | float) for name in OF_ONE_ROW):
        return False
    lists = [name for name, cell in record.items() if isinstance(cell, list)]
    if any(map(BY_TOKEN.search, lists)):
        return False
    rewards, advantages = (
        record["rewards"],
        record.get("advantages") or record["rewards"],
    )
    numbers = all(isinstance(cell, int | float) for cell in (*rewards, *advantages))
    return numbers and len(advantages) == len(rewards)


def _of_row(cell: Any, row: int, rows: int) -> Any:
    return cell[row] if isinstance(cell, list) and len(cell) == rows else cell


TOTALS = ("total", "sum", "overall", "reward", "score")
"""Keys of an inner record of rewards that hold their sum."""


def with_parts(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records, with the numbers of an inner record `reward` or `rewards` beside
    their other cells: its total as the reward, if it has one, and each other number as
    a function's, "reward_format". Unchanged without such an inner record."""
    names = ("reward", "rewards")
    held = (n for record in records for n in names if _is_parts(record.get(n)))
    name = next(held, None)
    if name is None:
        return records
    return [
        _spread(record, name) if _is_parts(record.get(name)) else record
        for record in records
    ]


def _is_parts(cell: Any) -> bool:
    numbers = (int, float, type(None))
    is_record = isinstance(cell, Mapping) and len(cell) > 0
    return is_record and all(isinstance(number, numbers) for number in cell.values())


def _spread(record: Record, name: str) -> dict[str, Any]:
    parts = dict(record[name])
    total = next((key for key in TOTALS if key in parts), None)
    others = {n: cell for n, cell in record.items() if n != name}
    if total is not None:
        others["reward"] = parts.pop(total)
    return others | {f"reward_{key}": number for key, number in parts.items()}


OF_GROUPS = Format(
    "",
    "a line for each group",
    (),
    frozenset({"rewards"}),
    {
        "step": "step",
        "prompt": "line",
        "reward": "rewards",
        "advantage": "advantages",
    },
)
"""The format of `rows_of_groups`, which no trainer's name stands for."""

OF_TRACES = {"prompt": "group", "reward": "reward", "advantage": "advantages"}
"""The roles of the rows of `_traces`."""

FORMATS = (
    Format(
        "TRL",
        "completions",
        ("completions_*.parquet",),
        frozenset({"step", "prompt", "completion", "advantage"}),
    ),
    Format(
        "open-instruct",
        "rollouts",
        ("*_rollouts_*.jsonl",),
        frozenset({"prompt_idx", "sample_idx", "response_tokens", "advantage"}),
        {
            "step": "step",
            "prompt": "prompt_idx",
            "reward": "reward",
            "advantage": "advantage",
            "length": "response_length",
            "finish_reason": "finish_reason",
        },
        rows=_counted_tokens,
    ),
    Format(
        "prime-rl",
        "episodes",
        (
            "rollouts/step_*/train/effective/traces.jsonl",
            "rollouts/step_*/train/all/traces.jsonl",
        ),
        frozenset({"task", "traces", "ok"}),
        OF_TRACES,
        rows=_traces,
    ),
    Format(
        "verifiers",
        "traces",
        ("traces.jsonl",),
        frozenset({"task", "nodes", "rewards"}),
        OF_TRACES,
        rows=_traces,
    ),
    Format(
        "prime-rl",
        "rollouts",
        ("step_*/train_rollouts.jsonl", "train_rollouts.jsonl"),
        frozenset({"example_id", "task", "reward", "advantage"}),
        {
            "prompt": "example_id",
            "reward": "reward",
            "advantage": "advantage",
            "truncated": "is_truncated",
        },
    ),
    Format(
        "tinker-cookbook",
        "rollout summaries",
        ("train_rollout_summaries.jsonl", "*_rollout_summaries.jsonl"),
        frozenset({"iteration", "group_idx", "traj_idx", "total_reward"}),
        {"step": "iteration", "prompt": "group_idx", "reward": "total_reward"},
    ),
    Format(
        "NeMo-Gym",
        "reward profile, a line for each task",
        ("*_reward_profiling.jsonl",),
        frozenset({"_ng_task_index", "rollout_infos"}),
        {
            "prompt": "_ng_task_index",
            "reward": "reward",
            "length": "output_tokens",
        },
        rows=_rollouts_of_task,
    ),
    Format(
        "NeMo-Gym",
        "rollouts",
        (),
        frozenset({"_ng_task_index", "_ng_rollout_index", "reward"}),
        {
            "prompt": "_ng_task_index",
            "reward": "reward",
            "length": "response.usage.output_tokens",
        },
    ),
    Format(
        "NeMo-Gym",
        "rollouts without a task's number",
        (),
        frozenset({"responses_create_params", "response", "reward"}),
        {
            "prompt": "responses_create_params.input",
            "reward": "reward",
            "length": "response.usage.output_tokens",
        },
    ),
    Format(
        "NeMo-RL",
        "training data",
        ("train_data_step*.jsonl",),
        frozenset({"rewards", "advantages", "token_loss_mask", "sample_loss_mask"}),
        {
            "prompt": "",
            "reward": "rewards",
            "advantage": "advantages",
            "mask": "token_loss_mask",
            "accepted": "sample_loss_mask",
        },
    ),
    Format(
        "SkyRL",
        "evaluations",
        ("global_step_*_evals/*.jsonl",),
        frozenset({"input_prompt", "output_response", "score", "data_source"}),
        {
            "prompt": "input_prompt",
            "reward": "score",
            "finish_reason": "stop_reason",
        },
        without=("aggregated_results.jsonl",),
    ),
    Format(
        "verl",
        "rollout or validation dump",
        ("[0-9]*.jsonl",),
        frozenset({"input", "output", "score"}),
        {"step": "step", "prompt": "input", "reward": "score"},
    ),
    Format(
        "OpenRLHF",
        "generated samples",
        ("generated_samples_*.table.json",),
        frozenset({"global_step", "text", "reward"}),
        lacks="OpenRLHF logs one sample a step, so no two rows share a prompt. Record"
        " the whole batch, for example with gradebook.Recorder",
    ),
    Format("W&B", "table", ("*.table.json",), frozenset()),
    Format(
        "prime-rl",
        "token exports",
        ("token_exports/step_*/rank_*.jsonl", "step_*/rank_*.jsonl"),
        frozenset({"export_sequence_idx", "loss_mask", "advantages"}),
        lacks="prime-rl's token exports hold advantages by token, without rewards and"
        " prompts. Check the folder `rollouts` of the same run",
    ),
)
"""The formats, in the order in which a folder is searched for them."""


def format_of(names: Iterable[str]) -> Format | None:
    """The format of a file with these fields."""
    names = [*names]
    return next((each for each in FORMATS if each.is_of(names)), None)


def of_folder(paths: Sequence[Path]) -> list[Path]:
    """The files of a folder that are of the first format with any; [] without one."""
    for each in FORMATS:
        for pattern in each.files:
            matches = [path for path in paths if path.match(pattern)]
            matches = [p for p in matches if not any(map(p.match, each.without))]
            if matches:
                return matches
    return []
