"""A state as CSV. No cell is one that a spreadsheet would run as a formula."""

import re
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gradebook.analysis.comparison import ROW_STAGES, compared
from gradebook.cases.state import State
from gradebook.core.batch import PER_TOKEN
from gradebook.core.columns import as_text, of_kind
from gradebook.core.lazy_pandas import pd

FORMULA = re.compile(r"(^|[;\t\r\n])(\s*)([=+\-@\t\r＝＋－＠])")
"""Characters that begin a formula in a spreadsheet. They are looked for after
separators too, since some programs read a semicolon as one."""


LISTED = of_kind("tokens", "list")


def csv_file(state: State) -> str:
    """The batch and every stage of both engines, one row per rollout. An empty cell is
    no value. Raises GradebookError if the batch cannot be read."""
    comparison, typed = compared(state), state.table.values()
    batch = comparison.batch
    columns: dict[str, Any] = {"row": range(batch.rows), "prompt": typed["prompt"]}
    for name in ("reward", "eos", "step", "steps", "kept_steps"):
        columns[name] = getattr(batch, name).tolist()
    columns |= {n: v for n, v in typed.items() if n not in (*columns, *LISTED)}
    columns |= _by_token("t", batch.mask)
    for name in PER_TOKEN:
        columns |= _by_token(f"{name}_t", getattr(batch, name))
    sides = {"correct": comparison.correct, "faulty": comparison.faulty}
    for stage in ROW_STAGES:
        for side, trace in sides.items():
            columns[f"{side}_{stage}"] = getattr(trace, stage).tolist()
    of_tokens = [s for s in comparison.stages if s not in ROW_STAGES and s != "weight"]
    for name in (*of_tokens, "policy_gradient", "kl_gradient"):
        for side, trace in sides.items():
            columns |= _by_token(f"{side}_{name}_t", getattr(trace, name))
    for side, trace in sides.items():
        if trace.weight is not None:
            columns[f"{side}_weight"] = trace.weight.tolist()
        if trace.loss is not None:
            columns[f"{side}_loss_of_the_batch"] = float(trace.loss)
    return pd.DataFrame(columns).map(_safe).to_csv(index=False)


def rows_file(state: State) -> str:
    """The rows alone, as the board's "Paste rows" takes them: a mask and a list of
    numbers are one cell between brackets."""
    columns = {
        name: [*map(_in_brackets, cells)] if name in LISTED else cells
        for name, cells in state.table.values().items()
    }
    return pd.DataFrame(columns).map(_safe).to_csv(index=False)


def _in_brackets(cell: Sequence[float]) -> str:
    return f"[{', '.join(as_text(float(x)) for x in cell)}]"


def _by_token(stem: str, values: Tensor | None) -> dict[str, list[Any]]:
    lists = [] if values is None else values.T.tolist()
    return {f"{stem}{t + 1}": cells for t, cells in enumerate(lists)}


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode()
        return FORMULA.sub(r"\1\2'\3", text)
    return int(value) if isinstance(value, bool) else value
